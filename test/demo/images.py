#!/usr/bin/env python3
"""The demo's images, with the standard library alone:

    images.py shape IN.npy DIM...                        IN.npy with another shape of the same size, on stdout
    images.py first N IN.npy                             the first N of its first dimension, on stdout
    images.py begins A.npy B.npy N                       whether B is the first N of A, by its bits
    images.py report IMAGES.npy LABELS.npy LOGITS.npy    how many are right, and two of them drawn
"""
import array
import ast
import sys

SHADES = " ░▒▓█"
TYPES = {"<f4": "f", "<i8": "q"}


def read(path):
    """A .npy file of version 1: its type, shape and bytes."""
    with open(path, "rb") as file:
        data = file.read()
    end = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:end].decode())
    return header["descr"], header["shape"], data[end:]


def values(path):
    descr, shape, data = read(path)
    return array.array(TYPES[descr], data), shape


def write(descr, shape, data):
    header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)


def reshape(path, *dims):
    descr, _, data = read(path)
    write(descr, tuple(map(int, dims)), data)


def first(n, path):
    descr, shape, data = read(path)
    write(descr, (int(n), *shape[1:]), data[:len(data) // shape[0] * int(n)])


def begins(whole, part, n):
    (descr, shape, data), (part_descr, part_shape, part_data) = read(whole), read(part)
    size = len(data) // shape[0] * int(n)
    if (part_descr, part_shape, part_data) != (descr, (int(n), *shape[1:]), data[:size]):
        sys.exit(f"{part} is not the first {n} of {whole}")


def picture(pixels):
    """8x8 values in [0,1] -> 8 lines, two characters a pixel."""
    return ["".join(SHADES[round(p * (len(SHADES) - 1))] * 2 for p in pixels[8 * y:8 * y + 8]) for y in range(8)]


def report(images_path, labels_path, logits_path):
    images, _ = values(images_path)
    labels, _ = values(labels_path)
    logits, (count, classes) = values(logits_path)
    rows = [logits[classes * i:classes * (i + 1)] for i in range(count)]
    found = [row.index(max(row)) for row in rows]
    right = sum(f == l for f, l in zip(found, labels))
    print(f"{right} of {count} right: {100 * right / count:.1f} %\n")
    wrong = next((i for i in range(count) if found[i] != labels[i]), 1)
    shown = [0, wrong]  # the first, and the first that is wrong
    left, beside = (picture(images[64 * i:64 * (i + 1)]) for i in shown)
    print("\n".join(f"  {a}    {b}" for a, b in zip(left, beside)))
    said = [f"predicted {found[i]}, it is {labels[i]}" for i in shown]
    print(f"  {said[0]:16}    {said[1]}")


if __name__ == "__main__":
    {"shape": reshape, "first": first, "begins": begins, "report": report}[sys.argv[1]](*sys.argv[2:])

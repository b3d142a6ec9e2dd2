#!/usr/bin/env python3
"""Writes num_tables.h: conversions as numpy and ml_dtypes do them, for num_test.cc.

    python3 num_tables.py > num_tables.h        # needs numpy and ml_dtypes

Long tables are written as one FNV-1a hash over the results (8 bytes each, little endian). Inputs of the encoding tables
are the numbers of `stream`; f8 types saturate, as ONNX wants it; then come the same without.
"""
import numpy as np
import ml_dtypes as ml

FLOATS = {
    "F16": np.float16, "BF16": ml.bfloat16, "F8E4M3FN": ml.float8_e4m3fn, "F8E4M3FNUZ": ml.float8_e4m3fnuz,
    "F8E5M2": ml.float8_e5m2, "F8E5M2FNUZ": ml.float8_e5m2fnuz, "F4E2M1": ml.float4_e2m1fn,
}
MASK = (1 << 64) - 1


def fnv(values):
    h = 0xCBF29CE484222325
    for b in np.asarray(values, np.uint64).astype("<u8").tobytes():
        h = (h ^ b) * 0x100000001B3 & MASK
    return h


def stream(n, seed=1):
    """The generator of num_test.cc: 64-bit numbers of a linear congruence, high half folded in."""
    out, s = [], seed
    for _ in range(n):
        s = (s * 6364136223846793005 + 1442695040888963407) & MASK
        out.append(s ^ s >> 33)
    return np.array(out, np.uint64)


def bits(a):
    return a.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize]).astype(np.uint64)


def odd32(x):
    """f64 -> f32, rounded to odd: rounding the result again to a smaller type is then one correct rounding."""
    y = x.astype(np.float32)
    code = y.view(np.uint32).copy()
    even = (y.astype(np.float64) != x) & (code & np.uint32(1) == 0) & ~np.isnan(x)
    up = np.abs(y.astype(np.float64)) < np.abs(x)
    code[even & up] += np.uint32(1)
    code[even & ~up] -= np.uint32(1)
    return code.view(np.float32)


def canonical(code, nan, nan_code):
    return np.where(nan, np.uint64(nan_code), code)


def encode(x, t, saturate):
    """Codes of x in t. The NaN codes are compared by another test: here they are all -1."""
    name = [k for k, v in FLOATS.items() if v is t][0]
    y = x if x.dtype == np.float32 else odd32(x)
    if saturate and name.startswith("F8"):
        largest = float(ml.finfo(t).max)
        y = np.clip(y, np.float32(-largest), np.float32(largest))
    code = bits(y.astype(t))
    if name == "F4E2M1":  # NaN is -0.0 whatever its sign
        return canonical(code & np.uint64(15), np.isnan(x), 8)
    return canonical(code, np.isnan(y.astype(t).astype(np.float64)), MASK)


def main():
    np.seterr(all="ignore")
    f32 = stream(20000).astype(np.uint32).view(np.float32)
    # Exponents that matter to small types: sign, 2^-30 .. 2^33, random mantissa.
    s = stream(20000, 2)
    near32 = ((s & 0x807FFFFF) + ((97 + (s >> 40) % 64) << 23)).astype(np.uint32).view(np.float32)
    near64 = ((s & 0x800FFFFFFFFFFFFF) + ((993 + (s >> 53) % 64) << 52)).astype(np.uint64).view(np.float64)
    ints = (stream(20000, 3).astype(np.int64) >> (stream(20000, 4) % 64).astype(np.int64)).astype(np.int64)
    print("// Made by num_tables.py with numpy and ml_dtypes; do not edit.\n#pragma once\n")
    print("#include <cstdint>\n\n#include \"num/dtype.h\"\n\nnamespace mlc {\n")
    print("struct FloatTable {\n  DType type;\n  uint64_t decoded, f32, near32, near64, ints, loose;\n};")
    print("// decoded: f32 bits of all codes (NaN: -1). The rest: codes of inputs; loose: near32 without saturation.")
    print("inline const FloatTable kFloatTables[] = {")
    for name, t in FLOATS.items():
        n = 16 if name == "F4E2M1" else 1 << (8 * np.dtype(t).itemsize)
        codes = np.arange(n, dtype=np.uint8 if n <= 256 else np.uint16).view(t).astype(np.float32)
        decoded = canonical(bits(codes), np.isnan(codes), MASK)
        exact = ints.astype(np.float64)  # then to odd, as in odd32
        back = np.array([int(v) for v in exact], object)
        odd = exact.view(np.uint64).copy()
        for i, v in enumerate(ints):
            v = int(v)
            if back[i] != v and not odd[i] & np.uint64(1):
                odd[i] = odd[i] + np.uint64(1) if abs(v) > abs(back[i]) else odd[i] - np.uint64(1)
        rows = [decoded, encode(f32, t, True), encode(near32, t, True), encode(near64, t, True),
                encode(odd.view(np.float64), t, True), encode(near32, t, False)]
        h = ["0x%016xu" % fnv(r) for r in rows]
        print("    {DType::%s, %s,\n     %s}," % (name, ", ".join(h[:3]), ", ".join(h[3:])))
    print("};")
    print("inline const uint64_t kIntToF32 = 0x%016xu, kUintToF32 = 0x%016xu;" % (
        fnv(bits(ints.astype(np.float32))), fnv(bits(stream(20000, 3).astype(np.float32)))))
    print("\n}  // namespace mlc")


main()

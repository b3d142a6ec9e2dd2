#!/usr/bin/env python3
"""Random kernels x random schedules: test/fuzz/schedules.py [--count N] [--seed N] [--steps N] [--compile EVERY]

Each kernel is changed by random steps, one call of mlc-schedule each; what is refused is drawn again. After every step
mlc-equiv compares the kernel with what it was at first, and mlc-fmt must print the text as it is; the end of it goes
through mlc-compact in the same way. Every EVERYth end is lowered to C++, compiled with warnings as errors and run
against mlc-run. What differs is kept in build/fuzz/schedules as NAME.mlc (the kernel with the script that breaks it).
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
BIN = BUILD / "bin"
KEPT = BUILD / "fuzz" / "schedules"

TOP = """reducer @top(a: f32, i: i64, c: f32, j: i64) -> (v: f32, w: i64) {
  init v: f32 = -inf
  init w: i64 = 9223372036854775807
  v: f32 = where(c > a || isnan(c) && !isnan(a), c, a)
  w: i64 = where(c > a || isnan(c) && !isnan(a), j, where(c == a || isnan(c) && isnan(a), min(i, j), i))
}

"""


def size(r):
    return r.choice([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17])


def matmul(r):
    m, n, k = (r.choice(["n", str(size(r))]), size(r), size(r))
    dims = "[n]" if m == "n" else ""
    return f"""kernel @f{dims}(a: f32[{m}, {k}], b: f32[{k}, {n}], z: f32[{n}]) -> (c: f32[{m}, {n}]) {{
  alloc y: f32[{m}, {n}]
  compute y[i in {m}, j in {n}] = sum(a[i, k] * b[k, j] for k in {k})
  compute c[i in {m}, j in {n}] = max(y[i, j] + z[j], 0.0)
}}
"""


def softmax(r):
    d = size(r)
    return f"""kernel @f[n](x: f32[n, {d}]) -> (y: f32[n, {d}]) {{
  alloc m: f32[n]
  alloc e: f32[n, {d}]
  alloc s: f32[n]
  compute m[i in n] = max(x[i, j] for j in {d})
  compute e[i in n, j in {d}] = exp(x[i, j] - m[i])
  compute s[i in n] = sum(e[i, j] for j in {d})
  compute y[i in n, j in {d}] = e[i, j] / s[i]
}}
"""


def stencil(r):
    n, t = size(r) + 4, r.choice([1, 2, 3])
    return f"""kernel @f(x: f32[{n + 2 * t}, 5]) -> (z: f32[{n}, 5]) {{
  alloc y: f32[{n + t}, 5]
  compute y[i in {n + t}, j in 5] = sum(x[i + r, j] for r in {t + 1}) * 0.5
  compute z[i in {n}, j in 5] = y[i, j] - y[i + {t}, j]
}}
"""


def conv(r):
    h, c, o = size(r), r.choice([1, 2, 3]), r.choice([1, 2, 4])
    return f"""kernel @f(x: f32[{c}, {h}], w: f32[{o}, {c}, 3]) -> (y: f32[{o}, {h}]) {{
  alloc p: f32[{c}, {h + 2}]
  compute p[c in {c}, i in {h + 2}] = where(i >= 1 && i < {h + 1}, x[c, i - 1], 0.0)
  compute y[o in {o}, i in {h}] = sum(p[c, i + r] * w[o, c, r] for c in {c}, r in 3)
}}
"""


def chain(r):
    a, b = size(r), size(r)
    return f"""kernel @f[n](x: f32[n, {a}, {b}], g: f32[{b}]) -> (z: f32[n, {b}, {a}]) {{
  alloc t: f32[n, {a}, {b}]
  alloc u: f32[n, {a}, {b}]
  compute t[i in n, j in {a}, k in {b}] = x[i, j, k] * g[k]
  compute u[i in n, j in {a}, k in {b}] = max(t[i, j, k], 0.0) + 1.0
  compute z[i in n, k in {b}, j in {a}] = u[i, j, k] * t[i, j, k]
}}
"""


def norm(r):
    d = size(r)
    return f"""kernel @f[n](x: f32[n, {d}], g: f32[{d}]) -> (y: f32[n, {d}]) {{
  alloc m: f32[n]
  alloc v: f32[n]
  compute m[i in n] = sum(x[i, j] for j in {d}) / {d}.0
  compute v[i in n] = sum((x[i, j] - m[i]) * (x[i, j] - m[i]) for j in {d}) / {d}.0
  compute y[i in n, j in {d}] = (x[i, j] - m[i]) / sqrt(v[i] + 0.00001) * g[j]
}}
"""


def argmax(r):
    m, n = size(r), size(r)
    return TOP + f"""kernel @f(x: f32[{m}, {n}]) -> (v: f32[{m}], w: i64[{m}]) {{
  compute v[i in {m}], w[i in {m}] = @top(x[i, j], i64(j) for j in {n})
}}
"""


def integers(r):
    m, k = size(r), size(r)
    return f"""kernel @f(a: i32[{m}, {k}], b: i32[{k}]) -> (c: i32[{m}]) {{
  alloc t: i32[{m}, {k}]
  compute t[i in {m}, j in {k}] = a[i, j] * b[{k - 1} - j]
  compute c[i in {m}] = sum(t[i, j] for j in {k}) + 3
}}
"""


def bias(r):
    d = size(r)
    return f"""kernel @f[n](x: f32[n, {d}], w: f32[{d}], b: f32[n]) -> (z: f32[n]) {{
  alloc y: f32[n]
  compute y[i in n] = sum(x[i, j] * w[j] for j in {d})
  compute z[i in n] = y[i] + b[i]
}}
"""


# Sums that may have no term: what they start from are blocks of their own.
def rows(r):
    return """kernel @f[n, m](x: f32[n, m]) -> (y: f32[n, m]) {
  alloc t: f32[n, m]
  alloc a: f32[n]
  alloc s: f32[n]
  compute t[i in n, j in m] = x[i, j] * 0.5
  compute a[i in n] = max(t[i, j] for j in m)
  compute s[i in n] = sum(t[i, j] - a[i] for j in m)
  compute y[i in n, j in m] = t[i, j] / s[i]
}
"""


def dense(r):
    n, kind = size(r), r.choice(["f32", "f32", "i32"])
    return f"""kernel @f[n, m](x: {kind}[n, m], w: {kind}[m, {n}], b: {kind}[{n}]) -> (z: {kind}[n, {n}]) {{
  alloc y: {kind}[n, {n}]
  compute y[i in n, j in {n}] = sum({"x[i, k]" if kind == "f32" else "(x[i, k] - b[j])"} * w[k, j] for k in m)
  compute z[i in n, j in {n}] = y[i, j] + b[j]
}}
"""


def windows(r):
    n, t = size(r) + 4, r.choice([1, 2])
    return TOP + f"""kernel @f[m](x: f32[{n + t}, m]) -> (z: f32[{n}], v: f32[{n}], w: i64[{n}]) {{
  alloc y: f32[{n + t}]
  compute y[i in {n + t}] = sum(x[i, j] for j in m)
  compute v[i in {n}], w[i in {n}] = @top(x[i, j], i64(j) for j in m)
  compute z[i in {n}] = y[i] - y[i + {t}] + v[i]
}}
"""


MAKERS = [bias, matmul, softmax, stencil, conv, chain, norm, argmax, integers, rows, dense, windows]


class Kernel:
    """What can be named in a kernel's text: blocks with the number of loops around each, computes, buffers."""

    def __init__(self, text):
        body = text[text.index("kernel @f"):]
        self.computes = re.findall(r"^ +compute (\w[\w.]*)\[", body, re.M)
        head = body[:body.index("\n")]
        self.own = re.findall(r"^ +alloc ([\w.]+):", body, re.M)
        self.buffers = re.findall(r"[(, ](\w+): \w+\[", head) + self.own
        self.loops = {}  # block -> loops around it, up to a block around
        stack, pending = [], 0
        for line in body.splitlines()[1:]:
            if re.match(r" +for ", line):
                pending += 1
                if line.endswith("{"):
                    stack.append(pending)
                    pending = 0
            elif m := re.match(r" +block ([\w.]+) \{", line):
                count = 0
                for n in reversed(stack):
                    if n is None:
                        break
                    count += n
                self.loops[m[1]] = count
                stack.append(None)
            elif line.strip() == "}" and stack:
                stack.pop()
            elif line.endswith("{"):
                stack.append(0)


FACTORS = ["[_, 2]", "[_, 3]", "[_, 4]", "[2, _]", "[_, 2, 2]", "[4, _]", "[_, 1]", "[1, _]", "[_, 8]"]
MAPS = ["[i, j] -> [j, i]", "[i, j] -> [i // 2, j, i % 2]", "[i] -> [i // 4, i % 4]", "[i, j] -> [i, j // 2, j % 2]"]

GROUPS = ["[[i], [j], [k]], [4, 1, 8]", "[[i, j], [k]], [1, 4]", "[[i], [j]], [1, 4]"]
ACCESSES = ["[i, j] -> [i, j]", "[i, j, k] -> [[i, 1], k]", "[i, j, k] -> [[k, 1], j]", "[i, j] -> [[i, 1], [j, 1]]"]


def step(r, k):
    """The lines of one random step. A compute becomes blocks first."""
    if k.computes and r.random() < 0.5:
        return [f'annotate({r.choice(k.computes)}, "seen", 1)']
    blocks = list(k.loops) or k.computes
    lines, mine, other = [], [], []
    one, two = r.choice(blocks), r.choice(blocks)
    for block, prefix, out in ((one, "p", mine), (two, "q", other)):
        out += [f"{prefix}{i}" for i in range(k.loops.get(block, 0))]
        if out:
            lines.append(f"{', '.join(out)} = get_loops({block})")
    loop = r.choice(mine) if mine else "none_there"
    far = r.choice(other) if other else "none_there"

    def some(shuffled):
        if len(mine) < 2:
            return "none, there"
        picked = r.sample(range(len(mine)), r.randint(2, len(mine)))
        if not shuffled:
            first = r.randrange(len(mine) - 1)
            picked = [first, first + 1]
        return ", ".join(mine[i] for i in picked)

    buffer, scope = r.choice(k.buffers), r.choice(["global", "local", "shared"])
    own = r.choice(k.own or ["none_there"])  # to change the layout of a parameter changes the kernel's signature
    calls = {
        "split": lambda: f"{loop}, {r.choice(FACTORS)}",
        "reorder": lambda: some(True),
        "fuse": lambda: some(False),
        "merge": lambda: f"{loop}, {far}",
        "loop_partition": lambda: f"{loop}, {r.choice(['[1, _]', '[_, 2]', '[1, _, 1]'])}",
        "add_unit_loop": lambda: r.choice([loop, one]),
        "parallel": lambda: loop,
        "vectorize": lambda: loop,
        "unroll": lambda: loop,
        "compute_at": lambda: f"{one}, {far}",
        "reverse_compute_at": lambda: f"{one}, {far}",
        "compute_inline": lambda: one,
        "reverse_compute_inline": lambda: one,
        "decompose_reduction": lambda: f"{one}, {loop}",
        "rfactor": lambda: f"{loop}, {r.choice([0, 1, -1])}",
        "fuse_reduction_epilogue": lambda: f"{one}, {two}",
        "blockize": lambda: r.choice([loop, f"{one}, {two}", ", ".join(r.sample(blocks, min(3, len(blocks))))]),
        "cache_read": lambda: f"{one}, {buffer}, {scope}",
        "cache_write": lambda: f"{one}, {buffer}, {scope}",
        "cache_inplace": lambda: f"{one}, {buffer}, {scope}",
        "cache_index": lambda: one,
        "reindex": lambda: f"{one}, {buffer}",
        "reindex_cache_read": lambda: f"{one}, {buffer}, {scope}, {r.choice(MAPS)}",
        "reindex_cache_write": lambda: f"{one}, {buffer}, {scope}, {r.choice(MAPS)}",
        "read_at": lambda: f"{loop}, {r.choice([one, two])}, {buffer}, {scope}",
        "write_at": lambda: f"{loop}, {r.choice([one, two])}, {buffer}, {scope}",
        "pipeline": lambda: f"{loop}, {r.choice([2, 2, 3])}",
        "set_scope": lambda: f"{one}, {own}, {scope}",
        "storage_align": lambda: f"{one}, {own}, {r.choice([0, 0, 1])}, {r.choice([4, 16])}, {r.choice([0, 1, 3])}",
        "annotate_buffer_access": lambda: f"{one}, {buffer}, {r.choice(ACCESSES)}",
        "reorder_block_iter_var": lambda: f"{one}, {r.choice(['[1, 0]', '[1, 2, 0]', '[2, 0, 1]'])}",
        "decompose_padding": lambda: f"{one}, {loop}",
        "pad_einsum": lambda: f"{one}, {r.choice(['[4, 4, 4]', '[2, 1, 8]', '[1, 4]'])}",
        "pack_einsum": lambda: f"{one}, {r.choice(GROUPS)}",
        "round_up": lambda: f"{one}, {r.choice(['[4, 1]', '[4, 1, 1]', '[4, 2, 1]'])}",
        "distribute": lambda: one,
        "transform_layout": lambda: f"{one}, {own}, {r.choice(MAPS)}",
        "transform_block_layout": lambda: f"{one}, {r.choice(MAPS)}",
        "rolling_buffer": lambda: f"{one}, {buffer}",
        "contract": lambda: one,
    }
    often = ["split", "reorder", "compute_at", "reverse_compute_at", "decompose_reduction", "rfactor"]
    name = r.choice(list(calls) + 2 * often)
    call = f"{name}({calls[name]()})"
    if name == "transform_layout" and r.random() < 0.3:
        call += " {pad_value = 0.0}"
    if name.endswith("compute_at") and r.random() < 0.3:
        call += f" {{index = {r.choice([-1, -2, 0, 1, 2])}, preserve_unit_loops = {r.choice([0, 1])}}}"
    if name == "pack_einsum":
        call = "g0 = " + call
    if name == "blockize" and r.random() < 0.3:
        call += " {preserve_unit_iters = 0}"
    if name == "cache_read" and r.random() < 0.3:
        call += f" {{consumers = [{one}]}}"
    return lines + [call]


def run(tool, text, *args):
    return subprocess.run([BIN / tool, *map(str, args)], input=text, capture_output=True, text=True, timeout=120)


def with_script(text, steps):
    return text + "\nschedule @f {\n" + "".join(f"  {s}\n" for s in steps) + "}\n"


def compiled(folder, before, after, seed):
    """Why the emitted C++ of `after` does not do what `before` does in the interpreter; nothing: it does."""
    (folder / "before.mlc").write_text(before)
    out, binary = folder / "out", folder / "f"
    checked = ["--checked"] if seed % 2 else []  # no subscript is outside, so it changes nothing
    made = run("mlc-codegen", after, "--name", "f", "--main", *checked, "-o", out)
    if made.returncode:
        return "mlc-codegen: " + made.stderr
    flags = "-std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror -fsanitize=undefined -fno-sanitize-recover=all".split()
    built = subprocess.run(["g++", *flags, *out.glob("*.cc"), "-o", binary], capture_output=True, text=True)
    if built.returncode:
        return built.stderr[:2000]
    params, results = re.search(r"^kernel @f(?:\[[nm, ]+\])?\((.*)\) -> \((.*)\) \{", before, re.M).groups()
    values = numpy.random.default_rng(seed)
    inputs = []
    for i, (kind, dims) in enumerate(re.findall(r"\w+: (\w+)\[([^\]]*)\]", params)):
        shape = [{"n": 3, "m": 5}.get(d) or int(d) for d in dims.split(", ")]
        x = values.integers(-9, 9, shape).astype("int32") if kind == "i32" else values.standard_normal(shape).astype("float32")
        numpy.save(folder / f"in{i}.npy", x)
        inputs.append(folder / f"in{i}.npy")
    want = run("mlc-run", "", folder / "before.mlc", *(a for i in inputs for a in ("-i", i)), "-o", folder / "want%d.npy")
    got = subprocess.run([binary, *inputs, "-o", folder / "got%d.npy"], capture_output=True, text=True)
    if want.returncode or got.returncode:
        return want.stderr + got.stderr
    for i in range(results.count(":")):
        w, g = (numpy.load(folder / f"{k}{i}.npy") for k in ("want", "got"))
        if w.shape != g.shape or not numpy.allclose(w, g, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"output {i} of the emitted code differs: {w.ravel()[:4]} .. and {g.ravel()[:4]} .."
    return ""


def one(seed, o, counts):
    r = random.Random(seed)
    text = "mlc 1\n\n" + r.choice(MAKERS)(r)
    now, done = text, []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        (folder / "before.mlc").write_text(text)
        for _ in range(o.steps):
            s = step(r, Kernel(now))
            made = run("mlc-schedule", with_script(now, s))
            name = s[-1].split("(")[0].split()[-1]
            counts.setdefault(name, [0, 0])
            if made.returncode not in (0, 1):
                return s, now, f"mlc-schedule ended with {made.returncode}: {made.stderr[-500:]}"
            if made.returncode:
                if "[mlc-schedule]" not in made.stderr or " error: " not in made.stderr:
                    return s, now, "no error message: " + made.stderr
                # What a step makes must be a program; the verifier speaks without naming the step.
                if f": {name}: " not in made.stderr:
                    return s, now, "made what is no program: " + made.stderr
                counts[name][1] += 1
                continue
            counts[name][0] += 1
            (folder / "after.mlc").write_text(made.stdout)
            same = run("mlc-equiv", "", "--runs", 4, folder / "before.mlc", folder / "after.mlc")
            if same.returncode:
                return s, now, (same.stdout + same.stderr)[:1500]
            if run("mlc-fmt", made.stdout).stdout != made.stdout:
                return s, now, "mlc-fmt prints it in another way"
            now = made.stdout
            done += s
        small = run("mlc-compact", now)
        (folder / "small.mlc").write_text(small.stdout)
        same = small if small.returncode else run("mlc-equiv", "", "--runs", 4, folder / "before.mlc", folder / "small.mlc")
        if same.returncode or run("mlc-fmt", small.stdout).stdout != small.stdout:
            return done, text, ("mlc-compact: " + same.stdout + same.stderr)[:1500]
        if o.compile and seed % o.compile == 0 and " in shared" not in now:  # which a CPU has not
            why = compiled(folder, text, now, seed)
            if why:
                return done, now, why
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--compile", type=int, default=0)
    o = p.parse_args()
    failed, counts = 0, {}
    for seed in range(o.seed, o.seed + o.count):
        try:
            bad = one(seed, o, counts)
        except subprocess.TimeoutExpired as e:
            bad = [], "", f"timeout: {e.cmd}"
        if bad:
            failed += 1
            steps, text, why = bad
            KEPT.mkdir(parents=True, exist_ok=True)
            (KEPT / f"{seed}.mlc").write_text(with_script(text, steps) if text else "")
            print(f"seed {seed}: {'; '.join(steps)}: {why}\n")
    for name, (yes, no) in sorted(counts.items()):
        print(f"{name:28} {yes:6} applied {no:6} refused", flush=True)
    print(f"{o.count - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random kernels x random schedules: test/fuzz/schedules.py [--count N] [--seed N] [--steps N] [--compile EVERY]

Each kernel is changed by random steps, one call of mlc-schedule each; what is refused is drawn again. After every step
mlc-equiv compares the kernel with what it was at first, and mlc-fmt must print the text as it is; the end of it goes
through mlc-compact in the same way, and what mlc-check could not prove of it is counted. Every EVERYth end is lowered to
C++, or CUDA C++ where loops are bound, compiled with warnings as errors and run against mlc-run. What differs is
kept in build/fuzz/schedules as NAME.mlc (the kernel with the script that breaks it).
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

from kernels import MAKERS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
BIN = BUILD / "bin"
KEPT = BUILD / "fuzz" / "schedules"

class Kernel:
    """What can be named in a kernel's text: blocks with the number of loops around each, computes, buffers."""

    def __init__(self, text):
        body = text[text.index("kernel @f"):]
        self.computes = re.findall(r"^ +compute (\w[\w.]*)\[", body, re.M)
        head = body[:body.index("\n")]
        self.own = re.findall(r"^ +alloc ([\w.]+):", body, re.M)
        self.buffers = re.findall(r"[(, ](\w+): \w+\[", head) + self.own
        self.axes = {}   # block -> its axes
        self.loops = {}  # block -> loops around it, up to a block around
        self.lines = {}  # block -> what stands in it
        stack, pending = [], 0
        inside = None
        for line in body.splitlines()[1:]:
            if inside:
                self.lines[inside] += line + "\n"
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
                self.axes[m[1]], self.lines[m[1]] = [], ""
                inside = m[1]
                stack.append(None)
            elif m := re.match(r" +(?:spatial|reduce|scan) (\w+) in ", line):
                self.axes[inside].append(m[1])
            elif line.strip() == "}" and stack:
                stack.pop()
            elif line.endswith("{"):
                stack.append(0)

    def like(self, pattern):
        return [b for b, lines in self.lines.items() if re.search(pattern, lines, re.M)]

    def pairs(self):
        """Blocks of which one writes a buffer that the other reads."""
        writes = {b: set(re.findall(r"^ +(\w[\w.]*)\[[^=]*\] = ", l, re.M)) for b, l in self.lines.items()}
        reads = {b: set(re.findall(r"(\w[\w.]*)\[", "".join(re.findall(r" = (.*)", l)))) for b, l in self.lines.items()}
        return [(p, c) for p in writes for c in reads if p != c and writes[p] & reads[c]]


FACTORS = ["[_, 2]", "[_, 3]", "[_, 4]", "[2, _]", "[_, 2, 2]", "[4, _]", "[_, 1]", "[1, _]", "[_, 8]"]
MAPS = ["[i, j] -> [j, i]", "[i, j] -> [i // 2, j, i % 2]", "[i] -> [i // 4, i % 4]", "[i, j] -> [i, j // 2, j % 2]"]

THREADS = ["blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.x", "threadIdx.y", "vthread"]
ACCESSES = ["[i, j] -> [i, j]", "[i, j, k] -> [[i, 1], k]", "[i, j, k] -> [[k, 1], j]", "[i, j] -> [[i, 1], [j, 1]]"]


OFTEN = ["split", "split", "reorder", "fuse", "compute_at", "compute_at", "reverse_compute_at", "reverse_compute_at",
         "decompose_reduction", "rfactor", "vectorize", "parallel"]
ONCE = """add_unit_loop annotate annotate_buffer_access bind blockize cache_index cache_inplace cache_read cache_write compute_inline
    contract cooperative_fetch decompose_padding decompose_reduction distribute fuse_reduction_epilogue lift_padding
    loop_partition merge pack_einsum pad_einsum pipeline read_at reindex reindex_cache_read reindex_cache_write
    reorder_block_iter_var reverse_compute_inline rolling_buffer round_up set_scope storage_align transform_block_layout
    transform_layout unannotate unroll write_at""".split()
NAMES = 2 * ONCE + 2 * OFTEN + OFTEN
FITS = [("^ +reduce ", "rfactor decompose_reduction pad_einsum pack_einsum contract"), ("^ +init ", "decompose_reduction"),
        (r"where\(", "decompose_padding lift_padding"), (r" = \w[\w.]*\[[^\]]*\]$", "cooperative_fetch"),
        (r" [-+*] ", "distribute compute_inline"), ("", "")]


def step(r, k):
    """The lines of one random step. A compute becomes blocks first."""
    if k.computes and r.random() < 0.5:
        return [f'annotate({r.choice(k.computes)}, "seen", 1)']
    blocks = list(k.loops) or k.computes
    name = r.choice(NAMES)
    one, two = r.choice(blocks), r.choice(blocks)
    if r.random() < 0.8:  # where it has a chance
        one = r.choice([b for p, names in FITS if name in names.split() for b in k.like(p)] or [one])
        if pairs := k.pairs():
            producer, consumer = r.choice(pairs)
            if name in ("compute_at", "rolling_buffer", "fuse_reduction_epilogue"):
                one, two = producer, consumer
            elif name == "reverse_compute_at":
                one, two = consumer, producer
    lines, mine, other = [], [], []
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

    touched = [b for b in k.buffers if re.search(rf"(?<![\w.]){re.escape(b)}\[", k.lines.get(one, ""))]
    buffer = r.choice(touched if touched and r.random() < 0.8 else k.buffers)
    scope = r.choice(["global", "local", "shared"])
    own = r.choice(k.own or ["none_there"])  # to change the layout of a parameter changes the kernel's signature

    def multiples(n):
        return f"[{', '.join(r.choice('11234568') for _ in range(n))}]"

    def groups():
        axes = r.sample(k.axes.get(one, ["i", "j"]), len(k.axes.get(one, "ij")))
        cut = sorted(r.randrange(len(axes) + 1) for _ in range(2))
        parts = [p for p in (axes[:cut[0]], axes[cut[0]:cut[1]], axes[cut[1]:]) if p]
        return f"[{', '.join(f'[{chr(44).join(p)}]' for p in parts)}], {multiples(len(parts))}"

    axes = len(k.axes.get(one, "ij"))
    threads = ["threadIdx.x", "threadIdx.x", "threadIdx.y, threadIdx.x"]
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
        "bind": lambda: f"{loop}, {r.choice(THREADS)}",
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
        "annotate": lambda: f'{r.choice([loop, one])}, "seen", 2',
        "unannotate": lambda: f'{r.choice([loop, one])}, "seen"',
        "reorder_block_iter_var": lambda: f"{one}, {r.choice(['[1, 0]', '[1, 2, 0]', '[2, 0, 1]'])}",
        "decompose_padding": lambda: f"{one}, {loop}",
        "pad_einsum": lambda: f"{one}, {multiples(axes)}",
        "pack_einsum": lambda: f"{one}, {groups()}",
        "lift_padding": lambda: f"{one}, {buffer}",
        "round_up": lambda: f"{one}, {multiples(axes)}",
        "distribute": lambda: one,
        "cooperative_fetch": lambda: f"{one}, {r.choice(threads)}, {r.choice('124')}",
        "transform_layout": lambda: f"{one}, {own}, {r.choice(MAPS)}",
        "transform_block_layout": lambda: f"{one}, {r.choice(MAPS)}",
        "rolling_buffer": lambda: f"{one}, {buffer}",
        "contract": lambda: one,
    }
    call = f"{name}({calls[name]()})"
    if name == "transform_layout" and r.random() < 0.3:
        call += " {pad_value = 0.0}"
    if name.endswith("compute_at") and r.random() < 0.3:
        call += f" {{index = {r.choice([-1, -2, 0, 1, 2])}, preserve_unit_loops = {r.choice([0, 1])}}}"
    if name == "blockize" and r.random() < 0.3:
        call += " {preserve_unit_iters = 0}"
    if name == "cache_read" and r.random() < 0.3:
        call += f" {{consumers = [{one}]}}"
    return lines + [call]


def run(tool, text, *args):
    return subprocess.run([BIN / tool, *map(str, args)], input=text, capture_output=True, text=True, timeout=120)


def with_script(text, steps):
    return text + "\nschedule @f {\n" + "".join(f"  {s}\n" for s in steps) + "}\n"


DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64"}
NEAR = {"f16": 2e-2, "f32": 1e-4, "f64": 1e-9}  # integers are equal
FLAGS = "-std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror".split()
SHIM = ROOT / "share" / "cuda"


def inputs(params, folder, seed):
    """Arrays for the parameters, and the sizes of symbols that were drawn for them."""
    values = numpy.random.default_rng(seed)
    sizes, files = {d: int(values.choice([0, 1, 3, 5, 9])) for d in "nmk"}, []
    for i, (name, kind, dims) in enumerate(re.findall(r"(\w+): (\w+)\[([^\]]*)\]", params)):
        shape = [eval(d, {}, sizes) for d in dims.split(", ")]
        x = values.standard_normal(shape) if kind[0] == "f" else values.integers(-9 * (kind[0] == "i"), 9, shape)
        if name == "ids":
            x = values.integers(0, 2, shape)
        files.append(folder / f"in{i}.npy")
        numpy.save(files[-1], x.astype(DTYPES[kind]))
    return files


def compiled(folder, before, after, seed):
    """Why the emitted C++ of `after` does not do what `before` does in the interpreter; nothing: it does."""
    (folder / "before.mlc").write_text(before)
    out, binary = folder / "out", folder / "f"
    cuda = " bind " in after
    if cuda:  # as CUDA C++, whose blocks and threads run on the CPU
        synced = run("mlc-sync", after)
        if synced.returncode:
            return "" if "not supported here" in synced.stderr or "mlc-sync" in synced.stderr else synced.stderr
        after = synced.stdout
    checked = ["--checked"] if seed % 2 and not cuda else []  # no subscript is outside, so it changes nothing
    made = run("mlc-codegen", after, "--name", "f", "--main", *checked, "-o", out)
    if made.returncode:  # unknown sizes in local are refused
        return "" if "would need a size that is known" in made.stderr else "mlc-codegen: " + made.stderr
    flags = [*FLAGS, f"-I{SHIM}", f"-I{out}", "-x", "c++", SHIM / "mlc_cuda.cc"] if cuda else [
        *FLAGS, "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    built = subprocess.run(["g++", *flags, *out.glob("*.c[cu]"), "-o", binary], capture_output=True, text=True)
    if built.returncode:
        return built.stderr[:2000]
    params, results = re.search(r"^kernel @f(?:\[[nmk, ]+\])?\((.*)\) -> \((.*)\) \{", before, re.M).groups()
    files = inputs(params, folder, seed)
    want = run("mlc-run", "", folder / "before.mlc", *(a for i in files for a in ("-i", i)), "-o", folder / "want%d.npy")
    if want.returncode:
        return "mlc-run: " + want.stderr
    for order in ["forward", "1"] if cuda else [""]:
        got = subprocess.run([binary, *files, "-o", folder / "got%d.npy"], capture_output=True, text=True,
                             env={**os.environ, "MLC_CUDA_ORDER": order})
        if got.returncode:
            return f"the program: {got.stderr[:500]}"
        for i, kind in enumerate(re.findall(r": (\w+)\[", results)):
            w, g = (numpy.load(folder / f"{k}{i}.npy") for k in ("want", "got"))
            near = NEAR.get(kind, 0) * (1 + float(numpy.max(numpy.abs(w), initial=0, where=numpy.isfinite(w))))
            if w.shape != g.shape or not numpy.allclose(w, g, rtol=near, atol=near, equal_nan=True):
                return f"output {i} of the emitted code differs: {w.ravel()[:4]} .. and {g.ravel()[:4]} .."
    return ""


def unproved(text, causes):
    """What mlc-check cannot prove of an end, though running found it to be so."""
    for line in run("mlc-check", text, "-v").stderr.splitlines():
        if m := re.search(r"note: @f: .*?((?:parallel|vectorize|bind) loop|subscript|axis|block|size).*(not proved|depends).*", line):
            causes.setdefault(f"{m[1]} {m[2]}", []).append(m[0])


def one(seed, o, counts, causes):
    r = random.Random(seed)
    text = "mlc 1\n\n" + r.choice(MAKERS)(r)
    now, done = text, []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        (folder / "before.mlc").write_text(text)
        applied = 0
        for _ in range(5 * o.steps):
            if applied == o.steps:
                break
            s = step(r, Kernel(now))
            made = run("mlc-schedule", with_script(now, s))
            name = s[-1].split("(")[0]
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
            applied += 1
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
        unproved(small.stdout, causes)
        bound = " bind " in now
        if o.compile and seed % o.compile == 0 and (bound or " in shared" not in now):  # which a CPU has not
            why = compiled(folder, text, small.stdout if bound else now, seed)
            if why:
                return done, now, why
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--compile", type=int, default=0)
    p.add_argument("--verbose", action="store_true", help="all that mlc-check could not prove")
    o = p.parse_args()
    failed, counts, causes = 0, {}, {}
    for seed in range(o.seed, o.seed + o.count):
        try:
            bad = one(seed, o, counts, causes)
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
    for cause, l in sorted(causes.items()):
        print(f"{cause:28} {len(l):6} times, for example: {l[0]}")
        if o.verbose:
            print(*(f"    {x}" for x in l[1:]), sep="\n")
    print(f"{o.count - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

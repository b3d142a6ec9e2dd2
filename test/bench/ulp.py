#!/usr/bin/env python3
"""Measures the scalar functions of src/math/math.mlc: the largest error in units of the last place.

    ulp.py [--step N] [--full] [--samples N] [--only NAME,..] [--cxx CXX]       # the errors
    ulp.py --tables [--cxx CXX] > ../unit/math_tables.h                         # what math_test.cc compares with

Translates the text to C++ on its own (the project's emitter is not asked), compiles it with -O2 -ffp-contract=off and
compares with the C library: functions of one f32 in f64 at every N-th bit pattern (--full: all 2^32; of odd and even
ones 2^31 and a sample), functions of f64 with __float128 at N samples (uniform over bit patterns, plus dense around 0
and 1). Exit code 1 if a special value is wrong or an error is larger than BOUNDS says: the table of
man/mlc-numerics.7.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.abspath(__file__)) + "/../.."
TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "u32": "uint32_t", "u64": "uint64_t",
         "bool": "bool"}
TOKEN = re.compile(r"\s*(@?[A-Za-z_][A-Za-z0-9_.]*|0x[0-9a-fA-F]+|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+"
                   r"|\|\||&&|==|!=|<=|>=|[-+*/()<>!,])")
LEVELS = [["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/"]]


class Scalar:
    """One item of the text: name, parameters, result, lets."""

    def __init__(self, name, params, result, lets):
        self.name, self.params, self.result, self.lets = name, params, result, lets


def read(text):
    items, current = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        head = re.fullmatch(r"scalar @([\w.]+)\((.*)\) -> \((\w+): (\w+)\) \{", line)
        let = re.fullmatch(r"(\w+): (\w+) = (.*)", line)
        if head:
            params = [p.split(": ") for p in head[2].split(", ")]
            current = items[head[1]] = Scalar(head[1], params, (head[3], head[4]), [])
        elif let:
            current.lets.append((let[1], let[2], let[3]))
        elif line not in ("", "}", "mlc 1"):
            sys.exit(f"math.mlc:{number}: not understood: {line}")
    return items


class Expression:
    """An expression as C++; `type` is None for a literal until `fix` gives it one. A product has a third part, its
    factors, for the form with fused multiply-adds."""

    def __init__(self, scalar, types, items, text, fused=False):
        self.types, self.items, self.twin, self.fused = types, items, fused, fused
        self.tokens, at = [], 0
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m:
                sys.exit(f"@{scalar.name}: not understood: {text[at:]}")
            self.tokens.append(m[1])
            at = m.end()
        self.tokens.append("")

    def parse(self, want):
        tree = self.binary(0)
        assert self.tokens[0] == "", self.tokens
        return self.fix(tree, want)

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.tokens[0] in LEVELS[level]:
            op = self.tokens.pop(0)
            left = self.joined(op, left, self.binary(level + 1))
        return left

    def joined(self, op, a, b):
        kind = a[0] or b[0]
        result = "bool" if op in LEVELS[2] or op in ("||", "&&") else kind
        if kind is None:
            return (None, lambda t: f"({a[1](t)} {op} {b[1](t)})")
        if self.fused and kind == "f32" and op in "+-" and (len(a) > 2 or len(b) > 2):
            (x, y), z = (b[2], a) if len(b) > 2 else (a[2], b)
            minus = ("-", "") if len(b) > 2 else ("", "-")
            sign = minus if op == "-" else ("", "")
            text = f"std::fma({sign[0]}{self.fix(x, kind)}, {self.fix(y, kind)}, {sign[1]}{self.fix(z, kind)})"
            return (kind, lambda t: text)
        text = f"({self.fix(a, kind)} {op} {self.fix(b, kind)})"
        if kind in TYPES and kind[0] in "iu" and result == kind:  # modulo 2^n
            wide = f"uint{kind[1:]}_t"
            text = f"{TYPES[kind]}({wide}({self.fix(a, kind)}) {op} {wide}({self.fix(b, kind)}))"
        return (result, lambda t: text, (a, b)) if op == "*" else (result, lambda t: text)

    def fix(self, tree, want):
        assert tree[0] in (None, want), (tree[0], want, tree[1](want))
        return tree[1](want)

    def unary(self):
        if self.tokens[0] in ("-", "!"):
            op = self.tokens.pop(0)
            a = self.unary()
            return (a[0], lambda t: f"({op}{a[1](t)})")
        return self.primary()

    def arguments(self, plain):
        """The first `plain` of them are not contracted."""
        args, fused = [], self.fused
        assert self.tokens.pop(0) == "("
        while self.tokens[0] != ")":
            self.fused = fused and len(args) >= plain
            args.append(self.binary(0))
            if self.tokens[0] == ",":
                self.tokens.pop(0)
        self.tokens.pop(0)
        self.fused = fused
        return args

    def primary(self):
        t = self.tokens.pop(0)
        if t == "(":
            inner = self.binary(0)
            assert self.tokens.pop(0) == ")"
            return inner
        if t[0].isdigit() or t in ("inf", "nan"):  # a literal
            return (None, lambda want: self.literal(t, want))
        if t in ("true", "false"):
            return ("bool", lambda want: t)
        if self.tokens[0] != "(":
            kind = self.types[t]
            return (kind, lambda want: t)
        args = self.arguments(9 if t.startswith("bits.") or t in TYPES else int(t == "where"))
        if t[0] == "@":
            callee = self.items[t[1:]]
            text = ", ".join(self.fix(a, p[1]) for a, p in zip(args, callee.params, strict=True))
            name = twin(t[1:]) if self.twin and twin(t[1:]) in self.items else t[1:]
            return (callee.result[1], lambda want: f"{mangled(name)}({text})")
        if t.startswith("bits."):
            return (t[5:], lambda want: f"bits<{TYPES[want]}>({self.known(args[0])})")
        if t in TYPES:
            return (t, lambda want: f"cast<{TYPES[want]}>({self.known(args[0])})")
        if t in ("isnan", "isinf"):
            return ("bool", lambda want: f"std::{t}({self.known(args[0])})")
        if t == "where":
            condition = self.fix(args.pop(0), "bool")
            kind = args[0][0] or args[1][0]
            return (kind, lambda want: f"({condition} ? {args[0][1](want)} : {args[1][1](want)})")
        kind = next((a[0] for a in args if a[0]), None)
        return (kind, lambda want: f"m_{t}({', '.join(a[1](want) for a in args)})")

    def known(self, tree):
        assert tree[0], "a literal without a type"
        return tree[1](tree[0])

    def literal(self, t, want):
        if want in ("f32", "f64"):
            assert not t.isdigit(), f"an integer literal {t} for {want}"
            if t in ("inf", "nan"):
                return f"{TYPES[want]}({'INFINITY' if t == 'inf' else 'NAN'})"
            return f"float({t})" if want == "f32" else t
        return f"{TYPES[want]}({t}u)" if int(t, 0) >= 1 << 31 else f"{TYPES[want]}({t})"


def twin(name):
    return name.replace(".f32", ".fma.f32")


def mangled(name):
    return "s_" + name.replace(".", "_")


def translate(items):
    """As C++; `items` gets those with fused multiply-adds, too: of f32, where there is something to fuse."""
    out = []
    for name in list(items):
        for fused in (False, True) if name.endswith(".f32") else (False,):
            s = items[name]
            params = ", ".join(f"{TYPES[t]} {n}" for n, t in s.params)
            body, types = "", dict(s.params)
            for let, kind, text in s.lets:
                value = Expression(s, types, items, text, fused and kind == "f32").parse(kind)
                body += f"  const {TYPES[kind]} {let} = {value};\n"
                types[let] = kind
            if fused and not re.search(r"std::fma|_fma_f32\(", body):
                continue
            if fused:
                items[twin(name)] = s
            head = f"static inline {TYPES[s.result[1]]} {mangled(twin(name) if fused else name)}({params})"
            out.append(f"{head} {{\n{body}  return {s.result[0]};\n}}")
    return "\n".join(out)


# The largest errors allowed, in ULP: of f32 (over all inputs; pow over samples) and f64 (over samples).
BOUNDS = {
    "exp": (1.03, 1), "exp.fma": (1.1,), "expm1": (2, 2), "log": (1, 1), "log1p": (2.5, 2.5), "sigmoid": (2.5, 2.5),
    "softplus": (3, 3), "tanh": (2.75, 1.5), "erf": (1.5, 1.5), "rsqrt": (1.5, 1.5), "sin": (0.51, 1), "cos": (0.51, 1),
    "tan": (0.51, 2.5), "asin": (2.5, 2.5), "acos": (1.5, 1.5), "atan": (1.6, 2), "sinh": (2, 2), "cosh": (1.5, 1.5),
    "cosh.fma": (1.6,), "asinh": (3, 3), "acosh": (3, 3), "atanh": (3.5, 3.5), "pow": (0.51, 1.5),
}

# NAME: special inputs and results, as (x, y) texts in C++; the signs of zeros count.
SPECIAL = {
    "exp": "0,1 -0.,1 I,I -I,0 N,N", "expm1": "0,0 -0.,-0. I,I -I,-1 N,N", "log": "1,0 0,-I -0.,-I I,I -1,N -I,N N,N",
    "log1p": "0,0 -0.,-0. -1,-I I,I -2,N -I,N N,N", "tanh": "0,0 -0.,-0. I,1 -I,-1 N,N",
    "sigmoid": "0,0.5 -0.,0.5 I,1 -I,0 N,N", "softplus": "I,I -I,0 N,N", "erf": "0,0 -0.,-0. I,1 -I,-1 N,N",
    "sin": "0,0 -0.,-0. I,N -I,N N,N", "cos": "0,1 -0.,1 I,N -I,N N,N", "tan": "0,0 -0.,-0. I,N -I,N N,N",
    "asin": "0,0 -0.,-0. 2,N -2,N I,N N,N", "acos": "1,0 2,N -2,N -I,N N,N", "atan": "0,0 -0.,-0. N,N",
    "sinh": "0,0 -0.,-0. I,I -I,-I N,N", "cosh": "0,1 -0.,1 I,I -I,I N,N", "asinh": "0,0 -0.,-0. I,I -I,-I N,N",
    "acosh": "1,0 0.5,N -1,N -I,N I,I N,N", "atanh": "0,0 -0.,-0. 1,I -1,-I 2,N -2,N I,N N,N",
    "rsqrt": "1,1 4,0.5 0,I -0.,-I I,0 -1,N -I,N N,N",
}
# f(-x) is f(x) or -f(x) by a bit operation at the end: the negative half is sampled.
SYMMETRIC = {"tanh", "erf", "sin", "cos", "tan", "asin", "atan", "sinh", "cosh", "asinh", "atanh"}
POW_SPECIAL = (
    "N,0,1 N,-0.,1 1,N,1 1,I,1 1,-I,1 -1,I,1 -1,-I,1 0,0,1 0,1,0 -0.,1,-0. -0.,2,0 -0.,3,-0. 0,-1,I -0.,-1,-I -0.,-2,I "
    "-0.,0.5,0 -0.,-0.5,I 0,I,0 0,-I,I -0.,-I,I I,1,I I,-1,0 -I,1,-I -I,2,I -I,3,-I -I,-1,-0. -I,-2,0 -I,0.5,I "
    "-I,-0.5,0 2,I,I 2,-I,0 0.5,I,0 0.5,-I,I -2,I,I -0.5,I,0 -2,3,-8 -2,2,4 -2,0.5,N -1,0.5,N "
    "N,1,N 1.5,N,N -1,N,N 0,N,N I,N,N 2,-1,0.5 2,10,1024 4,0.5,2 -2,-3,-0.125 10,2,100 "
    "I,I,I I,-I,0 -I,I,I -I,-I,0 I,0,1 2,0,1 -1,1e30,1 -2,1e30,I")

TABLE_HEAD = """// Made by test/bench/ulp.py --tables; do not edit.
#pragma once
#include <cstdint>

namespace mlc {

struct MathTable {
  const char *name;
  double bound;   // ULP
  uint64_t hash;  // of the results for 4096 inputs, as g++ compiles the text
};
inline const MathTable kMathTables[] = {
"""

HARNESS = open(os.path.dirname(os.path.abspath(__file__)) + "/ulp.cc.in").read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", type=int, default=1009)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--samples", type=int, default=400000)
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--cxx", default="g++")
    args = parser.parse_args()
    items = read(open(ROOT + "/src/math/math.mlc").read())
    only = set(args.only.split(",")) if args.only else None
    calls, harness = [], HARNESS
    text = translate(items)
    for name in items:
        base, _, kind = name.replace(".fma", "").rpartition(".")
        if not (base in SPECIAL or base == "pow") or (only and not only & {base, name}):
            continue
        bound = BOUNDS.get(name[:-4], BOUNDS[base])[kind == "f64"]
        f, cxx = mangled(name), TYPES[kind]
        if args.tables:
            calls.append(f'hash<{cxx}>("{name}", {f}, {bound});')
            continue
        if base == "pow":
            for row in POW_SPECIAL.split():
                x, y, z = row.split(",")
                calls.append(f'special<{cxx}>("{name}", {cxx}({x}), {f}({cxx}({x}), {cxx}({y})), {cxx}({z}));')
            ref = "double" if kind == "f32" else "__float128"
            samples = "samples" if kind == "f64" else "samples * 50"
            calls.append(f'two<{cxx}, {ref}>("{kind}", {f}, ref_pow, {samples}, {bound});')
            continue
        for row in SPECIAL[base].split():
            x, y = row.split(",")
            calls.append(f'special<{cxx}>("{name}", {cxx}({x}), {f}({cxx}({x})), {cxx}({y}));')
        if kind == "f32":
            functions = f"[](float x) {{ return {f}(x); }}, [](double x) {{ return ref_{base}(x); }}"
            calls.append(f'one("{name[:-4]}", {functions}, MANY_OF({base}), step, {int(base in SYMMETRIC)}, {bound});')
        else:
            calls.append(f'one64("{base}", {f}, [](__float128 x) {{ return ref_{base}(x); }}, samples, {bound});')
    if args.tables:
        calls.insert(0, f"printf({json.dumps(TABLE_HEAD)});")
        harness = re.sub(r"// ---- with references.*// ---- without", "", HARNESS, flags=re.S)
        calls.append('printf("};\\n\\n}  // namespace mlc\\n");')
    source = harness.replace("@FUNCTIONS@", text).replace("@CALLS@", "\n".join("  " + c for c in calls))
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/ulp.cc"
        open(path, "w").write(source)
        if os.environ.get("ULP_KEEP"):
            open(os.environ["ULP_KEEP"], "w").write(source)
        flags = [] if args.tables else ["-lquadmath"]
        if args.full and "avx512f" in open("/proc/cpuinfo").read():
            flags += ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-lmvec"]
        command = [args.cxx, "-std=gnu++20", "-O2", "-mfma", "-ffp-contract=off", "-w", path, "-o", folder + "/ulp"]
        subprocess.run(command + flags, check=True)
        step = 1 if args.full else args.step
        return subprocess.run([folder + "/ulp", str(step), str(args.samples)]).returncode


if __name__ == "__main__":
    sys.exit(main())

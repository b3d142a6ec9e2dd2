"""Random kernels for test/fuzz/schedules.py: those that schedules are written for, and chains of computes drawn freely.

Each maker takes a random.Random and returns a module's items, of which @f is the kernel to be scheduled.
"""
import re

TOP = """reducer @top(a: f32, i: i64, c: f32, j: i64) -> (v: f32, w: i64) {
  init v: f32 = -inf
  init w: i64 = 9223372036854775807
  v: f32 = where(c > a || isnan(c) && !isnan(a), c, a)
  w: i64 = where(c > a || isnan(c) && !isnan(a), j, where(c == a || isnan(c) && isnan(a), min(i, j), i))
}

"""


def size(r):
    return r.choice([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17])


def extent(r, symbols, chance=0.4):
    """A number, or a symbol of the list."""
    return r.choice(symbols) if r.random() < chance else str(size(r))


def kernel(params, results, lines):
    """@f with the symbols that its types mention."""
    symbols = sorted(set(re.findall(r"\b[nmk]\b", " ".join(re.findall(r"\[[^\]]*\]", params + results)))))
    dims = f"[{', '.join(symbols)}]" if symbols else ""
    return f"kernel @f{dims}({params}) -> ({results}) {{\n" + "".join(f"  {l}\n" for l in lines) + "}\n"


def matmul(r):
    m, n, k = (extent(r, [s]) for s in "nmk")  # k terms: there may be none
    return kernel(f"a: f32[{m}, {k}], b: f32[{k}, {n}], z: f32[{n}]", f"c: f32[{m}, {n}]", [
        f"alloc y: f32[{m}, {n}]",
        f"compute y[i in {m}, j in {n}] = sum(a[i, l] * b[l, j] for l in {k})",
        f"compute c[i in {m}, j in {n}] = max(y[i, j] + z[j], 0.0)"])


def batched(r):
    b, m, n, k = extent(r, ["n"]), size(r), extent(r, ["m"]), extent(r, ["k"], 0.2)
    return kernel(f"a: f32[{b}, {m}, {k}], w: f32[{b}, {n}, {k}]", f"y: f32[{b}, {m}, {n}]", [
        f"compute y[b in {b}, i in {m}, j in {n}] = sum(a[b, i, l] * w[b, j, l] for l in {k})"])


def softmax(r):
    d = extent(r, ["m"], 0.2)
    return kernel(f"x: f32[n, {d}]", f"y: f32[n, {d}]", [
        "alloc top: f32[n]", f"alloc e: f32[n, {d}]", "alloc s: f32[n]",
        f"compute top[i in n] = max(x[i, j] for j in {d})",
        f"compute e[i in n, j in {d}] = exp(x[i, j] - top[i])",
        f"compute s[i in n] = sum(e[i, j] for j in {d})",
        f"compute y[i in n, j in {d}] = e[i, j] / s[i]"])


def stencil(r):
    n, t = size(r) + 4, r.choice([1, 2, 3])
    return kernel(f"x: f32[{n + 2 * t}, 5]", f"z: f32[{n}, 5]", [
        f"alloc y: f32[{n + t}, 5]",
        f"compute y[i in {n + t}, j in 5] = sum(x[i + r, j] for r in {t + 1}) * 0.5",
        f"compute z[i in {n}, j in 5] = y[i, j] - y[i + {t}, j]"])


def conv(r):
    h, c, o = size(r), r.choice([1, 2, 3]), r.choice([1, 2, 4])
    return kernel(f"x: f32[{c}, {h}], w: f32[{o}, {c}, 3]", f"y: f32[{o}, {h}]", [
        f"alloc p: f32[{c}, {h + 2}]",
        f"compute p[c in {c}, i in {h + 2}] = where(i >= 1 && i < {h + 1}, x[c, i - 1], 0.0)",
        f"compute y[o in {o}, i in {h}] = sum(p[c, i + r] * w[o, c, r] for c in {c}, r in 3)"])


def conv_inside(r):
    """Padded where it is read, in steps, or symbolic."""
    h, c, o, s = r.choice(["n", str(size(r))]), r.choice([1, 2, 3]), r.choice([1, 2, 4]), r.choice([1, 2])
    out = h if s == 1 else f"({h} + 1) // 2" if h == "n" else str((int(h) + 1) // 2)
    i = "i" if s == 1 else "i * 2"
    return kernel(f"x: f32[{c}, {h}], w: f32[{o}, {c}, 3]", f"y: f32[{o}, {out}]", [
        f"compute y[o in {o}, i in {out}] = sum(where({i} + r >= 1 && {i} + r < {h} + 1, x[c, {i} + r - 1], 0.0) * w[o, c, r]"
        f" for c in {c}, r in 3)"])


def pool(r):
    h, w = size(r) + 1, extent(r, ["n"], 0.3)
    return kernel(f"x: f32[{2 * h}, {w}]", f"y: f32[{h}, {w}], z: f32[{h}, {w}]", [
        f"compute y[i in {h}, j in {w}] = max(x[i * 2 + r, j] for r in 2)",
        f"compute z[i in {h}, j in {w}] = y[{h - 1} - i, j] - x[i * 2, j]"])


def chain(r):
    a, b = size(r), size(r)
    return kernel(f"x: f32[n, {a}, {b}], g: f32[{b}]", f"z: f32[n, {b}, {a}]", [
        f"alloc t: f32[n, {a}, {b}]", f"alloc u: f32[n, {a}, {b}]",
        f"compute t[i in n, j in {a}, k in {b}] = x[i, j, k] * g[k]",
        f"compute u[i in n, j in {a}, k in {b}] = max(t[i, j, k], 0.0) + 1.0",
        f"compute z[i in n, k in {b}, j in {a}] = u[i, j, k] * t[i, j, k]"])


def norm(r):
    d = size(r)
    return kernel(f"x: f32[n, {d}], g: f32[{d}]", f"y: f32[n, {d}]", [
        "alloc m: f32[n]", "alloc v: f32[n]",
        f"compute m[i in n] = sum(x[i, j] for j in {d}) / {d}.0",
        f"compute v[i in n] = sum((x[i, j] - m[i]) * (x[i, j] - m[i]) for j in {d}) / {d}.0",
        f"compute y[i in n, j in {d}] = (x[i, j] - m[i]) / sqrt(v[i] + 0.00001) * g[j]"])


def argmax(r):
    m, n = size(r), size(r)
    return TOP + kernel(f"x: f32[{m}, {n}]", f"v: f32[{m}], w: i64[{m}]", [
        f"compute v[i in {m}], w[i in {m}] = @top(x[i, j], i64(j) for j in {n})"])


def integers(r):
    m, k = size(r), size(r)
    return kernel(f"a: i32[{m}, {k}], b: i32[{k}]", f"c: i32[{m}]", [
        f"alloc t: i32[{m}, {k}]",
        f"compute t[i in {m}, j in {k}] = a[i, j] * b[{k - 1} - j]",
        f"compute c[i in {m}] = sum(t[i, j] for j in {k}) + 3"])


def quantized(r):
    m, n, k = extent(r, ["n"]), size(r), extent(r, ["k"], 0.3)
    a, b = r.choice([("u8", "i8"), ("i8", "i8"), ("u8", "u8")])
    return kernel(f"a: {a}[{m}, {k}], b: {b}[{k}, {n}], s: f32[{n}]", f"c: i8[{m}, {n}]", [
        f"alloc y: i32[{m}, {n}]",
        f"compute y[i in {m}, j in {n}] = sum(i32(a[i, l]) * i32(b[l, j]) for l in {k})",
        f"compute c[i in {m}, j in {n}] = i8(clamp(round_even(f32(y[i, j]) * s[j]), -128.0, 127.0))"])


def halves(r):
    m, n, k = extent(r, ["n"]), size(r), size(r)
    acc = r.choice([("f32(", ")"), ("", "")])
    return kernel(f"a: f16[{m}, {k}], b: f16[{n}, {k}]", f"c: f16[{m}, {n}]", [
        f"compute c[i in {m}, j in {n}] = "
        f"f16(sum({acc[0]}a[i, l]{acc[1]} * {acc[0]}b[j, l]{acc[1]} for l in {k}))" if acc[0] else
        f"compute c[i in {m}, j in {n}] = sum(a[i, l] * b[j, l] for l in {k})"])


def bias(r):
    d = size(r)
    return kernel(f"x: f32[n, {d}], w: f32[{d}], b: f32[n]", "z: f32[n]", [
        "alloc y: f32[n]",
        f"compute y[i in n] = sum(x[i, j] * w[j] for j in {d})",
        "compute z[i in n] = y[i] + b[i]"])


def running(r):
    """A sum over what came before: an axis whose turns keep their order."""
    n, d = size(r) + 1, extent(r, ["n"], 0.5)
    return f"""kernel @f{'[n]' if d == 'n' else ''}(x: f32[{d}, {n}]) -> (y: f32[{d}, {n}], z: f32[{d}, {n}]) {{
  for i in {d}
  for j in {n} {{
    block y {{
      spatial i in {d} = i
      scan j in {n} = j
      init y[i, j] = x[i, j]
      y[i, j] = x[i, j] + where(j >= 1, y[i, j - 1], 0.0)
    }}
  }}
  compute z[i in {d}, j in {n}] = y[i, j] * 0.5
}}
"""


def gather(r):
    v, d = size(r) + 1, size(r)
    return f"""kernel @f[n](table: f32[{v}, {d}], ids: i64[n]) -> (y: f32[n, {d}]) {{
  alloc t: f32[n, {d}]
  for i in n
  for j in {d} {{
    block t {{
      spatial i in n = i
      spatial j in {d} = j
      r: index = index(ids[i])
      assume r >= 0 && r < {v}
      t[i, j] = table[r, j]
    }}
  }}
  compute y[i in n, j in {d}] = t[i, j] + 1.0
}}
"""


# Sums that may have no term: what they start from are blocks of their own.
def rows(r):
    return kernel("x: f32[n, m]", "y: f32[n, m]", [
        "alloc t: f32[n, m]", "alloc a: f32[n]", "alloc s: f32[n]",
        "compute t[i in n, j in m] = x[i, j] * 0.5",
        "compute a[i in n] = max(t[i, j] for j in m)",
        "compute s[i in n] = sum(t[i, j] - a[i] for j in m)",
        "compute y[i in n, j in m] = t[i, j] / s[i]"])


def dense(r):
    n, kind = size(r), r.choice(["f32", "f32", "i32"])
    return kernel(f"x: {kind}[n, m], w: {kind}[m, {n}], b: {kind}[{n}]", f"z: {kind}[n, {n}]", [
        f"alloc y: {kind}[n, {n}]",
        f"compute y[i in n, j in {n}] = sum({'x[i, k]' if kind == 'f32' else '(x[i, k] - b[j])'} * w[k, j] for k in m)",
        f"compute z[i in n, j in {n}] = y[i, j] + b[j]"])


def windows(r):
    n, t = size(r) + 4, r.choice([1, 2])
    return TOP + kernel(f"x: f32[{n + t}, m]", f"z: f32[{n}], v: f32[{n}], w: i64[{n}]", [
        f"alloc y: f32[{n + t}]",
        f"compute y[i in {n + t}] = sum(x[i, j] for j in m)",
        f"compute v[i in {n}], w[i in {n}] = @top(x[i, j], i64(j) for j in m)",
        f"compute z[i in {n}] = y[i] - y[i + {t}] + v[i]"])


class Drawn:
    """Computes one after the other, each an elementwise function or a reduction of buffers that are there already."""

    def __init__(self, r):
        self.r, self.lines, self.buffers = r, [], {}  # name -> (element type, shape)
        self.types = r.choice([["f32"], ["f32"], ["f32", "f16"], ["i32", "i8", "u8"], ["i64", "i32"], ["f64", "f32"], ["u8", "f32"]])
        symbols = r.choice([[], ["n"], ["n"], ["n", "m"]])
        self.dims = [str(size(r)) for _ in range(3)] + symbols * 2

    def shape(self):
        return [self.r.choice(self.dims) for _ in range(self.r.choice([1, 2, 2, 3]))]

    def subscript(self, v, d):
        choices = [v] * 12
        if d.isdigit() and int(d) > 1:
            choices += [f"{int(d) - 1} - {v}", f"min({v} + 1, {int(d) - 1})", f"({v} + 1) % {d}", f"{v} // 2"]
        return self.r.choice(choices)

    def read(self, name, axes, to):
        """An element of a buffer, its dimensions taken from the axes of the same size; what has none is its first or last."""
        kind, shape = self.buffers[name]
        at, free = [], list(axes)
        for d in shape:
            fits = [a for a in free if a[1] == d] or [a for a in axes if a[1] == d]
            if fits:
                v = self.r.choice(fits)
                free = [a for a in free if a != v]
                at.append(self.subscript(v[0], d))
            elif d.isdigit():
                at.append(self.r.choice(["0", str(int(d) - 1)]))
            else:
                return None
        e = f"{name}[{', '.join(at)}]"
        if self.r.random() < 0.15 and axes[0][1].isdigit() and axes[0][1] != "1":
            zero = "0.0" if to[0] == "f" else "0"
            e = f"where({axes[0][0]} < {int(axes[0][1]) - 1}, {e if kind == to else f'{to}({e})'}, {to}({zero}))"
            return e
        return e if kind == to else f"{to}({e})"

    def value(self, axes, to, must=None):
        r = self.r
        names = [must] if must else []
        names += r.sample(list(self.buffers), min(len(self.buffers), r.choice([0, 1, 1, 2])))
        parts = [p for p in (self.read(n, axes, to) for n in names) if p]
        if not parts:
            parts = [f"{to}(1.0)" if to[0] == "f" else f"{to}(1)"]
        e = parts[0]
        for p in parts[1:]:
            e = r.choice([f"{e} + {p}", f"{e} * {p}", f"{e} - {p}", f"max({e}, {p})"])
            e = f"({e})" if r.random() < 0.5 and not e.startswith("max") else e
        if r.random() < 0.2:
            e = f"max({e}, {to}(0{'.0' if to[0] == 'f' else ''}))"
        return e

    def stage(self, name, kept=None):
        r, to = self.r, self.r.choice(self.types)
        source = r.choice(list(self.buffers))
        shape = self.buffers[source][1]
        axes = [(v, d) for v, d in zip("ijl", shape)]
        r.shuffle(axes)
        over = []
        if len(axes) > 1 and r.random() < 0.6:
            over = [axes.pop() for _ in range(r.randint(1, len(axes) - 1))]
        elif len(axes) < 3 and r.random() < 0.2:
            axes.append(("h", r.choice([d for d in self.dims if d.isdigit()])))
        e = self.value(axes + over, to, source)
        if over:
            what = r.choice(["sum", "sum", "sum", "max", "min"])
            e = f"{what}({e} for {', '.join(f'{v} in {d}' for v, d in over)})"
            if r.random() < 0.3:
                e += " + " + (f"{to}(1.0)" if to[0] == "f" else f"{to}(1)")
        self.buffers[name] = (to, [d for _, d in axes])
        self.lines.append(f"compute {name}[{', '.join(f'{v} in {d}' for v, d in axes)}] = {e}")

    def text(self):
        r = self.r
        inputs = [f"x{k}" for k in range(r.choice([1, 2, 3]))]
        for name in inputs:
            self.buffers[name] = (r.choice(self.types), self.shape())
        given = {d for n in inputs for d in self.buffers[n][1]}
        self.dims = [d for d in self.dims if d.isdigit() or d in given]
        stages = [f"t{k}" for k in range(r.choice([1, 2, 2, 3, 4]))]
        for name in stages:
            self.stage(name)
        outputs = [stages[-1]] + [s for s in stages[:-1] if r.random() < 0.15]
        say = lambda n: f"{n}: {self.buffers[n][0]}[{', '.join(self.buffers[n][1])}]"
        allocs = [f"alloc {say(s)}" for s in stages if s not in outputs]
        return kernel(", ".join(map(say, inputs)), ", ".join(map(say, outputs)), allocs + self.lines)


def drawn(r):
    return Drawn(r).text()


MAKERS = [bias, matmul, matmul, batched, softmax, stencil, conv, conv_inside, pool, chain, norm, argmax, integers, quantized,
          halves, running, gather, rows, dense, windows] + [drawn] * 10

#!/usr/bin/env python3
"""The coefficients of src/math/math.mlc: minimax fits.   ulp_fit.py [NAME ...]     # needs mpmath

Remez's exchange with a weight, in 60 digits. The coefficients of a polynomial are then rounded to the type of the
function, highest power first, and after each the lower ones are fitted again to make good what it lost.
Rational functions: the same with the denominator of the round before in the weight (Loeb), to a fixed point.
"""
import struct
import sys

from mpmath import acos, asin, asinh, atan, cos, erf, erfc, exp, expm1, findroot, log, log1p, lu_solve, matrix, mp, mpf, pi, sin, sinh, sqrt, tanh

mp.dps = 60


def rounded(c, kind):
    if kind == "f32":
        return mpf(struct.unpack("f", struct.pack("f", float(c)))[0])
    return mpf(float(c))


def remez(basis, f, weight, low, high):
    """min over c of max |weight(x) * (f(x) - sum c_i basis_i(x))| on [low, high]: (c, error)."""
    n = len(basis)
    count = 40 * (n + 1) + 1
    grid = [(low + high) / 2 + (high - low) / 2 * -mp.cos(pi * mpf(i) / count) for i in range(count + 1)]
    table = [([b(x) for b in basis], f(x), weight(x)) for x in grid]
    points = [min(max(round(i * count / n + 0.3), 0), count) for i in range(n + 1)]
    for _ in range(60):
        a, y = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for r, p in enumerate(points):
            row, value, w = table[p]
            for i in range(n):
                a[r, i] = row[i]
            a[r, n] = (-1) ** r / w
            y[r] = value
        c = lu_solve(a, y)
        errors = [w * (value - sum(c[i] * row[i] for i in range(n))) for row, value, w in table]
        # The largest of each run of one sign; the best n + 1 neighbours of them.
        peaks, start = [], 0
        for i in range(1, len(errors) + 1):
            if i == len(errors) or (errors[i] > 0) != (errors[start] > 0):
                peaks.append(max(range(start, i), key=lambda k: abs(errors[k])))
                start = i
        if len(peaks) < n + 1:
            raise ArithmeticError(f"{len(peaks)} peaks, expected {n + 1}")
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if peaks == points:
            break
        points = peaks
    return [c[i] for i in range(n)], max(abs(e) for e in errors)


def polynomial(name, kind, powers, f, weight, low, high, fixed=()):
    """f(x) ~ sum c_p x^p, printed highest power first."""
    low, high = mpf(low), mpf(high)
    known = {p: mpf(c) for p, c in fixed}
    free = [p for p in powers if p not in known]
    best = None
    while True:
        rest = lambda x: f(x) - sum(c * x ** p for p, c in known.items())
        if not free:
            break
        c, error = remez([lambda x, p=p: x ** p for p in free], rest, weight, low, high)
        best = best or error
        known[free[-1]] = rounded(c[-1], kind)
        free.pop()
    grid = [low + (high - low) * mpf(i) / 997 for i in range(998)]
    final = max(abs(weight(x) * (f(x) - sum(c * x ** p for p, c in known.items()))) for x in grid)
    print(f"{name} {kind}: error 2^{float(log(best, 2)):.2f}, rounded 2^{float(log(final, 2)):.2f}")
    for p in sorted(known, reverse=True):
        print(f"  x^{p}: {text(known[p], kind)}")
    return known


def rational(name, kind, top, bottom, f, weight, low, high):
    """f(x) ~ sum p_i x^i / (1 + sum q_i x^i)."""
    low, high = mpf(low), mpf(high)
    q = [mpf(0)] * bottom
    basis = [lambda x, i=i: x ** i for i in range(top + 1)] + [lambda x, i=i: -f(x) * x ** i for i in range(1, bottom + 1)]
    for _ in range(12):
        old = list(q)
        w = lambda x: weight(x) / (1 + sum(c * x ** (i + 1) for i, c in enumerate(old)))
        c, error = remez(basis, f, w, low, high)
        q = c[top + 1:]
    print(f"{name} {kind}: error 2^{float(log(error, 2)):.2f}")
    q = [mpf(1)] + [rounded(x, kind) for x in q]
    below = lambda x: sum(x ** i * v for i, v in enumerate(q))
    for i in range(bottom, -1, -1):
        print(f"  q x^{i}: {text(q[i], kind)}")
    polynomial("  over it", kind, range(top + 1), lambda x: f(x) * below(x), lambda x: weight(x) / below(x), low, high)


def text(c, kind):
    """The shortest decimal that reads back."""
    v = float(c)
    for digits in range(1, 18):
        s = f"{v:.{digits}g}"
        if float(rounded(mpf(float(s)), kind)) == v:
            break
    s = repr(float(s))
    return s

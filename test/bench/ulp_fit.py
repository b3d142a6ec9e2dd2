#!/usr/bin/env python3
"""The polynomials of src/math/math.mlc: minimax fits.   ulp_fit.py [NAME ...]     # needs mpmath; all take minutes

Remez's exchange with a weight, in 60 digits. The coefficients are then rounded to the type of the function, highest
power first, and after each the lower ones are fitted again to make good what it lost.
"""
import struct
import sys

import mpmath as mp
from mpmath import mpf, pi, sqrt

mp.mp.dps = 60


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
        a, y = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for r, p in enumerate(points):
            row, value, w = table[p]
            for i in range(n):
                a[r, i] = row[i]
            a[r, n] = (-1) ** r / w
            y[r] = value
        c = mp.lu_solve(a, y)
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


def polynomial(name, kind, count, f, weight, low, high):
    """f(x) ~ c_0 + c_1 x + .., `count` of them; the error is weight(x) * (f(x) - sum)."""
    low, high = mpf(low), mpf(high)
    known, best = {}, None
    for power in range(count - 1, -1, -1):
        c, error = remez([lambda x, p=p: x ** p for p in range(power + 1)],
                         lambda x: f(x) - sum(c * x ** p for p, c in known.items()), weight, low, high)
        best = best or error
        known[power] = rounded(c[-1], kind)
    grid = [low + (high - low) * mpf(i) / 997 for i in range(998)]
    final = max(abs(weight(x) * (f(x) - sum(c * x ** p for p, c in known.items()))) for x in grid)
    print(f"{name} {kind}: error 2^{float(mp.log(best, 2)):.2f}, rounded 2^{float(mp.log(final, 2)):.2f}")
    for p in sorted(known, reverse=True):
        print(f"  x^{p}: {text(known[p], kind)}")


def text(c, kind):
    """The shortest decimal that reads back."""
    for digits in range(1, 18):
        s = f"{float(c):.{digits}g}"
        if rounded(mpf(float(s)), kind) == c:
            return repr(float(s))


def odd(name, kind, count, f, high):
    """f(x) ~ x + x z P(z), z = x^2, relative error."""
    g = lambda z: (f(sqrt(z)) - sqrt(z)) / (sqrt(z) * z)
    polynomial(name, kind, count, g, lambda z: z * sqrt(z) / f(sqrt(z)), TINY, mpf(high) ** 2)


TINY = mpf(10) ** -14
ROOT = sqrt(mpf(2))
S2 = ((ROOT - 1) / (ROOT + 1)) ** 2 * mpf("1.001")  # the largest s^2 of logarithms


def exp(kind, count, margin):  # exp(r) ~ 1 + r + r^2 P(r)
    high = mp.log(2) / 2 * margin
    polynomial("exp", kind, count, lambda r: (mp.exp(r) - 1 - r) / r ** 2, lambda r: r * r / abs(mp.expm1(r)),
               -high, high)


def erf(kind, count):  # erf(x) ~ x + x P(z)
    polynomial("erf below 1", kind, count, lambda z: mp.erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / mp.erf(sqrt(z)),
               TINY, 1)


def erfc(kind, count, high):  # log(erfc(x)) ~ P(x); what the error does to 1 - exp(P)
    polynomial("erf above 1", kind, count, lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), 1, high)


def cos(count):  # cos(x) ~ 1 - z / 2 + z^2 P(z)
    polynomial("cos", "f64", count, lambda z: (mp.cos(sqrt(z)) - 1 + z / 2) / z ** 2,
               lambda z: z ** 2 / mp.cos(sqrt(z)), TINY, (pi / 4) ** 2)


def exp2(count, high):  # 2^r ~ 1 + r P(r)
    polynomial("exp2", "f64", count, lambda r: (mpf(2) ** r - 1) / r, lambda r: r * mpf(2) ** -r, -high, high)


def atanh_series(name, count, f, weight):  # in z = s^2, s = f / (2 + f): log(1 + f) = 2 atanh(s)
    polynomial(name, "f64", count, lambda z: f(mp.atanh(sqrt(z)) / sqrt(z), z),
               lambda z: weight(z) * sqrt(z) / mp.atanh(sqrt(z)), TINY, S2)


FITS = {
    "exp.f32": lambda: exp("f32", 5, mpf("1.005")),
    "exp.f64": lambda: exp("f64", 11, mpf("1.001")),
    "log.f32": lambda: polynomial("log", "f32", 8, lambda x: (mp.log1p(x) - x + x * x / 2) / x ** 3,
                                  lambda x: abs(x ** 3 / mp.log1p(x)), sqrt(mpf(0.5)) - 1, ROOT - 1),
    "log.f64": lambda: atanh_series("log", 7, lambda q, z: (2 * q - 2) / z, lambda z: z),
    "sin.f32": lambda: (odd("sin", "f64", 4, mp.sin, pi / 4), cos(4)),
    "sin.f64": lambda: (odd("sin", "f64", 6, mp.sin, pi / 4), cos(6)),
    "asin.f32": lambda: odd("asin", "f32", 5, mp.asin, 0.5),
    "asin.f64": lambda: odd("asin", "f64", 13, mp.asin, 0.5),
    "atan.f32": lambda: odd("atan", "f32", 9, mp.atan, 1),
    "atan.f64": lambda: odd("atan", "f64", 12, mp.atan, ROOT - 1 + mpf("1e-4")),
    "sinh.f32": lambda: odd("sinh", "f32", 4, mp.sinh, 1),
    "sinh.f64": lambda: odd("sinh", "f64", 7, mp.sinh, 1),
    "tanh.f32": lambda: odd("tanh", "f32", 5, mp.tanh, 0.6251),
    "tanh.f64": lambda: odd("tanh", "f64", 11, mp.tanh, 0.6251),
    "erf.f32": lambda: (erf("f32", 7), erfc("f32", 7, mpf("3.95"))),
    "erf.f64": lambda: (erf("f64", 13), erfc("f64", 20, mpf("5.95"))),
    "pow.f32": lambda: (atanh_series("log2", 6, lambda q, z: 2 * q / mp.log(2), lambda z: mp.log(2) / 2),
                        exp2(8, mpf("0.5"))),
    "pow.f64": lambda: (atanh_series("log, R", 7, lambda q, z: 3 * (q - 1 - z / 3) / z ** 2, lambda z: z ** 2 / 3),
                        exp2(12, mpf("0.5001"))),
}

for fit in sys.argv[1:] or FITS:
    print(f"# {fit}")
    FITS[fit]()

"""The robustness by its definition, with loops over samples: slow, and written from the papers.

Donze and Maler, Robust satisfaction of temporal logic over real-valued signals, FORMATS 2010,
definition 3. Formulas are tuples: ("x", signal, limit) is signal - limit, ("not", f),
("and", f, g), ("or", f, g), ("always", f, a, b), ("eventually", f, a, b), ("until", f, g, a, b),
with windows in samples.
"""

from __future__ import annotations

import numpy as np

from archimedes import requirements as req


def robustness(formula, signals, k):
    """Robustness at sample k; samples beyond the end raise IndexError."""
    kind = formula[0]
    if kind == "x":
        return signals[formula[1]][k] - formula[2]
    if kind == "not":
        return -robustness(formula[1], signals, k)
    if kind in ("and", "or"):
        pick = min if kind == "and" else max
        return pick(robustness(part, signals, k) for part in formula[1:])
    if kind in ("always", "eventually"):
        pick = min if kind == "always" else max
        _, part, a, b = formula
        return pick(robustness(part, signals, j) for j in range(k + a, k + b + 1))
    _, p, q, a, b = formula
    values = []
    for j in range(k + a, k + b + 1):
        lasting = min(robustness(p, signals, i) for i in range(k, j + 1))
        values.append(min(robustness(q, signals, j), lasting))
    return max(values)


def horizon(formula):
    """How many samples after the first one a formula looks at."""
    below = [horizon(part) for part in formula if isinstance(part, tuple)]
    deepest = max(below, default=0)
    return deepest + (formula[-1] if formula[0] in ("always", "eventually", "until") else 0)


def random_formula(rng, depth, most=5):
    """A formula over signals a, b and c."""
    kinds = ["x"] if depth == 0 else ["not", "and", "or", "always", "eventually", "until"]
    kind = rng.choice(kinds)
    if kind == "x":
        return ("x", str(rng.choice(list("abc"))), float(rng.normal()))
    parts = [
        random_formula(rng, depth - 1, most) for _ in range(1 + (kind in ("and", "or", "until")))
    ]
    window = sorted(int(v) for v in rng.integers(0, most + 1, 2))
    return (kind, *parts, *(window if kind in ("always", "eventually", "until") else ()))


def requirement(formula, dt=1.0):
    """The same formula as a requirement, on samples that are dt apart."""
    kind = formula[0]
    if kind == "x":
        return req.signal(formula[1]) > formula[2]
    parts = [requirement(part, dt) for part in formula if isinstance(part, tuple)]
    if kind == "not":
        return ~parts[0]
    if kind in ("and", "or"):
        return parts[0] & parts[1] if kind == "and" else parts[0] | parts[1]
    between = (formula[-2] * dt, formula[-1] * dt)
    return getattr(req, kind)(*parts, between=between)


def at_time(formula, t, signals, time):
    """Robustness at any time, by linear interpolation: windows are samples and their own ends."""
    kind = formula[0]
    if kind == "x":
        return float(np.interp(time, t, signals[formula[1]])) - formula[2]
    if kind == "not":
        return -at_time(formula[1], t, signals, time)
    if kind in ("and", "or"):
        pick = min if kind == "and" else max
        return pick(at_time(part, t, signals, time) for part in formula[1:])
    a, b = formula[-2:]
    inside = [time + a, *t[(t > time + a) & (t < time + b)], time + b]
    if kind in ("always", "eventually"):
        pick = min if kind == "always" else max
        return pick(at_time(formula[1], t, signals, s) for s in inside)
    values = []
    for end in inside:
        lasting = [time, *t[(t > time) & (t < end)], end]
        p = min(at_time(formula[1], t, signals, s) for s in lasting)
        values.append(min(at_time(formula[2], t, signals, end), p))
    return max(values)

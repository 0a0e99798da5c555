"""Native loops over points, for ``newton_steps.py`` and ``line_search.py``.

Symbols as in ``newton_steps.py``: v = [x, s] unknowns and slacks, d distances to the sides, z their
multipliers, lam those of the constraints c, mu the barrier's weight.
"""

from __future__ import annotations

from typing import NamedTuple

from archimedes.optimize.solvers.interior_point.band_loops import Rows
from archimedes.optimize.solvers.interior_point.loop_descriptions import (
    Float,
    Floats,
    Int,
    Ints,
    Writer,
    native,
)

#: How far multipliers may be from mu / d, as a factor (eq. 16).
KAPPA_SIGMA = 1e10
#: Distances below the smallest normal number count as none.
_SMALLEST = 2.2250738585072014e-308


class Slacks(NamedTuple):
    """Slack k, which is v[n + k], belongs to the constraint ``rows[k]``."""

    rows: Ints
    n: Int
    count: Int


class Sides(NamedTuple):
    """The bounds that exist: whose they are, and which way leads off them."""

    at: Ints
    away: Floats
    count: Int


@native
def move_point(
    w: Writer,
    free: Ints,
    fixed: Floats,
    every: Int,
    slacks: Slacks,
    sides: Sides,
    edge: Floats,
    v: Floats,
    dv: Floats,
    alpha: Float,
    new: Floats,
    x: Floats,
    d: Floats,
    out: Floats,
) -> None:
    """The point v + alpha dv, as all unknowns x too, its distances, the product of these.

    ``free`` are the numbers of the free among ``every`` unknowns, ``fixed`` values of the others;
    ``edge`` is where the sides lie.
    ``out``: factor and power of two of the product, whether a distance is none, the largest of
    the point.
    """
    largest = w.variable(0.0)
    with w.loop(0, slacks.n + slacks.count) as k:
        value = v[k] + alpha * dv[k]
        new[k] = value
        largest.most(abs(value))
    with w.loop(0, every) as k:
        x[k] = fixed[k]
    with w.loop(0, slacks.n) as k:
        x[free[k]] = new[k]
    product, power, outside = w.variable(1.0), w.variable(0, "i64"), w.variable(0.0)
    with w.loop(0, sides.count) as k:
        distance = (new[sides.at[k]] - edge[k]) * sides.away[k]
        d[k] = distance
        good = distance > _SMALLEST
        outside.set(w.select(good, outside.get(), 1.0))
        factor, exponent = w.split(product.get() * w.select(good, distance, 1.0))
        product.set(factor)
        power.add(exponent)
    out[0] = product.get()
    out[1] = w.as_number(power.get())
    out[2], out[3] = outside.get(), largest.get()


@native
def measure_constraints(
    w: Writer,
    scale: Floats,
    target: Floats,
    m: Int,
    slacks: Slacks,
    g: Floats,
    v: Floats,
    c: Floats,
    out: Floats,
) -> None:
    """What is left of the constraints; ``out``: its sum, its largest, the largest unscaled."""
    with w.loop(0, m) as i:
        c[i] = g[i] * scale[i] - target[i]
    with w.loop(0, slacks.count) as k:
        row = slacks.rows[k]
        c[row] = c[row] - v[slacks.n + k]
    total, most, unscaled = w.variable(0.0), w.variable(0.0), w.variable(0.0)
    with w.loop(0, m) as i:
        size = abs(c[i])
        total.add(size)
        most.most(size)
        unscaled.most(size / scale[i])
    out[0], out[1], out[2] = total.get(), most.get(), unscaled.get()


@native
def measure_balance(
    w: Writer,
    A: Rows,
    slacks: Slacks,
    sides: Sides,
    gradient: Floats,
    lam: Floats,
    z: Floats,
    d: Floats,
    pull: Floats,
    room: Floats,
    out: Floats,
) -> None:
    """The Lagrangian's gradient without the bounds' part, and how far a point is from balance.

    ``out``: largest of the gradient with that part, sums of abs(lam) and z, least and largest d z.
    """
    count = slacks.n + slacks.count
    with w.loop(0, count) as k:
        pull[k] = gradient[k]
    price = w.variable(0.0)
    with w.loop(0, A.m) as i:
        value = lam[i]
        price.add(abs(value))
        with w.loop(A.starts[i * 2], A.starts[i * 2 + 2]) as p:
            column = A.columns[p]
            pull[column] = pull[column] + A.entries[p] * value
    with w.loop(0, slacks.count) as k:
        pull[slacks.n + k] = -lam[slacks.rows[k]]
    with w.loop(0, count) as k:
        room[k] = pull[k]
    total, least, most = w.variable(0.0), w.variable(float("inf")), w.variable(0.0)
    with w.loop(0, sides.count) as k:
        column, value = sides.at[k], z[k]
        room[column] = room[column] - sides.away[k] * value
        total.add(value)
        least.least(d[k] * value)
        most.most(d[k] * value)
    largest, strange = w.variable(0.0), w.variable(0.0)
    with w.loop(0, count) as k:
        largest.most(abs(room[k]))
        # Zero, but for numbers that are not finite, which comparisons do not see.
        strange.add(room[k] * 0.0)
    out[0], out[1], out[2] = largest.get() + strange.get(), price.get(), total.get()
    out[3], out[4] = least.get(), most.get()


@native
def make_right_side(
    w: Writer,
    m: Int,
    slacks: Slacks,
    sides: Sides,
    pull: Floats,
    d: Floats,
    c: Floats,
    sigma: Floats,
    shift: Float,
    mu: Float,
    slope: Floats,
    r: Floats,
    rc: Floats,
) -> None:
    """The right side of a Newton step, slacks eliminated; ``slope``: that of the barrier."""
    n, count = slacks.n, slacks.n + slacks.count
    with w.loop(0, count) as k:
        slope[k] = 0.0
    with w.loop(0, sides.count) as k:
        column = sides.at[k]
        slope[column] = slope[column] - sides.away[k] * (mu / d[k])
    with w.loop(0, count) as k:
        r[k] = -(pull[k] + slope[k])
    with w.loop(0, m) as i:
        rc[i] = -c[i]
    with w.loop(0, slacks.count) as k:
        row = slacks.rows[k]
        rc[row] = rc[row] + r[n + k] / (sigma[n + k] + shift)


@native
def complete_step(
    w: Writer,
    slacks: Slacks,
    sides: Sides,
    dv: Floats,
    dlam: Floats,
    r: Floats,
    sigma: Floats,
    shift: Float,
    gradient: Floats,
    slope: Floats,
    d: Floats,
    v: Floats,
    out: Floats,
) -> None:
    """The slacks' part of a step.

    ``out``: slope of the barrier function along it, how fast the nearest side is reached, the
    largest of the step relative to the unknowns.
    """
    n = slacks.n
    with w.loop(0, slacks.count) as k:
        dv[n + k] = (r[n + k] + dlam[slacks.rows[k]]) / (sigma[n + k] + shift)
    total, largest = w.variable(0.0), w.variable(0.0)
    with w.loop(0, n + slacks.count) as k:
        value = dv[k]
        total.add((gradient[k] + slope[k]) * value)
        largest.most(abs(value) / (1.0 + abs(v[k])))
    falls = w.variable(0.0)
    with w.loop(0, sides.count) as k:
        falls.most(-(dv[sides.at[k]] * sides.away[k] / d[k]))
    out[0], out[1], out[2] = total.get(), falls.get(), largest.get()


@native
def update_multipliers(
    w: Writer,
    m: Int,
    sides: Sides,
    z: Floats,
    d: Floats,
    dv: Floats,
    ahead: Floats,
    mu: Float,
    part: Float,
    lam: Floats,
    dlam: Floats,
    alpha: Float,
    new: Floats,
    new_lam: Floats,
) -> None:
    """Multipliers after a step: lam + alpha dlam, and z as far as it stays positive (eq. 16)."""
    falls = w.variable(0.0)
    with w.loop(0, sides.count) as k:
        value = z[k]
        step = mu / d[k] - value - value / d[k] * (dv[sides.at[k]] * sides.away[k])
        new[k] = step
        falls.most(-(step / value))
    fast = falls.get()
    length = w.select(fast > part, part / fast, 1.0)
    with w.loop(0, sides.count) as k:
        # Within a factor of mu / d, at the new point.
        least = mu / (ahead[k] * KAPPA_SIGMA)
        raised = w.larger(z[k] + length * new[k], least)
        new[k] = w.smaller(raised, least * (KAPPA_SIGMA * KAPPA_SIGMA))
    with w.loop(0, m) as i:
        new_lam[i] = lam[i] + alpha * dlam[i]

"""Loops over points: what ``newton_steps.py`` and ``line_search.py`` have as native functions.

Each function describes one (see ``Backend.array_functions``): ``w`` writes it down. Symbols as in
``scaled_problem.py`` and ``barrier.py``: v = [x, s] unknowns and slacks (N,), n unknowns, slack k
of the row ``rows[k]``; d distances to the sides, z their multipliers, side k of ``at[k]``, away
from which ``away[k]`` leads; mu the barrier's weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["functions"]

#: Distances below the smallest normal number count as none.
_SMALLEST = 2.2250738585072014e-308


def trial(
    w: Any,
    kept: Any,
    fixed: Any,
    at: Any,
    edge: Any,
    away: Any,
    n: Any,
    count: Any,
    every: Any,
    sides: Any,
    v: Any,
    dv: Any,
    alpha: Any,
    new: Any,
    x: Any,
    d: Any,
    out: Any,
) -> None:
    """The point v + alpha dv, as all unknowns x too, its distances, the product of these.

    ``out``: factor and power of two of the product, whether a distance is none, the largest of
    the point.
    """
    largest = w.variable(0.0)
    with w.loop(0, count) as k:
        moved = v[k] + alpha * dv[k]
        new[k] = moved
        largest.most(abs(moved))
    with w.loop(0, every) as k:
        x[k] = fixed[k]
    with w.loop(0, n) as k:
        x[kept[k]] = new[k]
    product, power, outside = w.variable(1.0), w.variable(0, "i64"), w.variable(0.0)
    with w.loop(0, sides) as k:
        mine = (new[at[k]] - edge[k]) * away[k]
        d[k] = mine
        good = mine > _SMALLEST
        outside.set(w.select(good, outside.get(), 1.0))
        factor, exponent = w.split(product.get() * w.select(good, mine, 1.0))
        product.set(factor)
        power.add(exponent)
    out[0] = product.get()
    out[1] = w.as_number(power.get())
    out[2], out[3] = outside.get(), largest.get()


def constraints(
    w: Any,
    scale: Any,
    target: Any,
    rows: Any,
    m: Any,
    n: Any,
    slacks: Any,
    g: Any,
    v: Any,
    c: Any,
    out: Any,
) -> None:
    """What is left of the constraints; ``out``: its sum, its largest, the largest unscaled."""
    with w.loop(0, m) as i:
        c[i] = g[i] * scale[i] - target[i]
    with w.loop(0, slacks) as k:
        row = rows[k]
        c[row] = c[row] - v[n + k]
    total, most, unscaled = w.variable(0.0), w.variable(0.0), w.variable(0.0)
    with w.loop(0, m) as i:
        size = abs(c[i])
        total.add(size)
        most.most(size)
        unscaled.most(size / scale[i])
    out[0], out[1], out[2] = total.get(), most.get(), unscaled.get()


def balance(
    w: Any,
    jac: Any,
    columns: Any,
    starts: Any,
    rows: Any,
    at: Any,
    away: Any,
    m: Any,
    n: Any,
    slacks: Any,
    sides: Any,
    gradient: Any,
    lam: Any,
    z: Any,
    d: Any,
    pull: Any,
    room: Any,
    out: Any,
) -> None:
    """The Lagrangian's gradient without the bounds' part, and how far a point is from balance.

    ``out``: largest of the gradient with that part, sums of abs(lam) and z, least and largest d z.
    """
    count = n + slacks
    with w.loop(0, count) as k:
        pull[k] = gradient[k]
    price = w.variable(0.0)
    with w.loop(0, m) as i:
        value = lam[i]
        price.add(abs(value))
        with w.loop(starts[i * 2], starts[i * 2 + 2]) as p:
            column = columns[p]
            pull[column] = pull[column] + jac[p] * value
    with w.loop(0, slacks) as k:
        pull[n + k] = -lam[rows[k]]
    with w.loop(0, count) as k:
        room[k] = pull[k]
    total, least, most = w.variable(0.0), w.variable(float("inf")), w.variable(0.0)
    with w.loop(0, sides) as k:
        column, mine = at[k], z[k]
        room[column] = room[column] - away[k] * mine
        total.add(mine)
        least.least(d[k] * mine)
        most.most(d[k] * mine)
    largest, strange = w.variable(0.0), w.variable(0.0)
    with w.loop(0, count) as k:
        largest.most(abs(room[k]))
        # Zero, but for numbers that are not finite, which comparisons do not see.
        strange.add(room[k] * 0.0)
    out[0], out[1], out[2] = largest.get() + strange.get(), price.get(), total.get()
    out[3], out[4] = least.get(), most.get()


def curvature(w: Any, at: Any, sides: Any, count: Any, z: Any, d: Any, sigma: Any) -> None:
    """The barrier's curvature: for each of v the sum of z / d over its sides."""
    with w.loop(0, count) as k:
        sigma[k] = 0.0
    with w.loop(0, sides) as k:
        column = at[k]
        sigma[column] = sigma[column] + z[k] / d[k]


def right_side(
    w: Any,
    at: Any,
    away: Any,
    rows: Any,
    m: Any,
    n: Any,
    slacks: Any,
    sides: Any,
    pull: Any,
    d: Any,
    c: Any,
    sigma: Any,
    shift: Any,
    mu: Any,
    slope: Any,
    r: Any,
    rc: Any,
) -> None:
    """The right side of a Newton step, slacks eliminated; ``slope``: that of the barrier."""
    count = n + slacks
    with w.loop(0, count) as k:
        slope[k] = 0.0
    with w.loop(0, sides) as k:
        column = at[k]
        slope[column] = slope[column] - away[k] * (mu / d[k])
    with w.loop(0, count) as k:
        r[k] = -(pull[k] + slope[k])
    with w.loop(0, m) as i:
        rc[i] = -c[i]
    with w.loop(0, slacks) as k:
        row = rows[k]
        rc[row] = rc[row] + r[n + k] / (sigma[n + k] + shift)


def along(
    w: Any,
    at: Any,
    away: Any,
    rows: Any,
    n: Any,
    slacks: Any,
    sides: Any,
    dv: Any,
    dlam: Any,
    r: Any,
    sigma: Any,
    shift: Any,
    gradient: Any,
    slope: Any,
    d: Any,
    v: Any,
    out: Any,
) -> None:
    """The slacks' part of a step.

    ``out``: slope of the barrier function along it, how fast the nearest side is reached, the
    largest of the step relative to the unknowns.
    """
    with w.loop(0, slacks) as k:
        dv[n + k] = (r[n + k] + dlam[rows[k]]) / (sigma[n + k] + shift)
    total, largest = w.variable(0.0), w.variable(0.0)
    with w.loop(0, n + slacks) as k:
        mine = dv[k]
        total.add((gradient[k] + slope[k]) * mine)
        largest.most(abs(mine) / (1.0 + abs(v[k])))
    falls = w.variable(0.0)
    with w.loop(0, sides) as k:
        falls.most(-(dv[at[k]] * away[k] / d[k]))
    out[0], out[1], out[2] = total.get(), falls.get(), largest.get()


def multipliers(
    w: Any,
    at: Any,
    away: Any,
    m: Any,
    sides: Any,
    z: Any,
    d: Any,
    dv: Any,
    ahead: Any,
    mu: Any,
    part: Any,
    widest: Any,
    lam: Any,
    dlam: Any,
    alpha: Any,
    new: Any,
    new_lam: Any,
) -> None:
    """Multipliers after a step: lam + alpha dlam, and z as far as it stays positive (eq. 16)."""
    falls = w.variable(0.0)
    with w.loop(0, sides) as k:
        mine = z[k]
        step = mu / d[k] - mine - mine / d[k] * (dv[at[k]] * away[k])
        new[k] = step
        falls.most(-(step / mine))
    fast = falls.get()
    length = w.select(fast > part, part / fast, 1.0)
    with w.loop(0, sides) as k:
        # Within a factor of mu / d, at the new point.
        least = mu / (widest * ahead[k])
        raised = w.larger(z[k] + length * new[k], least)
        new[k] = w.smaller(raised, widest * widest * least)
    with w.loop(0, m) as i:
        new_lam[i] = lam[i] + alpha * dlam[i]


def scaled_gradient(
    w: Any, kept: Any, n: Any, slacks: Any, scale: Any, gradient: Any, to: Any
) -> None:
    """The scaled gradient in v."""
    with w.loop(0, n) as k:
        to[k] = gradient[kept[k]] * scale
    with w.loop(n, n + slacks) as k:
        to[k] = 0.0


#: Kinds of the parameters (F and I arrays, f and i numbers) and the description.
functions: dict[str, tuple[str, Callable[..., None]]] = {
    "trial": ("IFIFFiiiiFFfFFFF", trial),
    "constraints": ("FFIiiiFFFF", constraints),
    "balance": ("FIIIIFiiiiFFFFFFF", balance),
    "curvature": ("IiiFFF", curvature),
    "right_side": ("IFIiiiiFFFFffFFF", right_side),
    "along": ("IFIiiiFFFFfFFFFF", along),
    "multipliers": ("IFiiFFFFfffFFfFF", multipliers),
    "scaled_gradient": ("IiifFF", scaled_gradient),
}

"""How fast contacts come apart after elastic impacts, of many bodies at once.

Legend: r = J v are normal speeds, of which those that close within the step are reflected, all at
once; whoever closes then is reflected next, and so on until nobody does (generalised reflections).
A ball that hits a row of balls at rest so sends off the last one, and the others stay; two balls
that hit from both sides are treated alike. With friction such a speed may need more energy than
there was (Kane's puzzle): impulses then go back towards those of an impact without a bounce, which
only take energy, as far as needed.
Sources: Smith, Kaufman, Vouga, Tamstorf and Grinspun, Reflections on simultaneous impact, ACM
Transactions on Graphics 31, 2012; Kane and Levinson, Dynamics: Theory and Applications, 1985,
section 5.8 (a bounce that gains energy).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import while_loop
from archimedes.multibody.contact.friction_cone import cone_impulses, normal_impulses
from archimedes.multibody.models.ranges import known_zero

__all__ = ["impacts", "knocks", "spread"]

#: Reflections per contact at most; a row of n balls takes n.
ROUNDS = 4
#: What comes together more slowly than anything falls in so many steps does not bounce: it lands.
SLOW = 2.0
#: A speed that never closes.
NEVER = 1e30
#: A gain of energy that is rounding, of what an impact exchanges.
ROUNDING = 1e-12


def impacts(
    G: Any, speeds: Any, gaps: Any, falling: Any, step: float, restitution: Any
) -> tuple[Any, Any, Any, Any]:
    """Return which contacts (m,) are hit within a step, how fast they part, what falls, and when.

    `G` (m, m) are normal speeds per normal impulse, `speeds` (m,) those before the step, and
    `falling` (m,) is by how much they change in it by themselves. Until the impact a contact falls
    on, and that speed, which the step adds once more, is given back with the impact: a bounce keeps
    its energy to the second order of the step.
    """
    pulled = np.where(gaps > 0.0, np.minimum(falling, 0.0), 0.0)
    hit = closing(speeds, gaps, falling, step)
    arriving = np.where(hit, -speeds, 0.0)
    parting = 0.0 * speeds
    if not known_zero(restitution):
        hit, arriving, parting = rebounds(G, speeds, gaps, falling, step)
    hit = hit & (arriving > -SLOW * np.minimum(np.min(falling), 0.0))
    speed = arriving - pulled
    moving = hit & (gaps > 0.0) & (speed > 0.0)
    late = np.where(moving, gaps, 0.0) / np.where(moving, speed, 1.0)
    late = np.minimum(late, step)
    fallen = -pulled * late / step
    return hit, restitution * (parting + fallen), fallen, late


def knocks(G: Any, u: Any, mu: Any, hit: Any, parting: Any, fallen: Any, restitution: Any) -> Any:
    """Return the impulses (3 m,) of impacts at velocities `u` (3 m,), which never give energy.

    `hit`, `parting` and `fallen` are those of `impacts`.
    """

    def impulses(speeds: Any, wanted: Any) -> Any:
        return cone_impulses(G, u - spread(np.where(wanted, speeds + fallen, -NEVER)), mu)

    k = impulses(parting, hit)
    if known_zero(restitution):
        return k
    arriving = u - spread(fallen)
    gains = gained(G, arriving, k) > ROUNDING * np.sum(np.abs(k * arriving))
    # Where nothing is gained no contact is hit, and there is nothing to solve.
    dull = impulses(0.0 * parting, hit & gains)
    rest = k - dull
    # Of the gain, convex along the way from dull to k, the zero: c <= 0 and a >= 0.
    a, c = 0.5 * np.sum(rest * (G @ rest)), np.minimum(gained(G, arriving, dull), 0.0)
    b = np.sum(rest * (arriving + G @ dull))
    root = np.sqrt(np.where(gains, b * b - 4.0 * a * c, 1.0))
    # The same root twice, each without a difference of what is nearly equal.
    above, below = np.where(b < 0.0, root - b, -2.0 * c), np.where(b < 0.0, 2.0 * a, b + root)
    share = np.where(gains, above / np.where(gains, below, 1.0), 1.0)
    return dull + share * rest


def gained(G: Any, u: Any, k: Any) -> Any:
    """Return the energy that impulses (n,) give at velocities `u` (n,) before them."""
    return np.sum(k * (u + 0.5 * (G @ k)))


def spread(normals: Any) -> Any:
    """Return numbers (m,) as the normal parts of (3 m,)."""
    zero = 0.0 * normals
    return np.stack([normals, zero, zero], axis=1).ravel()


def closing(speeds: Any, gaps: Any, falling: Any, step: float) -> Any:
    """Whether contacts (m,) come together and close within the step."""
    return (speeds < 0.0) & (gaps + step * (speeds + np.minimum(falling, 0.0)) < 0.0)


def rebounds(G: Any, speeds: Any, gaps: Any, falling: Any, step: float) -> tuple[Any, Any, Any]:
    """Return which contacts are hit, how fast they came together, and how fast they part."""

    def reflect(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        r, hit, arriving = state
        now = closing(r, gaps, falling, step)
        arriving = np.where(now & (hit < 0.5), -r, arriving)
        impulses = normal_impulses(G, np.where(now, r, NEVER))
        return r + 2.0 * (G @ impulses), np.where(now, 1.0, hit), arriving

    def anybody(state: tuple[Any, Any, Any]) -> Any:
        return np.any(closing(state[0], gaps, falling, step))

    start = (speeds, 0.0 * speeds, 0.0 * speeds)
    r, hit, arriving = while_loop(anybody, reflect, start, max_steps=ROUNDS * gaps.shape[0])
    return hit > 0.5, arriving, np.maximum(r, 0.0)

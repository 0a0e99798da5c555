"""How fast contacts come apart after elastic impacts, of many bodies at once.

Legend: r = J v are normal speeds, of which those that close within the step are reflected, all at
once; whoever closes then is reflected next, and so on until nobody does (generalised reflections).
A ball that hits a row of balls at rest so sends off the last one, and the others stay; two balls
that hit from both sides are treated alike.
Source: Smith, Kaufman, Vouga, Tamstorf and Grinspun, Reflections on simultaneous impact, ACM
Transactions on Graphics 31, 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import while_loop
from archimedes.multibody.contact.friction_cone import normal_impulses
from archimedes.spatial.validation import concrete

__all__ = ["NEVER", "impacts", "known_zero"]

#: Reflections per contact at most; a row of n balls takes n.
ROUNDS = 4
#: What comes together more slowly than anything falls in so many steps does not bounce: it lands.
SLOW = 2.0
#: A speed that never closes.
NEVER = 1e30


def impacts(
    G: Any, speeds: Any, gaps: Any, falling: Any, step: float, restitution: Any
) -> tuple[Any, Any, Any]:
    """Return which contacts (m,) are hit within a step, how fast they part, and when.

    `G` (m, m) are normal speeds per normal impulse, `speeds` (m,) those before the step, and
    `falling` (m,) is by how much they change in it by themselves. Until the impact a contact falls
    on, and what it falls after it is taken off beforehand: a bounce keeps its energy to the second
    order of the step.
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
    return hit, restitution * (parting + fallen) + fallen, late


def known_zero(x: Any) -> bool:
    """Whether a number is known to be zero."""
    value = concrete(x)
    return value is not None and not np.any(value)


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

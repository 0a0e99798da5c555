"""Equalities of MJCF files made closures: bodies and sites held together, coupled joints.

Legend: the data of an equality between bodies are a point of the first (0:3) and one of the second
(3:6) where these are connected; where they are welded the point of the second comes first, and is
followed by that of the first, by the quaternion of the second in it (6:10) and by how much turns
count beside shifts (10): where that is zero only the points are held together.
Source: MuJoCo documentation, "XML Reference", equality; ``mjModel.eq_data``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.files.mjcf_parts import (
    SINGLE,
    Compiled,
    label,
    rotation_of,
    switched_off,
)
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.closures import Closure, Coupling

__all__ = ["add_equalities"]

CONNECT, WELD, COUPLED = 0, 1, 2  # kinds of equalities
BODY, SITE = 1, 6  # what an equality is between


class Side(NamedTuple):
    """One of two that are held together: a place on a body, the world is number 0."""

    body: int
    rotation: Any
    position: Any


def add_equalities(of: Compiled, builder: Builder) -> None:
    """Add what holds bodies and joints together as closures, for `constrained_dynamics`."""
    m = of.model
    off = switched_off(m, "EQUALITY") or switched_off(m, "CONSTRAINT")
    for k in range(m.neq):
        where = f"{builder.name}: {label(m.equality(k), 'equality')}"
        made = equality(of, builder, k) if m.eq_active0[k] and not off else None
        if made is None:
            builder.report.ignored.append(where)
            continue
        builder.closures.append(made)
        builder.report.use("equality")
        builder.report.approximated.append(
            f"{where}, soft in MuJoCo, is exact, in constrained_dynamics with model.closures"
        )


def equality(of: Compiled, builder: Builder, k: int) -> Closure | Coupling | None:
    """Return one of them, None where there is no such thing here."""
    m = of.model
    kind, one, two = int(m.eq_type[k]), int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    data = np.array(m.eq_data[k])
    if kind == COUPLED and not np.any(data[2:5]) and int(m.jnt_type[one]) in SINGLE:
        return coupled(of, one, two, data)
    if kind not in (CONNECT, WELD) or int(m.eq_objtype[k]) not in (BODY, SITE):
        return None
    if int(m.eq_objtype[k]) == SITE:
        sides = [at_site(m, one), at_site(m, two)]
    elif kind == CONNECT:
        sides = [Side(one, None, data[:3]), Side(two, None, data[3:6])]
    else:
        sides = [Side(one, rotation_of(data[6:10]), data[3:6]), Side(two, None, data[:3])]
    if sides[1].body == 0:
        sides.reverse()  # what is held comes second
    first, second = f"equality{k}:first", f"equality{k}:second"
    for name, side in zip((first, second), sides, strict=True):
        owner = of.bodies[side.body] if side.body else "world"
        builder.add_frame(name, owner, side.rotation, side.position)
    turns = kind == WELD and data[10] != 0.0
    return Closure(first, second, "fixed" if turns else "spherical")


def at_site(m: Any, site: int) -> Side:
    """Return where a site is."""
    return Side(
        int(m.site_bodyid[site]), rotation_of(m.site_quat[site]), np.array(m.site_pos[site])
    )


def coupled(of: Compiled, one: int, two: int, data: Any) -> Coupling | None:
    """Return a joint held at a number, or at a straight line of another."""
    m = of.model
    start = [float(m.qpos0[int(m.jnt_qposadr[j])]) for j in (one, max(two, 0))]
    if two < 0 or data[1] == 0.0:
        return Coupling({of.joints[one]: 1.0}, float(data[0]) + start[0])
    if int(m.jnt_type[two]) not in SINGLE:
        return None
    arms = {of.joints[one]: 1.0, of.joints[two]: -float(data[1])}
    return Coupling(arms, float(data[0]) + start[0] - float(data[1]) * start[1])

"""What an MJCF file has besides bodies and joints: shapes, tendons, actuators, equalities.

Of MuJoCo's compiled model is taken what has a counterpart here; the rest is reported.
Source: MuJoCo documentation, "Computation", "XML Reference" and ``mjModel``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.models.actuators import Drive, Lagged
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.closures import Closure, Coupling
from archimedes.multibody.models.shapes import Surface
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.tree import replace

__all__ = [
    "Compiled",
    "add_actuators",
    "add_equalities",
    "add_shapes",
    "add_tendons",
    "rotation_of",
]

#: Shapes by MuJoCo's number: kind here, and its numbers of MuJoCo's three half sizes.
SHAPES: dict[int, tuple[str, Any]] = {
    0: ("plane", lambda s: (2 * s[0], 2 * s[1])),
    2: ("sphere", lambda s: (s[0],)),
    3: ("capsule", lambda s: (s[0], 2 * s[1])),
    4: ("ellipsoid", lambda s: tuple(s)),
    5: ("cylinder", lambda s: (s[0], 2 * s[1])),
    6: ("box", lambda s: tuple(2 * s)),
}
MESH = 7
HIDDEN = 3  # groups of geoms from here on are not shown
JOINT, TENDON = 0, 3  # what an actuator acts on
INTEGRATOR, FILTEREXACT = 1, 3  # kinds of lags, with "filter" between them
CONNECT, WELD, COUPLED = 0, 1, 2  # kinds of equalities
BODY = 1  # what an equality is between
SINGLE = (2, 3)  # joints of one coordinate: slides and hinges


class Compiled(NamedTuple):
    """MuJoCo's model, and the names that its bodies, joints and tendons have here."""

    model: Any
    bodies: list[str]
    joints: list[str]
    tendons: list[str]


def rotation_of(quaternion: Any) -> Any:
    """Return the matrix (3, 3), child to parent, of a quaternion."""
    return quaternion_to_dcm(np.array(quaternion, dtype=float)).T


def add_shapes(of: Compiled, builder: Builder) -> None:
    """Add the geoms of bodies: as collisions where they collide, to look at where they are shown.

    MuJoCo's own viewer hides groups from `HIDDEN` on.
    """
    m = of.model
    surfaces: dict[int, Surface] = {}
    for k in range(m.ngeom):
        body, kind = int(m.geom_bodyid[k]), int(m.geom_type[k])
        if kind not in SHAPES and kind != MESH:
            builder.report.ignored.append(f"{builder.name}: the shape of geom {k}, a height field")
            continue
        if body == 0:
            builder.report.ignored.append(f"{builder.name}: geom {k}, a shape of the world")
            continue
        surface = None if kind != MESH else surface_of(m, int(m.geom_dataid[k]), surfaces)
        name, size = SHAPES.get(kind, ("mesh", lambda s: (1.0, 1.0, 1.0)))
        collides = bool(m.geom_contype[k] or m.geom_conaffinity[k])
        seen = int(m.geom_group[k]) < HIDDEN or not collides
        for role in ["collision"] * collides + ["visual"] * seen:
            builder.add_shape(
                of.bodies[body], name, size(np.array(m.geom_size[k])), role,
                rotation=rotation_of(m.geom_quat[k]), position=np.array(m.geom_pos[k]),
                surface=surface,
            )  # fmt: skip
        builder.report.use("geom")


def surface_of(m: Any, mesh: int, made: dict[int, Surface]) -> Surface:
    """Return a mesh as the compiler left it: scaled, and moved to the axes of its geoms."""
    if mesh not in made:
        vertex, face = int(m.mesh_vertadr[mesh]), int(m.mesh_faceadr[mesh])
        made[mesh] = Surface(
            m.mesh_vert[vertex : vertex + int(m.mesh_vertnum[mesh])],
            m.mesh_face[face : face + int(m.mesh_facenum[mesh])],
        )
    return made[mesh]


def add_tendons(of: Compiled, builder: Builder) -> None:
    """Add tendons along joints; those through space are reported."""
    m = of.model
    for k in range(m.ntendon):
        name, arms = of.tendons[k], tendon_arms(of, k)
        if arms is None:
            builder.report.ignored.append(f"{builder.name}: tendon {name!r} through space")
            continue
        for what in ("limited", "frictionloss", "armature"):
            if getattr(m, f"tendon_{what}", [0] * m.ntendon)[k]:
                builder.report.ignored.append(f"{builder.name}: {what} of tendon {name!r}")
        builder.add_tendon(
            name, arms, stiffness=float(m.tendon_stiffness[k]),
            damping=float(m.tendon_damping[k]), rest=np.array(m.tendon_lengthspring[k]),
        )  # fmt: skip
        builder.report.use("tendon")


def tendon_arms(of: Compiled, k: int) -> dict[str, float] | None:
    """Return the arms of a tendon by joint, None where it does not run along joints alone."""
    m = of.model
    start, count = int(m.tendon_adr[k]), int(m.tendon_num[k])
    arms: dict[str, float] = {}
    for w in range(start, start + count):
        joint = int(m.wrap_objid[w])
        if int(m.wrap_type[w]) != 1 or int(m.jnt_type[joint]) not in SINGLE:
            return None
        arms[of.joints[joint]] = arms.get(of.joints[joint], 0.0) + float(m.wrap_prm[w])
    return arms


def add_actuators(of: Compiled, builder: Builder) -> None:
    """Add actuators on joints and tendons along joints, with a lag or without."""
    m = of.model
    for k in range(len(m.actuator_trntype)):
        on, what = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
        arms = None
        if on == JOINT and int(m.jnt_type[what]) in SINGLE:
            arms = {of.joints[what]: 1.0}
        elif on == TENDON:
            arms = tendon_arms(of, what)
        known = int(m.actuator_gaintype[k]) < 2 and int(m.actuator_biastype[k]) < 2
        lag = int(m.actuator_dyntype[k])
        if arms is None or not known or lag > FILTEREXACT:
            builder.report.ignored.append(
                f"{builder.name}: actuator {k}: only those without dynamics of their own or with "
                "a lag, on joints of one coordinate and tendons along such, are known; pass its "
                "torques to dynamics"
            )
            continue
        made = drive(m, k, arms)
        builder.actuators.append(made if lag == 0 else lagged(m, k, made))
        builder.report.use("actuator")


def lagged(m: Any, k: int, made: Drive) -> Lagged:
    """Return an actuator with an activation: commands have its range, the drive that of these."""
    constant = None if int(m.actuator_dyntype[k]) == INTEGRATOR else float(m.actuator_dynprm[k][0])
    limits = range_of(m, "act", k)
    return Lagged(replace(made, command_range=limits), constant, made.command_range)


def drive(m: Any, k: int, arms: dict[str, float]) -> Drive:
    """Return an actuator; its length is the gear times the sum of arms and coordinates."""
    gear = float(m.actuator_gear[k][0])
    gain = np.array(m.actuator_gainprm[k][:3])
    if int(m.actuator_gaintype[k]) == 0:
        gain[1:] = 0.0
    bias = np.array(m.actuator_biasprm[k][:3]) * int(m.actuator_biastype[k])
    ranges = [range_of(m, what, k) for what in ("ctrl", "force")]
    return Drive(tuple(arms), gear * np.array(list(arms.values())), gain, bias, *ranges)


def range_of(m: Any, what: str, k: int) -> np.ndarray:
    """Return a range of an actuator, all numbers where it has none."""
    if not getattr(m, f"actuator_{what}limited")[k]:
        return np.array([-np.inf, np.inf])
    return np.array(getattr(m, f"actuator_{what}range")[k])


def add_equalities(of: Compiled, builder: Builder) -> None:
    """Add what holds bodies and joints together as closures, for `constrained_dynamics`."""
    m = of.model
    for k in range(m.neq):
        made = equality(of, builder, k) if m.eq_active0[k] else None
        if made is None:
            builder.report.ignored.append(f"{builder.name}: equality {k}")
            continue
        builder.closures.append(made)
        builder.report.use("equality")
        builder.report.approximated.append(
            f"{builder.name}: equality {k}, soft in MuJoCo, is exact, in constrained_dynamics with "
            "model.closures"
        )


def equality(of: Compiled, builder: Builder, k: int) -> Closure | Coupling | None:
    """Return one of them, None where there is no such thing here."""
    m = of.model
    kind, one, two = int(m.eq_type[k]), int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    data = np.array(m.eq_data[k])
    if kind == COUPLED and not np.any(data[2:5]) and int(m.jnt_type[one]) in SINGLE:
        return coupled(of, one, two, data)
    if kind not in (CONNECT, WELD) or int(m.eq_objtype[k]) != BODY or two <= 0:
        return None
    if kind == CONNECT:
        places, turn = (data[:3], data[3:6]), np.eye(3)
    else:
        places, turn = (data[3:6], np.zeros(3)), rotation_of(data[6:10])
    first, second = f"equality{k}:first", f"equality{k}:second"
    builder.add_frame(first, of.bodies[one] if one else "world", turn, places[0])
    builder.add_frame(second, of.bodies[two], None, places[1])
    return Closure(first, second, "spherical" if kind == CONNECT else "fixed")


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

"""What an MJCF file has besides bodies and joints: shapes, tendons, actuators.

Of MuJoCo's compiled model is taken what has a counterpart here; the rest is reported.
Source: MuJoCo documentation, "Computation", "XML Reference" and ``mjModel``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.models.actuators import Drive, Lagged
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.shapes import Surface
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.tree import replace

__all__ = [
    "SINGLE",
    "Compiled",
    "add_actuators",
    "add_shapes",
    "add_tendons",
    "label",
    "rotation_of",
    "switched_off",
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
SINGLE = (2, 3)  # joints of one coordinate: slides and hinges


class Compiled(NamedTuple):
    """MuJoCo's model, and the names that its bodies, joints, ... have here, each its own."""

    model: Any
    bodies: list[str]
    joints: list[str]
    tendons: list[str]
    actuators: list[str]


def label(row: Any, what: str) -> str:
    """Return what a report calls an element: by its name, or by its number."""
    return f"{what} {row.name!r}" if row.name else f"{what} {row.id}"


def switched_off(m: Any, what: str) -> bool:
    """Whether a flag of the file disables a part of the physics."""
    import mujoco  # type: ignore[import-not-found, import-untyped, unused-ignore]

    bit = getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}", 0)
    return bool(int(m.opt.disableflags) & int(bit))


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
        where = f"{builder.name}: {label(m.geom(k), 'geom')}"
        body, kind = int(m.geom_bodyid[k]), int(m.geom_type[k])
        if kind not in SHAPES and kind != MESH:
            builder.report.ignored.append(f"{where}: the shape of a height field or a function")
            continue
        if body == 0:
            builder.report.ignored.append(f"{where}, a shape of the world")
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
        values = {"stiffness": m.tendon_stiffness[k], "damping": m.tendon_damping[k]}
        for key, flag in (("damping", "DAMPER"), ("stiffness", "SPRING")):
            values[key] = 0.0 if switched_off(m, flag) else float(values[key])
        builder.add_tendon(name, arms, rest=np.array(m.tendon_lengthspring[k]), **values)
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
        where = f"{builder.name}: {label(m.actuator(k), 'actuator')}"
        group_off = int(m.opt.disableactuator) >> int(m.actuator_group[k]) & 1
        if group_off or switched_off(m, "ACTUATION"):
            builder.report.ignored.append(f"{where}, which the file switches off")
            continue
        if int(m.actuator_plugin[k]) >= 0:
            builder.report.ignored.append(
                f"{where}: what a plugin computes; pass its torques to dynamics"
            )
            continue
        if arms is None or not known or lag > FILTEREXACT:
            builder.report.ignored.append(
                f"{where}: only those without dynamics of their own or with "
                "a lag, on joints of one coordinate and tendons along such, are known; pass its "
                "torques to dynamics"
            )
            continue
        made = drive(m, k, arms)
        if lag > INTEGRATOR and not m.actuator_dynprm[k][0] > 0.0:
            builder.report.approximated.append(f"{where}: a lag of no time is none")
            lag = 0
        if lag and m.actuator_actearly[k]:
            builder.report.approximated.append(
                f"{where}: actearly, the activation of the next step, is that of the same time"
            )
        builder.actuators.append(made if lag == 0 else lagged(m, k, made))
        builder.report.use("actuator")


def lagged(m: Any, k: int, made: Drive) -> Lagged:
    """Return an actuator with an activation, which takes over the range of its commands."""
    constant = None if int(m.actuator_dyntype[k]) == INTEGRATOR else float(m.actuator_dynprm[k][0])
    free = np.array([-np.inf, np.inf])
    return Lagged(
        replace(made, command_range=free), constant, made.command_range, range_of(m, "act", k)
    )


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
    off = what == "ctrl" and switched_off(m, "CLAMPCTRL")
    if off or not getattr(m, f"actuator_{what}limited")[k]:
        return np.array([-np.inf, np.inf])
    return np.array(getattr(m, f"actuator_{what}range")[k])

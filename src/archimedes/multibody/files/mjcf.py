"""MJCF files made builders, through MuJoCo's own compiler (the extra ``robots``).

The compiler resolves defaults, includes, meshes and inertias of shapes; what is read here is its
result. Joints of one body come one after the other, with massless links between them; each turns
about its anchor, in the axes of the body. q has MuJoCo's order and layout. v differs for free
joints: MuJoCo's linear velocity is in axes of the world, here it is in those of the body.
Source: MuJoCo documentation, "Computation" and ``mjModel``.

What an MJCF file has besides bodies and joints: shapes, tendons, actuators.

Of MuJoCo's compiled model is taken what has a counterpart here; the rest is reported.
Source: MuJoCo documentation, "Computation", "XML Reference" and ``mjModel``.

Equalities of MJCF files made closures: bodies and sites held together, coupled joints.

Legend: the data of an equality between bodies are a point of the first (0:3) and one of the second
(3:6) where these are connected; where they are welded the point of the second comes first, and is
followed by that of the first, by the quaternion of the second in it (6:10) and by how much turns
count beside shifts (10): where that is zero only the points are held together.
Source: MuJoCo documentation, "XML Reference", equality; ``mjModel.eq_data``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.installation import install_command
from archimedes.multibody.files.mjcf_report import Compiled, is_switched_off, report_left_out
from archimedes.multibody.files.robot_elements import inertia_in_body
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_edits import free_name
from archimedes.multibody.parts.actuators import Drive, Lagged
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.geometry import Surface
from archimedes.multibody.parts.joints import KINDS, Free
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Matrix, Vector
from archimedes.xml_elements import read_elements

#: Kinds of joints by MuJoCo's number.
JOINTS = {kind.mjcf: kind for kind in KINDS.values() if kind.mjcf is not None}
#: Numbers of joints that a flag of the file makes zero.
SWITCHED = {"damping": "DAMPER", "stiffness": "SPRING", "friction": "FRICTIONLOSS"}
#: Bodies are inside each other in these files, each a step of a chain.
DEEPEST = 500


def read_mjcf(path: str | os.PathLike[str], packages: object = None) -> Builder:
    """Return a builder of an MJCF file; ``builder.report`` says what is not in it."""
    root = read_elements(path, None, DEEPEST)
    if root.tag != "mujoco":
        raise root.error(f"an MJCF file is a <mujoco>, this is a <{root.tag}>")
    mujoco = compiler()
    try:
        compiled = mujoco.MjModel.from_xml_path(os.fspath(path))
    except (ValueError, mujoco.FatalError) as error:
        raise ValueError(f"{Path(path).name}: MuJoCo's compiler: {error}") from None
    try:
        return of_compiled(mujoco, compiled, root.attributes.get("model", Path(path).stem))
    except ValueError as error:
        raise ValueError(f"{Path(path).name}: {error}") from None


def compiler() -> Any:
    """Return the package mujoco, or say how to get it."""
    try:
        import mujoco  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(
            f"MJCF files are read through MuJoCo's compiler: {install_command('robots')}"
        ) from None
    return mujoco


def of_compiled(mujoco: Any, compiled: Any, name: str) -> Builder:
    """Return a builder of MuJoCo's compiled model."""
    builder = Builder(name)
    off = is_switched_off(compiled, "GRAVITY")
    builder.gravity = np.zeros(3) if off else np.array(compiled.opt.gravity)
    of = name_parts(mujoco, compiled)
    for k in range(1, compiled.nbody):
        add_body(of, builder, k)
    add_sites(mujoco, of, builder)
    for add in (add_shapes, add_tendons, add_actuators, add_equalities, report_left_out):
        add(of, builder)
    return builder


def name_parts(mujoco: Any, compiled: Any) -> Compiled:
    """Return the model with names for all its parts: those without get one that is not taken."""

    def titles(what: str, count: int, default: Callable[[int], str]) -> list[str]:
        kind = getattr(mujoco.mjtObj, f"mjOBJ_{what}")
        names = [mujoco.mj_id2name(compiled, kind, k) or "" for k in range(count)]
        taken = {*names}
        for k, name in enumerate(names):
            names[k] = name or free_name(default(k), taken)
            taken.add(names[k])
        return names

    bodies = titles("BODY", compiled.nbody, lambda k: f"body{k}")

    def joint(k: int) -> str:
        body = int(compiled.jnt_bodyid[k])
        return f"{bodies[body]}_joint{k - int(compiled.body_jntadr[body])}"

    joints = titles("JOINT", compiled.njnt, joint)
    tendons = titles("TENDON", compiled.ntendon, lambda k: f"tendon{k}")
    actuators = titles("ACTUATOR", len(compiled.actuator_trntype), lambda k: f"actuator{k}")
    return Compiled(compiled, bodies, joints, tendons, actuators)


def add_sites(mujoco: Any, of: Compiled, builder: Builder) -> None:
    """Add sites as frames; bodies come first where both have one name."""
    m = of.model
    named = {m.site(k).name for k in range(m.nsite)}
    for k in range(m.nsite):
        title = m.site(k).name
        if title and title not in builder.bodies:
            name = title
        else:
            name = free_name(f"{title}:site" if title else f"site{k}", {*builder.bodies, *named})
            named.add(name)
        if title and name != title:
            builder.report.approximated.append(
                f"{builder.name}: site {title!r}, named as a body is, is the frame {name!r}"
            )
        owner = of.bodies[m.site_bodyid[k]] if m.site_bodyid[k] else "world"
        builder.add_frame(name, owner, rotation_of(m.site_quat[k]), np.array(m.site_pos[k]))
        builder.report.use("site")


def add_body(of: Compiled, builder: Builder, k: int) -> None:
    """Add a body with its joints."""
    m = of.model
    body, parent_id = of.bodies[k], int(m.body_parentid[k])
    parent = of.bodies[parent_id] if parent_id else "world"
    J = inertia_in_body(rotation_of(m.body_iquat[k]), np.diag(m.body_inertia[k]))
    builder.add_body(body, float(m.body_mass[k]), np.array(m.body_ipos[k]), J)
    builder.report.use("body")
    at: dict[str, Any] = {
        "rotation": rotation_of(m.body_quat[k]),
        "position": np.array(m.body_pos[k]),
    }
    first, count = int(m.body_jntadr[k]), int(m.body_jntnum[k])
    if count == 0:
        weld = free_name(f"{parent}_{body}", {*builder.joints, *of.joints})
        builder.attach(body, parent, joint=weld, kind="fixed", **at)
        return
    for joint in range(first, first + count):
        title = of.joints[joint]
        last = joint == first + count - 1
        child = body if last else free_name(f"{body}:{title}", {*builder.bodies, *of.bodies})
        if not last:
            builder.add_massless(child)
        if isinstance(JOINTS[int(m.jnt_type[joint])], Free):
            at = {}
        builder.attach(child, parent, joint=title, **at, **joint_values(m, joint))
        builder.report.use("joint")
        parent, at = child, {}


def joint_values(compiled: Any, j: int) -> dict[str, Any]:
    """Return the kind, axis, anchor and all numbers of a joint."""
    kind = JOINTS[int(compiled.jnt_type[j])]
    q0, v0 = int(compiled.jnt_qposadr[j]), int(compiled.jnt_dofadr[j])
    dofs = slice(v0, v0 + kind.nv)
    values: dict[str, Any] = {
        "kind": kind,
        "axis": np.array(compiled.jnt_axis[j]) if kind.axial else [0, 0, 1],
        "damping": np.array(compiled.dof_damping[dofs]),
        "friction": np.array(compiled.dof_frictionloss[dofs]),
        "armature": np.array(compiled.dof_armature[dofs]),
        "stiffness": float(compiled.jnt_stiffness[j]),
        "rest": np.array(compiled.qpos_spring[q0 : q0 + kind.nq]),
    }
    for key, flag in SWITCHED.items():
        if is_switched_off(compiled, flag):
            values[key] = 0.0 * values[key]
    if kind.anchored:
        values["anchor"] = np.array(compiled.jnt_pos[j])
    if kind.nq == 1:
        # MuJoCo's qpos is zero_at where the body is as in the file.
        values["zero_at"] = float(compiled.qpos0[q0])
        if compiled.jnt_limited[j]:
            values["lower"], values["upper"] = (float(x) for x in compiled.jnt_range[j])
        if compiled.jnt_actfrclimited[j]:
            values["effort_limit"] = float(np.abs(compiled.jnt_actfrcrange[j]).max())
    return values


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


def label(row: Any, what: str) -> str:
    """Return what a report calls an element: by its name, or by its number."""
    return f"{what} {row.name!r}" if row.name else f"{what} {row.id}"


def rotation_of(quaternion: ArrayLike) -> Matrix:
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


def surface_of(m: Any, mesh: int, surfaces: dict[int, Surface]) -> Surface:
    """Return a mesh as the compiler left it: scaled, and moved to the axes of its geoms."""
    if mesh not in surfaces:
        vertex, face = int(m.mesh_vertadr[mesh]), int(m.mesh_faceadr[mesh])
        surfaces[mesh] = Surface(
            m.mesh_vert[vertex : vertex + int(m.mesh_vertnum[mesh])],
            m.mesh_face[face : face + int(m.mesh_facenum[mesh])],
        )
    return surfaces[mesh]


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
            values[key] = 0.0 if is_switched_off(m, flag) else float(values[key])
        builder.add_tendon(name, arms, rest=np.array(m.tendon_lengthspring[k]), **values)
        builder.report.use("tendon")


def tendon_arms(of: Compiled, k: int) -> dict[str, float] | None:
    """Return the arms of a tendon by joint, or None if it does not run along joints alone."""
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
        if group_off or is_switched_off(m, "ACTUATION"):
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
        actuator = drive(m, k, arms)
        if lag > INTEGRATOR and not m.actuator_dynprm[k][0] > 0.0:
            builder.report.approximated.append(f"{where}: a lag of no time is none")
            lag = 0
        if lag and m.actuator_actearly[k]:
            builder.report.approximated.append(
                f"{where}: actearly, the activation of the next step, is that of the same time"
            )
        builder.actuators.append(actuator if lag == 0 else add_lag(m, k, actuator))
        builder.report.use("actuator")


def add_lag(m: Any, k: int, drive: Drive) -> Lagged:
    """Return an actuator with an activation, which takes over the range of its commands."""
    constant = None if int(m.actuator_dyntype[k]) == INTEGRATOR else float(m.actuator_dynprm[k][0])
    free = np.array([-np.inf, np.inf])
    return Lagged(
        replace(drive, command_range=free), constant, drive.command_range, range_of(m, "act", k)
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
    off = what == "ctrl" and is_switched_off(m, "CLAMPCTRL")
    if off or not getattr(m, f"actuator_{what}limited")[k]:
        return np.array([-np.inf, np.inf])
    return np.array(getattr(m, f"actuator_{what}range")[k])


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
    off = is_switched_off(m, "EQUALITY") or is_switched_off(m, "CONSTRAINT")
    for k in range(m.neq):
        where = f"{builder.name}: {label(m.equality(k), 'equality')}"
        closure = equality(of, builder, k) if m.eq_active0[k] and not off else None
        if closure is None:
            builder.report.ignored.append(where)
            continue
        builder.closures.append(closure)
        builder.report.use("equality")
        builder.report.approximated.append(
            f"{where}, soft in MuJoCo, is exact, in constrained_dynamics with model.closures"
        )


def equality(of: Compiled, builder: Builder, k: int) -> Closure | Coupling | None:
    """Return the closure of one equality, or None if there is no counterpart here."""
    m = of.model
    kind, one, two = int(m.eq_type[k]), int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    data = np.array(m.eq_data[k])
    if kind == COUPLED and not np.any(data[2:5]) and int(m.jnt_type[one]) in SINGLE:
        return couple(of, one, two, data)
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


def couple(of: Compiled, one: int, two: int, data: Vector) -> Coupling | None:
    """Return a joint held at a number, or at a straight line of another."""
    m = of.model
    start = [float(m.qpos0[int(m.jnt_qposadr[j])]) for j in (one, max(two, 0))]
    if two < 0 or data[1] == 0.0:
        return Coupling({of.joints[one]: 1.0}, float(data[0]) + start[0])
    if int(m.jnt_type[two]) not in SINGLE:
        return None
    arms = {of.joints[one]: 1.0, of.joints[two]: -float(data[1])}
    return Coupling(arms, float(data[0]) + start[0] - float(data[1]) * start[1])

"""MJCF files made builders, through MuJoCo's own compiler (``pip install 'archimedes[robots]'``).

The compiler resolves defaults, includes, meshes and inertias of shapes; what is read here is its
result. Joints of one body come one after the other, with massless links between them; each turns
about its anchor, in the axes of the body. q has MuJoCo's order and layout. v differs for free
joints: MuJoCo's linear velocity is in axes of the world, here it is in those of the body.
Source: MuJoCo documentation, "Computation" and ``mjModel``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.multibody.files.mjcf_parts import (
    Compiled,
    add_actuators,
    add_equalities,
    add_shapes,
    add_tendons,
    rotation_of,
)
from archimedes.multibody.files.placements import inertia_in_body
from archimedes.multibody.models.builder import Builder
from archimedes.xml_elements import read_elements

__all__ = ["read_mjcf"]

#: MuJoCo's joint types, in the order of their numbers.
KINDS = ("free", "spherical", "prismatic", "revolute")
#: What a model may have that is not taken over: a count, and what it is.
LEFT_OUT = {
    "nsensor": "sensors",
    "nflex": "flexible bodies",
    "nskin": "skins",
    "nplugin": "plugins",
    "nmocap": "motion-capture bodies, fixed where they are",
    "nkey": "keyframes",
    "npair": "pairs of contacts",
    "nexclude": "pairs of bodies without contact",
    "ncam": "cameras",
    "nlight": "lights",
    "nnumeric": "custom numbers",
    "ntext": "custom texts",
    "ntuple": "custom tuples",
}
#: What MuJoCo takes for contacts where a file says nothing.
USUAL = {
    "friction": (1.0, 0.005, 0.0001), "solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)
}  # fmt: skip


def read_mjcf(path: str | os.PathLike[str], packages: Any = None) -> Builder:
    """Return a builder of an MJCF file; ``builder.report`` says what is not in it."""
    root = read_elements(path, None)
    if root.tag != "mujoco":
        raise root.error(f"an MJCF file is a <mujoco>, this is a <{root.tag}>")
    mujoco = compiler()
    try:
        compiled = mujoco.MjModel.from_xml_path(os.fspath(path))
    except ValueError as error:
        raise ValueError(f"{Path(path).name}: MuJoCo's compiler: {error}") from None
    return of_compiled(mujoco, compiled, root.attributes.get("model", Path(path).stem))


def compiler() -> Any:
    """Return the package mujoco, or say how to get it."""
    try:
        import mujoco  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(
            "MJCF files are read through MuJoCo's compiler: pip install 'archimedes[robots]'"
        ) from None
    return mujoco


def of_compiled(mujoco: Any, compiled: Any, name: str) -> Builder:
    """Return a builder of MuJoCo's compiled model."""
    builder = Builder(name)
    if not switched_off(mujoco, compiled, "GRAVITY"):
        builder.gravity = np.array(compiled.opt.gravity)
    else:
        builder.gravity = np.zeros(3)
    names = [name_of(mujoco, compiled, "BODY", k, f"body{k}") for k in range(compiled.nbody)]
    for k in range(1, compiled.nbody):
        add_body(mujoco, compiled, builder, names, k)
    for k in range(compiled.nsite):
        site = name_of(mujoco, compiled, "SITE", k, "")
        if site and site not in builder.bodies and site not in builder.frames:
            owner = names[compiled.site_bodyid[k]] if compiled.site_bodyid[k] else "world"
            R = rotation_of(compiled.site_quat[k])
            builder.add_frame(site, owner, R, np.array(compiled.site_pos[k]))
            builder.report.use("site")
    joints = [joint_title(mujoco, compiled, names, j) for j in range(compiled.njnt)]
    tendons = [
        name_of(mujoco, compiled, "TENDON", k, f"tendon{k}") for k in range(compiled.ntendon)
    ]
    parts = Compiled(compiled, names, joints, tendons)
    for add in (add_shapes, add_tendons, add_actuators, add_equalities):
        add(parts, builder)
    report_left_out(compiled, builder)
    return builder


def joint_title(mujoco: Any, compiled: Any, names: list[str], joint: int) -> str:
    """Return the name of a joint; one without is named after its body."""
    body = int(compiled.jnt_bodyid[joint])
    n = joint - int(compiled.body_jntadr[body])
    return name_of(mujoco, compiled, "JOINT", joint, f"{names[body]}_joint{n}")


def switched_off(mujoco: Any, compiled: Any, what: str) -> bool:
    """Whether a flag of the file disables a part of the physics."""
    bit = getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}", 0)
    return bool(int(compiled.opt.disableflags) & int(bit))


def name_of(mujoco: Any, compiled: Any, what: str, k: int, default: str) -> str:
    """Return the name of a body, joint or site."""
    kind = getattr(mujoco.mjtObj, f"mjOBJ_{what}")
    return mujoco.mj_id2name(compiled, kind, k) or default


def add_body(mujoco: Any, compiled: Any, builder: Builder, names: list[str], k: int) -> None:
    """Add a body with its joints."""
    body, parent_id = names[k], int(compiled.body_parentid[k])
    parent = names[parent_id] if parent_id else "world"
    turned = rotation_of(compiled.body_iquat[k])
    J = inertia_in_body(turned, np.diag(compiled.body_inertia[k]))
    builder.add_body(body, float(compiled.body_mass[k]), np.array(compiled.body_ipos[k]), J)
    builder.report.use("body")
    at: dict[str, Any] = {
        "rotation": rotation_of(compiled.body_quat[k]),
        "position": np.array(compiled.body_pos[k]),
    }
    first, count = int(compiled.body_jntadr[k]), int(compiled.body_jntnum[k])
    if count == 0:
        builder.weld(body, parent, **at)
        return
    for n in range(count):
        joint = first + n
        last = n == count - 1
        title = joint_title(mujoco, compiled, names, joint)
        child = body if last else f"{body}:{title}"
        if not last:
            builder.add_massless(child)
        if KINDS[int(compiled.jnt_type[joint])] == "free":
            at = {}
        values = joint_values(compiled, joint)
        for key, flag in (("damping", "DAMPER"), ("stiffness", "SPRING")):
            if switched_off(mujoco, compiled, flag):
                values[key] = 0.0
        builder.attach(child, parent, joint=title, **at, **values)
        builder.report.use("joint")
        parent, at = child, {}


def joint_values(compiled: Any, j: int) -> dict[str, Any]:
    """Return the kind, axis, anchor and all numbers of a joint."""
    kind = KINDS[int(compiled.jnt_type[j])]
    size = {"free": (7, 6), "spherical": (4, 3)}.get(kind, (1, 1))
    q0, v0 = int(compiled.jnt_qposadr[j]), int(compiled.jnt_dofadr[j])
    dofs = slice(v0, v0 + size[1])
    values: dict[str, Any] = {
        "kind": kind,
        "axis": np.array(compiled.jnt_axis[j]) if kind in ("prismatic", "revolute") else [0, 0, 1],
        "damping": np.array(compiled.dof_damping[dofs]),
        "friction": np.array(compiled.dof_frictionloss[dofs]),
        "armature": np.array(compiled.dof_armature[dofs]),
        "stiffness": float(compiled.jnt_stiffness[j]),
        "rest": np.array(compiled.qpos_spring[q0 : q0 + size[0]]),
    }
    if kind in ("revolute", "spherical"):
        values["anchor"] = np.array(compiled.jnt_pos[j])
    if size == (1, 1):
        # MuJoCo's qpos is zero_at where the body is as in the file.
        values["zero_at"] = float(compiled.qpos0[q0])
        if compiled.jnt_limited[j]:
            values["lower"], values["upper"] = (float(x) for x in compiled.jnt_range[j])
        if compiled.jnt_actfrclimited[j]:
            values["effort_limit"] = float(np.abs(compiled.jnt_actfrcrange[j]).max())
    return values


def report_left_out(compiled: Any, builder: Builder) -> None:
    """Say what the model has that is not in the builder."""
    report = builder.report.ignored
    for count, what in LEFT_OUT.items():
        if number := int(getattr(compiled, count, 0)):
            report.append(f"{builder.name}: {number} {what}")
    if compiled.opt.density or compiled.opt.viscosity:
        report.append(f"{builder.name}: forces of the fluid around")
    if np.any(compiled.body_gravcomp):
        report.append(f"{builder.name}: gravity compensation")
    report_joints_and_geoms(compiled, builder)
    for name in ("dof_dampingpoly", "jnt_stiffnesspoly"):
        if np.any(getattr(compiled, name, 0.0)):
            report.append(f"{builder.name}: {name}, nonlinear terms of passive forces")
    if np.any(compiled.dof_frictionloss):
        builder.report.approximated.append(
            f"{builder.name}: frictionloss, which is a constraint in MuJoCo, is a smooth force"
        )


def report_joints_and_geoms(compiled: Any, builder: Builder) -> None:
    """Say which numbers of joints and geoms have no place in the model."""
    report = builder.report
    for j in range(compiled.njnt):
        kind = KINDS[int(compiled.jnt_type[j])]
        if kind == "spherical" and compiled.jnt_limited[j]:
            report.ignored.append(f"{builder.name}: the limit of joint {j}, a ball joint")
        low, high = compiled.jnt_actfrcrange[j]
        if compiled.jnt_actfrclimited[j] and low != -high:
            report.approximated.append(
                f"{builder.name}: actuatorfrcrange of joint {j}: effort_limit is the larger one"
            )
    colliding = (compiled.geom_contype != 0) | (compiled.geom_conaffinity != 0)
    own = [
        np.any(getattr(compiled, f"geom_{key}") != usual, axis=1) for key, usual in USUAL.items()
    ]
    if number := int(np.sum(colliding & np.any(own, axis=0))):
        report.approximated.append(
            f"{builder.name}: friction or softness of {number} geoms in contact: what Ground and "
            "Pair say counts"
        )

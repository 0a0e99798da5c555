"""MJCF files made builders, through MuJoCo's own compiler (the extra ``robots``).

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

from archimedes.installation import install_command
from archimedes.multibody.files.mjcf_equalities import add_equalities
from archimedes.multibody.files.mjcf_left_out import report_left_out
from archimedes.multibody.files.mjcf_parts import (
    Compiled,
    add_actuators,
    add_shapes,
    add_tendons,
    rotation_of,
    switched_off,
)
from archimedes.multibody.files.placements import inertia_in_body
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.changing import free_name
from archimedes.xml_elements import read_elements

__all__ = ["read_mjcf"]

#: MuJoCo's joint types, in the order of their numbers.
KINDS = ("free", "spherical", "prismatic", "revolute")
#: Numbers of joints that a flag of the file makes zero.
SWITCHED = {"damping": "DAMPER", "stiffness": "SPRING", "friction": "FRICTIONLOSS"}
#: Bodies are inside each other in these files, each a step of a chain.
DEEPEST = 500


def read_mjcf(path: str | os.PathLike[str], packages: Any = None) -> Builder:
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
    off = switched_off(compiled, "GRAVITY")
    builder.gravity = np.zeros(3) if off else np.array(compiled.opt.gravity)
    of = titled(mujoco, compiled)
    for k in range(1, compiled.nbody):
        add_body(of, builder, k)
    add_sites(mujoco, of, builder)
    for add in (add_shapes, add_tendons, add_actuators, add_equalities, report_left_out):
        add(of, builder)
    return builder


def titled(mujoco: Any, compiled: Any) -> Compiled:
    """Return the model with names for all its parts: those without get one that is not taken."""

    def titles(what: str, count: int, default: Any) -> list[str]:
        kind = getattr(mujoco.mjtObj, f"mjOBJ_{what}")
        given = [mujoco.mj_id2name(compiled, kind, k) or "" for k in range(count)]
        taken = {*given}
        for k, name in enumerate(given):
            given[k] = name or free_name(default(k), taken)
            taken.add(given[k])
        return given

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
        given = m.site(k).name
        if given and given not in builder.bodies:
            name = given
        else:
            name = free_name(f"{given}:site" if given else f"site{k}", {*builder.bodies, *named})
            named.add(name)
        if given and name != given:
            builder.report.approximated.append(
                f"{builder.name}: site {given!r}, named as a body is, is the frame {name!r}"
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
        if KINDS[int(m.jnt_type[joint])] == "free":
            at = {}
        builder.attach(child, parent, joint=title, **at, **joint_values(m, joint))
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
    for key, flag in SWITCHED.items():
        if switched_off(compiled, flag):
            values[key] = 0.0 * values[key]
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

"""What MuJoCo's compiled model has that a `Builder` has not, or otherwise: lines of its report.

Source: MuJoCo documentation, "XML Reference" and ``mjModel``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.multibody.models.builder import Builder

#: What a model may have that is not taken over: a count, and what it is.
LEFT_OUT = {
    "nsensor": "sensors",
    "nflex": "flexible bodies",
    "nskin": "skins",
    "nplugin": "plugins",
    "nplastic": "springs that yield",
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
#: Numbers of which nothing is taken over where they are not zero.
NUMBERS = {
    "dof_dampingpoly": "nonlinear damping (dof_dampingpoly) of joint",
    "jnt_stiffnesspoly": "nonlinear stiffness (jnt_stiffnesspoly) of joint",
    "jnt_actgravcomp": "gravity compensation by the actuators of joint",
    "tendon_limited": "limited: the range of tendon",
    "tendon_frictionloss": "frictionloss of tendon",
    "tendon_armature": "armature of tendon",
    "tendon_actfrclimited": "actuatorfrcrange of tendon",
    "tendon_dampingpoly": "nonlinear damping of tendon",
    "tendon_stiffnesspoly": "nonlinear stiffness of tendon",
    "actuator_damping": "damping of actuator",
    "actuator_dampingpoly": "nonlinear damping of actuator",
    "actuator_armature": "armature of actuator",
    "actuator_delay": "the delay of actuator",
}
FREE, BALL = 0, 1  # kinds of joints
NEUTRAL = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # coordinates of a free joint
#: What MuJoCo takes for contacts where a file says nothing.
USUAL = {
    "friction": (1.0, 0.005, 0.0001), "solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)
}  # fmt: skip


class Compiled(NamedTuple):
    """MuJoCo's model, and the names that its bodies, joints, ... have here, each its own."""

    model: Any
    bodies: list[str]
    joints: list[str]
    tendons: list[str]
    actuators: list[str]


def is_switched_off(m: Any, what: str) -> bool:
    """Return whether a flag of the file disables a part of the physics."""
    import mujoco  # type: ignore[import-not-found, import-untyped, unused-ignore]

    bit = getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}", 0)
    return bool(int(m.opt.disableflags) & int(bit))


def report_left_out(of: Compiled, builder: Builder) -> None:
    """Say what the model has that is not in the builder."""
    compiled = of.model
    report = builder.report.ignored
    for count, what in LEFT_OUT.items():
        if number := int(getattr(compiled, count, 0)):
            report.append(f"{builder.name}: {number} {what}")
    if compiled.opt.density or compiled.opt.viscosity:
        report.append(f"{builder.name}: forces of the fluid around")
    if np.any(compiled.body_gravcomp):
        report.append(f"{builder.name}: gravity compensation")
    report_joints(of, builder)
    report_contacts(compiled, builder)
    report_numbers(of, builder)
    if np.any(compiled.dof_frictionloss) and not is_switched_off(compiled, "FRICTIONLOSS"):
        builder.report.approximated.append(
            f"{builder.name}: frictionloss, which is a constraint in MuJoCo, is a smooth force"
        )


def report_joints(of: Compiled, builder: Builder) -> None:
    """Say which numbers of joints count otherwise here."""
    m, report = of.model, builder.report
    for j, name in enumerate(of.joints):
        kind, where = int(m.jnt_type[j]), f"{builder.name}: joint {name!r}"
        if kind == BALL and m.jnt_limited[j]:
            report.ignored.append(f"{where}: the limit of a ball joint")
        if m.jnt_actfrclimited[j]:
            low, high = m.jnt_actfrcrange[j]
            larger = "" if low == -high else ", of the larger one"
            report.approximated.append(
                f"{where}: actuatorfrcrange is an effort_limit{larger}, which stops nothing by "
                "itself"
            )
        if kind != FREE:
            continue
        start = int(m.jnt_qposadr[j])
        if not np.array_equal(m.qpos0[start : start + 7], NEUTRAL):
            report.approximated.append(
                f"{where}: where its body is in the file is model.rest; neutral is at the origin"
            )
        if m.jnt_stiffness[j] and not is_switched_off(m, "SPRING"):
            report.approximated.append(
                f"{where}: its spring pulls along the screw that leads back to rest, in MuJoCo "
                "along a line"
            )
        if np.any(m.dof_armature[int(m.jnt_dofadr[j])]):
            report.approximated.append(
                f"{where}: armature resists the rates of v, whose linear part is in axes of the "
                "body, not of the world"
            )


def report_numbers(of: Compiled, builder: Builder) -> None:
    """Say which numbers of joints, tendons and actuators have no place in the model."""
    m = of.model
    named = {"jnt": of.joints, "tendon": of.tendons, "actuator": of.actuators}
    named["dof"] = [of.joints[int(j)] for j in m.dof_jntid]
    for field, what in NUMBERS.items():
        names = named[field.partition("_")[0]]
        rows = getattr(m, field, np.zeros(len(names)))  # younger than some versions of MuJoCo
        lost = (name for name, row in zip(names, rows, strict=True) if np.any(row))
        for name in dict.fromkeys(lost):
            builder.report.ignored.append(f"{builder.name}: {what} {name!r}")


def report_contacts(compiled: Any, builder: Builder) -> None:
    """Say that friction and softness of shapes are for others to give."""
    report = builder.report
    colliding = (compiled.geom_contype != 0) | (compiled.geom_conaffinity != 0)
    own = [
        np.any(getattr(compiled, f"geom_{key}") != usual, axis=1) for key, usual in USUAL.items()
    ]
    if number := int(np.sum(colliding & np.any(own, axis=0))):
        report.approximated.append(
            f"{builder.name}: friction or softness of {number} geoms in contact: what Ground and "
            "Pair say counts"
        )

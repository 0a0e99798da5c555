"""What URDF files have besides links and joints: transmissions, elements of Gazebo and of Drake.

A transmission with reduction n puts n times the torque of a motor on its joint; a differential one
turns two shafts by ``n_m1 (n_1 q_1 + n_2 q_2)`` and ``n_m2 (n_1 q_1 - n_2 q_2)``. The inertia of a
rotor counts with the square of the ratio, as armature of the joint. `gear_ratio` is of the rotor
alone, and by default the reduction.

Sources: http://wiki.ros.org/urdf/XML/Transmission; the ROS package transmission_interface;
https://classic.gazebosim.org/tutorials?tut=ros_urdf; Drake, "Parsing Models for Multibody
Dynamics".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.multibody.files.robot_elements import Known, call_at, three
from archimedes.multibody.parts.actuators import Motor, Servo
from archimedes.multibody.parts.closures import Closure
from archimedes.multibody.parts.joints import KINDS
from archimedes.xml_elements import Element, number

if TYPE_CHECKING:
    from archimedes.multibody.files.urdf import UrdfReader

#: Joints that Drake's element has.
DRAKE_JOINTS = {
    "ball": KINDS["spherical"],
    "planar": KINDS["planar"],
    "screw": KINDS["helical"],
    "universal": KINDS["universal"],
}
#: Axes of universal ones, whatever <axis> says.
UNIVERSAL_AXES = {"axis": (1.0, 0.0, 0.0), "second_axis": (0.0, 1.0, 0.0)}
REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
DRAKE = "drake:"
OF_MOTORS = ("rotor_inertia", "gear_ratio", "controller_gains")
#: What is read of transmissions, whose joints and actuators are not those of robots.
TRANSMISSION = {
    "transmission": Known("name type", "type plugin joint actuator mechanicalReduction"),
    "joint": Known("name role", " ".join(REDUCTIONS), seen="hardwareInterface role"),
    "actuator": Known(
        "name role",
        " ".join((*REDUCTIONS, *(f"{DRAKE}{key}" for key in OF_MOTORS))),
        seen="hardwareInterface role",
    ),
    **dict.fromkeys(("drake:rotor_inertia", "drake:gear_ratio"), Known("value")),
    "drake:controller_gains": Known("p d"),
}
#: Elements of Drake: which inside give a link, and which a number or three.
ENDS = {"body_A": "name", "body_B": "name", "p_AP": "value", "p_BQ": "value"}
SPRING = {"free_length": "rest", "stiffness": "stiffness", "damping": "damping"}
TENDON = {"stiffness": "stiffness", "damping": "damping", "offset": "offset"} | {
    f"{key}_limit": key for key in ("lower", "upper")
}
#: Elements of Gazebo without effect on the motion of a robot.
FOR_THE_EYE = (
    "material", "visual", "implicitSpringDamper", "provideFeedback", "preserveFixedJoint",
    "disableFixedJointLumping",
)  # fmt: skip


def read_extension(reader: UrdfReader, element: Element) -> None:
    """Add what an element beside links and joints describes, or report it."""
    read = READERS.get(element.tag)
    if read is None:
        reader.ignore(element, f"<{element.tag}> is not part of a robot")
    else:
        read(reader, element)


# ---- transmissions -------------------------------------------------------------------------------


def read_transmission(reader: UrdfReader, element: Element) -> None:
    """Add the actuators of a <transmission>."""
    name = element.attributes.get("name", "")
    reader.report_unread(element, f"transmission {name!r}", TRANSMISSION, texts=True)
    holder = element.find("type") or element.find("plugin")
    kind = (element.attributes.get("type", "") if holder is None else holder.text).strip()
    plain = kind.rpartition("/")[2].rpartition("::")[2].removesuffix("Transmission")
    joints = [part for part in element if part.tag == "joint"]
    motors = [part for part in element if part.tag == "actuator"]
    shape = (plain or "Simple", len(joints), len(motors))
    absent = [
        joint.get("name")
        for joint in joints
        if (own := reader.builder.joints.get(joint.get("name"))) is None
        or own.kind.nv != 1
        or own.mimic is not None
    ]
    if absent:
        what = f"joint {absent[0]!r} is not one of one coordinate that moves by itself"
        reader.ignore(element, f"transmission {name!r}: {what}")
    elif shape == ("Simple", 1, 1):
        read_simple(reader, element, joints[0], motors[0])
    elif shape == ("Differential", 2, 2):
        read_differential(reader, joints, motors)
    else:
        what = f"{kind or 'no type'} with joints and actuators: {shape[1]} and {shape[2]}"
        reader.ignore(element, f"transmission {name!r}: {what}")


def read_simple(reader: UrdfReader, element: Element, joint: Element, motor: Element) -> None:
    """Add the motor of one joint, or the servo if it has gains, and the inertia of its rotor."""
    name, builder = joint.get("name"), reader.builder
    gear = reduction(element) * reduction(joint) * reduction(motor)
    ratio = attribute(motor, "drake:gear_ratio", gear)
    inertia = attribute(motor, "drake:rotor_inertia", 0.0)
    if inertia < 0.0:
        raise motor.error(f"joint {name!r}: the inertia of the rotor is negative")
    if inertia:
        own = builder.joints[name]
        armature = own.values.get("armature", 0.0) + ratio * ratio * inertia
        builder.joints[name] = replace(own, values=own.values | {"armature": armature})
    gains = motor.find("drake:controller_gains")
    if gains is None:
        builder.actuators.append(call_at(motor, Motor, name, gear))
    else:
        p, d = (number(gains.get(key), gains, key) for key in "pd")
        builder.actuators.append(call_at(gains, Servo, name, stiffness=p, damping=d))
    reader.report.use("transmission")


def read_differential(reader: UrdfReader, joints: list[Element], motors: list[Element]) -> None:
    """Add two motors on tendons along two joints: a differential."""
    names = [joint.get("name") for joint in joints]
    ratios = [reduction(joint) for joint in joints]
    for motor, sense in zip(motors, (1.0, -1.0), strict=True):
        shaft, gear = motor.get("name"), reduction(motor)
        arms = dict(zip(names, (gear * ratios[0], gear * sense * ratios[1]), strict=True))
        call_at(motor, reader.builder.add_tendon, shaft, arms)
        reader.builder.actuators.append(call_at(motor, Motor, shaft))
        for part in motor:
            if part.tag.startswith(DRAKE):
                reader.ignore(part, f"<{part.tag}> of {shaft!r}, in a differential")
    reader.report.use("transmission")


def reduction(holder: Element) -> float:
    """Return the reduction in an element, 1 by default."""
    found = [part for part in holder if part.tag in REDUCTIONS]
    if len(found) > 1:
        raise found[1].error(f"<{holder.tag}> has two reductions; one is allowed")
    return number(found[0].text, found[0], found[0].tag) if found else 1.0


def attribute(holder: Element, tag: str, default: float) -> float:
    """Return the number in the attribute `value` of an element inside."""
    part = holder.find(tag)
    return default if part is None else number(part.get("value"), part, tag)


# ---- Gazebo --------------------------------------------------------------------------------------


def read_gazebo(reader: UrdfReader, element: Element) -> None:
    """Take what Gazebo knows about a link, a joint or the robot; report what has no counterpart."""
    name, builder = element.attributes.get("reference", ""), reader.builder
    of = repr(name) if name else "the robot"
    for part in element:
        taken = part.tag in FOR_THE_EYE
        if name in builder.bodies and part.tag in ("gravity", "turnGravityOff"):
            off = is_true(part.text) == (part.tag == "turnGravityOff")
            carried = read_carried(part)
            own = builder.bodies[name]
            builder.bodies[name] = replace(own, compensated=float(off), carried=carried)
            taken = True
        elif name in builder.joints and part.tag in ("springStiffness", "springReference"):
            taken = set_spring(reader, part, name)
        if taken:
            reader.report.use("gazebo")
        else:
            reader.ignore(part, f"<{part.tag}> of {of} in <gazebo>")


def read_carried(part: Element) -> np.ndarray | None:
    """Return mass and first moment (4,) of what is carried of a body, None where nothing is said.

    Only files that `multibody.save` has written have them.
    """
    if "carried" not in part.attributes:
        return None
    row = np.array([number(word, part, "carried") for word in part.get("carried").split()])
    if row.shape != (4,):
        what = f"carried has {len(row)} numbers; it is a mass in kg and its first moment, 4 numbers"
        raise part.error(f"<{part.tag}>: {what}")
    return row


def set_spring(reader: UrdfReader, part: Element, name: str) -> bool:
    """Give a joint the stiffness or the rest of a spring, and return whether it can have one."""
    own = reader.builder.joints[name]
    if own.kind.nv != 1:
        return False
    key = "stiffness" if part.tag == "springStiffness" else "rest"
    value = number(part.text, part, part.tag)
    reader.builder.joints[name] = replace(own, values=own.values | {key: value})
    return True


def is_true(text: str) -> bool:
    """Return what a word of truth says."""
    return text.strip().lower() in ("true", "1")


# ---- Drake ---------------------------------------------------------------------------------------


def read_spring(reader: UrdfReader, element: Element) -> None:
    """Add a spring and damper between two points."""
    report_parts(reader, element, (*ENDS, *SPRING))
    first, second = add_ends(reader, element)
    values = {key: inner(element, word) for word, key in SPRING.items()}
    name = f"{first}-{second}"
    call_at(element, reader.builder.add_tendon, name, path=[first, second], **values)
    reader.report.use(element.tag)


def read_ball_constraint(reader: UrdfReader, element: Element) -> None:
    """Add a closure that holds two points together."""
    report_parts(reader, element, ENDS)
    ends = add_ends(reader, element)
    reader.builder.closures.append(call_at(element, Closure, *ends, "spherical"))
    reader.report.use(element.tag)


def read_tendon_constraint(reader: UrdfReader, element: Element) -> None:
    """Add a tendon with limits, whose stops take the place of stiffness and damping."""
    report_parts(reader, element, ("joint", *TENDON))
    joints = [part for part in element if part.tag == f"{element.tag}_joint"]
    arms = {part.get("name"): number(part.get("a"), part, "a") for part in joints}
    found = {
        key: inner(element, word)
        for word, key in TENDON.items()
        if element.find(f"{element.tag}_{word}") is not None
    }
    offset = found.get("offset", 0.0)
    limits = {key: found[key] - offset for key in ("lower", "upper") if key in found}
    name = f"tendon{len(reader.builder.tendons)}"
    call_at(element, reader.builder.add_tendon, name, arms, **limits)
    if found.keys() & {"stiffness", "damping"}:
        what = "stiffness and damping at its limits are those of all stops here"
        reader.approximate(element, f"<{element.tag}>: {what}")
    reader.report.use(element.tag)


def add_ends(reader: UrdfReader, element: Element) -> list[str]:
    """Add frames at the two points that an element names, and return their names."""
    frames = []
    for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
        on, at = (element.need(f"{element.tag}_{key}") for key in (body, point))
        count = len(reader.builder.frames)
        frames.append(f"{on.get('name')}:{count}")
        place = np.array(three(at.get("value"), at, point))
        call_at(on, reader.builder.add_frame, frames[-1], on.get("name"), position=place)
    return frames


def inner(element: Element, word: str) -> float:
    """Return the number that an element inside has as its value."""
    part = element.need(f"{element.tag}_{word}")
    return number(part.get("value"), part, word)


def report_parts(reader: UrdfReader, element: Element, words: Any) -> None:
    """Report what is in an element and not among these."""
    for part in element:
        if part.tag not in {f"{element.tag}_{word}" for word in words}:
            reader.ignore(part, f"<{part.tag}> of <{element.tag}>")


READERS: Mapping[str, Callable[[UrdfReader, Element], None]] = {
    "transmission": read_transmission,
    "gazebo": read_gazebo,
    "drake:linear_spring_damper": read_spring,
    "drake:ball_constraint": read_ball_constraint,
    "drake:tendon_constraint": read_tendon_constraint,
}

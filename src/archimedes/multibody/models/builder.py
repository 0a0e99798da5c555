"""`Builder`: bodies and joints put together by hand or by an importer, then made a `Model`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes import checks
from archimedes.multibody.models import builder_parts
from archimedes.multibody.models.assembly import assemble
from archimedes.multibody.models.builder_edits import check_follows, lock, merge, remove
from archimedes.multibody.models.builder_parts import Body, Joint, Mimic, Report, Tendon
from archimedes.multibody.models.model import GRAVITY, Model
from archimedes.multibody.parts import ranges
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.fluid import Fluid
from archimedes.multibody.parts.geometry import Shape, Surface, inertia_of_shapes, make_shape
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.parts.joints import JointKind, Spherical, find_kind, make_screw
from archimedes.multibody.parts.tendons import USUAL, Pulley, Wrap, check_path, frames_of
from archimedes.multibody.parts.transmissions import Transmission
from archimedes.spatial.spatial_algebra import Pose
from archimedes.tree.struct_methods import nearest
from archimedes.typing import ArrayLike, Scalar

__all__ = ["Builder"]

#: What carries the tree; a body may be named "world" all the same, and is meant then.
WORLD = "world"


class Builder:
    """Collects bodies, joints and frames; `build` makes a `Model` of them.

    Names of bodies and frames are one set, names of joints another. ``"world"`` is always there,
    unless a body has that name: then None stands for the world. What no joint carries when the
    model is built is its base.

    Parameters
    ----------
    name : str, optional
        Name of the robot.

    Examples
    --------
    >>> from archimedes.multibody import Builder
    >>> b = Builder("double pendulum")
    >>> for name, parent, height in (("upper", "world", 2.0), ("lower", "upper", -1.0)):
    ...     b.add_body(name, mass=1.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01])
    ...     b.attach(name, parent, joint=name + "_hinge", kind="revolute", axis=[0, 1, 0],
    ...              position=[0, 0, height], lower=-3.0, upper=3.0)
    >>> print(b.build())
    double pendulum: 2 bodies, 2 kg, nq=2, nv=2
    └─ upper_hinge (revolute, -171.9 to 171.9 deg) → upper, 1 kg
       └─ lower_hinge (revolute, -171.9 to 171.9 deg) → lower, 1 kg
    """

    def __repr__(self) -> str:
        counts = f"{len(self.bodies)} bodies, {len(self.joints)} joints, {len(self.frames)} frames"
        return f"Builder({self.name!r}: {counts})"

    def __init__(self, name: str = "robot") -> None:
        self.name = name
        self.bodies: dict[str, Body] = {}
        self.joints: dict[str, Joint] = {}
        self.frames: dict[str, tuple[str | None, Pose]] = {}
        self.gravity: Any = GRAVITY
        #: How `build` holds what is attached to nothing, unless told: "fixed" or "floating".
        self.base = "fixed"
        #: Poses in the world of what is attached to nothing. These alone may be several.
        self.root_poses: dict[str, Pose] = {}
        self.report = Report()
        self.geometry: tuple[Shape, ...] = ()
        self.tendons: dict[str, Tendon] = {}
        self.transmissions: dict[str, Transmission] = {}
        #: The fluid around, with the shapes on which it acts.
        self.fluid: Fluid | None = None
        self.keyframes: dict[str, Any] = {}
        self.actuators: list[Any] = []
        self.closures: list[Closure | Coupling] = []

    def __copy__(self) -> Builder:
        other = Builder(self.name)
        other.__dict__.update({key: copy(value) for key, value in self.__dict__.items()})
        return other

    def __getattr__(self, name: str) -> Any:
        if hasattr(Model, name) or name in Model.__dataclass_fields__:
            hint = "functions of robots take the model that builder.build() returns"
            raise AttributeError(f"a Builder has no {name!r}: {hint}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- adding --------------------------------------------------------------------------

    def add_body(
        self,
        name: str,
        mass: Scalar = 0.0,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        *,
        gravity_compensation: Scalar = 0.0,
    ) -> None:
        """Add a body.

        Parameters
        ----------
        name : str
            Name of the body.
        mass : float, optional
            Mass in kg.
        com : array (3,), optional
            Centre of mass in m, in the axes of the body. The origin by default.
        inertia : array (3, 3) or (3,), optional
            Inertia in kg m^2 about the centre of mass: a matrix, or principal moments.
        gravity_compensation : float, optional
            Part of its weight that is carried at its centre of mass, 0 by default; 1 carries all.
        """
        self._check_new(name)
        J = np.zeros((3, 3)) if inertia is None else inertia
        body = builder_parts.check_body(name, mass, com, J)
        where = f"body {name!r}: gravity_compensation"
        checks.check_finite(gravity_compensation, where)
        self.bodies[name] = replace(body, compensated=gravity_compensation)

    def add_massless(self, name: str) -> None:
        """Add what lies between two joints of one body: it is neither a body nor a frame.

        Parameters
        ----------
        name : str
            Name.
        """
        self._check_new(name)
        self.bodies[name] = Body(name, 0.0, np.zeros(3), np.zeros((3, 3)), link_only=True)

    def add_frame(
        self, name: str, body: str, rotation: Any = None, position: ArrayLike | None = None
    ) -> None:
        """Add a frame to a body.

        Parameters
        ----------
        name : str
            Name of the frame.
        body : str
            Name of the body.
        rotation : array (3, 3), optional
            Rotation matrix from the frame to the body. None, the default, for none.
        position : array (3,), optional
            Position in m of the frame in the body. The origin by default.
        """
        self._check_new(name)
        owner = self._body_or_world(body)
        if owner is not None:
            self._check_body(body, "body")
        self.frames[name] = (owner, ranges.check_placement(rotation, position, f"frame {name!r}"))

    def add_shape(
        self,
        body: str,
        kind: str,
        size: Sequence[float],
        role: str = "visual",
        *,
        rotation: Any = None,
        position: ArrayLike | None = None,
        file: str | os.PathLike[str] | None = None,
        surface: Surface | HeightField | None = None,
        color: ArrayLike | None = None,
    ) -> None:
        """Add a shape to look at or to collide with.

        Parameters
        ----------
        body : str
            Name of the body; ``"world"`` for what stands around.
        kind : str
            Kind of the shape, as in `Shape`.
        size : sequence of float
            Size, as in `Shape`.
        role : {"visual", "collision"}, optional
            What the shape is for.
        rotation : array (3, 3), optional
            Rotation matrix from the shape to the body.
        position : array (3,), optional
            Position in m in the body.
        file : path, optional
            File of a mesh.
        surface : Surface or HeightField, optional
            Triangles of a mesh, or the heights of a height field.
        color : array (3,) or (4,), optional
            Red, green, blue and opacity from 0 to 1. The viewer chooses by default.
        """
        if self._body_or_world(body) is not None:
            self._check_body(body, "body")
        at = ranges.check_placement(rotation, position, f"shape of {body!r}")
        self.geometry += (make_shape(body, role, kind, size, at, file, surface, color),)

    def add_tendon(
        self,
        name: str,
        arms: Mapping[str, Scalar] | None = None,
        *,
        path: Sequence[str | Wrap | Pulley] | None = None,
        stiffness: Scalar = 0.0,
        damping: Scalar = 0.0,
        rest: ArrayLike = 0.0,
        **values: Any,
    ) -> None:
        """Add a tendon along joints of one coordinate or along a path: a spring and a damper.

        A tendon that does not stretch is a `Coupling`. Actuators take a tendon by its name.

        Parameters
        ----------
        name : str
            Name of the tendon.
        arms : mapping, optional
            Moment arms by the name of the joint. The length of the tendon is the sum of arm times
            q.
        path : sequence, optional
            In place of arms: names of frames, `Wrap` and `Pulley`. The length is that of the way.
        stiffness : float, optional
            Stiffness in N/m.
        damping : float, optional
            Damping in N s/m.
        rest : float or (float, float), optional
            Length in m at which it does not pull, or two lengths between which it is slack.
        **values
            Limits of the length, ``lower`` and ``upper``, dry ``friction``, ``limit_frequency`` and
            ``limit_damping`` of the stops at these limits, as of joints; ``effort_lower`` and
            ``effort_upper``, between which the force of all actuators of the tendon stays, in N;
            ``limit_impedance`` and ``friction_softness`` for `soft_dynamics`.
        """
        if name in self.tendons:
            raise ValueError(f"tendon {name!r} already exists; tendons need different names")
        self._check_actuated(name, "tendon")
        if bool(arms) == bool(path):
            raise ValueError(f"tendon {name!r}: arms must name at least one joint; or give a path")
        arms, way = arms or {}, check_path(path, f"tendon {name!r}") if path else ()
        for frame in frames_of(way):
            self._check_frame(frame, f"tendon {name!r}: path")
        for key, value in values.items():
            if key not in USUAL:
                raise TypeError(f"tendon {name!r}: unknown value {key!r}; {', '.join(USUAL)}")
            ranges.check_numbers(value, f"tendon {name!r}: {key}")
        for key in {*values} & {"friction", "limit_frequency", "limit_damping"}:
            checks.check_not_negative(values[key], f"tendon {name!r}: {key}")
        for low, high in (("lower", "upper"), ("effort_lower", "effort_upper")):
            limits = values.get(low, USUAL[low]), values.get(high, USUAL[high])
            checks.check_limits(*limits, f"tendon {name!r}")
        for joint, arm in arms.items():
            self._joint(joint)
            checks.check_finite(checks.as_array(arm, "arm"), f"tendon {name!r}: arm of {joint!r}")
        ends = checks.as_array(rest, f"tendon {name!r}: rest")
        checks.check_shape(ends, f"tendon {name!r}: rest, a length or (lower, upper),", (), (2,))
        ranges.check_numbers(stiffness, f"tendon {name!r}: stiffness")
        checks.check_not_negative(damping, f"tendon {name!r}: damping")
        ends = ranges.read_only(np.broadcast_to(ends, (2,)))
        checks.check_that(
            lambda x: x[0] <= x[1], ends, f"tendon {name!r}: rest", "must be (lower, upper)"
        )
        self.tendons[name] = Tendon(dict(arms), stiffness, damping, ends, way, values)

    def add_transmission(
        self,
        name: str,
        *,
        frame: str | None = None,
        joint: str | None = None,
        crank: str | None = None,
        gear: ArrayLike = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        reference: str | None = None,
        in_parent: bool = False,
        rod: Scalar = 0.0,
    ) -> None:
        """Add what actuators act on by this name, as by that of a joint: see `Transmission`.

        Parameters
        ----------
        name : str
            Name.
        frame : str, optional
            Frame that the wrench `gear` acts on, such as a rotor.
        joint : str, optional
            Spherical or free joint, or one of one coordinate.
        crank : str, optional
            Frame at the pin of a crank, which pushes a slider, `reference`, along its z axis.
        gear : array (6,), optional
            Force and torque of a unit of the actuator, linear part first.
        reference : str, optional
            Frame that `frame` is held against, or the slider of a crank.
        in_parent : bool, optional
            Torques at a joint are in axes of its parent. False by default.
        rod : float, optional
            Length in m of the rod of a crank.
        """
        self._check_actuated(name, "transmission")
        given = {"frame": frame, "joint": joint, "crank": crank}
        on = {kind: what for kind, what in given.items() if what is not None}
        if len(on) != 1:
            raise ValueError(f"transmission {name!r}: give one of frame, joint and crank")
        [(kind, what)] = on.items()
        if kind == "joint":
            kinds = self._joint(what).kind
            if kinds.nv != 1 and not isinstance(kinds, Spherical):
                raise ValueError(f"transmission {name!r}: joint {what!r} is a {kinds.name} joint")
        for used in (None if kind == "joint" else what, reference):
            if used is not None:
                self._check_frame(used, f"transmission {name!r}: frame")
        self.transmissions[name] = Transmission(name, kind, what, gear, reference, in_parent, rod)

    def attach(
        self,
        child: str,
        parent: str | None = WORLD,
        *,
        joint: str | None = None,
        kind: JointKind | str = "revolute",
        axis: ArrayLike = (0.0, 0.0, 1.0),
        second_axis: ArrayLike | None = None,
        pitch: float = 0.0,
        anchor: ArrayLike = (0.0, 0.0, 0.0),
        zero_at: Scalar = 0.0,
        rotation: Any = None,
        position: ArrayLike | None = None,
        mimic: Mimic | None = None,
        **values: Any,
    ) -> None:
        """Attach a body to another, or to the world, by a joint.

        Parameters
        ----------
        child : str
            Body to attach.
        parent : str or None, optional
            Body that it is attached to, or ``"world"``.
        joint : str, optional
            Name of the joint. By default it is made from that of the child.
        kind : str or JointKind, optional
            Kind of the joint: ``"revolute"`` (default), ``"prismatic"``, ``"spherical"``, ... or a
            `user_joint`.
        axis : array (3,), optional
            Axis in the axes of the child.
        second_axis : array (3,), optional
            Second axis of a universal joint.
        pitch : float, optional
            Translation in m per rad of a helical joint.
        anchor : array (3,), optional
            Point of the child in m about which revolute and spherical joints rotate.
        zero_at : float, optional
            Coordinate at which a joint of one coordinate is at the given position and rotation.
        rotation : array (3, 3), optional
            Rotation matrix of the child in the parent at zero.
        position : array (3,), optional
            Position in m of the child in the parent at zero.
        mimic : Mimic, optional
            Joint that this one follows.
        **values
            Numbers, or one per coordinate (``lower``, ``upper``, ``rest``) or velocity
            (``speed_limit``, ``effort_limit``, ``damping``, ``friction``, ``stiffness``,
            ``armature``, ``limit_frequency`` and ``limit_damping`` of the stops at its limits;
            for `soft_dynamics` ``limit_impedance``, MuJoCo's ``solimp`` (5,), and
            ``friction_softness``: frequency, damping ratio and ``solimp`` (7,)).
            A spherical joint has an ``angle_limit`` in rad.
        """
        name = f"{parent or WORLD}_{child}" if joint is None else joint
        where = f"joint {name!r}"
        if not isinstance(name, str) or not name:
            raise ValueError(f"a joint needs a name, got {name!r}")
        if mimic is not None:
            checks.check_type(
                mimic, f"{where}: mimic", Mimic, "write Mimic(joint, multiplier, offset)"
            )
        parent = self._body_or_world(parent)
        if name in self.joints:
            raise ValueError(f"{where} already exists; joints need different names")
        self._check_body(child, f"{where}: child")
        if parent is not None:
            self._check_body(parent, f"{where}: parent")
        carried = [j.name for j in self.joints.values() if j.child == child]
        if carried:
            raise ValueError(
                f"{where}: {child!r} is attached already by joint {carried[0]!r}; remove that first"
            )
        self._check_no_cycle(where, child, parent)
        kind = find_kind(kind)
        builder_parts.check_values(values, kind, where)
        arrays = {key: checks.as_array(x) for key, x in values.items() if not np.isscalar(x)}
        values |= {key: ranges.read_only(array) for key, array in arrays.items()}
        at = ranges.check_placement(rotation, position, where)
        screw = make_screw(kind, where, axis, second_axis, pitch, anchor)
        checks.check_finite(zero_at, f"{where}: zero_at")
        if not ranges.known_zero(zero_at):  # `at` is where the joint is at this coordinate
            if kind.nq != 1:
                raise ValueError(f"{where}: zero_at is for joints of one coordinate")
            at = at @ kind.pose(screw, [-checks.as_array(zero_at, f"{where}: zero_at")])
        self.joints[name] = Joint(name, kind, parent, child, at, screw, mimic, values)

    def weld(
        self,
        child: str,
        parent: str | None = WORLD,
        rotation: Any = None,
        position: ArrayLike | None = None,
    ) -> None:
        """Fix a body to another. It becomes a part of it, and a frame of its name stays.

        Parameters
        ----------
        child : str
            Body to attach.
        parent : str or None, optional
            Body that it is attached to, or ``"world"``.
        rotation : array (3, 3), optional
            Rotation matrix of the child in the parent.
        position : array (3,), optional
            Position in m of the child in the parent.
        """
        self.attach(child, parent, kind="fixed", rotation=rotation, position=position)

    # ---- changing ------------------------------------------------------------------------

    def fill_inertias(self, density: float) -> None:
        """Give bodies without mass that of their shapes.

        Collision shapes are used, or visual ones if a body has no others.

        Parameters
        ----------
        density : float
            Density in kg/m^3.
        """
        for name, body in self.bodies.items():
            shapes = [s for s in self.geometry if s.body == name]
            solid = [s for s in shapes if s.role == "collision"] or shapes
            known = checks.concrete(checks.as_array(body.mass))
            if not solid or known is None or known != 0.0:
                continue
            self.bodies[name] = builder_parts.check_body(name, *inertia_of_shapes(solid, density))
            self.report.approximated.append(
                f"{self.name}: {name!r}: mass and inertia of its shapes, at {density:g} kg/m^3"
            )

    def remove(self, body: str) -> None:
        """Remove a body with its joint, its frames and all that hangs on it.

        Tendons, actuators and closures that need any of these go too; the report names those that
        also act on what stays.

        Parameters
        ----------
        body : str
            Name of the body.
        """
        self._check_body(body, "body")
        remove(self, body)

    def lock(self, joints: Mapping[str, Any]) -> None:
        """Fix joints at given coordinates.

        Joints that follow a locked one are locked with it. Tendons and couplings along a locked
        joint keep its part of their lengths. Its actuators are removed, which the report says.

        Parameters
        ----------
        joints : mapping
            Coordinates, a number or (nq,), by the name of the joint.
        """
        if not isinstance(joints, Mapping):
            raise TypeError(f"lock takes coordinates by joint, {{'elbow': 0.5}}, got {joints!r}")
        for name in joints:
            joint = self._joint(name)
            if joint.mimic and joint.mimic.joint not in joints:
                raise ValueError(
                    f"lock: joint {name!r} follows {joint.mimic.joint!r}; lock that one"
                )
            if joint.mimic:
                check_follows(joint, joints)
        changed = copy(self)  # all of them are locked, or none
        for name, value in joints.items():
            if not self.joints[name].mimic:
                lock(changed, changed.joints[name], value)
        self.__dict__.update(changed.__dict__)

    def merge(
        self,
        other: Builder,
        parent: str | None = WORLD,
        *,
        prefix: str = "",
        rotation: Any = None,
        position: ArrayLike | None = None,
    ) -> None:
        """Take over all of another builder, with its base fixed to a body.

        If a name is already in use, nothing is taken over.

        Parameters
        ----------
        other : Builder
            The other builder.
        parent : str or None, optional
            Body that it is attached to, or ``"world"``.
        prefix : str, optional
            Prefix of the names.
        rotation : array (3, 3), optional
            Rotation matrix of its base in the parent.
        position : array (3,), optional
            Position in m of its base in the parent.
        """
        checks.check_type(other, "other", Builder, "read(path) returns the builder of a file")
        carrier = self._body_or_world(parent)
        if carrier is not None:
            self._check_body(carrier, "parent")
        changed = copy(self)
        merge(changed, other, carrier, prefix, ranges.check_placement(rotation, position, "merge"))
        self.__dict__.update(changed.__dict__)

    # ---- finishing -----------------------------------------------------------------------

    def build(
        self, base: str | None = None, gravity: ArrayLike | None = None, physical: bool = True
    ) -> Model:
        """Return the model.

        Parameters
        ----------
        base : {"fixed", "floating"}, optional
            Whether the root is fixed to the world or floats on a joint ``"root_joint"``. By default
            as the file says: a model of an SDF file floats unless it is static or joined to the
            world, others are fixed.
        gravity : array (3,), optional
            Gravitational acceleration in m/s^2. By default that of the file, else (0, 0, -9.81).
        physical : bool, optional
            Refuse bodies whose inertia no distribution of mass has. True by default.
        """
        base = self.base if base is None else base
        return assemble(self, base, self.gravity if gravity is None else gravity, physical)

    def unattached(self) -> list[str]:
        """Return the bodies that no joint carries."""
        carried = {joint.child for joint in self.joints.values()}
        return [name for name in self.bodies if name not in carried]

    # ---- checks --------------------------------------------------------------------------

    def _joint(self, name: str) -> Joint:
        if name not in self.joints:
            raise ValueError(f"there is no joint {name!r}; {nearest(name, self.joints)}")
        return self.joints[name]

    def _check_new(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a body or frame needs a name, got {name!r}")
        if name in self.bodies or name in self.frames:
            raise ValueError(f"{name!r} already exists; bodies and frames need different names")

    def _body_or_world(self, name: str | None) -> str | None:
        """Return the name of a body, None for the world."""
        return None if name == WORLD and WORLD not in self.bodies else name

    def _check_body(self, name: str, what: str) -> None:
        if name not in self.bodies:
            raise ValueError(f"{what} {name!r} is not a body; {nearest(name, self.bodies)}")

    def _check_frame(self, name: str, what: str) -> None:
        known = {*self.bodies, *self.frames}
        if name not in known:
            raise ValueError(f"{what} {name!r} is not there; {nearest(name, known)}")

    def _check_actuated(self, name: str, what: str) -> None:
        """Raise if actuators know something else by a name."""
        for kind, names in (("tendon", self.tendons), ("transmission", self.transmissions)):
            if name in names and kind != what:
                raise ValueError(f"{what} {name!r}: there is a {kind} of that name already")
        if what == "transmission" and (name in self.transmissions or name in self.joints):
            raise ValueError(f"{what} {name!r}: there is one, or a joint, of that name already")

    def _check_no_cycle(self, where: str, child: str, parent: str | None) -> None:
        carrier = {j.child: j.parent for j in self.joints.values()}
        at = parent
        while at is not None:
            if at == child:
                hint = "joints form a tree, and a closed loop is a constraint on it"
                raise ValueError(f"{where}: {child!r} already carries {parent!r}; {hint}")
            at = carrier.get(at)

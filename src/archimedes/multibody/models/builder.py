"""`Builder`: bodies and joints put together by hand or by an importer, then made a `Model`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from archimedes.multibody.models.assembly import assemble
from archimedes.multibody.models.changing import check_follows, lock, merge, remove
from archimedes.multibody.models.closures import Closure, Coupling
from archimedes.multibody.models.joints import JointKind, Screw
from archimedes.multibody.models.model import GRAVITY, Model
from archimedes.multibody.models.parts import (
    Body,
    Joint,
    Mimic,
    Tendon,
    check_screw,
    check_values,
    checked_axis,
    checked_body,
    kind_named,
    placement,
)
from archimedes.multibody.models.ranges import (
    check_not_negative,
    check_numbers,
    kept,
    known_numbers,
    near,
)
from archimedes.multibody.models.reports import Report
from archimedes.multibody.models.shape_inertias import inertia_of_shapes
from archimedes.multibody.models.shapes import Shape, Surface, shape_at
from archimedes.multibody.models.spatial_algebra import Pose, compose
from archimedes.spatial.components import as_array
from archimedes.spatial.validation import check_finite, check_vector, concrete

__all__ = ["Builder"]

#: What carries the tree; a body may be named "world" all the same, and is meant then.
WORLD = "world"


class Builder:
    """Collects bodies, joints and frames; `build` makes a `Model` of them.

    Names of bodies and frames are one set, names of joints another. "world" is always there, unless
    a body is named so: then None is. What no joint carries when the model is built is its base.

    >>> from archimedes.multibody import Builder
    >>> b = Builder("double pendulum")
    >>> for name, parent, height in (("upper", "world", 2.0), ("lower", "upper", -1.0)):
    ...     b.add_body(name, mass=1.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01])
    ...     b.attach(name, parent, joint=name + "_hinge", kind="revolute", axis=[0, 1, 0],
    ...              position=[0, 0, height], lower=-3.0, upper=3.0)
    >>> print(b.build())
    double pendulum: 2 bodies, 2 kg, nq=2, nv=2
    └─ upper_hinge (revolute, -3 to 3) → upper, 1 kg
       └─ lower_hinge (revolute, -3 to 3) → lower, 1 kg
    """

    def __init__(self, name: str = "robot") -> None:
        self.name = name
        self.bodies: dict[str, Body] = {}
        self.joints: dict[str, Joint] = {}
        self.frames: dict[str, tuple[str | None, Pose]] = {}
        self.gravity: Any = GRAVITY
        #: How `build` holds what is attached to nothing, unless told: "fixed" or "floating".
        self.base = "fixed"
        self.report = Report()
        self.geometry: tuple[Shape, ...] = ()
        self.tendons: dict[str, Tendon] = {}
        self.actuators: list[Any] = []
        self.closures: list[Closure | Coupling] = []

    def __copy__(self) -> Builder:
        made = Builder(self.name)
        for key, value in self.__dict__.items():
            made.__dict__[key] = copy(value)
        return made

    def __getattr__(self, name: str) -> Any:
        if hasattr(Model, name) or name in Model.__dataclass_fields__:
            raise AttributeError(
                f"a Builder has no {name!r}: functions of robots take the model that "
                "builder.build() returns"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- adding --------------------------------------------------------------------------

    def add_body(self, name: str, mass: Any = 0.0, com: Any = None, inertia: Any = None) -> None:
        """Add a body: `mass` in kg, `com` (3,) in m, `inertia` (3, 3) or (3,) about the com."""
        self._check_new(name)
        J = np.zeros((3, 3)) if inertia is None else inertia
        self.bodies[name] = checked_body(name, mass, com, J)

    def add_massless(self, name: str) -> None:
        """Add what is between two joints of one body: it is neither a body nor a frame."""
        self._check_new(name)
        self.bodies[name] = Body(name, 0.0, np.zeros(3), np.zeros((3, 3)), link_only=True)

    def add_frame(self, name: str, body: str, rotation: Any = None, position: Any = None) -> None:
        """Add a frame on a body: `rotation` (3, 3) from frame to body, `position` (3,) in it."""
        self._check_new(name)
        owner = self._known(body)
        if owner is not None:
            self._check_body(body, "body")
        self.frames[name] = (owner, Pose(*placement(rotation, position, f"frame {name!r}")))

    def add_shape(
        self,
        body: str,
        kind: str,
        size: Any,
        role: str = "visual",
        *,
        rotation: Any = None,
        position: Any = None,
        file: Any = None,
        surface: Surface | None = None,
    ) -> None:
        """Add a shape to look at or to collide with: see `Shape` for kinds and sizes."""
        self._check_body(body, "body")
        R, p = placement(rotation, position, f"shape of {body!r}")
        self.geometry = (*self.geometry, shape_at(body, role, kind, size, R, p, file, surface))

    def add_tendon(
        self,
        name: str,
        arms: Mapping[str, Any],
        *,
        stiffness: Any = 0.0,
        damping: Any = 0.0,
        rest: Any = 0.0,
    ) -> None:
        """Add a tendon along joints of one coordinate, whose length is the sum of arm times q.

        It is a spring of `stiffness` in N/m and a damper; `rest` is the length at which it does not
        pull, or two between which it is slack. One that does not stretch is a `Coupling`.
        """
        if name in self.tendons:
            raise ValueError(f"tendon {name!r} is there already; tendons need names of their own")
        if not arms:
            raise ValueError(f"tendon {name!r}: arms must name a joint or more")
        for joint, arm in arms.items():
            self._joint(joint)
            check_finite(
                as_array(arm, f"tendon {name!r}: arm"), f"tendon {name!r}: arm of {joint!r}"
            )
        ends = as_array(rest, f"tendon {name!r}: rest")
        if tuple(ends.shape) not in ((), (2,)):
            raise ValueError(
                f"tendon {name!r}: rest must be a length, or from and to, got shape "
                f"{tuple(ends.shape)}"
            )
        check_numbers(stiffness, f"tendon {name!r}: stiffness")
        check_not_negative(damping, f"tendon {name!r}: damping")
        known = concrete(ends)
        if known is not None and known.ndim and not known[0] <= known[-1]:
            raise ValueError(f"tendon {name!r}: rest must be from and to, got {known.tolist()}")
        rest = kept(np.broadcast_to(ends, (2,)))
        self.tendons[name] = Tendon(dict(arms), stiffness, damping, rest)

    def attach(
        self,
        child: str,
        parent: str | None = WORLD,
        *,
        joint: str | None = None,
        kind: JointKind | str = "revolute",
        axis: Any = (0.0, 0.0, 1.0),
        second_axis: Any = None,
        pitch: float = 0.0,
        anchor: Any = (0.0, 0.0, 0.0),
        zero_at: Any = 0.0,
        rotation: Any = None,
        position: Any = None,
        mimic: Mimic | None = None,
        **values: Any,
    ) -> None:
        """Attach a body to another, or to the world, by a joint.

        `position` (3,) and `rotation` (3, 3) are those of the child in the parent at zero. `axis`
        is in the child's axes, as is `second_axis`, which a universal joint turns about second;
        revolute and spherical joints turn about the point `anchor` (3,) of the child. A joint of
        one coordinate is at the given place where that is `zero_at`.
        `values` are numbers or one per coordinate (`lower`, `upper`, `rest`) or velocity
        (`speed_limit`, `effort_limit`, `damping`, `friction`, `stiffness`, `armature`).
        """
        name = f"{parent or WORLD}_{child}" if joint is None else joint
        where = f"joint {name!r}"
        if not isinstance(name, str) or not name:
            raise ValueError(f"a joint needs a name, got {name!r}")
        if mimic is not None and not isinstance(mimic, Mimic):
            raise TypeError(f"{where}: mimic must be a Mimic({mimic!r}, multiplier, offset)")
        parent = self._known(parent)
        if name in self.joints:
            raise ValueError(f"{where} is there already; joints need names of their own")
        self._check_body(child, f"{where}: child")
        if parent is not None:
            self._check_body(parent, f"{where}: parent")
        carried = [j.name for j in self.joints.values() if j.child == child]
        if carried:
            raise ValueError(
                f"{where}: {child!r} is attached already by joint {carried[0]!r}; remove that first"
            )
        self._check_no_cycle(where, child, parent)
        check_values(values, kind_named(kind), where)
        values = {key: x if np.isscalar(x) else kept(as_array(x)) for key, x in values.items()}
        R, p = placement(rotation, position, where)
        first = checked_axis(axis, f"{where}: axis")
        second = None if second_axis is None else checked_axis(second_axis, f"{where}: second_axis")
        pitch = float(known_numbers(pitch, f"{where}: pitch, in m per rad,", "Give it as a number"))
        check_screw(kind, first, second, pitch, where)
        through = known_numbers(
            check_vector(anchor, 3, f"{where}: anchor"),
            f"{where}: anchor",
            "Put the child's origin there, and give its position, com and frames as traced numbers",
        )
        if np.any(through) and kind not in ANCHORED:
            raise ValueError(f"{where}: only {' and '.join(ANCHORED)} joints have an anchor")
        screw = Screw(first, pitch, tuple(through.tolist()))
        R, p = self._zeroed(kind_named(kind), screw, zero_at, R, p, where)
        self.joints[name] = Joint(
            name, kind_named(kind), parent, child, R, p, screw, second, mimic, values
        )

    def weld(
        self, child: str, parent: str | None = WORLD, rotation: Any = None, position: Any = None
    ) -> None:
        """Fix a body to another; it becomes a part of it, and a frame of its name stays."""
        self.attach(child, parent, kind="fixed", rotation=rotation, position=position)

    # ---- changing ------------------------------------------------------------------------

    def fill_inertias(self, density: float) -> None:
        """Give bodies without mass that of their shapes, of a `density` in kg/m^3.

        Of the collision shapes of each, or of those to look at where it has no others.
        """
        for name, body in self.bodies.items():
            shapes = [s for s in self.geometry if s.body == name]
            solid = [s for s in shapes if s.role == "collision"] or shapes
            known = concrete(as_array(body.mass))
            if not solid or known is None or known != 0.0:
                continue
            self.bodies[name] = checked_body(name, *inertia_of_shapes(solid, density))
            self.report.approximated.append(
                f"{self.name}: {name!r}: mass and inertia of its shapes, at {density:g} kg/m^3"
            )

    def remove(self, body: str) -> None:
        """Remove a body with its joint, its frames and all that hangs on it.

        Tendons, actuators and closures that need any of these go too; the report names those that
        also act on what stays.
        """
        self._check_body(body, "body")
        remove(self, body)

    def lock(self, joints: Mapping[str, Any]) -> None:
        """Fix joints where they are: a mapping of names to coordinates (a number or (nq,)).

        Those that follow a joint are locked with it, at what follows for them. Tendons and
        couplings along a locked joint keep its part of their lengths; its actuators are taken off,
        which the report says.
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
        position: Any = None,
    ) -> None:
        """Take over all of another builder, its base fixed to `parent`; names get the prefix.

        Where a name is there already nothing is taken over.
        """
        if not isinstance(other, Builder):
            raise TypeError(
                f"merge takes a Builder, got {type(other).__name__}; read(path) returns the "
                "builder of a file"
            )
        carrier = self._known(parent)
        if carrier is not None:
            self._check_body(carrier, "parent")
        changed = copy(self)
        merge(changed, other, carrier, prefix, rotation, position)
        self.__dict__.update(changed.__dict__)

    # ---- finishing -----------------------------------------------------------------------

    def build(self, base: str | None = None, gravity: Any = None, physical: bool = True) -> Model:
        """Return the model; what is attached to nothing is welded to the world or floats in it.

        `base` says which: "fixed" or "floating". Without it, it is as the file says that was read:
        a model of an SDF file floats unless it is static, others are fixed.

        Bodies whose inertia no distribution of mass has are an error; `physical=False` takes them.
        """
        base = self.base if base is None else base
        return assemble(self, base, self.gravity if gravity is None else gravity, physical)

    def unattached(self) -> list[str]:
        """Return the bodies that no joint carries."""
        carried = {joint.child for joint in self.joints.values()}
        return [name for name in self.bodies if name not in carried]

    def _zeroed(
        self, kind: JointKind | str, screw: Screw, zero_at: Any, R: Any, p: Any, where: str
    ) -> tuple[Any, Any]:
        """Return where a joint is at zero, when it is at R, p where its coordinate is `zero_at`."""
        zero = as_array(zero_at, f"{where}: zero_at")
        check_finite(zero, f"{where}: zero_at")
        known = concrete(zero)
        if known is not None and not known.any():
            return R, p
        if isinstance(kind, str) or kind.nq != 1:
            raise ValueError(f"{where}: zero_at is for joints of one coordinate")
        back = compose(Pose(R, p), kind.pose(screw, [-zero]))
        return back.R, back.p

    # ---- checks --------------------------------------------------------------------------

    def _joint(self, name: str) -> Joint:
        if name not in self.joints:
            raise ValueError(f"there is no joint {name!r}; {near(name, self.joints)}")
        return self.joints[name]

    def _check_new(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a body or frame needs a name, got {name!r}")
        if name in self.bodies or name in self.frames:
            raise ValueError(
                f"{name!r} is there already; bodies and frames need names of their own"
            )

    def _known(self, name: str | None) -> str | None:
        """Return the name of a body, None for the world."""
        return None if name == WORLD and WORLD not in self.bodies else name

    def _check_body(self, name: str, what: str) -> None:
        if name not in self.bodies:
            raise ValueError(f"{what} {name!r} is no body; {near(name, self.bodies)}")

    def _check_no_cycle(self, where: str, child: str, parent: str | None) -> None:
        carrier = {j.child: j.parent for j in self.joints.values()}
        at = parent
        while at is not None:
            if at == child:
                raise ValueError(
                    f"{where}: {child!r} already carries {parent!r}; joints form a tree, and a "
                    "closed loop is a constraint on it"
                )
            at = carrier.get(at)


ANCHORED = ("revolute", "continuous", "spherical")

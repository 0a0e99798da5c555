"""`Model`: a tree of bodies and joints, immutable; what is a number in it can be traced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_not_negative, check_vector, concrete
from archimedes.display import COLUMNS, LINES, for_reading
from archimedes.errors import refer_to
from archimedes.multibody.parts.closures import IMPEDANCE
from archimedes.multibody.parts.geometry import Shape
from archimedes.multibody.parts.joints import JointKind, Screw
from archimedes.multibody.parts.ranges import read_only
from archimedes.multibody.parts.tendons import FRICTION_SOFTNESS
from archimedes.multibody.parts.transmissions import Transmission
from archimedes.multibody.systems.dynamics import State, dynamics
from archimedes.spatial.kinematic_tree import draw_branches
from archimedes.tree import field, struct
from archimedes.tree.content import is_read_only
from archimedes.tree.struct_methods import nearest
from archimedes.typing import Array, ArrayLike, Scalar

if TYPE_CHECKING:
    from archimedes.multibody.algorithms.links import Forces

__all__ = ["Model"]

GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it: what does not change.

    `parent` is the index of the link that carries the joint, -1 for the world; `q` and `v` are
    where the joint's coordinates and velocities start. A mimic joint has those of another joint:
    its own are ``scale * q + offset``. The links inside a joint of several axes, or between joints
    of one body, have no mass and the body "".
    """

    body: str
    joint: str
    kind: JointKind
    parent: int
    q: int
    v: int
    screw: Screw
    scale: float = 1.0
    offset: float = 0.0
    mimic: bool = False

    @property
    def q_slice(self) -> slice:
        """Where the joint's coordinates are in q."""
        return slice(self.q, self.q + self.kind.nq)

    @property
    def v_slice(self) -> slice:
        """Where the joint's velocities are in v."""
        return slice(self.v, self.v + self.kind.nv)

    def __content__(self) -> tuple[Any, ...]:
        # Calls of a recorded function look whether what it reads has changed: a link never does.
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link, or to the world (-1)."""

    name: str
    link: int

    def __content__(self) -> tuple[Any, ...]:
        return self.name, self.link


@struct
class Model:
    """A robot, made by `load` or by a `Builder`.

    ``model.replace(masses=...)`` returns another model. Inside a compiled function the new values
    may be traced.

    Parameters
    ----------
    name : str
        Name of the robot.
    links : tuple of Link
        Bodies with their joints.
    frames : tuple of Frame
        Frames.
    rotations : array (n, 3, 3)
        Rotation matrices of the joints in their parents.
    positions : array (n, 3)
        Positions in m of the joints in their parents.
    masses : array (n,)
        Masses in kg.
    centers : array (n, 3)
        Centres of mass in m, in the axes of the bodies.
    inertias : array (n, 3, 3)
        Inertias in kg m^2 about the centres of mass, in the axes of the bodies.
    frame_rotations : array (k, 3, 3)
        Rotation matrices of the frames in their bodies.
    frame_positions : array (k, 3)
        Positions in m of the frames in their bodies.
    armature : array (nv,)
        Rotor inertia of each velocity.
    damping : array (nv,)
        Viscous damping.
    friction : array (nv,)
        Coulomb friction.
    stiffness : array (nv,)
        Stiffness of the springs.
    rest : array (nq,)
        Coordinates at which the springs are at rest.
    lower : array (nq,)
        Lower limits.
    upper : array (nq,)
        Upper limits.
    speed_limits : array (nv,)
        Limits of the velocities.
    effort_limits : array (nv,)
        Limits of the torques that actuators give together.
    angle_limits : array (nv,), optional
        Largest angles in rad of spherical joints. inf by default.
    limit_frequency : array (nv,), optional
        Frequencies in rad/s of joints on the stops of their limits, 50 by default.
    limit_damping : array (nv,), optional
        Damping ratios of joints on these stops, 1 by default.
    limit_impedance : array (nv, 5), optional
        MuJoCo's ``solimp`` of these stops, for `soft_dynamics`.
    friction_softness : array (nv, 7), optional
        Frequency in rad/s, damping ratio and MuJoCo's ``solimp`` of dry friction, for
        `soft_dynamics`.
    gravity : array (3,), optional
        Gravitational acceleration in m/s^2.
    tendons : Tendons, optional
        Tendons, if there are any.
    actuators : tuple, optional
        Actuators of the file.
    closures : tuple, optional
        Closures of the file.
    geometry : tuple of Shape, optional
        Shapes to look at or to collide with.
    transmissions : tuple of Transmission, optional
        What actuators act on besides joints and tendons.
    compensation : array (n, 4), optional
        Mass in kg, and mass times place in kg m, of what is carried against gravity on each body.
        None by default.
    fluid : Fluid, optional
        The fluid around, if there is any.
    keyframes : dict, optional
        States by name, as the file has them: ``model.keyframes["home"].q``. Empty by default.

    Examples
    --------
    >>> from archimedes.multibody import Builder
    >>> arm = Builder("pendulum")
    >>> arm.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> arm.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> arm.build()
    Model('pendulum': 1 body, 2 kg, nq=1, nv=1)
    """

    name: str = field(static=True)
    links: tuple[Link, ...] = field(static=True)
    frames: tuple[Frame, ...] = field(static=True)
    rotations: Any = field(units="")
    positions: Any = field(units="m")
    masses: Any = field(units="kg")
    centers: Any = field(units="m")
    inertias: Any = field(units="kg m^2")
    frame_rotations: Any = field(units="")
    frame_positions: Any = field(units="m")
    armature: Any = field(units="kg m^2")
    damping: Any = field(units="N m s")
    friction: Any = field(units="N m")
    stiffness: Any = field(units="N m")
    rest: Any = field()
    lower: Any = field()
    upper: Any = field()
    speed_limits: Any = field()
    effort_limits: Any = field()
    angle_limits: Any = field(units="rad", default=None)
    limit_frequency: Any = field(units="rad/s", default=None)
    limit_damping: Any = field(units="", default=None)
    limit_impedance: Any = field(default=None)
    friction_softness: Any = field(default=None)
    gravity: Any = field(units="m/s^2", default=GRAVITY)
    tendons: Any = field(default=None)
    actuators: tuple[Any, ...] = field(default=())
    closures: tuple[Any, ...] = field(static=True, default=())
    geometry: tuple[Shape, ...] = field(static=True, default=())
    transmissions: tuple[Transmission, ...] = field(default=())
    compensation: Any = field(units="kg", default=None)
    fluid: Any = field(default=None)
    keyframes: Any = field(default=None)

    def __post_init__(self) -> None:
        """Check the shapes against the tree."""
        self.__dict__["gravity"] = check_vector(self.gravity, 3, "Model gravity")
        n, k = len(self.links), len(self.frames)
        self.__dict__["keyframes"] = dict(self.keyframes or {})
        for name in OPTIONAL:
            if getattr(self, name) is None:
                usual = np.asarray(PER_VELOCITY[name][1])
                self.__dict__[name] = np.broadcast_to(usual, (self.nv, *usual.shape)) * 1.0
        wanted: dict[str, tuple[int, ...]] = {
            "rotations": (n, 3, 3), "positions": (n, 3), "masses": (n,), "centers": (n, 3),
            "inertias": (n, 3, 3), "frame_rotations": (k, 3, 3), "frame_positions": (k, 3),
            **{key: (self.nv, *np.shape(usual)) for key, (_, usual) in PER_VELOCITY.items()},
            **dict.fromkeys(("rest", *LIMITS), (self.nq,)),
        }  # fmt: skip
        for name, shape in wanted.items():
            array = as_array(getattr(self, name), f"Model {name}")
            if tuple(array.shape[array.ndim - len(shape) :]) != shape:
                raise ValueError(
                    f"Model {name} must have shape {shape}, got {tuple(array.shape)}: "
                    f"{self.name!r} has {n} links, {k} frames, nq={self.nq} and nv={self.nv}"
                )
            self.__dict__[name] = array
        check_not_negative(self.masses, "Model masses")
        for name in (*wanted, "gravity"):
            self.__dict__[name] = read_only(self.__dict__[name])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was pickled or copied; nobody can write to its arrays either."""
        self.__dict__.update({name: read_only(value) for name, value in state.items()})

    def dynamics(
        self,
        t: Scalar,
        x: State,
        u: ArrayLike | None = None,
        forces: Forces = None,
        actuators: Sequence[Any] | None = None,
        *,
        limits: bool = True,
    ) -> State:
        """Return the rates of a state: `archimedes.multibody.dynamics` of this model.

        Parameters
        ----------
        t : float
            Time in s. The equations do not depend on it.
        x : State or DrivenState
            State.
        u : array (nv,), optional
            Torques of the joints, zero by default. With `actuators`, their commands (n,).
        forces : mapping or array (..., bodies, 6), optional
            External forces on bodies. None by default.
        actuators : sequence, optional
            Actuators, such as ``model.actuators``. None by default.
        limits : bool, optional
            Whether joints have stops at their limits, see `limit_torque`. True by default.
        """
        return dynamics(self, t, x, u, forces, actuators, limits=limits)

    # ---- sizes and names -----------------------------------------------------------------

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(link.kind.nq for link in self.links if not link.mimic)

    @property
    def nv(self) -> int:
        """The number of velocities: of degrees of freedom."""
        return sum(link.kind.nv for link in self.links if not link.mimic)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that have coordinates of their own, in the order of q and v."""
        return tuple(dict.fromkeys(link.joint for link in self.links if not link.mimic))

    @property
    def body_names(self) -> tuple[str, ...]:
        """The bodies that move."""
        return tuple(link.body for link in self.links if link.body)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The frames: one per body of the file, those that are welded to others too."""
        return tuple(frame.name for frame in self.frames)

    # ---- looking up ----------------------------------------------------------------------

    def body(self, name: str) -> int:
        """Return the link of a body.

        Parameters
        ----------
        name : str
            Name of the body.
        """
        return self._find("body", name, {k.body: i for i, k in enumerate(self.links) if k.body})

    def frame(self, name: str) -> int:
        """Return the index of a frame in `frame_names`.

        Parameters
        ----------
        name : str
            Name of the frame.
        """
        return self._find("frame", name, {f.name: i for i, f in enumerate(self.frames)})

    def q_slice(self, joint: str) -> slice:
        """Return where the coordinates of a joint are in q.

        Parameters
        ----------
        joint : str
            Name of the joint.
        """
        links = self._links_of(joint)
        return slice(links[0].q, links[-1].q_slice.stop)

    def v_slice(self, joint: str) -> slice:
        """Return where the velocities of a joint are in v.

        Parameters
        ----------
        joint : str
            Name of the joint.
        """
        links = self._links_of(joint)
        return slice(links[0].v, links[-1].v_slice.stop)

    def _links_of(self, joint: str) -> list[Link]:
        self._find("joint", joint, {k.joint: 0 for k in self.links})
        links = [k for k in self.links if k.joint == joint]
        if links[0].mimic:
            source = next(k.joint for k in self.links if k.v == links[0].v and not k.mimic)
            own = "has no coordinates of its own; use those of that one"
            raise ValueError(f"joint {joint!r} of {self.name!r} follows {source!r} and {own}")
        return links

    def _find(self, what: str, name: str, known: dict[str, int]) -> int:
        if name not in known:
            hint = nearest(name, known)
            raise ValueError(f"{self.name!r} has no {what} {name!r}; {hint}" + refer_to("frame"))
        return known[name]

    def __repr__(self) -> str:
        bodies, masses = len(self.body_names), known_values(self.masses)
        total = "" if masses is None else f"{np.sum(masses):.4g} kg, "
        plural = "body" if bodies == 1 else "bodies"
        return f"Model({self.name!r}: {bodies} {plural}, {total}nq={self.nq}, nv={self.nv})"

    def __str__(self) -> str:
        lines = tree_text(self).splitlines()
        rest = [f"... {len(lines) - LINES + 1} more links: report()"] if len(lines) > LINES else []
        shown = lines[: LINES - 1] if rest else lines
        cut = [line if len(line) <= COLUMNS else line[: COLUMNS - 4] + " ..." for line in shown]
        return "\n".join([*cut, *rest])

    def report(self) -> str:
        """Return a line of text for each link: joint, limits, body, mass and frames."""
        return tree_text(self)

    def field_units(self) -> dict[str, list[str]]:
        """Return the unit of each element of the fields that mix joints that turn and slide."""
        angles = [units != "m" for _, units in coordinate_labels(self, "q")]
        turns = [units == "rad/s" for _, units in coordinate_labels(self, "v")]
        q = ["" if angle else "m" for angle in angles]

        def per_velocity(turning: str, sliding: str) -> list[str]:
            return [turning if turn else sliding for turn in turns]

        return {
            **dict.fromkeys(("rest", "lower", "upper"), q),
            "speed_limits": per_velocity("rad/s", "m/s"),
            "armature": per_velocity("kg m^2", "kg"),
            "damping": per_velocity("N m s", "N s/m"),
            "stiffness": per_velocity("N m", "N/m"),
            **dict.fromkeys(("friction", "effort_limits"), per_velocity("N m", "N")),
        }

    def __content__(self) -> tuple[Any, ...]:
        # Arrays that nobody can write to as bytes, which cannot change: of a robot that is all but
        # what is traced, a thousand words less to look at in each call of a recorded function.
        return tuple(
            (str(x.dtype), x.shape, x.tobytes()) if type(x) is np.ndarray and is_read_only(x) else x
            for x in self.__dict__.values()
        )


#: Fields with a number per velocity, or per coordinate: name in a builder, and the usual value.
PER_VELOCITY: dict[str, tuple[str, Any]] = {
    name: (name, 0.0) for name in ("armature", "damping", "friction", "stiffness")
}
PER_VELOCITY |= {"speed_limits": ("speed_limit", np.inf), "effort_limits": ("effort_limit", np.inf)}
PER_VELOCITY |= {"angle_limits": ("angle_limit", np.inf)}
PER_VELOCITY |= {
    "limit_frequency": ("limit_frequency", 50.0),
    "limit_damping": ("limit_damping", 1.0),
    "limit_impedance": ("limit_impedance", IMPEDANCE),
    "friction_softness": ("friction_softness", FRICTION_SOFTNESS),
}
#: Those of them that a model has by itself.
OPTIONAL = (
    "angle_limits", "limit_frequency", "limit_damping", "limit_impedance", "friction_softness",
)  # fmt: skip
LIMITS = {"lower": ("lower", -np.inf), "upper": ("upper", np.inf)}


# ---- printing ----------------------------------------------------------------------------------


def coordinate_labels(model: Model, which: str = "q") -> list[tuple[str, str]]:
    """Return name and unit of each coordinate (``"q"``) or velocity (``"v"``) of a robot, in order.

    A joint with one coordinate gives it its name; others add what they call theirs (``base.x``).
    """
    size = {"q": "nq", "v": "nv"}[which]
    links = [link for link in model.links if not link.mimic]
    shared = Counter(link.joint for link in links)
    seen: Counter[str] = Counter()
    labels: list[tuple[str, str]] = []
    for link in links:
        count = getattr(link.kind, size)
        units = getattr(link.kind, f"{which}_units")
        names = getattr(link.kind, f"{which}_names")
        joint = link.joint
        if shared[joint] > 1:  # a joint of several axes is a link for each
            joint, seen[joint] = f"{joint}[{seen[joint]}]", seen[joint] + 1
        own = [f"{joint}.{name}" for name in names] or [f"{joint}[{k}]" for k in range(count)]
        known = units if len(units) == count else [""] * count
        labels += zip([joint] if count == 1 else own, known)
    return labels


def tree_text(model: Model) -> str:
    """Return one line per link under the line of its parent, totals first."""
    head = repr(model)[len("Model(") : -1].replace(f"{model.name!r}: ", f"{model.name}: ", 1)
    children: dict[int, list[int]] = {}
    for i, link in enumerate(model.links):
        children.setdefault(link.parent, []).append(i)
    return "\n".join([head, *draw_branches(children, -1, lambda i: link_text(model, i))])


def link_text(model: Model, i: int) -> str:
    """Return the line of one link."""
    link = model.links[i]
    body = link.body or "(massless)"
    mass = known_values(model.masses)
    weight = "" if mass is None or not link.body else f", {mass[i]:.4g} kg"
    welded = [f.name for f in model.frames if f.link == i and f.name != link.body]
    more = f" + {', '.join(welded)}" if welded else ""
    return f"{link.joint} ({link.kind.name}{detail(model, link)}) → {body}{weight}{more}"


def detail(model: Model, link: Link) -> str:
    """Return the limits of a joint, or what it follows."""
    if link.mimic:
        source = next(k.joint for k in model.links if k.q == link.q and not k.mimic)
        offset, units = for_reading(abs(link.offset), link.kind.q_units[0])
        shift = f" {'-' if link.offset < 0 else '+'} {offset:.4g} {units}" if link.offset else ""
        return f", {link.scale:g} {source}{shift}"
    lower, upper = known_values(model.lower), known_values(model.upper)
    if lower is None or upper is None:
        return ""
    pairs = np.stack([lower, upper], axis=1)[link.q_slice]
    if not np.isfinite(pairs).any():
        return ""
    texts = []
    for pair, units in zip(pairs, link.kind.q_units):
        (low, high), shown = for_reading(pair, units)
        texts.append(f", {low:.4g} to {high:.4g} {shown}".rstrip())
    return "".join(texts)


def known_values(values: Array) -> Array | None:
    """Return numbers if they are known and of one model, else None."""
    known = concrete(values)
    return known if known is not None and known.ndim == 1 else None

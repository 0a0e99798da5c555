"""Named frames in a tree, and what follows from it: transforms, twists, velocities.

Legend: ``X_TS = get_transform(source, target)`` takes source coordinates to target coordinates;
``V = get_twist(source, target)`` is the motion of the target frame relative to the source frame,
in target coordinates. Along a chain A, B, C: X_CA = X_CB X_BA, V_AC = V_BC + X_CB V_AB, and
dV_AC/dt = A_BC + X_CB A_AB - V_BC x (X_CB V_AB) (Featherstone 2008, eq. 2.38 and 2.46).

An edge links a frame C to its parent P: X_CP takes coordinates in P to coordinates in C; V is the
twist of C relative to P in the coordinates of C: velocity of C's origin and angular velocity, as
(v_B, w_B) of a rigid body; A is dV/dt, component by component.
From X_CP = (R, t): [w]x = -R' R^T and v = -t' - w x t (differentiate t = -R p with p the position
of C in P).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from archimedes import tree
from archimedes.checks import check_type, check_vector
from archimedes.spatial.attitudes.quaternions import dcm_angular_velocity
from archimedes.spatial.components import cross
from archimedes.spatial.spatial_vectors import Motion
from archimedes.spatial.transformation import Transformation, check_pose
from archimedes.tree.struct_methods import nearest
from archimedes.typing import ArrayLike, Scalar, Tree

__all__ = ["KinematicTree"]

Time: TypeAlias = "Scalar | None"
#: What places or moves a frame, or a function of t, or of t and state, that returns it.
Placement: TypeAlias = "Transformation | Callable[..., Any] | None"
Moving: TypeAlias = "Motion | Callable[..., Any] | None"
#: What a frame depends on, by the number of arguments, for the printed tree.
KINDS = ("fixed", "function of t", "function of t, state")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class TimeFunction:
    """A transform or motion as a function of those of (t, state) that it depends on."""

    def __init__(self, value: Placement | Moving, label: str, kind: type) -> None:
        self.label, self.arity, self.function = label, 0, lambda: value
        if isinstance(value, kind):
            return
        if not callable(value):
            function = "a function of t, or of t and state, that returns one"
            actual = type(value).__qualname__
            raise TypeError(f"{label} must be a {kind.__name__} or {function}; got {actual}")
        parameters = inspect.signature(value).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind in POSITIONAL]
        self.arity, self.function = len(needed), value
        if self.arity not in (1, 2):
            actual = f"got {self.arity} required arguments"
            raise ValueError(f"{label} must be a function of t, or of t and state, {actual}")

    def __call__(self, t: Time, state: Tree) -> Any:
        if self.arity >= 1 and t is None:
            raise ValueError(f"the {self.label} is a function of time: give t")
        if self.arity == 2 and state is None:
            raise ValueError(f"the {self.label} is a function of state: give state")
        return self.function(*(t, state)[: self.arity])


def time_derivatives(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the first two time derivatives of a function of (t, state).

    They are functions of (t, state, rate, curve), the last two the derivatives of the state.
    """
    from archimedes.function import jvp  # the one place where spatial needs derivatives

    def path(tau: Scalar, t: Time, state: Tree, rate: Tree, curve: Tree) -> Any:
        if rate is not None:
            state = tree.map(lambda x, v: x + tau * v, state, rate)
        if curve is not None:
            state = tree.map(lambda x, a: x + 0.5 * tau * tau * a, state, curve)
        return function(None if t is None else t + tau, state)

    rate = jvp(path)
    again = jvp(lambda tau, t, state, dx, ddx: rate(tau, t, state, dx, ddx, 1.0))
    return lambda *when: rate(0.0, *when, 1.0), lambda *when: again(0.0, *when, 1.0)


def draw_branches(
    children: Mapping[Any, Sequence[Any]], top: Any, text: Callable[[Any], str]
) -> list[str]:
    """Return a line for each node of a tree below `top`, drawn with its branches."""
    lines: list[str] = []
    waiting = [(node, "", k == 0) for k, node in enumerate(reversed(children.get(top, ())))]
    while waiting:
        node, indent, last = waiting.pop()
        lines.append(f"{indent}{'└─' if last else '├─'} {text(node)}")
        inner = indent + ("   " if last else "│  ")
        below = enumerate(reversed(children.get(node, ())))
        waiting += [(child, inner, k == 0) for k, child in below]
    return lines


class FrameEdge:
    """The transform from a frame's parent to it, with its first two time derivatives.

    `transform` (or `pose`, its inverse), `twist` and `acceleration` are constants or functions of
    t or of t and state; the last two are found by differentiating where they are not given.
    """

    def __init__(
        self, name: str, parent: str, transform: Placement, pose: Placement, *motions: Moving
    ) -> None:
        def check(value: Any, what: str, kind: type) -> TimeFunction:
            return TimeFunction(value, f"{what} of frame {name!r} (child of {parent!r})", kind)

        self.parent, self.inverted = parent, transform is None
        what = "pose" if self.inverted else "transform"
        self.transform = check(pose if self.inverted else transform, what, Transformation)
        self.twist, self.acceleration = (
            None if motion is None else check(motion, what, Motion)
            for motion, what in zip(motions, ("twist", "acceleration"), strict=True)
        )

    def at(self, t: Time, state: Tree) -> Transformation:
        """Return X_CP."""
        X = self.transform(t, state)
        check_type(X, f"what the {self.transform.label} returns", Transformation)
        if not self.inverted:
            return X
        check_pose(X, f"the {self.transform.label}")
        return X.inv()

    # ---- derivatives ---------------------------------------------------------------------

    @functools.cached_property
    def derivatives(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The first and second time derivatives of X_CP as a matrix."""
        return time_derivatives(lambda t, state: self.at(t, state).as_matrix())

    @functools.cached_property
    def twist_rate(self) -> Callable[..., Any]:
        """The time derivative of a given twist."""
        assert self.twist is not None
        twist = self.twist
        return time_derivatives(lambda t, state: twist(t, state).array)[0]

    def motion(self, t: Time, state: Tree, rate: Tree) -> Motion:
        """Return V, the twist of the child relative to the parent, in child coordinates."""
        if self.twist is not None:
            return self.twist(t, state)
        if self.transform.arity == 0:
            return Motion.zero()
        X = self.at(t, state)
        dT = self.derivatives[0](t, state, rate, None)
        w = dcm_angular_velocity(X.r.as_matrix(), dT[:3, :3])
        return Motion(-dT[:3, 3] - cross(w, X.t), w)

    def motion_rate(self, t: Time, state: Tree, rate: Tree, curve: Tree) -> Motion:
        """Return A = dV/dt."""
        if self.acceleration is not None:
            return self.acceleration(t, state)
        if (self.twist or self.transform).arity == 0:
            return Motion.zero()
        if self.twist is not None:
            return Motion.from_array(self.twist_rate(t, state, rate, None))
        X = self.at(t, state)
        R = X.r.as_matrix()
        dT, ddT = (derivative(t, state, rate, curve) for derivative in self.derivatives)
        w = dcm_angular_velocity(R, dT[:3, :3])
        # R' R'^T is symmetric, so that the antisymmetric part of R'' R^T is -[dw/dt]x
        dw = dcm_angular_velocity(R, ddT[:3, :3])
        return Motion(-ddT[:3, 3] - cross(dw, X.t) - cross(w, dT[:3, 3]), dw)


class Link(NamedTuple):
    """A transform with the twist and the twist's rate that belong to it."""

    X: Transformation
    V: Motion
    A: Motion

    def then(self, other: Link) -> Link:
        """Return the link from A to C for this one, from A to B, and `other`, from B to C."""
        V = other.X.apply_motion(self.V)
        A = other.X.apply_motion(self.A)
        return Link(other.X @ self.X, other.V + V, other.A + A - other.V.cross(V))

    def reversed(self) -> Link:
        """Return the link from B to A for this one from A to B."""
        X = self.X.inv()
        return Link(X, -X.apply_motion(self.V), -X.apply_motion(self.A))


class KinematicTree:
    """Frames by name, each placed in its parent by a fixed or moving transformation.

    Parameters
    ----------
    root : str
        Name of the first frame.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import EulerAngles, KinematicTree, Transformation
    >>> ktree = KinematicTree("eci")
    >>> ktree.add_frame("earth", "eci", lambda t: Transformation(
    ...     np.zeros(3), EulerAngles(7.292e-5 * t, "z")))
    >>> ktree.add_frame("site", "earth", Transformation(np.array([0, 0, -6.4e6]),
    ...     EulerAngles([0.1, 0.2], "ZY")))
    >>> ktree.get_transform("eci", "site", t=0.0).apply(np.zeros(3))
    array([       0.,        0., -6400000.])
    >>> print(ktree)
    eci
    └─ earth (function of t)
       └─ site (fixed)
    """

    def __init__(self, root: str) -> None:
        self.edges: dict[str, FrameEdge | None] = {}
        self.add_root(root)

    # ---- building ------------------------------------------------------------------------

    def add_root(self, name: str) -> None:
        """Add a frame without a parent: the start of a separate tree.

        Parameters
        ----------
        name : str
            Name of the frame.
        """
        self._check_new(name, None)
        self.edges[name] = None

    def add_frame(
        self,
        name: str,
        parent: str,
        transform: Placement = None,
        *,
        pose: Placement = None,
        twist: Moving = None,
        acceleration: Moving = None,
    ) -> None:
        """Add a frame below `parent`, placed by `transform` or by `pose`.

        `twist` and `acceleration`, in the frame's coordinates and relative to the parent, are
        `Motion` values or functions like the transform; by default they are its derivatives.

        Parameters
        ----------
        name : str
            Name of the frame.
        parent : str
            Name of the parent frame.
        transform : Transformation or callable, optional
            Transformation that takes parent coordinates to coordinates of the frame, or a function
            of ``t``, or of ``t, state``, that returns one. Give either `transform` or `pose`.
        pose : Transformation or callable, optional
            The inverse: position and attitude of the frame, as a transformation to the parent, such
            as ``multibody.pose(position, attitude)``. A spline is such a function.
        twist : Motion or callable, optional
            Velocity relative to the parent, in the coordinates of the frame, or a function like
            `transform`. By default the derivative of the transformation.
        acceleration : Motion or callable, optional
            Acceleration, likewise.
        """
        self._check_known(parent, "parent")
        self._check_new(name, parent)
        if (transform is None) == (pose is None):
            either = "transform (parent to frame) or pose (frame to parent), and not both"
            raise ValueError(f"frame {name!r} needs either {either}")
        self.edges[name] = FrameEdge(name, parent, transform, pose, twist, acceleration)

    def _check_new(self, name: str, parent: str | None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a frame's name must be a text, got {name!r}")
        if parent is not None and name in self.ancestors(parent):
            where = "that frame itself" if name == parent else "above it"
            cycle = f"{name!r} is {where}, which would close a cycle"
            raise ValueError(f"frame {name!r} cannot be placed below {parent!r}: {cycle}")
        if name in self.edges:
            raise ValueError(f"frame {name!r} exists already; give the new frame another name")

    def _check_known(self, name: str, what: str) -> None:
        if name not in self.edges:
            raise ValueError(f"{what} {name!r} is not a frame; {nearest(name, self.edges)}")

    # ---- structure -----------------------------------------------------------------------

    @property
    def frames(self) -> list[str]:
        """Names of all frames, in the order they were added."""
        return list(self.edges)

    def ancestors(self, name: str) -> list[str]:
        """Return the frame and those above it, up to its root.

        Parameters
        ----------
        name : str
            Name of the frame.
        """
        chain = [name]
        while (edge := self.edges[chain[-1]]) is not None:
            chain.append(edge.parent)
        return chain

    def path(self, source: str, target: str) -> tuple[list[FrameEdge], list[FrameEdge]]:
        """Return the edges to climb from source, and then those to descend to target.

        Parameters
        ----------
        source : str
            Frame to start from.
        target : str
            Frame to go to.
        """
        self._check_known(source, "source")
        self._check_known(target, "target")
        up, down = self.ancestors(source), self.ancestors(target)
        shared = next((name for name in up if name in down), None)
        if shared is None:
            roots = f"their roots are {up[-1]!r} and {down[-1]!r}"
            raise ValueError(f"frames {source!r} and {target!r} are not connected: {roots}")
        climb = [self.edges[name] for name in up[: up.index(shared)]]
        descend = [self.edges[name] for name in reversed(down[: down.index(shared)])]
        return climb, descend  # type: ignore[return-value]

    def __str__(self) -> str:
        children: dict[str | None, list[str]] = {}
        for name, edge in self.edges.items():
            children.setdefault(None if edge is None else edge.parent, []).append(name)

        def text(name: str) -> str:
            edge = self.edges[name]
            return name if edge is None else f"{name} ({KINDS[edge.transform.arity]})"

        each = ((root, draw_branches(children, root, text)) for root in children[None])
        return "\n".join(line for root, below in each for line in [root, *below])

    def __repr__(self) -> str:
        return f"KinematicTree of {len(self.edges)} frames:\n{self}"

    # ---- questions -----------------------------------------------------------------------

    def get_transform(
        self, source: str, target: str, t: Time = None, state: Tree = None
    ) -> Transformation:
        """Return X, which takes coordinates in `source` to coordinates in `target`.

        Parameters
        ----------
        source : str
            Frame to start from.
        target : str
            Frame to go to.
        t : float, optional
            Time in s, if a transformation depends on it.
        state : tree, optional
            State of the model, if a transformation depends on it.
        """
        climb, descend = self.path(source, target)
        steps = [edge.at(t, state).inv() for edge in climb]
        steps += [edge.at(t, state) for edge in descend]
        return reduce(lambda X, step: step @ X, steps) if steps else Transformation.identity()

    def get_twist(
        self, source: str, target: str, t: Time = None, state: Tree = None, state_rate: Tree = None
    ) -> Motion:
        """Return the motion of `target` relative to `source`, in target coordinates.

        ``linear`` is the velocity of target's origin in source, ``angular`` target's rate: for
        ``("earth", "body")`` they are (v_B, w_B). The state is held still unless its time
        derivative `state_rate`, of the same structure, is given.

        Parameters
        ----------
        source : str
            Frame to start from.
        target : str
            Frame to go to.
        t : float, optional
            Time in s, if a transformation depends on it.
        state : tree, optional
            State of the model, if a transformation depends on it.
        state_rate : tree, optional
            Time derivative of the state, with its structure. Zero by default.
        """
        return self._link(source, target, False, t, state, state_rate, None).V

    def get_acceleration(
        self,
        source: str,
        target: str,
        t: Time = None,
        state: Tree = None,
        state_rate: Tree = None,
        state_acceleration: Tree = None,
    ) -> Motion:
        """Return the time derivative of `get_twist`, component by component.

        The acceleration of target's origin is ``linear + cross(twist.angular, twist.linear)``.

        Parameters
        ----------
        source : str
            Frame to start from.
        target : str
            Frame to go to.
        t : float, optional
            Time in s, if a transformation depends on it.
        state : tree, optional
            State of the model, if a transformation depends on it.
        state_rate : tree, optional
            Time derivative of the state, with its structure. Zero by default.
        state_acceleration : tree, optional
            Second time derivative of the state. Zero by default.
        """
        return self._link(source, target, True, t, state, state_rate, state_acceleration).A

    def get_angular_velocity(
        self,
        source: str,
        target: str,
        t: Time = None,
        state: Tree = None,
        state_rate: Tree = None,
        *,
        expressed_in: str | None = None,
    ) -> Any:
        """Return the angular velocity (3,) of `target` relative to `source`, in rad/s.

        It is in target coordinates unless `expressed_in` names another frame.

        Parameters
        ----------
        source : str
            Frame to start from.
        target : str
            Frame to go to.
        t : float, optional
            Time in s, if a transformation depends on it.
        state : tree, optional
            State of the model, if a transformation depends on it.
        state_rate : tree, optional
            Time derivative of the state, with its structure. Zero by default.
        expressed_in : str, optional
            Frame in whose coordinates the result is given.
        """
        w = self.get_twist(source, target, t, state, state_rate).angular
        if expressed_in is None:
            return w
        return self.get_transform(target, expressed_in, t, state).apply_vec(w)

    def get_point_velocity(
        self,
        point: ArrayLike,
        frame: str,
        relative_to: str,
        t: Time = None,
        state: Tree = None,
        state_rate: Tree = None,
        *,
        velocity: ArrayLike | None = None,
        expressed_in: str | None = None,
    ) -> Any:
        """Return the velocity (3,), relative to `relative_to`, of a point given in `frame`.

        `velocity` is the point's own velocity in `frame`, zero by default. The result is in the
        coordinates of `relative_to` unless `expressed_in` names another frame.

        Parameters
        ----------
        point : array (3,)
            Point in m, in coordinates of `frame`.
        frame : str
            Frame in which the point is given.
        relative_to : str
            Frame relative to which the velocity is measured.
        t : float, optional
            Time in s, if a transformation depends on it.
        state : tree, optional
            State of the model, if a transformation depends on it.
        state_rate : tree, optional
            Time derivative of the state, with its structure. Zero by default.
        velocity : array (3,), optional
            Velocity in m/s of the point within `frame`. Zero by default.
        expressed_in : str, optional
            Frame in whose coordinates the result is given.
        """
        p = check_vector(point, 3, "point")
        v = self.get_twist(relative_to, frame, t, state, state_rate).velocity_at(p)
        if velocity is not None:
            v = v + check_vector(velocity, 3, "velocity")
        return self.get_transform(frame, expressed_in or relative_to, t, state).apply_vec(v)

    def _link(self, source: str, target: str, second: bool, *when: Any) -> Link:
        """Return X, V and, if `second`, A at (t, state, rate, curve)."""
        t, state, rate, _ = when

        def link(edge: FrameEdge) -> Link:
            A = edge.motion_rate(*when) if second else Motion.zero()
            return Link(edge.at(t, state), edge.motion(t, state, rate), A)

        climb, descend = self.path(source, target)
        links = [link(edge).reversed() for edge in climb] + [link(edge) for edge in descend]
        return reduce(Link.then, links, Link(Transformation.identity(), *[Motion.zero()] * 2))

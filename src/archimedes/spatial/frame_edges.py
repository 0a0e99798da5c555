"""The link between a frame and its parent in a `KinematicTree`.

Legend: X_CP takes coordinates in the parent P to coordinates in the child C; V is the twist of C
relative to P in the coordinates of C: velocity of C's origin and angular velocity, as (v_B, w_B)
of a rigid body; A is dV/dt, component by component.
From X_CP = (R, t): [w]x = -R' R^T and v = -t' - w x t (differentiate t = -R p with p the position
of C in P).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from archimedes import tree
from archimedes.spatial.attitudes.dcm import dcm_angular_velocity
from archimedes.spatial.components import cross
from archimedes.spatial.spatial_vectors import Motion
from archimedes.spatial.transformation import Transformation

__all__ = ["FrameEdge", "arguments_of"]

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def arguments_of(function: Callable[..., Any], what: str) -> int:
    """Return how many of (t, state) a function takes."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind in POSITIONAL]
    if len(needed) not in (1, 2):
        raise ValueError(
            f"{what} must be a function of t, or of t and state, got {len(needed)} "
            "required arguments"
        )
    return len(needed)


def as_function(given: Any, what: str, kind: type) -> tuple[int, Callable[..., Any]]:
    """Return how many of (t, state) `given` depends on, and it as a function of those."""
    if isinstance(given, kind):
        return 0, lambda: given
    if not callable(given):
        raise TypeError(
            f"{what} must be a {kind.__name__} or a function of t, or of t and state, that "
            f"returns one; got {type(given).__qualname__}"
        )
    return arguments_of(given, what), given


class FrameEdge:
    """The transform from a frame's parent to it, with its first two time derivatives.

    `transform` (or `pose`, its inverse), `twist` and `acceleration` are constants or functions of
    t or of t and state; the last two are found by differentiating where they are not given.
    """

    def __init__(
        self, name: str, parent: str, transform: Any, pose: Any, twist: Any, acceleration: Any
    ) -> None:
        self.name, self.parent = name, parent
        self.inverted = transform is None
        given = pose if self.inverted else transform
        kind = "pose" if self.inverted else "transform"
        self.arity, self.function = as_function(given, self.label(kind), Transformation)
        self.twist = twist if twist is None else as_function(twist, self.label("twist"), Motion)
        self.acceleration = (
            acceleration
            if acceleration is None
            else as_function(acceleration, self.label("acceleration"), Motion)
        )

    def label(self, what: str) -> str:
        """Return words for messages."""
        return f"{what} of frame {self.name!r} (child of {self.parent!r})"

    def call(self, arity: int, function: Callable[..., Any], t: Any, state: Any) -> Any:
        """Call one of the edge's functions with as many of (t, state) as it takes."""
        if arity >= 1 and t is None:
            raise ValueError(f"the {self.label('transform')} is a function of time: give t")
        if arity == 2 and state is None:
            raise ValueError(f"the {self.label('transform')} is a function of state: give state")
        return function(*(t, state)[:arity])

    def at(self, t: Any, state: Any) -> Transformation:
        """Return X_CP."""
        X = self.call(self.arity, self.function, t, state)
        if not isinstance(X, Transformation):
            raise TypeError(
                f"the {self.label('transform')} must return a Transformation, got "
                f"{type(X).__qualname__}"
            )
        return X.inv() if self.inverted else X

    # ---- derivatives ---------------------------------------------------------------------

    def path(self, tau: Any, t: Any, state: Any, rate: Any, curve: Any) -> Any:
        """Return X_CP as a matrix a time `tau` later, the state moving by its derivatives."""
        later = None if t is None else t + tau
        if rate is not None:
            state = tree.map(lambda x, v: x + tau * v, state, rate)
        if curve is not None:
            state = tree.map(lambda x, a: x + 0.5 * tau * tau * a, state, curve)
        return self.at(later, state).as_matrix()

    @functools.cached_property
    def first(self) -> Callable[..., Any]:
        """The matrix's first time derivative, as a function of (t, state, rate, curve)."""
        from archimedes.function import jvp  # the one place where spatial needs derivatives

        derivative = jvp(self.path)
        return lambda tau, *args: derivative(tau, *args, 1.0)

    @functools.cached_property
    def second(self) -> Callable[..., Any]:
        """The matrix's second time derivative, as a function of (t, state, rate, curve)."""
        from archimedes.function import jvp

        derivative = jvp(lambda tau, t, state, rate, curve: self.first(tau, t, state, rate, curve))
        return lambda tau, *args: derivative(tau, *args, 1.0)

    def motion(self, t: Any, state: Any, rate: Any) -> Motion:
        """Return V, the twist of the child relative to the parent, in child coordinates."""
        if self.twist is not None:
            return self.call(*self.twist, t, state)
        if self.arity == 0:
            return Motion.zero()
        X = self.at(t, state)
        dT = self.first(0.0, t, state, rate, None)
        w = dcm_angular_velocity(X.r.as_matrix(), dT[:3, :3])
        return Motion(-dT[:3, 3] - cross(w, X.t), w)

    @functools.cached_property
    def twist_rate(self) -> Callable[..., Any]:
        """The time derivative of a given twist."""
        from archimedes.function import jvp

        arity, function = self.twist  # type: ignore[misc]

        def later(tau: Any, t: Any, state: Any, rate: Any) -> Any:
            if rate is not None:
                state = tree.map(lambda x, v: x + tau * v, state, rate)
            return self.call(arity, function, None if t is None else t + tau, state).array

        return jvp(later)

    def motion_rate(self, t: Any, state: Any, rate: Any, curve: Any) -> Motion:
        """Return A = dV/dt."""
        if self.acceleration is not None:
            return self.call(*self.acceleration, t, state)
        if self.twist is not None:
            if self.twist[0] == 0:
                return Motion.zero()
            return Motion.from_array(self.twist_rate(0.0, t, state, rate, 1.0))
        if self.arity == 0:
            return Motion.zero()
        X = self.at(t, state)
        R = X.r.as_matrix()
        dT = self.first(0.0, t, state, rate, curve)
        ddT = self.second(0.0, t, state, rate, curve)
        w = dcm_angular_velocity(R, dT[:3, :3])
        # R' R'^T is symmetric, so that the antisymmetric part of R'' R^T is -[dw/dt]x
        dw = dcm_angular_velocity(R, ddT[:3, :3])
        return Motion(-ddT[:3, 3] - cross(dw, X.t) - cross(w, dT[:3, 3]), dw)

    def describe(self) -> str:
        """Return what the edge depends on, for the printed tree."""
        return ("fixed", "function of t", "function of t, state")[self.arity]

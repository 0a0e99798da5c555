"""The equations of a problem by a scheme, as functions of flat local unknowns.

Nothing here changes after it was made, so that what was recorded stays valid on every mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice
from archimedes.errors import refer_to
from archimedes.function import scan
from archimedes.function.recording_store import Current
from archimedes.optimize.optimal_control.schemes import Interval, Scheme, rk4_step
from archimedes.optimize.problems.unknowns import as_unknowns
from archimedes.typing import Array, Scalar, Tree

if TYPE_CHECKING:
    from archimedes.optimize.optimal_control.problem import OptimalControl


#: Steps by which half an interval is flown to tell its error.
FLOWN = 8


@dataclass(eq=False)
class Guess:
    """States and controls along the way, s from 0 to 1; times and parameters.

    ``x`` and ``u`` are functions of many s (N,) that return matrices, a row for each; ``x_like``
    and ``u_like`` are trees.
    """

    x: Callable[[np.ndarray], np.ndarray]
    u: Callable[[np.ndarray], np.ndarray]
    x_like: Tree
    u_like: Tree
    p: Tree
    t0: float
    tf: float

    @classmethod
    def read(cls, guess: Mapping[str, Any], problem: OptimalControl) -> Guess:
        """Read a dict; see ``OptimalControl.solve``."""
        if not isinstance(guess, Mapping) or not {"x", "u"} <= set(guess):
            raise ValueError(
                "guess must be a dict with 'x' and 'u', or an earlier solution" + refer_to("guess")
            )
        for key in guess:
            check_choice(key, "guess: key", ("x", "u", "p", "t0", "tf"))
        x, x_like = _read_trajectory(guess["x"], "guess['x']")
        u, u_like = _read_trajectory(guess["u"], "guess['u']")
        p = None if guess.get("p") is None else as_unknowns(guess["p"], "guess['p']")
        t0, tf = _read_time("t0", guess, problem.t0), _read_time("tf", guess, problem.tf)
        if not tf > t0:
            raise ValueError(f"the guess goes from t0 = {t0:.6g} to tf = {tf:.6g}: give tf > t0")
        return cls(x, u, x_like, u_like, p, t0, tf)


def _read_trajectory(guess: Any, what: str) -> tuple[Callable[[np.ndarray], np.ndarray], Tree]:
    """Return a constant or a function of s as a function of many s, and a tree like its value."""
    if callable(guess):
        like = as_unknowns(guess(0.0), what)
        size = tree.ravel(like)[0].size
        return lambda many: _evaluate_each(guess, many, size, what), like
    like = as_unknowns(guess, what)
    flat = tree.ravel(like)[0] * 1.0
    return lambda many: np.tile(flat, (many.size, 1)), like


def _evaluate_each(
    guess: Callable[[float], Any], many: np.ndarray, size: int, what: str
) -> np.ndarray:
    """Call the function for each s; vectors of finite numbers are taken as they are."""
    values = [guess(s) for s in many.tolist()]
    if all(type(v) is np.ndarray and v.shape == (size,) for v in values):
        plain = np.array(values)
        if plain.dtype == np.float64 and isfinite(plain.sum()):
            return plain
    flat = [tree.ravel(as_unknowns(value, what))[0] * 1.0 for value in values]
    for s, value in zip(many, flat):
        if value.size != size:
            raise ValueError(f"{what} has {size} numbers at s = 0, but {value.size} at s = {s:.6g}")
    return np.array(flat)


def _read_time(name: str, guess: Mapping[str, Any], limits: Any) -> float:
    """Return the time of a problem; where it is free, of the guess, or the mean of its limits."""
    if not isinstance(limits, (tuple, list)):
        return float(limits)
    if name in guess:
        return float(guess[name])
    if np.all(np.isfinite(limits)):
        return float(np.mean(limits))
    raise ValueError(f"{name} is free: give a guess of it, guess[{name!r}]" + refer_to("guess"))


class Equations:
    """Defects, costs and constraints of intervals and ends, for trees like those of a guess.

    ``current`` are the functions alone, as ``OptimalControl.functions`` has them: what else the
    problem holds may change. ``limited`` are the numbers of the states that have limits. These also
    hold at points between the nodes that a scheme finds itself, where the states are no unknowns.
    """

    def __init__(
        self,
        current: Current,
        scheme: Scheme,
        guess: Guess,
        integrals_like: Tree = None,
        limited: Sequence[int] = (),
    ) -> None:
        self.current = current
        self.limited = np.array(limited if len(scheme.state_points) == 2 else (), dtype=int)
        if self.integrals is not None and integrals_like is None:
            raise ValueError(
                "the problem has integrals, which only OptimalControl.solve takes: make states of "
                "them here, whose rates they are"
            )
        self.integrals_like = integrals_like
        self.scheme = scheme
        self.x_like, self.u_like, self.p_like = guess.x_like, guess.u_like, guess.p
        x, unravel_own = tree.ravel(guess.x_like)
        u, self.unravel_u = tree.ravel(guess.u_like)
        p: Array = np.zeros(0)
        self.unravel_p: Callable[[Array], Tree] = lambda v: None
        if guess.p is not None:
            p, self.unravel_p = tree.ravel(guess.p)
        own = self.own = int(x.size)
        #: All states: the user's, and integrals so far.
        self.nx = own + (0 if integrals_like is None else int(tree.ravel(integrals_like)[0].size))
        self.nu, self.np_ = int(u.size), int(p.size)
        self.head = 2 + self.np_
        self.unravel_x = unravel_own if self.nx == own else (lambda v: unravel_own(v[:own]))

    dynamics = property(lambda self: self.current.functions[0])
    running_cost = property(lambda self: self.current.functions[1])
    terminal_cost = property(lambda self: self.current.functions[2])
    path = property(lambda self: self.current.functions[3])
    boundary = property(lambda self: self.current.functions[4])
    integrals = property(lambda self: self.current.functions[5])

    def rest(self, p: Array, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what functions take after t, x and u: parameters, if any, and ``args``."""
        return args if self.p_like is None else (self.unravel_p(p), *args)

    def _as_slope(self, slope: Tree) -> Array:
        """Return what ``dynamics`` returned as a vector, or say why it is not dx/dt."""
        flat, like = tree.ravel(slope)[0], self.x_like
        is_list = isinstance(slope, (list, tuple)) and tree.is_leaf(like) and np.ndim(like) == 1
        kinds = [tree.structure(v) for v in (slope, like)]
        shapes = [[np.shape(leaf) for leaf in tree.leaves(v)] for v in (slope, like)]
        if flat.shape != (self.own,):
            fault = f"{flat.size} numbers for a state of {self.own}"
        elif not is_list and kinds[0] != kinds[1]:
            fault = f"{kinds[0]!r} for a state of {kinds[1]!r}"
        elif not is_list and shapes[0] != shapes[1]:
            fault = f"shapes {shapes[0]} for a state of {shapes[1]}"
        else:
            return flat
        raise ValueError(f"dynamics returns {fault}: it must return dx/dt with the structure of x")

    @staticmethod
    def _as_number(cost: Tree, what: str) -> Array:
        """Return what a cost returned as one number (1,), or say that it is not."""
        flat = tree.ravel(cost)[0]
        if flat.shape != (1,):
            raise ValueError(f"{what} returns {flat.size} numbers instead of one: np.sum adds them")
        return flat * 1.0

    def _unpack(
        self, z: Array, scale: Array, begin: Scalar, end: Scalar, args: tuple[Any, ...]
    ) -> tuple[Interval, Callable[..., Any]]:
        """Return an interval of its scaled unknowns, and how to call functions (t, x, u) there."""
        z = z * scale
        t0, tf, head = z[0], z[1], self.head
        split = head + len(self.scheme.state_points) * self.nx
        X, U = np.reshape(z[head:split], (-1, self.nx)), np.reshape(z[split:], (-1, self.nu))
        rest = self.rest(z[2:head], args)

        def call(function: Callable[..., Any], s: Scalar, x: Array, u: Array) -> Any:
            t = t0 + (tf - t0) * (begin + s * (end - begin))
            return function(t, self.unravel_x(x), self.unravel_u(u), *rest)

        def rate(s: Scalar, x: Array, u: Array) -> Array:
            slope = self._as_slope(call(self.dynamics, s, x, u)) * 1.0
            if self.integrals is None:
                return slope
            return np.concatenate([slope, tree.ravel(call(self.integrals, s, x, u))[0] * 1.0])

        return Interval((tf - t0) * (end - begin), X, U, rate), call

    def interval(self, z: Array, scale: Array, begin: Scalar, end: Scalar, *args: Any) -> Array:
        """Return [running cost, defects, limited states, path constraints] of one interval."""
        interval, call = self._unpack(z, scale, begin, end, args)
        sizes = scale[self.head : self.head + self.nx]
        parts = [np.ravel(self.scheme.defects(interval) / sizes)]
        visits = self.scheme.visit(interval)
        if self.limited.size:
            parts += [(x / sizes)[self.limited] for _, x, _, _ in visits[1:-1]]
        cost, path = self.running_cost, self.path
        total: Any = z[:1] * 0.0
        if cost is not None:
            rates = ((self._as_number(call(cost, *at), "running_cost"), w) for *at, w in visits)
            total = interval.h * sum(w * rate for rate, w in rates)
        if path is not None:
            inner = visits[:-1] if self.path_at_last else visits
            parts += [tree.ravel(call(path, s, x, u))[0] * 1.0 for s, x, u, _ in inner]
        return np.concatenate([total, *parts])

    @property
    def path_at_last(self) -> bool:
        """Whether the last node's path constraints are a block of their own."""
        return self.scheme.control_points[0] == 0.0

    def ends(self, z: Array, scale: Array, *args: Any) -> Array:
        """Return [terminal cost, path constraints at the last node, boundary constraints]."""
        z = z * scale
        head, nx, cost, boundary = self.head, self.nx, self.terminal_cost, self.boundary
        first, final = z[head : head + nx], z[head + nx : head + 2 * nx]
        rest = self.rest(z[2:head], args)
        ends = (z[0], self.unravel_x(first), z[1], self.unravel_x(final), *rest)
        parts = [z[:1] * 0.0 if cost is None else self._as_number(cost(*ends), "terminal_cost")]
        if self.path is not None and self.path_at_last:
            control = self.unravel_u(z[head + 2 * nx :])
            parts.append(tree.ravel(self.path(z[1], ends[3], control, *rest))[0] * 1.0)
        if boundary is not None:
            parts.append(tree.ravel(boundary(*ends))[0] * 1.0)
        return np.concatenate(parts)

    def between(
        self, z: Array, scale: Array, begin: Scalar, end: Scalar, s: Scalar, *args: Any
    ) -> tuple[Array, Array, Array]:
        """Return state, dx/dt - f and control within an interval."""
        interval, _ = self._unpack(z, scale, begin, end, args)
        x, slope, u = self.scheme.interpolate(s, interval)
        return x, slope - interval.rate(s, x, u), u

    def fly(
        self, z: Array, scale: Array, begin: Scalar, end: Scalar, switch: Any, rest: Any, *args: Any
    ) -> tuple[Array, Array, Array]:
        """Return states at ``at`` and at the end of an interval, flown anew and as they are.

        It is flown twice, the second time by half as many steps. ``switch`` = (at, first, second)
        and ``rest`` = (step, low, high): controls whose ``step`` is 1 are ``first`` up to ``at``
        and ``second`` from there on; others follow the scheme within low and high.
        """
        (at, first, second), (step, low, high) = switch, rest
        interval, _ = self._unpack(z, scale, begin, end, args)
        h, X, _, rate = interval

        def integrate(count: int) -> Array:
            def advance(carry: Any, k: Array) -> Any:
                x, middle = carry
                late = k >= count
                d = np.where(late, 1.0 - at, at) / count
                s = np.where(late, at + (k - count) * d, k * d)
                value = np.where(late, second, first)

                def slope(s: Scalar, x: Array) -> Array:
                    u = np.clip(self.scheme.interpolate(s, interval)[2], low, high)
                    return rate(s, x, np.where(step > 0.0, value, u))

                x = rk4_step(slope, s, x, d, h)
                return (x, np.where(late, middle, x)), None

            end, middle = scan(advance, (X[0], X[0]), length=2 * count)[0]
            return np.stack([middle, end])

        shown = np.stack([self.scheme.interpolate(at, interval)[0], X[-1]])
        return integrate(FLOWN), integrate(FLOWN // 2), shown

    def count_visits(self) -> tuple[int, int]:
        """Return at how many points of an interval limits of states and path constraints hold."""
        points = len(self.scheme.state_points), len(self.scheme.control_points)
        X, U = (np.zeros((a, n)) for a, n in zip(points, (self.nx, self.nu)))
        count = len(self.scheme.visit(Interval(1.0, X, U, lambda s, x, u: x)))
        inner = count - 2 if self.limited.size else 0
        return inner, 0 if self.path is None else count - self.path_at_last

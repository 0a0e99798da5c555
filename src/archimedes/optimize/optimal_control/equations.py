"""Where the search for a trajectory begins.

The equations of a problem by a scheme, as functions of flat local unknowns.

Nothing here changes after it was made, so that what was recorded stays valid on every mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import explained
from archimedes.function import scan
from archimedes.function.identity.store import Current
from archimedes.optimize.optimal_control.schemes import Scheme
from archimedes.optimize.problems.unknowns import as_unknowns

__all__ = ["Equations", "Guess"]


@dataclass(eq=False)
class Guess:
    """States and controls along the way, s from 0 to 1; times and parameters.

    ``x`` and ``u`` are functions of many s (N,) that return matrices, a row for each; ``x_like``
    and ``u_like`` are trees.
    """

    x: Callable[[np.ndarray], np.ndarray]
    u: Callable[[np.ndarray], np.ndarray]
    x_like: Any
    u_like: Any
    p: Any
    t0: float
    tf: float

    @classmethod
    def of(cls, given: Mapping[str, Any], problem: Any) -> Guess:
        """Read a dict; see ``OptimalControl.solve``."""
        if not isinstance(given, Mapping) or not {"x", "u"} <= set(given):
            raise ValueError(
                explained("guess", "guess must be a dict with 'x' and 'u', or an earlier solution")
            )
        strangers = sorted(set(given) - {"x", "u", "p", "t0", "tf"})
        if strangers:
            raise ValueError(f"guess has unknown keys {strangers}: x, u, p, t0 and tf are known")
        x, x_like = _along(given["x"], "guess['x']")
        u, u_like = _along(given["u"], "guess['u']")
        p = None if given.get("p") is None else as_unknowns(given["p"], "guess['p']")
        t0, tf = _time("t0", given, problem), _time("tf", given, problem)
        if not tf > t0:
            raise ValueError(f"the guess goes from t0 = {t0:.6g} to tf = {tf:.6g}: give tf > t0")
        return cls(x, u, x_like, u_like, p, t0, tf)

    def form(self) -> Any:
        """Return what decides whether two guesses need the same equations."""
        leaves, treedef = tree.flatten((self.x_like, self.u_like, self.p))
        return treedef, tuple(np.shape(leaf) for leaf in leaves)


def _along(given: Any, what: str) -> tuple[Callable[[np.ndarray], np.ndarray], Any]:
    if callable(given):
        like = as_unknowns(given(0.0), what)

        return lambda many: _at_each(given, many, tree.ravel(like)[0].size, what), like
    like = as_unknowns(given, what)
    flat = tree.ravel(like)[0] * 1.0
    return lambda many: np.tile(flat, (many.size, 1)), like


def _at_each(given: Any, many: np.ndarray, size: int, what: str) -> np.ndarray:
    """Call the function for each s; vectors of finite numbers are taken as they are."""
    found = [given(s) for s in many.tolist()]
    if all(type(v) is np.ndarray and v.shape == (size,) for v in found):
        plain = np.array(found)
        if plain.dtype == np.float64 and isfinite(plain.sum()):
            return plain
    flat = [tree.ravel(as_unknowns(value, what))[0] * 1.0 for value in found]
    for s, value in zip(many, flat):
        if value.size != size:
            raise ValueError(
                f"{what} returns {size} numbers at s = 0, but {value.size} at s = {s:.6g}"
            )
    return np.array(flat)


def _time(name: str, given: Mapping[str, Any], problem: Any) -> float:
    limits = getattr(problem, name)
    if not isinstance(limits, (tuple, list)):
        return float(limits)
    if name in given:
        return float(given[name])
    if np.all(np.isfinite(limits)):
        return float(np.mean(limits))
    raise ValueError(explained("guess", f"{name} is free: give a guess of it, guess[{name!r}]"))


#: Steps by which half an interval is flown to tell its error.
FLOWN = 8


class Equations:
    """Defects, costs and constraints of intervals and ends, for trees like those of a guess."""

    def __init__(
        self, current: Current, scheme: Scheme, guess: Guess, integrals_like: Any = None
    ) -> None:
        #: The functions alone, as ``OptimalControl.functions`` has them: what else the problem
        #: holds may change.
        self.current = current
        if self.integrals is not None and integrals_like is None:
            raise ValueError(
                "the problem has integrals, which only OptimalControl.solve takes: make states of "
                "them here, whose rates they are"
            )
        self.integrals_like = integrals_like
        self.scheme = scheme
        self.x_like, self.u_like, self.p_like = guess.x_like, guess.u_like, guess.p
        own, self.nu = (int(tree.ravel(v)[0].size) for v in (guess.x_like, guess.u_like))
        self.own = own
        #: All states: the user's, and integrals so far.
        self.nx = own + (0 if integrals_like is None else int(tree.ravel(integrals_like)[0].size))
        self.np_ = 0 if guess.p is None else int(tree.ravel(guess.p)[0].size)
        of_own = tree.ravel(guess.x_like)[1]
        self.unravel_x = of_own if self.nx == own else (lambda v: of_own(v[:own]))
        self.unravel_u = tree.ravel(guess.u_like)[1]
        self.unravel_p = (lambda v: None) if guess.p is None else tree.ravel(guess.p)[1]

    dynamics = property(lambda self: self.current.functions[0])
    running_cost = property(lambda self: self.current.functions[1])
    terminal_cost = property(lambda self: self.current.functions[2])
    path = property(lambda self: self.current.functions[3])
    boundary = property(lambda self: self.current.functions[4])
    integrals = property(lambda self: self.current.functions[5])

    def _rest(self, p: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return args if self.p_like is None else (self.unravel_p(p), *args)

    def _slope(self, given: Any) -> Any:
        """Return what ``dynamics`` returned as a vector, or say why it is not dx/dt."""
        flat = tree.ravel(given)[0]
        must = "it must return dx/dt with the structure of x"
        if flat.shape != (self.own,):
            raise ValueError(
                f"dynamics returns {flat.size} numbers for a state of {self.own}: {must}"
            )
        like, kind = self.x_like, tree.structure(given)
        listed = isinstance(given, (list, tuple)) and tree.is_leaf(like) and np.ndim(like) == 1
        if not listed and kind != tree.structure(like):
            raise ValueError(
                f"dynamics returns {kind!r} for a state of {tree.structure(like)!r}: {must}"
            )
        shapes = [np.shape(leaf) for leaf in tree.leaves(given)]
        if not listed and shapes != [np.shape(leaf) for leaf in tree.leaves(like)]:
            own = [np.shape(leaf) for leaf in tree.leaves(like)]
            raise ValueError(f"dynamics returns shapes {shapes} for a state of {own}: {must}")
        return flat

    @staticmethod
    def _number(given: Any, what: str) -> Any:
        """Return what a cost returned as one number (1,), or say that it is not."""
        flat = tree.ravel(given)[0]
        if flat.shape != (1,):
            raise ValueError(
                f"{what} returns {flat.size} numbers instead of one: add them up, for example "
                "with np.sum, and return the sum"
            )
        return flat * 1.0

    def _along(self, z: Any, scale: Any, begin: Any, end: Any, args: Any) -> Any:
        """Take the unknowns of an interval apart: h, X, U and functions of (s, x, u)."""
        z = z * scale
        t0, tf, p = z[0], z[1], z[2 : 2 + self.np_]
        a, b = len(self.scheme.state_points), len(self.scheme.control_points)
        head = 2 + self.np_
        X = np.reshape(z[head : head + a * self.nx], (a, self.nx))
        U = np.reshape(z[head + a * self.nx :], (b, self.nu))
        rest = self._rest(p, args)

        def of(function: Any) -> Any:
            def call(s: Any, x: Any, u: Any) -> Any:
                t = t0 + (tf - t0) * (begin + s * (end - begin))
                return function(t, self.unravel_x(x), self.unravel_u(u), *rest)

            return call

        def rate(s: Any, x: Any, u: Any) -> Any:
            slope = self._slope(of(self.dynamics)(s, x, u))
            if self.integrals is None:
                return slope * 1.0
            return np.concatenate([slope * 1.0, tree.ravel(of(self.integrals)(s, x, u))[0] * 1.0])

        return (tf - t0) * (end - begin), X, U, rate, of

    def interval(self, z: Any, scale: Any, begin: Any, end: Any, *args: Any) -> Any:
        """Return [running cost, defects, path constraints] of one interval."""
        h, X, U, rate, of = self._along(z, scale, begin, end, args)
        sizes = scale[2 + self.np_ : 2 + self.np_ + self.nx]
        parts = [np.ravel(self.scheme.defects(rate, h, X, U) / sizes)]
        visited = self.scheme.visited(rate, h, X, U)
        cost = self.running_cost
        total = z[:1] * 0.0
        if cost is not None:
            total = h * sum(
                w * self._number(of(cost)(s, x, u), "running_cost") for s, x, u, w in visited
            )
        if self.path is not None:
            kept = visited[:-1] if self.path_at_last else visited
            parts += [tree.ravel(of(self.path)(s, x, u))[0] * 1.0 for s, x, u, _ in kept]
        return np.concatenate([total, *parts])

    @property
    def path_at_last(self) -> bool:
        """Whether the last node's path constraints are a block of their own."""
        return self.scheme.control_points[0] == 0.0

    def ends(self, z: Any, scale: Any, *args: Any) -> Any:
        """Return [terminal cost, path constraints at the last node, boundary constraints]."""
        z = z * scale
        head, nx = 2 + self.np_, self.nx
        first, final = z[head : head + nx], z[head + nx : head + 2 * nx]
        rest = self._rest(z[2:head], args)
        given = (z[0], self.unravel_x(first), z[1], self.unravel_x(final), *rest)
        cost, boundary, path = (
            self.terminal_cost,
            self.boundary,
            self.path if self.path_at_last else None,
        )
        parts = [z[:1] * 0.0 if cost is None else self._number(cost(*given), "terminal_cost")]
        if path is not None:
            control = self.unravel_u(z[head + 2 * nx :])
            parts.append(tree.ravel(path(z[1], given[3], control, *rest))[0] * 1.0)
        if boundary is not None:
            parts.append(tree.ravel(boundary(*given))[0] * 1.0)
        return np.concatenate(parts)

    def between(self, z: Any, scale: Any, begin: Any, end: Any, s: Any, *args: Any) -> Any:
        """Return state, dx/dt - f and control within an interval."""
        h, X, U, rate, _ = self._along(z, scale, begin, end, args)
        x, slope, u = self.scheme.at(s, rate, h, X, U)
        return x, slope - rate(s, x, u), u

    def flown(
        self,
        z: Any,
        scale: Any,
        begin: Any,
        end: Any,
        at: Any,
        first: Any,
        second: Any,
        step: Any,
        low: Any,
        high: Any,
        *args: Any,
    ) -> Any:
        """Return states at ``at`` and at the end of an interval, flown anew and as they are.

        It is flown twice, the second time by half as many steps. Controls whose ``step`` is 1 are
        ``first`` up to ``at`` and ``second`` from there on; others follow the scheme within low
        and high.
        """
        h, X, U, rate, _ = self._along(z, scale, begin, end, args)

        def both(count: int) -> Any:
            def one(carry: Any, k: Any) -> Any:
                x, middle = carry
                late = k >= count
                d = np.where(late, 1.0 - at, at) / count
                s = np.where(late, at + (k - count) * d, k * d)
                value = np.where(late, second, first)

                def slope(s: Any, x: Any) -> Any:
                    u = np.clip(self.scheme.at(s, rate, h, X, U)[2], low, high)
                    return h * rate(s, x, np.where(step > 0.0, value, u))

                k1 = slope(s, x)
                k2 = slope(s + d / 2, x + d / 2 * k1)
                k3 = slope(s + d / 2, x + d / 2 * k2)
                k4 = slope(s + d, x + d * k3)
                x = x + d / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
                return (x, np.where(late, middle, x)), None

            end, middle = scan(one, (X[0], X[0]), length=2 * count)[0]
            return np.stack([middle, end])

        shown = np.stack([self.scheme.at(at, rate, h, X, U)[0], X[-1]])
        return both(FLOWN), both(FLOWN // 2), shown

    def visited_count(self) -> int:
        """Return how many points of an interval have path constraints."""
        if self.path is None:
            return 0
        a, b = len(self.scheme.state_points), len(self.scheme.control_points)
        points = self.scheme.visited(
            lambda s, x, u: x, 1.0, np.zeros((a, self.nx)), np.zeros((b, self.nu))
        )
        return len(points) - self.path_at_last

"""``root`` and ``implicit``: solutions of equations as functions, with implicit derivatives.

The solvers are bounded recorded loops (``root_iterations.py``). The derivative does not go through
the iterations: from F(x(p), p) = 0 follows dx = -(dF/dx)^-1 (dF/dp) dp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import checks, tree
from archimedes.checks import check_choice, is_traced
from archimedes.errors import ArchimedesError, ShapeDtypeError, refer_to
from archimedes.function.arrays import array
from archimedes.function.compiled import Compiled
from archimedes.function.dependencies.states import content_of
from archimedes.function.derivatives.custom_rules import custom_jvp
from archimedes.function.derivatives.transforms import jac, jvp
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording, apply_recording
from archimedes.function.recording_store import Current, compile_frozen, find_or_make
from archimedes.function.region_bodies import flatten_traced, record_body
from archimedes.function.root_iterations import ITERATIONS, Equations
from archimedes.function.signatures import Signature
from archimedes.graph.blocks.references import references
from archimedes.graph.dtypes import item_type, length_of
from archimedes.symbolic import current_trace, wrap
from archimedes.tree import struct
from archimedes.tree.content import content_key

if TYPE_CHECKING:
    from archimedes.typing import Array, Tree, Vector

    #: Lower and upper limits: numbers, or trees like the unknowns.
    Bounds = tuple[Tree, Tree] | list[Tree]

__all__ = ["ConvergenceError", "RootInfo", "implicit", "root"]

#: Solvers by name.
SOLVERS = tuple(ITERATIONS)
#: Residuals that count as zero, unless the caller says otherwise: what is left of equations of
#: size 1 by rounding, and then some.
TOLERANCES = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
#: Last steps that count as short beside them, relative to 1 + |x|.
STEP_TOL = 1e-3
#: Steps at which an iteration ends. At a double root the residual is the square of the error, so
#: that it is below its tolerance long before x is known.
SHORT_STEPS = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): STEP_TOL}


_WORDS = {
    "newton": "Newton's method",
    "fast_newton": "Newton's method",
    "hybr": "Powell's hybrid method",
    "lm": "the Levenberg-Marquardt method",
}


class ConvergenceError(ArchimedesError, RuntimeError):
    """A solver stopped without reaching its tolerance.

    >>> import archimedes as arc
    >>> try:
    ...     arc.root(lambda x: x**2 + 1.0, 3.0)
    ... except arc.ConvergenceError as error:
    ...     print(str(error)[:70])
    <lambda>: Newton's method did not converge: after 50 steps the largest
    """


@struct
class RootInfo:
    """How the solution of an equation ended.

    Parameters
    ----------
    success : bool
        Whether the solver converged.
    steps : int
        Number of iterations.
    residual : float
        Largest absolute residual at the end.

    Examples
    --------
    >>> import archimedes as arc
    >>> x, info = arc.root(lambda x: x**2 - 2.0, 1.0, full_output=True)
    >>> bool(info.success), round(float(x), 6)
    (True, 1.414214)
    """

    success: Any
    steps: Any
    residual: Any


class Fixed:
    """A static argument on its way through a recording: equal where its content is."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = content_key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __content__(self) -> tuple[Any, ...]:
        return (self.value,)


class Implicit:
    """The function x(p) defined by F(x, p) = 0; made by :func:`implicit`."""

    def __init__(
        self,
        func: Callable[..., Any],
        static_argnames: str | Sequence[str] | None,
        solver: str,
        name: str | None,
        tol: float | None,
        max_steps: int,
        bounds: Bounds | None = None,
        current: Current | None = None,
    ) -> None:
        remedy = "write arc.implicit(f) or arc.root(f, x0), not f(x0)"
        checks.check_callable(func, "implicit: func", remedy=remedy)
        check_choice(solver, "implicit: solver", SOLVERS)
        if tol is not None:
            checks.check_positive(tol, "implicit: tol")
        checks.check_whole(max_steps, "implicit: max_steps", 1)
        if bounds is not None and (not isinstance(bounds, (tuple, list)) or len(bounds) != 2):
            raise ValueError("bounds must be a pair (lower, upper): numbers, or trees like x0")
        if bounds is not None and solver != "lm":
            raise ValueError(f"solver={solver!r} takes no bounds: use 'lm'")
        functools.update_wrapper(self, func, updated=())
        self.func = func
        self.solver, self.bounds = solver, bounds
        self.tol = None if tol is None else float(tol)
        self.max_steps = int(max_steps)
        self.name = name or getattr(func, "__name__", "implicit")
        self.signature = Signature(func, None, static_argnames)
        #: In the store of recordings, of functions with the same content the latest.
        self._current = current
        if current is None:
            self._compiled = Compiled(self._solve, name=self.name, watch=(func,))
        else:
            self._compiled = compile_frozen(self._solve, (current,), self.name)

    def __call__(self, x0: Tree, *args: Tree, **named: Tree) -> Tree:
        """Return the solution, starting the iteration at ``x0``.

        Outside a recording, no convergence raises ConvergenceError; inside one, the solution is
        nan then, and :meth:`solve` returns the status as well.
        """
        x, info = self.solve(x0, *args, **named)
        if is_traced(info.success):
            return tree.map(lambda leaf: np.where(info.success, leaf, np.nan), x)
        if not info.success:
            raise self._convergence_error(x0, info)
        return x

    def _convergence_error(self, x0: Tree, info: RootInfo) -> Exception:
        """Return the error of a solve that did not converge."""
        start = np.concatenate([np.ravel(leaf) for leaf in tree.leaves(x0)])
        if not np.all(np.isfinite(start)):
            return ValueError(f"{self.name}: x0 is {x0}: a start must be finite")
        if np.isinf(info.residual):
            left = "the function is nan or infinite there: start where it is defined"
        elif info.residual <= self._tolerance(info.residual.dtype):
            left = (
                f"the largest residual is {float(info.residual):.3g}, but the steps do not get "
                "shorter. There may be no solution; else give a better starting value, tol= in the "
                "units of the function"
            )
        else:
            left = (
                f"the largest residual is {float(info.residual):.3g}, the tolerance is "
                f"{self._tolerance(info.residual.dtype):.3g}. There may be no solution; else give "
                "a better starting value"
            )
        return ConvergenceError(
            f"{self.name}: {_WORDS[self.solver]} did not converge: after {int(info.steps)} "
            f"steps {left}, try method='hybr' or 'lm', or raise max_steps or tol."
            + refer_to("root")
        )

    def _tolerance(self, dtype: np.dtype) -> float:
        return TOLERANCES[np.dtype(dtype)] if self.tol is None else self.tol

    def solve(self, x0: Tree, *args: Tree, **named: Tree) -> tuple[Tree, RootInfo]:
        """Return the solution and a :class:`RootInfo`."""
        names = self.signature.positional[1:]
        if named:
            rest = names[len(args) :]
            if set(named) - set(rest):
                raise TypeError(f"{self.name}() takes x0 and {names}, got {sorted(named)} by name")
            bound = self.signature.parameters.bind_partial(x0, *args, **named)
            args = tuple(bound.arguments[name] for name in names if name in bound.arguments)
        static = [name in self.signature.static for name in names]
        static += [False] * (len(args) - len(static))
        # As in SciPy: a list of numbers is an array.
        x0 = array(x0) if is_row_of_numbers(x0) else x0
        return self._compiled(x0, *(Fixed(a) if fix else a for a, fix in zip(args, static)))

    def _solve(self, x0: Tree, *args: Tree) -> tuple[Tree, RootInfo]:
        try:
            start, unravel = tree.ravel(tree.map(lambda leaf: leaf * 1.0, x0))
        except TypeError:
            raise ShapeDtypeError(
                f"{self.name}: x0 must be a tree of numbers, got {x0!r}"
            ) from None
        if start.ndim != 1 or start.size == 0:
            raise ShapeDtypeError(f"{self.name}: x0 holds no numbers to solve for")
        equations, values = self._equations(start, unravel, args)

        def residual(x: Vector, p: list[Array]) -> Vector:
            flat, _ = tree.ravel(apply_recording(equations, [x, *p]))
            if flat.shape != start.shape:
                raise ShapeDtypeError(
                    f"{self.name}: the function returns {flat.size} equations for {start.size} "
                    "unknowns; a root needs as many: fix or add unknowns, or take the best fit, "
                    "arc.optimize.least_squares"
                )
            return flat

        @custom_jvp
        def solution(x: Vector, p: list[Array]) -> Vector:
            return self._iterate(residual, x, p)

        @solution.defjvp
        def derivative(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> Any:
            out = solution(*primals)
            x = out[: start.size]
            p = primals[1]
            if not p:
                return out, np.zeros_like(out)
            change = jvp(residual, argnums=1)(x, p, tangents[1])
            dx = -np.linalg.solve(jac(residual)(x, p), change)
            return out, np.concatenate([dx, np.zeros_like(out[start.size :])])

        try:
            out = solution(start, values)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"{self.name}: dF/dx is singular whatever the values are: some unknown enters no "
                "equation, or some equation has no unknown"
            ) from None
        x, size, steps = out[: start.size], out[start.size], out[start.size + 1]
        good = out[start.size + 2] > 0.0
        info = RootInfo(success=good, steps=steps.astype(np.int64), residual=size)
        return unravel(x), info

    def _equations(
        self, start: Vector, unravel: Callable[[Vector], Tree], args: tuple[Tree, ...]
    ) -> tuple[Recording, list[Any]]:
        """Record F as a function of x and of every traced number it reads; return those too.

        Values that F closes over become arguments like those it is given, so that derivatives
        in them are right as well.
        """
        leaves, treedef = tree.flatten(args)
        traced = [k for k, leaf in enumerate(leaves) if is_traced(leaf)]

        def equations(x: Vector, p: list[Array]) -> Tree:
            whole = [leaf.value if isinstance(leaf, Fixed) else leaf for leaf in leaves]
            for k, value in zip(traced, p):
                whole[k] = value
            func = self.func if self._current is None else self._current.functions[0]
            return func(unravel(x), *treedef.unflatten(whole))

        values = [leaves[k] for k in traced]
        groups = [flatten_traced(start, "x0"), flatten_traced(values, "args")]
        body = record_body(equations, groups)
        codes = body.graph.input_dtypes[len(body.graph.inputs) - len(body.captured) :]
        values += [_array_of(i, kind) for i, kind in zip(body.captured, codes)]
        extra = tuple(
            LeafSpec(item_type(kind), (length_of(kind),) if length_of(kind) else ())
            for kind in codes
        )
        return replace(body, leaves=body.leaves + extra, captured=[]), values

    def _iterate(
        self, residual: Callable[[Array, list[Array]], Array], x: Vector, p: list[Array]
    ) -> Vector:
        """Iterate; returns x, the largest residual, the steps and whether it is a root (1 or 0)."""
        lower, upper = self.edges(x)
        equations = Equations(
            lambda x: residual(x, p),
            lambda x: jac(residual)(x, p),
            self._tolerance(x.dtype),
            SHORT_STEPS[np.dtype(x.dtype)] if self.tol is None else np.inf,
            STEP_TOL if self.tol is None else np.inf,
            self.max_steps,
            lower,
            upper,
        )
        x = x if self.bounds is None else np.clip(x, lower, upper)
        x, now, steps, length = ITERATIONS[self.solver](equations, x)
        solved = np.where(equations.is_root(now, length), 1.0, 0.0).astype(x.dtype)
        return np.concatenate([x, np.stack([now, steps, solved])])

    def edges(self, x: Vector) -> tuple[Vector, Vector]:
        """Return lower and upper bounds as vectors like x."""
        pair = (None, None) if self.bounds is None else self.bounds
        edges = []
        for bound, none in zip(pair, (-np.inf, np.inf)):
            flat = np.asarray(tree.ravel(none if bound is None else bound)[0] * 1.0)
            if flat.size not in (1, x.size):
                raise ShapeDtypeError(
                    f"{self.name}: bounds hold {flat.size} numbers, x0 holds {x.size}"
                )
            edges.append(np.broadcast_to(flat, x.shape))
        lower, upper = edges
        checks.check_limits(lower, upper, f"{self.name}: bounds")
        return lower, upper

    def __content__(self) -> tuple[Any, ...]:
        return (self.func, self.tol, self.max_steps, self.solver, self.bounds)


def _array_of(i: int, kind: int) -> Array:
    """Return a value of the recording under way by its id: a number, or an array if a block."""
    if not length_of(kind):
        return wrap(i, kind)
    return wrap(references(current_trace().graph, i), item_type(kind))


def is_row_of_numbers(value: object) -> bool:
    """Return whether a value is a list of nothing but numbers, which may be traced."""
    kinds = (int, float, np.number)
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(v, kinds) or (is_traced(v) and np.ndim(v) == 0) for v in value)
    )


def implicit(
    func: Callable[..., Any],
    static_argnames: str | Sequence[str] | None = None,
    solver: str = "newton",
    name: str | None = None,
    *,
    tol: float | None = None,
    max_steps: int = 50,
    abstol: float | None = None,
    max_iter: int | None = None,
    bounds: Bounds | None = None,
) -> Implicit:
    """Return the function ``g(x0, *args)`` that solves ``func(x, *args) = 0`` for x.

    Its result is differentiable with respect to `args` by the implicit function theorem. It does
    not depend on ``x0`` as far as derivatives are concerned. ``g.solve(...)`` also returns a
    :class:`RootInfo`. Arguments may be given by name: ``g(x0=..., p=...)``.

    Parameters
    ----------
    func : callable
        The residual, which returns as many values as x has. x may be any tree.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    solver : {"newton", "hybr", "lm"}, optional
        Newton's method with a line search, Powell's dogleg method with a trust region, or
        Levenberg-Marquardt, which respects `bounds`.
    name : str, optional
        Name in messages and listings.
    tol : float, optional
        Largest residual at which the iteration has converged. By default 1e-10 (1e-5 in float32),
        and the iteration goes on until its steps are shorter than 1e-6 of ``1 + |x|``, so that a
        double root is found as well. Steps longer than 1e-3 are no convergence.
    max_steps : int, optional
        Largest number of iterations, 50 by default.
    abstol, max_iter : optional
        Other names of `tol` and `max_steps`.
    bounds : (tree, tree), optional
        Lower and upper limits of x, for the method ``"lm"``.

    Returns
    -------
    callable
        ``g(x0, *args)``.

    Examples
    --------
    >>> sqrt = implicit(lambda x, p: x**2 - p)
    >>> round(float(sqrt(1.0, 2.0)), 12)
    1.414213562373
    """
    tol = abstol if tol is None else tol
    steps = max_steps if max_iter is None else max_iter
    return Implicit(func, static_argnames, solver, name, tol, steps, bounds)


def root(
    func: Callable[..., Any],
    x0: Tree,
    args: Any = (),
    static_argnames: str | Sequence[str] | None = None,
    method: str = "newton",
    tol: float | None = None,
    *,
    max_steps: int | None = None,
    full_output: bool = False,
    bounds: Bounds | None = None,
) -> Any:
    """Solve ``func(x, *args) = 0`` for x.

    Parameters
    ----------
    func : callable
        The residual, which returns as many values as x has.
    x0 : float, array or tree
        Starting value.
    args : tuple, optional
        Further arguments of `func`.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    method : {"newton", "hybr", "lm"}, optional
        The solver, as in :func:`implicit`.
    tol : float, optional
        Largest residual at which the iteration has converged, as in :func:`implicit`.
    max_steps : int, optional
        Largest number of iterations.
    full_output : bool, optional
        Return a pair, x and a :class:`RootInfo`, and do not raise.
    bounds : (tree, tree), optional
        Lower and upper limits of x, for the method ``"lm"``.

    Returns
    -------
    array or tree
        The solution x, with the structure of `x0`.

    Raises
    ------
    ConvergenceError
        The solver finds no solution. Inside a compiled function, where nothing can be raised, x is
        nan.

    Examples
    --------
    >>> round(float(root(lambda x: x**2 - 2.0, 1.0)), 12)
    1.414213562373
    """
    check_choice(method, "root: method", SOLVERS)
    args = args if isinstance(args, tuple) else (args,)
    method = "lm" if bounds is not None and method == "newton" else method
    steps = max_steps if max_steps is not None else (50 if "newton" in method else 200)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames or ())

    def make(current: Current | None) -> Implicit:
        return Implicit(func, static_argnames, method, None, tol, steps, bounds, current)

    if not callable(func) or is_traced(bounds):
        solver = make(None)  # which says what is wrong, or belongs to a recording under way
    else:
        settings = (names, method, tol, steps, content_of(bounds))
        solver = find_or_make("root", (func,), settings, make)
    return solver.solve(x0, *args) if full_output else solver(x0, *args)

"""The small solver as a task wants it, and results as users see them.

``minimize`` and ``nlp_solver``: nonlinear programs over trees of unknowns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function import ConvergenceError
from archimedes.function.identity.store import Current, form_of, prepared
from archimedes.function.implicit_functions import Fixed
from archimedes.function.region_bodies import any_traced
from archimedes.function.signatures import Signature
from archimedes.optimize.nonlinear.program import (
    AtPlaces,
    Program,
    check_objective,
    constraint_limits,
    named_constraints,
    residuals_by_name,
)
from archimedes.optimize.problems.evaluation import Evaluator
from archimedes.optimize.problems.results import Iteration, Multipliers, OptimizeResult, Status
from archimedes.optimize.problems.sensitivity import recorded_solution
from archimedes.optimize.problems.tasks import Answer, Monitor, Settings, Task, violation
from archimedes.optimize.problems.unknowns import as_unknowns, limits, vector_like
from archimedes.optimize.solvers.solve_task import check_method, solve_task

__all__ = ["Edges", "NlpSolver", "minimize", "nlp_solver", "result_of", "sqp_runner"]

#: Iterations of method="sqp" unless the options say otherwise.
SQP_ITERATIONS = 200

#: Lower and upper limits of the unknowns, then of the constraints.
Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def sqp_runner(
    program: Program, args: tuple[Any, ...], settings: Settings, monitor: Monitor, told: bool
) -> Callable[..., Any]:
    """Return the solver: one native kernel, or one per iteration where somebody looks on."""
    count = settings.maxiter or SQP_ITERATIONS
    if not told and settings.maxtime is None:
        kernel = program.sqp_kernel(settings.tol, count)
        return lambda x0, edges: kernel(x0, edges, *args)
    first, step, last = program.sqp_steps(settings.tol)

    def run(x0: np.ndarray, edges: Edges) -> Any:
        state = first(x0, edges)
        while state.status == Status.ITERATION_LIMIT and state.steps < count:
            values = program.func(state.x, *args)
            off = max(violation(values[1:], *edges[2:]), violation(state.x, *edges[:2]))
            if not monitor.after(int(state.steps), state.x, float(values[0]), off):
                break
            state = step(state, edges, *args)
        return last(lambda x: program.func(x, *args), state, edges)

    return run


def result_of(
    program: Program, task: Task, answer: Answer, method: str, seconds: float
) -> OptimizeResult:
    """Return an answer in the user's terms."""
    f, g = task.evaluator.values(answer.x)
    values = tree.ravel(program.values_like)[1] if program.names else None
    counts = task.evaluator.counts
    return OptimizeResult(
        x=program.unravel(answer.x),
        fun=f,
        status=answer.status,
        multipliers=Multipliers(
            None if values is None else values(answer.lam_g), program.unravel(answer.lam_x)
        ),
        iterations=answer.iterations,
        constr=None if values is None else values(g),
        residuals=residuals_by_name(g, task.low, task.high, program.values_like),
        violation=task.violation(answer.x, g),
        evaluations={name: count.calls for name, count in counts.items()},
        times={**{name: count.seconds for name, count in counts.items()}, "solve": seconds},
        solver=method,
        details=answer.details,
    )


def _first_function(parts: Any) -> Any:
    """Return what names the arguments: of places, the function of one of them."""
    return parts[0].func if isinstance(parts[0], AtPlaces) else parts[0]


class NlpSolver:
    """A nonlinear program that was set up once; made by :func:`nlp_solver`.

    Parameters
    ----------
    obj : callable or list
        Objective ``obj(x, *args)``. A list of functions is added up; a function of many places is
        an :class:`AtPlaces`.
    constr : callable, dict or list, optional
        Constraint ``constr(x, *args)``, which returns any tree of values, or several of them by
        name. None by default.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    method : str, optional
        The solver, as in :func:`minimize`.
    options : mapping, optional
        ``"maxiter"``, ``"maxtime"`` (s), ``"tol"``, and options of the solver.
    name : str, optional
        Name in messages.

    Examples
    --------
    >>> import archimedes as arc
    >>> solver = arc.nlp_solver(lambda x, p: (x - p) ** 2)
    >>> round(float(solver(0.0, 3.0)), 6)
    3.0
    """

    def __init__(
        self,
        obj: Callable[..., Any],
        constr: Any = None,
        static_argnames: Any = None,
        method: str = "ipm",
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        check_method(method)
        self.obj = tuple(obj) if isinstance(obj, (list, tuple)) else (obj,)
        self.constr = constr
        self.names, self._constraints = named_constraints(constr)
        self.name = str(name or getattr(check_objective(self.obj), "__name__", "nlp"))
        self.method, self.options = method, dict(options or {})
        self.signature = Signature(_first_function(self.obj), None, static_argnames)

    def __repr__(self) -> str:
        return f"<nlp_solver {self.name}, method {self.method!r}>"

    def __call__(self, x0: Any, *args: Any, bounds: Any = None, constr_bounds: Any = None) -> Any:
        """Return the unknowns at the solution; no solution raises ConvergenceError.

        In recorded code the solver is called when the code runs; the result has derivatives in
        the arguments and limits, and is nan where there is no solution.
        """
        if any_traced((x0, args, bounds, constr_bounds)):
            return self._recorded(x0, args, bounds, constr_bounds)
        result = self.solve(x0, *args, bounds=bounds, constr_bounds=constr_bounds)
        if not result.success:
            raise ConvergenceError(f"{self.name}: {result.message}")
        return result.x

    def solve(
        self,
        x0: Any,
        *args: Any,
        bounds: Any = None,
        constr_bounds: Any = None,
        multipliers: Multipliers | None = None,
        callback: Callable[[Iteration], Any] | None = None,
    ) -> OptimizeResult:
        """Solve, and return an :class:`OptimizeResult`, whatever its status.

        Parameters
        ----------
        x0 : float, array or tree
            Starting point.
        *args
            Further arguments of the functions.
        bounds : (lower, upper), optional
            Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix
            a number.
        constr_bounds : (lower, upper), optional
            Limits of the constraints, by name if there are several. Without them the constraints
            are equal to zero.
        multipliers : Multipliers, optional
            Multipliers of an earlier result, for a warm start.
        callback : callable, optional
            Function of an :class:`Iteration`, called after each. It stops the solver by returning
            True.
        """
        began = time.perf_counter()
        if any_traced((x0, args, bounds, constr_bounds)):
            raise TraceError(
                "minimize and solve return a result with text and times, which cannot be part of a "
                "recorded function: make a solver outside, solver = arc.nlp_solver(f), and call "
                "solver(x0, *args) inside"
            )
        settings = Settings.of(self.options, self.method)
        unknowns = as_unknowns(x0)
        given = self._fix(args)
        program = self.program(unknowns, given)
        task = self._task(program, unknowns, given, bounds, constr_bounds, settings, callback)
        if multipliers is not None:
            task.lam_g = vector_like(
                multipliers.constr, program.values_like, 0.0, "multipliers.constr"
            )
            task.lam_x = vector_like(multipliers.bounds, unknowns, 0.0, "multipliers.bounds")
        answer = solve_task(task, self.method)
        return result_of(program, task, answer, self.method, time.perf_counter() - began)

    def _recorded(self, x0: Any, args: tuple[Any, ...], bounds: Any, constr_bounds: Any) -> Any:
        start, unravel = tree.ravel(tree.map(lambda leaf: leaf * 1.0, x0))
        given = self._fix(args)
        leaves, treedef = tree.flatten(given)
        moving = [k for k, leaf in enumerate(leaves) if is_number(leaf)]
        unknowns = tree.map(like, x0)
        program = self.program(unknowns, treedef.unflatten([like(leaf) for leaf in leaves]))
        lower, upper = limits(bounds, unknowns, "bounds")
        low = high = np.zeros(0)
        if self.names:
            low, high = constraint_limits(constr_bounds, program.values_like, self.constr)

        def together(p: list[Any]) -> Any:
            whole = list(leaves)
            for k, value in zip(moving, p):
                whole[k] = value
            return treedef.unflatten(whole)

        settings = Settings.of(self.options, self.method)

        def run(x0: Any, p: list[Any], edges: Edges) -> Any:
            args = together(p)
            if self.method == "sqp":
                kernel = program.sqp_kernel(settings.tol, settings.maxiter or SQP_ITERATIONS)
                found = kernel(x0, edges, *args)
                parts = (found.x, found.lam_g, found.lam_x)
                return tree.map(lambda v: np.where(found.status < 10, v, np.nan), parts)
            task = self._vector_task(program, x0, args, edges, settings, None)
            answer = solve_task(task, self.method)
            parts = (answer.x, answer.lam_g, answer.lam_x)
            return parts if answer.status.success else tree.map(lambda v: v * np.nan, parts)

        func = program.func
        x = recorded_solution(
            run,
            lambda x, p: func(x, *together(p)),
            start,
            [leaves[k] for k in moving],
            (lower, upper, low, high),
            host=self.method != "sqp",
        )
        return unravel(x)

    def _fix(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        names = self.signature.positional[1:]
        static = [name in self.signature.static for name in names[: len(args)]]
        static += [False] * (len(args) - len(static))
        return tuple(Fixed(a) if fix else a for a, fix in zip(args, static))

    def program(self, unknowns: Any, args: tuple[Any, ...]) -> Program:
        """Return the problem for unknowns and arguments of this structure.

        Parameters
        ----------
        unknowns : tree
            Unknowns.
        args : tuple
            Further arguments of the functions.
        """

        def make(current: Current) -> Program:
            return Program(current, len(self.obj), self.names, unknowns, args, self.name)

        settings = (len(self.obj), self.names, self.name, form_of(unknowns), form_of(args))
        functions = (*self.obj, *self._constraints)
        return prepared(
            "nonlinear program", functions, settings, make, again=Program.compile_at_once
        )

    def _task(
        self,
        program: Program,
        unknowns: Any,
        args: tuple[Any, ...],
        bounds: Any,
        constr_bounds: Any,
        settings: Settings,
        callback: Any,
    ) -> Task:
        lower, upper = limits(bounds, unknowns, "bounds")
        if not self.names:
            if constr_bounds is not None:
                raise ValueError("constr_bounds are given, but there is no constr they are for")
            low = high = np.zeros(0)
        else:
            low, high = constraint_limits(constr_bounds, program.values_like, self.constr)
        start = tree.ravel(unknowns)[0] * 1.0
        edges = (lower, upper, low, high)
        return self._vector_task(program, start, args, edges, settings, callback)

    def _vector_task(
        self,
        program: Program,
        start: np.ndarray,
        args: tuple[Any, ...],
        edges: Edges,
        settings: Settings,
        callback: Any,
    ) -> Task:
        evaluator = Evaluator(program.blocks, program.structure, args)
        monitor = Monitor(callback, program.unravel, settings.maxtime, settings.tol)
        start = np.clip(start, edges[0], edges[1])
        task = Task(evaluator, start, *edges, settings, monitor)
        if self.method == "sqp":
            if settings.more:
                raise ValueError(
                    "method='sqp' takes no options but 'tol', 'maxiter' and 'maxtime', got "
                    f"{sorted(settings.more)}"
                )
            task.kernel = sqp_runner(program, args, settings, monitor, callback is not None)
        return task

    def __content__(self) -> tuple[Any, ...]:
        static = tuple(self.signature.static)
        return (self.obj, self.constr, self.method, self.options, static)


def is_number(leaf: Any) -> bool:
    """Whether a leaf is traced in recorded code."""
    return isinstance(leaf, (int, float, np.ndarray, np.generic)) and not isinstance(leaf, bool)


def like(leaf: Any) -> Any:
    """Return zeros of the shape and dtype of a leaf, which may be traced; others as they are."""
    if not is_number(leaf):
        return leaf
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.zeros(leaf.shape, leaf.dtype)[()]
    return np.float64(0) if isinstance(leaf, float) else np.int64(0)


def nlp_solver(
    obj: Callable[..., Any],
    constr: Any = None,
    static_argnames: Any = None,
    *,
    method: str = "ipm",
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> NlpSolver:
    """Return a solver of a nonlinear program that is set up once.

    Call it as ``solver(x0, *args, bounds=..., constr_bounds=...)`` for the unknowns, or as
    ``solver.solve(...)`` for an :class:`OptimizeResult`. Other numbers in x0, args and limits need
    no new compilation. With ``method="sqp"``, calls inside compiled functions become part of the
    program, so that they run on SIMD lanes under :func:`vmap` and become C.

    Parameters
    ----------
    obj : callable or list
        Objective ``obj(x, *args)``. A list of functions is added up; a function of many places is
        an :class:`AtPlaces`.
    constr : callable, dict or list, optional
        Constraint ``constr(x, *args)``, which returns any tree of values, or several of them by
        name. None by default.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    method : str, optional
        ``"ipm"`` (default): interior-point method of this package, on banded systems. ``"ipopt"``:
        IPOPT, an extra. ``"sqp"``: sequential quadratic programming, for small problems, as one
        native kernel. Or a method of SciPy (``"SLSQP"``, ``"trust-constr"``, ...).
    options : mapping, optional
        ``"maxiter"``, ``"maxtime"`` (s), ``"tol"``, and options of the solver.
    name : str, optional
        Name in messages.

    Examples
    --------
    >>> solver = nlp_solver(lambda x, p: (x - p) ** 2, lambda x, p: x * p)
    >>> round(float(solver(0.5, 2.0, constr_bounds=(None, 2.0))), 6)
    1.0
    >>> from archimedes.function import grad
    >>> slope = grad(lambda p: solver(0.5, p, constr_bounds=(None, 2.0)))  # x = 2 / p
    >>> round(float(slope(2.0)), 6)
    -0.5
    """
    return NlpSolver(obj, constr, static_argnames, method, options, name)


def minimize(
    obj: Callable[..., Any],
    x0: Any,
    args: Any = (),
    static_argnames: Any = None,
    constr: Any = None,
    bounds: Any = None,
    constr_bounds: Any = None,
    method: str = "ipm",
    options: Mapping[str, Any] | None = None,
    *,
    multipliers: Multipliers | None = None,
    callback: Callable[[Iteration], Any] | None = None,
) -> OptimizeResult:
    """Minimize ``obj(x, *args)`` over x, any tree of numbers, with bounds and constraints.

    Gradients, sparse Jacobians and Hessians are exact. Wrong arguments raise an error; what the
    numbers do is in ``success``, ``status`` and ``message`` of the result.

    Parameters
    ----------
    obj : callable or list
        Objective ``obj(x, *args)``. A list of functions is added up; a function of many places is
        an :class:`AtPlaces`.
    x0 : float, array or tree
        Starting point.
    args : tuple, optional
        Further arguments of the functions.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    constr : callable, dict or list, optional
        Constraint ``constr(x, *args)``, which returns any tree of values, or several of them by
        name. None by default.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    constr_bounds : (lower, upper), optional
        Limits of the constraints, by name if there are several. Without them the constraints are
        equal to zero.
    method : str, optional
        ``"ipm"`` (default): interior-point method of this package, on banded systems. ``"ipopt"``:
        IPOPT, an extra. ``"sqp"``: sequential quadratic programming, for small problems, as one
        native kernel. Or a method of SciPy (``"SLSQP"``, ``"trust-constr"``, ...).
    options : mapping, optional
        ``"maxiter"``, ``"maxtime"`` (s), ``"tol"``, and options of the solver.
    multipliers : Multipliers, optional
        Multipliers of an earlier result, for a warm start.
    callback : callable, optional
        Function of an :class:`Iteration`, called after each. It stops the solver by returning True.

    Examples
    --------
    >>> rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    >>> minimize(rosenbrock, [-1.2, 1.0]).x.round(6)
    array([1., 1.])
    >>> result = minimize(lambda p: p["a"] + p["b"], {"a": 1.0, "b": 1.0},
    ...     constr={"circle": lambda p: p["a"] ** 2 + p["b"] ** 2},
    ...     constr_bounds={"circle": (None, 2.0)})
    >>> result.success, {k: round(float(v), 6) for k, v in result.x.items()}
    (True, {'a': -1.0, 'b': -1.0})
    """
    solver = NlpSolver(obj, constr, static_argnames, method, options)
    given = args if isinstance(args, tuple) else (args,)
    return solver.solve(
        x0,
        *given,
        bounds=bounds,
        constr_bounds=constr_bounds,
        multipliers=multipliers,
        callback=callback,
    )

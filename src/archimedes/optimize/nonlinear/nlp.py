"""``minimize`` and ``nlp_solver``: nonlinear programs over trees of unknowns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable
from archimedes.errors import TraceError
from archimedes.function import ConvergenceError
from archimedes.function.implicit_functions import Fixed
from archimedes.function.recording_store import find_or_make, form_of
from archimedes.function.region_bodies import must_record
from archimedes.function.signatures import Signature
from archimedes.optimize.nonlinear.program import Constraints, ElementFunction, Program
from archimedes.optimize.problems.blocks import Evaluator
from archimedes.optimize.problems.results import Iteration, Multipliers, OptimizeResult
from archimedes.optimize.problems.sensitivity import record_solution
from archimedes.optimize.problems.tasks import Answer, Limits, Monitor, Settings, Task
from archimedes.optimize.problems.unknowns import as_unknowns, as_vector, read_limits
from archimedes.optimize.solvers.solver_table import find_solver, solve_task
from archimedes.typing import Array, Tree

__all__ = ["NlpSolver", "minimize", "nlp_solver"]

Callback = Callable[[Iteration], Any]


class NlpSolver:
    """A nonlinear program that was set up once; made by :func:`nlp_solver`.

    Parameters
    ----------
    obj : callable or list
        Objective ``obj(x, *args)``. A list of functions is added up; a function of many elements is
        an :class:`ElementFunction`.
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
        obj: Callable[..., Any] | Sequence[Callable[..., Any]],
        constr: Any = None,
        static_argnames: str | Sequence[str] | None = None,
        method: str = "ipm",
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        find_solver(method)
        self.obj = tuple(obj) if isinstance(obj, (list, tuple)) else (obj,)
        self.constr, self._constraints = constr, Constraints.read(constr)
        for term in self.obj or (obj,):
            remedy = "write minimize(f, x0), not minimize(f(x0), x0)"
            check_callable(term, "obj", "(or a list of functions to add)", remedy)
        first = self.obj[0]
        self.name = str(name or getattr(first, "__name__", "nlp"))
        self.method, self.options = method, dict(options or {})
        # The arguments are named as those of the first function are.
        function = first.func if isinstance(first, ElementFunction) else first
        self.signature = Signature(function, None, static_argnames)

    def __repr__(self) -> str:
        return f"<nlp_solver {self.name}, method {self.method!r}>"

    def __call__(self, x0: Tree, *args: Any, bounds: Any = None, constr_bounds: Any = None) -> Any:
        """Return the unknowns at the solution. If there is none, raise ConvergenceError.

        In recorded code the solver is called when the code runs; the result has derivatives in
        the arguments and limits, and is nan where there is no solution.
        """
        if must_record(x0, args, bounds, constr_bounds):
            return self._record(x0, args, bounds, constr_bounds)
        result = self.solve(x0, *args, bounds=bounds, constr_bounds=constr_bounds)
        if not result.success:
            raise ConvergenceError(f"{self.name}: {result.message}")
        return result.x

    def solve(
        self,
        x0: Tree,
        *args: Any,
        bounds: Any = None,
        constr_bounds: Any = None,
        multipliers: Multipliers | None = None,
        callback: Callback | None = None,
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
        if must_record(x0, args, bounds, constr_bounds):
            raise TraceError(
                "minimize and solve return a result with text and times, which cannot be part of a "
                "recorded function: make a solver outside, solver = arc.nlp_solver(f), and call "
                "solver(x0, *args) inside"
            )
        unknowns, args = as_unknowns(x0), self._fix(args)
        program = self.program(unknowns, args)
        limits = self._limits(program, unknowns, bounds, constr_bounds)
        start = tree.ravel(unknowns)[0] * 1.0
        task = self._task(program, start, args, limits)
        task.monitor.callback = callback
        if multipliers is not None:
            like = program.values_like
            task.lam_g = as_vector(multipliers.constr, like, 0.0, "multipliers.constr")
            task.lam_x = as_vector(multipliers.bounds, unknowns, 0.0, "multipliers.bounds")
        answer = solve_task(task, find_solver(self.method))
        return self._result(program, task, answer, time.perf_counter() - began)

    def _result(
        self, program: Program, task: Task, answer: Answer, seconds: float
    ) -> OptimizeResult:
        """Return an answer in the user's terms."""
        f, g = task.evaluator.values(answer.x)
        like = tree.ravel(program.values_like)[1] if program.constraints.names else lambda _: None
        evaluations, times = task.evaluator.summarize(seconds)
        return OptimizeResult(
            x=program.unravel(answer.x),
            fun=f,
            status=answer.status,
            multipliers=Multipliers(like(answer.lam_g), program.unravel(answer.lam_x)),
            iterations=answer.iterations,
            constr=like(g),
            residuals=program.measure_residuals(g, task.low, task.high),
            violation=task.violation(answer.x, g),
            evaluations=evaluations,
            times=times,
            solver=self.method,
            details=answer.details,
        )

    def _record(self, x0: Tree, args: tuple[Any, ...], bounds: Any, constr_bounds: Any) -> Any:
        """Return the unknowns at the solution, in recorded code."""
        start, unravel = tree.ravel(tree.map(lambda leaf: leaf * 1.0, x0))
        leaves, treedef = tree.flatten(self._fix(args))
        traced = [k for k, leaf in enumerate(leaves) if _is_number(leaf)]
        unknowns = tree.map(_zeros_like, x0)
        program = self.program(unknowns, treedef.unflatten(list(map(_zeros_like, leaves))))
        solver = find_solver(self.method)

        def join(p: list[Any]) -> Any:
            every = dict(enumerate(leaves)) | dict(zip(traced, p))
            return treedef.unflatten(list(every.values()))

        def run(x0: Array, p: list[Any], limits: Limits) -> Any:
            if solver.record is not None:
                settings = Settings.read(self.options, self.method)
                solution = solver.record(program, settings)(x0, limits, *join(p))
                parts = (solution.x, solution.lam_g, solution.lam_x)
                return tree.map(lambda v: np.where(solution.status < 10, v, np.nan), parts)
            task = self._task(program, x0, join(p), limits)
            answer = solve_task(task, solver)
            parts = (answer.x, answer.lam_g, answer.lam_x)
            return parts if answer.status.success else tree.map(lambda v: v * np.nan, parts)

        x = record_solution(
            run,
            lambda x, p: program.func(x, *join(p)),
            start,
            [leaves[k] for k in traced],
            self._limits(program, unknowns, bounds, constr_bounds),
            host=solver.record is None,
        )
        return unravel(x)

    def _fix(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Wrap the static arguments, so that they are part of the compiled program."""
        names = [*self.signature.positional[1:], *([None] * len(args))]
        static = self.signature.static
        return tuple(Fixed(a) if name in static else a for a, name in zip(args, names))

    def program(self, unknowns: Tree, args: tuple[Any, ...]) -> Program:
        """Return the problem for unknowns and arguments of this structure.

        Parameters
        ----------
        unknowns : tree
            Unknowns.
        args : tuple
            Further arguments of the functions.
        """
        constraints = self._constraints
        settings = (len(self.obj), constraints.names, self.name, form_of(unknowns), form_of(args))
        return find_or_make(
            "nonlinear program",
            (*self.obj, *constraints.functions),
            settings,
            lambda current: Program(current, constraints, unknowns, args, self.name),
            on_reuse=Program.compile_at_once,
        )

    def _limits(self, program: Program, unknowns: Tree, bounds: Any, constr_bounds: Any) -> Limits:
        return (
            *read_limits(bounds, unknowns, "bounds"),
            *self._constraints.limits(constr_bounds, program.values_like),
        )

    def _task(
        self, program: Program, start: np.ndarray, args: tuple[Any, ...], limits: Limits
    ) -> Task:
        settings = Settings.read(self.options, self.method)
        evaluator = Evaluator(program.blocks, program.structure, args)
        monitor = Monitor(None, program.unravel, settings.maxtime, settings.tol)
        start = np.clip(start, limits[0], limits[1])
        return Task(evaluator, start, *limits, settings, monitor, program=program)

    def __content__(self) -> tuple[Any, ...]:
        return (self.obj, self.constr, self.method, self.options, tuple(self.signature.static))


def _is_number(leaf: object) -> bool:
    """Return whether a leaf is traced in recorded code."""
    return isinstance(leaf, (int, float, np.ndarray, np.generic)) and not isinstance(leaf, bool)


def _zeros_like(leaf: Any) -> Any:
    """Return zeros of the shape and dtype of a leaf, which may be traced; others as they are."""
    if not _is_number(leaf):
        return leaf
    return np.zeros(np.shape(leaf), getattr(leaf, "dtype", type(leaf)))[()]


def nlp_solver(
    obj: Callable[..., Any] | Sequence[Callable[..., Any]],
    constr: Any = None,
    static_argnames: str | Sequence[str] | None = None,
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
        Objective ``obj(x, *args)``. A list of functions is added up; a function of many elements is
        an :class:`ElementFunction`.
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
    obj: Callable[..., Any] | Sequence[Callable[..., Any]],
    x0: Tree,
    args: Any = (),
    static_argnames: str | Sequence[str] | None = None,
    constr: Any = None,
    bounds: Any = None,
    constr_bounds: Any = None,
    method: str = "ipm",
    options: Mapping[str, Any] | None = None,
    *,
    multipliers: Multipliers | None = None,
    callback: Callback | None = None,
) -> OptimizeResult:
    """Minimize ``obj(x, *args)`` over x, any tree of numbers, with bounds and constraints.

    Gradients, sparse Jacobians and Hessians are exact. Wrong arguments raise an error; what the
    numbers do is in ``success``, ``status`` and ``message`` of the result.

    Parameters
    ----------
    obj : callable or list
        Objective ``obj(x, *args)``. A list of functions is added up; a function of many elements is
        an :class:`ElementFunction`.
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
    limits = {"bounds": bounds, "constr_bounds": constr_bounds}
    args = args if isinstance(args, tuple) else (args,)
    return solver.solve(x0, *args, **limits, multipliers=multipliers, callback=callback)

"""Solving a task with IPOPT (Waechter, Biegler, Math. Program. 106, 2006), by its C interface.

The library (IpStdCInterface.h) comes from whichever package brings it; docs/decisions/022-ipopt.md
says why it is called this way.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int, c_void_p
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.installation import install_command
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.solver_table import Solver
from archimedes.system.c_library import find_library

#: IPOPT with MUMPS must not run twice at a time; a function being minimised may minimise.
_lock = threading.RLock()

_NUMBERS, _INDICES = POINTER(c_double), POINTER(c_int)
_POINT = (c_int, c_int, _NUMBERS, c_bool)
_MATRIX = (c_int, _INDICES, _INDICES, _NUMBERS, c_void_p)
#: Types of the functions that IPOPT calls, in the order in which it is given them; ``Index`` is
#: int. The last one is called after each iteration.
_CALLBACKS = {
    "f": CFUNCTYPE(*_POINT, _NUMBERS, c_void_p),
    "g": CFUNCTYPE(*_POINT, c_int, _NUMBERS, c_void_p),
    "grad_f": CFUNCTYPE(*_POINT, _NUMBERS, c_void_p),
    "jac_g": CFUNCTYPE(*_POINT, c_int, *_MATRIX),
    "h": CFUNCTYPE(*_POINT, c_double, c_int, _NUMBERS, c_bool, *_MATRIX),
    "intermediate": CFUNCTYPE(*(c_int, c_int, c_int), *(c_double,) * 8, *(c_int, c_void_p)),
}
_PROBLEM = (c_int, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int, c_int, c_int)
#: Results and arguments of IPOPT's functions; problems and arrays are addresses.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "CreateIpoptProblem": (c_void_p, [*_PROBLEM, *list(_CALLBACKS.values())[:-1]]),
    "FreeIpoptProblem": (None, [c_void_p]),
    "AddIpoptStrOption": (c_bool, [c_void_p, c_char_p, c_char_p]),
    "AddIpoptNumOption": (c_bool, [c_void_p, c_char_p, c_double]),
    "AddIpoptIntOption": (c_bool, [c_void_p, c_char_p, c_int]),
    "SetIntermediateCallback": (c_bool, [c_void_p, _CALLBACKS["intermediate"]]),
    "IpoptSolve": (c_int, [c_void_p] * 8),
}
#: IPOPT's return codes (IpReturnCodes_inc.h): what they mean here, and IPOPT's words.
_ENDS = {
    0: (Status.SOLVED, ""),
    1: (Status.ACCEPTABLE, "solved to acceptable level"),
    2: (Status.INFEASIBLE, "converged to a point of local infeasibility"),
    3: (Status.STALLED, "search direction becomes too small"),
    4: (Status.UNBOUNDED, "iterates diverge"),
    5: (Status.INTERRUPTED, ""),
    6: (Status.SOLVED, "feasible point of a square problem"),
    -1: (Status.ITERATION_LIMIT, ""),
    -2: (Status.INFEASIBLE, "restoration failed"),
    -3: (Status.STALLED, "error in step computation"),
    -4: (Status.TIME_LIMIT, ""),
    -5: (Status.TIME_LIMIT, ""),
    -10: (Status.OVERDETERMINED, ""),
    -11: (Status.FAILED, "invalid problem definition"),
    -12: (Status.FAILED, "invalid option"),
    -13: (Status.NOT_FINITE, ""),
    -102: (Status.FAILED, "out of memory"),
}
#: Silent; limits are relaxed less than by default (1e-8), so that points satisfy them.
_DEFAULTS = {
    "print_level": 0,
    "sb": "yes",
    "bound_relax_factor": 1e-10,
    # A cost that still falls is not solved, however small its slopes are.
    "acceptable_obj_change_tol": 1e-6,
}


#: Packages that bring IPOPT, and where in them it is.
_WHEELS = {
    "casadi": ("libipopt.so.3", "libipopt.3.dylib", "libipopt-3.dll", "libipopt.so*"),
    "ipyopt": ("../ipyopt.libs/libipopt*", ".dylibs/libipopt*"),
}


def _candidates() -> Iterator[str]:
    """Where IPOPT may be: what the user says, wheels that bundle it, the system."""
    yield from filter(None, [os.environ.get("ARCHIMEDES_IPOPT")])
    for package, patterns in _WHEELS.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for pattern in patterns:
            paths = sorted(Path(spec.origin).parent.glob(pattern))
            if paths and package == "ipyopt":
                importlib.import_module("ipyopt")  # brings what the library stands on
            yield from map(str, paths[:1])
    yield from filter(None, [find_library("ipopt")])


@cache
def library() -> ctypes.CDLL:
    """Return the loaded library, its functions typed; ImportError says what to install."""
    for path in _candidates():
        try:
            lib = ctypes.CDLL(path)
        except OSError:
            continue
        if hasattr(lib, "CreateIpoptProblem"):
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(lib, name)
                function.restype, function.argtypes = result, arguments
            return lib
    raise ImportError(
        f"method='ipopt' needs IPOPT, which is not installed: {install_command('optimize')}. "
        "Without it, use method='ipm', the interior-point method of this package."
    )


#: NumPy takes a while to find out what a type of ctypes is.
_DTYPES = {kind: np.dtype(kind) for kind in (c_double, c_int)}


def _view(numbers: Any, size: int) -> np.ndarray:
    """Return an array on numbers of IPOPT's, given by a pointer of ctypes."""
    kind = numbers._type_
    return np.frombuffer(ctypes.cast(numbers, POINTER(kind * size)).contents, _DTYPES[kind])


class _Calls:
    """The functions IPOPT calls. What they raise stops the solve and is raised after it."""

    def __init__(self, task: Task) -> None:
        self.task, self.evaluator = task, task.evaluator
        self.structure = task.evaluator.structure
        self.at = task.start
        self.entries = [kind(self._guard(getattr(self, name))) for name, kind in _CALLBACKS.items()]

    def _guard(self, call: Callable[..., bool]) -> Callable[..., int]:
        def run(*arguments: Any) -> int:
            if self.task.monitor.stopped is not None:
                return 0
            try:
                return int(call(*arguments))
            except BaseException as error:
                # No exception may pass through C code: it is raised after IPOPT has returned.
                self.task.monitor.fail(error)
                return 0

        return run

    def f(self, n: int, x: Any, new: bool, out: Any, _: object) -> bool:
        value = self.evaluator.values(_view(x, n))[0]
        out[0] = value
        return isfinite(value)

    def g(self, n: int, x: Any, new: bool, m: int, out: Any, _: object) -> bool:
        return not m or self._put(self.evaluator.values(_view(x, n))[1], out)

    def grad_f(self, n: int, x: Any, new: bool, out: Any, _: object) -> bool:
        point = _view(x, n)
        self.at = point.copy()
        return self._put(self.evaluator.slopes(point)[0], out)

    def jac_g(self, n: int, x: Any, new: bool, m: int, k: int, *rest: Any) -> bool:
        rows, columns, out, _ = rest
        if not out:
            where = (self.structure.jac_rows, rows), (self.structure.jac_columns, columns)
            return all(self._put(*pair) for pair in where)
        return self._put(self.evaluator.slopes(_view(x, n))[1], out)

    def h(self, n: int, x: Any, new: bool, sigma: float, m: int, lam: Any, *rest: Any) -> bool:
        _, _, rows, columns, out, _ = rest
        if not out:
            where = zip(self.structure.hess_pairs, (rows, columns))
            return all(self._put(*pair) for pair in where)
        weights = _view(lam, m) if m else np.zeros(self.structure.m)
        return self._put(self.evaluator.curvature(_view(x, n), sigma, weights), out)

    def _put(self, values: np.ndarray, out: Any) -> bool:
        """Write values where IPOPT wants them; returns whether they are finite."""
        if values.size:
            _view(out, values.size)[:] = values
        return bool(np.isfinite(values).all())

    def intermediate(self, mode: int, number: int, fun: float, *_: object) -> bool:
        f, g = self.evaluator.values(self.at)
        return self.task.monitor.after(number, self.at, f, self.task.violation(self.at, g))


def _options(task: Task) -> dict[str, Any]:
    settings = task.settings
    options: dict[str, Any] = {**_DEFAULTS, "tol": settings.tol}
    if settings.maxiter is not None:
        options["max_iter"] = settings.maxiter
    if task.lam_g is not None:
        pushes = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac")
        options |= {f"warm_start_{name}": 1e-9 for name in (*pushes, "mult_bound_push")}
        options |= {"warm_start_init_point": "yes", "mu_init": max(settings.tol, 1e-9)}
    return {**options, **settings.more}


def _set_option(lib: ctypes.CDLL, problem: int, name: str, value: object) -> None:
    key, accepted = name.encode(), False
    value = ("no", "yes")[value] if isinstance(value, bool) else value
    if isinstance(value, str):
        accepted = lib.AddIpoptStrOption(problem, key, value.encode())
    elif isinstance(value, (int, np.integer)):
        accepted = lib.AddIpoptIntOption(problem, key, int(value))
    if not accepted and isinstance(value, (int, float, np.number)):
        accepted = lib.AddIpoptNumOption(problem, key, float(value))
    if not accepted:
        raise ValueError(
            f"options: IPOPT takes no {name!r} = {value!r}; besides 'maxiter', 'maxtime' and "
            "'tol' its own options can be given, see its list of options"
        )


def solve(task: Task, solver: Solver) -> Answer:
    """Minimise with IPOPT; raises what the functions or the callback raised."""
    lib, monitor = library(), task.monitor
    calls, structure = _Calls(task), task.evaluator.structure
    n, entries = task.start.size, len(structure.jac_rows)
    # IPOPT takes no constraints that depend on nothing.
    m = task.low.size if entries else 0
    limits = [np.ascontiguousarray(v) for v in (task.lower, task.upper, task.low, task.high)]
    lower, upper, low, high = (v.ctypes.data for v in limits)
    x, g, f = task.start.copy(), np.zeros(m), np.zeros(1)
    lam_g = np.zeros(task.low.size) if task.lam_g is None else task.lam_g.copy()
    lam_x = np.zeros(n) if task.lam_x is None else task.lam_x
    z_low, z_high = np.maximum(-lam_x, 0.0), np.maximum(lam_x, 0.0)
    with _lock:
        problem = lib.CreateIpoptProblem(
            *(n, lower, upper, m, low, high, entries, len(structure.hess_pairs[0]), 0),
            *calls.entries[:-1],
        )
        if not problem:
            raise ValueError("IPOPT refused the problem")
        try:
            for name, value in _options(task).items():
                _set_option(lib, problem, name, value)
            lib.SetIntermediateCallback(problem, calls.entries[-1])
            outs = (a.ctypes.data for a in (x, g, f, lam_g, z_low, z_high))
            with monitor.note_interrupts():
                code = lib.IpoptSolve(problem, *outs, None)
        finally:
            lib.FreeIpoptProblem(problem)
    if monitor.error is not None:
        raise monitor.error
    status, words = _ENDS.get(code, (Status.FAILED, f"return code {code}"))
    if monitor.stopped is not None:
        status, words = monitor.stopped, ""
        x = x if monitor.best is None else monitor.best
    return Answer(x, lam_g, z_high - z_low, status, monitor.iterations, words)

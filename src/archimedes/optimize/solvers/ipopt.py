"""IPOPT's C interface (IpStdCInterface.h), from whichever package brings the library.

See docs/decisions/022-ipopt.md for why it is called this way.

Solving a task with IPOPT (Waechter, Biegler, Math. Program. 106, 2006).
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
from archimedes.optimize.problems.blocks import all_finite
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.solver_table import Solver
from archimedes.system.c_library import find_library

__all__ = ["Callbacks", "library", "solve", "solving"]

#: IPOPT with MUMPS must not run twice at a time; a function being minimised may minimise.
solving = threading.RLock()

MISSING = (
    f"method='ipopt' needs IPOPT, which is not installed: {install_command('optimize')}. Without "
    "it, use method='ipm', the interior-point method of this package."
)


_NUMBERS, _INDICES = POINTER(c_double), POINTER(c_int)


class Callbacks:
    """Types of the functions that IPOPT calls; ``Index`` is int."""

    f = CFUNCTYPE(c_int, c_int, _NUMBERS, c_bool, _NUMBERS, c_void_p)
    grad_f = CFUNCTYPE(c_int, c_int, _NUMBERS, c_bool, _NUMBERS, c_void_p)
    g = CFUNCTYPE(c_int, c_int, _NUMBERS, c_bool, c_int, _NUMBERS, c_void_p)
    jac_g = CFUNCTYPE(
        *(c_int, c_int, _NUMBERS, c_bool, c_int, c_int, _INDICES, _INDICES, _NUMBERS, c_void_p)
    )
    h = CFUNCTYPE(
        *(c_int, c_int, _NUMBERS, c_bool, c_double, c_int, _NUMBERS, c_bool, c_int),
        *(_INDICES, _INDICES, _NUMBERS, c_void_p),
    )
    intermediate = CFUNCTYPE(*(c_int, c_int, c_int), *(c_double,) * 8, *(c_int, c_void_p))


def _candidates() -> Iterator[str]:
    """Where IPOPT may be: what the user says, wheels that bundle it, the system."""
    said = os.environ.get("ARCHIMEDES_IPOPT")
    if said:
        yield said
    for package, patterns in (
        ("casadi", ("libipopt.so.3", "libipopt.3.dylib", "libipopt-3.dll", "libipopt.so*")),
        ("ipyopt", ("../ipyopt.libs/libipopt*", ".dylibs/libipopt*")),
    ):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for pattern in patterns:
            found = sorted(folder.glob(pattern))
            if found and package == "ipyopt":
                importlib.import_module("ipyopt")  # brings what the library stands on
            yield from map(str, found[:1])
    found_in_system = find_library("ipopt")
    if found_in_system:
        yield found_in_system


@cache
def library() -> ctypes.CDLL:
    """Return the loaded library, its functions typed; ImportError says what to install."""
    for path in _candidates():
        try:
            lib = ctypes.CDLL(path)
        except OSError:
            continue
        if hasattr(lib, "CreateIpoptProblem"):
            return _typed(lib)
    raise ImportError(MISSING)


def _typed(lib: ctypes.CDLL) -> ctypes.CDLL:
    numbers, handle = c_void_p, c_void_p
    lib.CreateIpoptProblem.restype = handle
    lib.CreateIpoptProblem.argtypes = [
        *(c_int, numbers, numbers, c_int, numbers, numbers, c_int, c_int, c_int),
        *(Callbacks.f, Callbacks.g, Callbacks.grad_f, Callbacks.jac_g, Callbacks.h),
    ]
    lib.FreeIpoptProblem.restype = None
    lib.FreeIpoptProblem.argtypes = [handle]
    for name, kind in (("Str", c_char_p), ("Num", c_double), ("Int", c_int)):
        add = getattr(lib, f"AddIpopt{name}Option")
        add.restype, add.argtypes = c_bool, [handle, c_char_p, kind]
    lib.SetIntermediateCallback.restype = c_bool
    lib.SetIntermediateCallback.argtypes = [handle, Callbacks.intermediate]
    lib.IpoptSolve.restype = c_int
    lib.IpoptSolve.argtypes = [handle, *(numbers,) * 6, c_void_p]
    return lib


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


#: NumPy takes a while to find out what a type of ctypes is.
_DTYPES = {kind: np.dtype(kind) for kind in (ctypes.c_double, ctypes.c_int)}


def _view(numbers: Any, size: int) -> np.ndarray:
    """Return an array on numbers of IPOPT's, given by a pointer of ctypes."""
    kind = numbers._type_
    memory = ctypes.cast(numbers, ctypes.POINTER(kind * size)).contents
    return np.frombuffer(memory, _DTYPES[kind])


class _Calls:
    """The functions IPOPT calls. What they raise stops the solve and is raised after it."""

    def __init__(self, task: Task) -> None:
        self.task, self.evaluator = task, task.evaluator
        self.structure = task.evaluator.structure
        self.at = task.start
        made = {name: self._guarded(getattr(self, name)) for name in ("f", "g", "grad_f")}
        made |= {name: self._guarded(getattr(self, name)) for name in ("jac_g", "h")}
        made["intermediate"] = self._guarded(self.intermediate)
        self.entries = {name: getattr(Callbacks, name)(call) for name, call in made.items()}

    def _guarded(self, call: Callable[..., bool]) -> Callable[..., int]:
        def run(*given: Any) -> int:
            if self.task.monitor.stopped is not None:
                return 0
            try:
                return int(call(*given))
            except BaseException as error:
                # Nothing may pass through C: it is kept, and raised when IPOPT has returned.
                self.task.monitor.failed(error)
                return 0

        return run

    def f(self, n: int, x: Any, new: bool, out: Any, _: Any) -> bool:
        value = self.evaluator.values(_view(x, n))[0]
        out[0] = value
        return isfinite(value)

    def g(self, n: int, x: Any, new: bool, m: int, out: Any, _: Any) -> bool:
        if m:
            values = self.evaluator.values(_view(x, n))[1]
            _view(out, m)[:] = values
            return all_finite(values)
        return True

    def grad_f(self, n: int, x: Any, new: bool, out: Any, _: Any) -> bool:
        point = _view(x, n)
        self.at = point.copy()
        gradient = self.evaluator.slopes(point)[0]
        _view(out, n)[:] = gradient
        return all_finite(gradient)

    def jac_g(self, n: int, x: Any, new: bool, m: int, k: int, i: Any, j: Any, out: Any, _: Any):
        if not out:
            return self._places(k, i, j, self.structure.jac_rows, self.structure.jac_columns)
        entries = self.evaluator.slopes(_view(x, n))[1]
        if k:
            _view(out, k)[:] = entries
        return all_finite(entries)

    def h(
        *given: Any,
    ) -> bool:
        self, n, x, _, sigma, m, lam, _, k, i, j, out, _ = given
        if not out:
            return self._places(k, i, j, self.structure.hess_rows, self.structure.hess_columns)
        weights = _view(lam, m) if m else np.zeros(self.structure.m)
        entries = self.evaluator.curvature(_view(x, n), sigma, weights)
        if k:
            _view(out, k)[:] = entries
        return all_finite(entries)

    def _places(self, k: int, i: Any, j: Any, rows: np.ndarray, columns: np.ndarray) -> bool:
        if k:
            _view(i, k)[:] = rows
            _view(j, k)[:] = columns
        return True

    def intermediate(self, mode: int, number: int, fun: float, *_: Any) -> bool:
        f, g = self.evaluator.values(self.at)
        return self.task.monitor.after(number, self.at, f, self.task.violation(self.at, g))


def _options(task: Task) -> dict[str, Any]:
    settings = task.settings
    options: dict[str, Any] = {**_DEFAULTS, "tol": settings.tol}
    if settings.maxiter is not None:
        options["max_iter"] = settings.maxiter
    if task.lam_g is not None:
        options |= {
            "warm_start_init_point": "yes",
            "warm_start_bound_push": 1e-9,
            "warm_start_bound_frac": 1e-9,
            "warm_start_slack_bound_push": 1e-9,
            "warm_start_slack_bound_frac": 1e-9,
            "warm_start_mult_bound_push": 1e-9,
            "mu_init": max(settings.tol, 1e-9),
        }
    return {**options, **settings.more}


def _set_options(lib: ctypes.CDLL, problem: Any, options: dict[str, Any]) -> None:
    for name, value in options.items():
        key = name.encode()
        if isinstance(value, (bool, str)):
            text = ("yes" if value else "no") if isinstance(value, bool) else value
            accepted = lib.AddIpoptStrOption(problem, key, text.encode())
        elif isinstance(value, (int, np.integer)):
            accepted = lib.AddIpoptIntOption(problem, key, int(value))
            accepted = accepted or lib.AddIpoptNumOption(problem, key, float(value))
        elif isinstance(value, (float, np.floating)):
            accepted = lib.AddIpoptNumOption(problem, key, float(value))
        else:
            accepted = False
        if not accepted:
            raise ValueError(
                f"options: IPOPT takes no {name!r} = {value!r}; besides 'maxiter', 'maxtime' and "
                "'tol' its own options can be given, see its list of options"
            )


def _pointer(array: np.ndarray) -> int:
    return array.ctypes.data


def solve(task: Task, solver: Solver) -> Answer:
    """Minimise with IPOPT; raises what the functions or the callback raised."""
    lib = library()
    n, m = task.start.size, task.low.size
    if not len(task.evaluator.structure.jac_rows):
        m = 0  # constraints that depend on nothing; IPOPT takes none such
    calls, structure = _Calls(task), task.evaluator.structure
    limits = [np.ascontiguousarray(v) for v in (task.lower, task.upper, task.low, task.high)]
    x, g, f = task.start.copy(), np.zeros(m), np.zeros(1)
    lam_g = np.zeros(task.low.size) if task.lam_g is None else task.lam_g.copy()
    lam_x = np.zeros(n) if task.lam_x is None else task.lam_x
    z_low, z_high = np.maximum(-lam_x, 0.0), np.maximum(lam_x, 0.0)
    with solving:
        problem = lib.CreateIpoptProblem(
            *(n, _pointer(limits[0]), _pointer(limits[1])),
            *(m, _pointer(limits[2]), _pointer(limits[3])),
            *(len(structure.jac_rows), len(structure.hess_rows), 0),
            *(calls.entries[name] for name in ("f", "g", "grad_f", "jac_g", "h")),
        )
        if not problem:
            raise ValueError("IPOPT refused the problem")
        try:
            _set_options(lib, problem, _options(task))
            lib.SetIntermediateCallback(problem, calls.entries["intermediate"])
            outs = (x, g, f, lam_g, z_low, z_high)
            with task.monitor.note_interrupts():
                code = lib.IpoptSolve(problem, *(_pointer(a) for a in outs), None)
        finally:
            lib.FreeIpoptProblem(problem)
    return _answer(task, code, x, lam_g, z_high - z_low)


def _answer(task: Task, code: int, x: np.ndarray, lam_g: np.ndarray, lam_x: np.ndarray) -> Answer:
    monitor = task.monitor
    if monitor.error is not None:
        raise monitor.error
    status, words = _ENDS.get(code, (Status.FAILED, f"return code {code}"))
    if monitor.stopped is not None:
        status, words = monitor.stopped, ""
        x = x if monitor.best is None else monitor.best
    return Answer(x, lam_g, lam_x, status, monitor.iterations, words)

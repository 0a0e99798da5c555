"""What a solver is given and what it gives back, as plain vectors."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from archimedes.function import Compiled
from archimedes.optimize.problems.blocks import Evaluator
from archimedes.optimize.problems.results import Iteration, Status
from archimedes.records import record

#: Lower and upper limits of the unknowns, then of the constraints.
Limits = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@record
class Settings:
    """Options every solver understands; ``more`` are the solver's own."""

    maxiter: int | None = None
    maxtime: float | None = None
    tol: float = 1e-8
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, options: Mapping[str, Any] | None, solver: str) -> Settings:
        """Read ``options``; a solver's own may stand in ``{"ipopt": {...}}`` or as "ipopt.name"."""
        own: dict[str, Any] = {}
        for name, value in dict(options or {}).items():
            if name.lower() == solver.lower() and isinstance(value, Mapping):
                own.update(value)
            else:
                own[name.removeprefix(f"{solver}.")] = value
        limits = {name: own.pop(name, None) for name in ("maxiter", "maxtime", "tol")}
        for name, value in limits.items():
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if value is not None and not (number and value > 0):
                raise ValueError(f"options[{name!r}] = {value!r} must be a positive number")
        maxiter, maxtime, tol = limits.values()
        return cls(maxiter and int(maxiter), maxtime, float(tol or 1e-8), own)

    def after(self, iterations: int) -> Settings | None:
        """Return the settings for going on after so many iterations, None if none are left."""
        left = None if self.maxiter is None else self.maxiter - iterations
        return None if left is not None and left <= 0 else replace(self, maxiter=left)


class RecordedProgram(Protocol):
    """A problem as one function ``func(x, *args)`` = [f, *g] of vectors, in recorded code."""

    name: str
    size: int
    #: What solvers have recorded of it.
    kernels: dict[Hashable, Compiled]

    def func(self, x: np.ndarray, *args: Any) -> np.ndarray:
        """Return [f, *g]."""


@dataclass(eq=False, repr=False)
class Task:
    """Minimise f with lower <= x <= upper and low <= g <= high, from ``start``.

    ``lam_g`` and ``lam_x`` are multipliers to start from, or None; ``program`` is the problem as
    one function, where there is one. ``order`` (n,) are positions of the unknowns along a chain
    (time), nan for those that touch everything.
    """

    evaluator: Evaluator
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    low: np.ndarray
    high: np.ndarray
    settings: Settings
    monitor: Monitor
    lam_g: np.ndarray | None = None
    lam_x: np.ndarray | None = None
    program: RecordedProgram | None = None
    order: np.ndarray | None = None

    def violation(self, x: np.ndarray, g: np.ndarray | None = None) -> float:
        """Return the largest violation of a constraint or bound at x, where they are ``g``."""
        g = self.evaluator.values(x)[1] if g is None else g
        return max(violation(g, self.low, self.high), violation(x, self.lower, self.upper))

    def answer(self, x: np.ndarray, status: Status, details: str = "") -> Answer:
        """Return an answer without multipliers."""
        none = (np.zeros(self.low.size), np.zeros(x.size))
        return Answer(x, *none, status, self.monitor.iterations, details)


@dataclass(eq=False, repr=False)
class Answer:
    """How a solver ended; lam_x is positive at upper bounds, negative at lower ones."""

    x: np.ndarray
    lam_g: np.ndarray
    lam_x: np.ndarray
    status: Status
    iterations: int
    details: str = ""


def violation(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Return by how much values leave their limits at most; nan counts as infinite."""
    if not values.size:
        return 0.0
    off = float(np.maximum(low - values, values - high).max())  # nan if one is nan
    return np.inf if off != off else max(off, 0.0)


class Monitor:
    """Follows the iterations: limits of time, the user's callback, the best point so far."""

    def __init__(
        self,
        callback: Callable[[Iteration], Any] | None,
        unravel: Callable[[np.ndarray], Any],
        maxtime: float | None,
        tol: float,
    ) -> None:
        self.callback, self.unravel, self.maxtime, self.tol = callback, unravel, maxtime, tol
        self.began = time.perf_counter()
        #: Iterations so far, and those of earlier attempts at the same task.
        self.iterations = self.before = 0
        #: Why the solver was told to stop, and what a callback or function raised.
        self.stopped: Status | None = None
        self.error: BaseException | None = None
        self.best: np.ndarray | None = None
        #: Whether the objective falls without end, asked at each iteration.
        self.is_unbounded: Callable[[int, np.ndarray, float, float], bool] | None = None
        self._rank = (np.inf, np.inf)

    def fail(self, error: BaseException) -> None:
        """Note an exception that was raised during the solve, and have the solver stop."""
        self.stopped = Status.INTERRUPTED
        if not isinstance(error, KeyboardInterrupt):
            self.error = self.error or error

    def after(self, number: int, x: np.ndarray, fun: float, violation: float) -> bool:
        """Note an iteration; return whether the solver shall go on."""
        self.iterations = number
        self.compare(x, fun, violation)
        if self.stopped is None and self._wants_stop(self.before + number, x, fun, violation):
            self.stopped = Status.INTERRUPTED
        if self.stopped is None and self.is_late():
            self.stopped = Status.TIME_LIMIT
        unbounded = self.is_unbounded
        if self.stopped is None and unbounded and unbounded(number, x, fun, violation):
            self.stopped = Status.UNBOUNDED
        return self.stopped is None

    def compare(self, x: np.ndarray, fun: float, violation: float) -> None:
        """Keep a point if it is the best so far."""
        rank = (max(violation - self.tol, 0.0), fun if np.isfinite(fun) else np.inf)
        if self.best is None or rank <= self._rank:
            self.best, self._rank = x.copy(), rank

    @contextmanager
    def note_interrupts(self) -> Iterator[None]:
        """Have Ctrl-C tell the monitor to stop; pressed again, it raises as ever.

        Python raises KeyboardInterrupt wherever the main thread happens to be, which may be in a
        callback of foreign code, before anything there can catch it. A handler that the user has
        set stays.
        """
        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def note(*_: object) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.fail(KeyboardInterrupt())

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def is_late(self) -> bool:
        """Return whether the limit of time has passed."""
        return self.maxtime is not None and time.perf_counter() - self.began > self.maxtime

    def _wants_stop(self, number: int, x: np.ndarray, fun: float, violation: float) -> bool:
        if self.callback is None:
            return False
        try:
            now = Iteration(number, self.unravel(x.copy()), fun, violation)
            return self.callback(now) is True
        except StopIteration:
            return True
        except KeyboardInterrupt as stop:
            self.fail(stop)
            return True

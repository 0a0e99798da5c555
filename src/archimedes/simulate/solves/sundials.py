"""SUNDIALS, an extra: CVODE as ``method="cvode"``, IDA as ``method="ida"``, in ``solve_dae`` too.

The solvers are those of scikit-sundae, imported at the first use; ours are the right-hand side
and its Jacobian, compiled, as callbacks. Source: A. C. Hindmarsh et al., "SUNDIALS: suite of
nonlinear and differential/algebraic equation solvers", ACM TOMS 31 (2005) 363-396.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.installation import install_command
from archimedes.simulate.methods.method_table import method_outside, refuse_events, register
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import Result
from archimedes.simulate.statuses import (
    FINISHED,
    INTERRUPTED,
    NON_FINITE,
    RUNNING,
    STEP_UNDERFLOW,
    TOO_MANY_STEPS,
)
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.stepwise import Stepwise
from archimedes.simulate.stepping.trial_step import Setup

__all__ = ["CVODE", "IDA", "drive_residual"]

#: Steps between two looks at whether the solver still moves.
PATIENCE = 2000
_TOO_MUCH_WORK = -1
#: How their return values read as ours; other negative ones are failures of a step.
_STATUS = {_TOO_MUCH_WORK: TOO_MANY_STEPS, -8: NON_FINITE, -9: NON_FINITE, -10: NON_FINITE}


def _load(name: str) -> Any:
    """Import ``sksundae.<name>``; the error says how to install it."""
    try:
        return import_module(f"sksundae.{name}")
    except ImportError as error:
        raise ArchimedesError(
            f"method={name!r} needs scikit-sundae, which is not installed: "
            f"{install_command('sundials')}. Without it, use a method of this package: 'bdf', or "
            "'rodas5p' for small stiff systems"
        ) from error


@dataclass
class _March:
    """Steps a SUNDIALS solver through the span, staying interruptible."""

    solver: Any
    name: str
    setup: Setup
    max_steps: int
    monitor: Monitor | None

    def __post_init__(self) -> None:
        self.status = RUNNING
        self.made = 0
        self.t = self.setup.t_start
        self.last: Any = None
        self.rows: list[tuple[float, np.ndarray]] = []
        self.sign = 1.0 if self.setup.t_end > self.setup.t_start else -1.0

    def to(self, time: float, kind: str) -> Any:
        """Go to ``time``, or one step towards it; None where the solver failed."""
        before = self.t
        found = self.solver.step(float(time), kind, float(self.setup.t_end))
        self.made += 1 if kind == "onestep" else 0
        while int(found.status) == _TOO_MUCH_WORK and self.made + PATIENCE < self.max_steps:
            # It goes on where it is, unless it cannot move: SUNDIALS would try for ever.
            if found.t == before:
                break
            before, self.made = found.t, self.made + PATIENCE
            found = self.solver.step(float(time), kind, float(self.setup.t_end))
        if found.t == before:
            self.status = STEP_UNDERFLOW
            return None
        if not found.success:
            self.status = _STATUS.get(int(found.status), STEP_UNDERFLOW)
            return None
        if not np.isfinite(found.y).all():
            self.status = NON_FINITE
            return None
        self.t, self.last = found.t, found
        if self.monitor is not None:
            span = self.setup.t_end - self.setup.t_start
            self.monitor(float((found.t - self.setup.t_start) / span), float(found.t))
        return found

    def stats(self) -> dict[str, Any]:
        """Count what the solve cost."""
        last = self.last
        return {
            "method": self.name,
            "evaluations": 0 if last is None else int(last.nfev),
            "jacobians": 0 if last is None else int(last.njev),
        }

    def every_step(self, first: np.ndarray) -> None:
        """Collect all steps."""
        self.rows.append((float(self.setup.t_start), first))
        while self.status == RUNNING:
            found = self.to(self.setup.t_end, "onestep")
            if found is None:
                break
            self.rows.append((float(found.t), found.y))
            if self.sign * (found.t - self.setup.t_end) >= 0.0:
                self.status = FINISHED
            elif self.made >= self.max_steps:
                self.status = TOO_MANY_STEPS

    def at_times(self, first: np.ndarray, times: np.ndarray) -> None:
        """Collect the states at ``times``."""
        at, x = float(self.setup.t_start), first
        for time in times.tolist():
            if time != at:
                found = self.to(time, "normal")
                if found is None:
                    return
                at, x = time, found.y
            self.rows.append((at, x))
        self.status = FINISHED


def _driven(
    solver: Any,
    name: str,
    begun: Any,
    setup: Setup,
    times: np.ndarray | None,
    max_steps: int,
    monitor: Monitor | None,
) -> Result:
    march = _March(solver, name, setup, max_steps, monitor)
    first = np.array(begun.y)
    try:
        if times is None:
            march.every_step(first)
        else:
            march.at_times(first, times)
    except KeyboardInterrupt:
        march.status = INTERRUPTED
    t = np.array([row[0] for row in march.rows])
    x = np.array([row[1] for row in march.rows]).reshape(len(t), first.size)
    run = SimpleNamespace(t=float(march.t), accepted=march.made, rejected=0)
    return Result(t[None], x[None], [len(t)], run, [march.status], stats=march.stats())  # type: ignore[arg-type]


def _options(setup: Setup, max_steps: int) -> dict[str, Any]:
    """Return the options that CVODE and IDA share; their relative tolerance is one number."""
    return {
        "rtol": float(np.min(setup.rtol)),
        "atol": np.array(setup.atol, dtype=np.float64),
        "first_step": float(setup.h),
        "max_step": 0.0 if np.isinf(setup.max_step) else float(setup.max_step),
        "max_num_steps": min(PATIENCE, int(max_steps)),
        "max_conv_fails": 50,
    }


def drive_residual(
    residual: Callable[..., Any],
    jacobian: Callable[..., Any],
    algebraic: np.ndarray,
    setup: Setup,
    x0: np.ndarray,
    xdot0: np.ndarray,
    times: np.ndarray | None,
    max_steps: int,
    monitor: Monitor | None,
) -> Result:
    """Solve ``residual(t, x, xdot) = 0`` with IDA from a consistent start.

    ``jacobian(t, x, xdot, c)`` is dF/dx + c dF/dxdot; ``algebraic`` (n,) says whose derivative
    does not appear.
    """

    def fill(t: float, x: Any, xdot: Any, out: Any) -> None:
        out[:] = residual(t, x, xdot)

    def fill_jacobian(t: float, x: Any, xdot: Any, res: Any, c: float, out: Any) -> None:
        out[:] = jacobian(t, x, xdot, c)

    options = _options(setup, max_steps)
    if algebraic.any():
        options["algebraic_idx"] = np.flatnonzero(algebraic).tolist()
    solver = _load("ida").IDA(fill, jacfn=fill_jacobian, **options)
    begun = solver.init_step(float(setup.t_start), x0, xdot0)
    return _driven(solver, "ida", begun, setup, times, max_steps, monitor)


def _dense(kernels: Kernels, args: tuple[Any, ...]) -> dict[str, Any]:
    """Return the options for a Jacobian with all its elements."""
    jacobian = kernels.jacobian()

    def fill(t: float, x: Any, xdot: Any, out: Any) -> None:
        out[:] = jacobian(t, x, args)

    return {"jacfn": fill}


def _sparse(
    kernels: Kernels, setup: Setup, x0: np.ndarray, args: tuple[Any, ...]
) -> dict[str, Any] | None:
    """Return the options for a large model, or None for another.

    Its systems are solved by GMRES, preconditioned by our factors of I - gamma J: exact where
    they are new, and good enough for many steps after that.
    """
    single = kernels.single
    if not isinstance(single, Stepwise):
        return None
    form = single.jacobian(setup.t_start, x0, args)
    known: dict[str, Any] = {}

    def factorise(t: float, x: Any, xdot: Any, jok: int, jnew: Any, gamma: float) -> None:
        if not jok or not known:
            known["jacobian"] = form.at(t, np.array(x), args)[1]
        jnew[0] = int(not jok)
        known["solve"] = known["jacobian"].solver(1.0, -gamma)

    def solve(
        t: float, x: Any, xdot: Any, r: Any, z: Any, gamma: float, delta: float, side: int
    ) -> None:
        z[:] = known["solve"](np.array(r))

    made = _load("cvode").CVODEPrecond(factorise, solve)
    return {"linsolver": "gmres", "precond": made}


def _drive_cvode(
    kernels: Kernels,
    setup: Setup,
    x0: np.ndarray,
    args: tuple[Any, ...],
    times: np.ndarray | None,
    max_steps: int,
    monitor: Monitor | None,
) -> Result:
    refuse_events(kernels, "cvode")
    f = kernels.derivative()

    def fill(t: float, x: Any, out: Any) -> None:
        out[:] = f(t, x, args)

    own = _sparse(kernels, setup, x0, args) or _dense(kernels, args)
    solver = _load("cvode").CVODE(fill, **own, **_options(setup, max_steps))
    begun = solver.init_step(float(setup.t_start), x0)
    return _driven(solver, "cvode", begun, setup, times, max_steps, monitor)


def _drive_ida(
    kernels: Kernels,
    setup: Setup,
    x0: np.ndarray,
    args: tuple[Any, ...],
    times: np.ndarray | None,
    max_steps: int,
    monitor: Monitor | None,
) -> Result:
    refuse_events(kernels, "ida")
    f, jacobian = kernels.derivative(), kernels.jacobian()
    eye = np.eye(x0.size)
    return drive_residual(
        lambda t, x, xdot: xdot - f(t, x, args),
        lambda t, x, xdot, c: c * eye - jacobian(t, x, args),
        np.zeros(x0.size, dtype=bool),
        setup,
        x0,
        np.asarray(f(float(setup.t_start), x0, args)),
        times,
        max_steps,
        monitor,
    )


CVODE = register(method_outside("cvode", _drive_cvode))
IDA = register(method_outside("ida", _drive_ida))

"""SUNDIALS, an extra: CVODE as ``method="cvode"``, IDA as ``method="ida"``, in ``solve_dae`` too.

The solvers are those of scikit-sundae, imported at the first use; ours are the right-hand side
and its Jacobian, compiled, as callbacks. Source: A. C. Hindmarsh et al., "SUNDIALS: suite of
nonlinear and differential/algebraic equation solvers", ACM TOMS 31 (2005) 363-396.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import ArchimedesError
from archimedes.installation import install_command
from archimedes.simulate.methods.method_table import method_outside, register
from archimedes.simulate.solves.collectors import Result, Samples
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.stepwise import Stepwise
from archimedes.simulate.stepping.trial_step import Setup

if TYPE_CHECKING:
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.typing import Array

#: Steps between two looks at whether the solver still moves.
PATIENCE = 2000
_TOO_MUCH_WORK = -1
#: How their return values read as ours; other negative ones are failures of a step.
_STATUS = dict.fromkeys((-8, -9, -10), Status.NON_FINITE) | {_TOO_MUCH_WORK: Status.TOO_MANY_STEPS}


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
    samples: Samples
    status: int = Status.RUNNING
    steps: int = 0
    #: What the solver returned last.
    last: Any = None

    def __post_init__(self) -> None:
        setup = self.samples.setup
        self.t, self.t_end = float(setup.t_start), float(setup.t_end)

    def to(self, time: float, kind: str) -> bool:
        """Go to ``time``, or one step towards it; return whether the solver could."""
        before = self.t
        answer = self.solver.step(time, kind, self.t_end)
        self.steps += 1 if kind == "onestep" else 0
        limit = self.samples.max_steps - PATIENCE
        while int(answer.status) == _TOO_MUCH_WORK and self.steps < limit:
            # It goes on where it is, unless it cannot move: SUNDIALS would try for ever.
            if answer.t == before:
                break
            before, self.steps = answer.t, self.steps + PATIENCE
            answer = self.solver.step(time, kind, self.t_end)
        if answer.t == before:
            self.status = Status.STEP_UNDERFLOW
        elif not answer.success:
            self.status = _STATUS.get(int(answer.status), Status.STEP_UNDERFLOW)
        elif not np.isfinite(answer.y).all():
            self.status = Status.NON_FINITE
        else:
            self.t, self.last = answer.t, answer
            self.samples.report(answer.t)
            return True
        return False

    def every_step(self) -> None:
        """Collect all steps."""
        samples = self.samples
        samples.append(self.t, samples.x0)
        while self.status == Status.RUNNING and self.to(self.t_end, "onestep"):
            samples.append(self.t, self.last.y)
            if samples.sign * (self.t - self.t_end) >= 0.0:
                self.status = Status.FINISHED
            elif self.steps >= samples.max_steps:
                self.status = Status.TOO_MANY_STEPS

    def at_times(self, times: np.ndarray) -> None:
        """Collect the states at ``times``."""
        at, x = self.t, self.samples.x0
        for time in times.tolist():
            if time != at:
                if not self.to(time, "normal"):
                    return
                at, x = time, self.last.y
            self.samples.append(at, x)
        self.status = Status.FINISHED


def _solve(name: str, solver: Any, samples: Samples, *start: np.ndarray) -> Result:
    """Run a solver from the state and, of a DAE, the derivatives at the start."""
    solver.init_step(float(samples.setup.t_start), *start)
    march = _March(solver, samples)
    try:
        march.every_step() if samples.times is None else march.at_times(samples.times)
    except KeyboardInterrupt:
        march.status = Status.INTERRUPTED
    counts = {"evaluations": "nfev", "jacobians": "njev"}
    last = {key: int(getattr(march.last, count, 0)) for key, count in counts.items()}
    result = samples.result(march.status, march.t, 0, {"steps": march.steps})
    return replace(result, stats={"method": name, **last})


def _options(samples: Samples) -> dict[str, Any]:
    """Return the options that CVODE and IDA share; their relative tolerance is one number."""
    setup = samples.setup
    return {
        "rtol": float(np.min(setup.rtol)),
        "atol": np.array(setup.atol, dtype=np.float64),
        "first_step": float(setup.h),
        "max_step": 0.0 if np.isinf(setup.max_step) else float(setup.max_step),
        "max_num_steps": min(PATIENCE, int(samples.max_steps)),
        "max_conv_fails": 50,
    }


def solve_residual(
    residual: Callable[..., Any],
    jacobian: Callable[..., Any],
    algebraic: np.ndarray,
    xdot0: np.ndarray,
    samples: Samples,
) -> Result:
    """Solve ``residual(t, x, xdot) = 0`` with IDA from a consistent start.

    ``jacobian(t, x, xdot, c)`` is dF/dx + c dF/dxdot; ``algebraic`` (n,) says whose derivative
    does not appear.
    """

    def fill(t: float, x: np.ndarray, xdot: np.ndarray, out: np.ndarray) -> None:
        out[:] = residual(t, x, xdot)

    def fill_jacobian(
        t: float, x: np.ndarray, xdot: np.ndarray, res: np.ndarray, c: float, out: np.ndarray
    ) -> None:
        out[:] = jacobian(t, x, xdot, c)

    options = _options(samples)
    if algebraic.any():
        options["algebraic_idx"] = np.flatnonzero(algebraic).tolist()
    solver = _load("ida").IDA(fill, jacfn=fill_jacobian, **options)
    return _solve("ida", solver, samples, samples.x0, xdot0)


def _dense(kernels: Kernels, args: Args) -> dict[str, Any]:
    """Return the options for a Jacobian with all its elements."""
    jacobian = kernels.jacobian()

    def fill(t: float, x: Array, xdot: Array, out: Array) -> None:
        out[:] = jacobian(t, x, args)

    return {"jacfn": fill}


def _sparse(kernels: Kernels, setup: Setup, x0: np.ndarray, args: Args) -> dict[str, Any] | None:
    """Return the options for a large model, or None for another.

    Its systems are solved by GMRES, preconditioned by our factors of I - gamma J: exact where
    they are new, and good enough for many steps after that.
    """
    single = kernels.single
    if not isinstance(single, Stepwise):
        return None
    form = single.jacobian(setup.t_start, x0, args)
    known: dict[str, Any] = {}

    def factorise(t: float, x: Array, xdot: Array, jok: int, jnew: Array, gamma: float) -> None:
        if not jok or not known:
            known["jacobian"] = form.at(t, np.array(x), args)[1]
        jnew[0] = int(not jok)
        known["solve"] = known["jacobian"].solver(1.0, -gamma)

    def solve(
        t: float, x: Array, xdot: Array, r: Array, z: Array, gamma: float, delta: float, side: int
    ) -> None:
        z[:] = known["solve"](np.array(r))

    preconditioner = _load("cvode").CVODEPrecond(factorise, solve)
    return {"linsolver": "gmres", "precond": preconditioner}


def _drive_cvode(kernels: Kernels, args: Args, samples: Samples) -> Result:
    f, x0 = kernels.derivative(), samples.x0

    def fill(t: float, x: np.ndarray, out: np.ndarray) -> None:
        out[:] = f(t, x, args)

    systems = _sparse(kernels, samples.setup, x0, args) or _dense(kernels, args)
    solver = _load("cvode").CVODE(fill, **systems, **_options(samples))
    return _solve("cvode", solver, samples, x0)


def _drive_ida(kernels: Kernels, args: Args, samples: Samples) -> Result:
    f, jacobian, x0 = kernels.derivative(), kernels.jacobian(), samples.x0
    return solve_residual(
        lambda t, x, xdot: xdot - f(t, x, args),
        lambda t, x, xdot, c: c * np.eye(x0.size) - jacobian(t, x, args),
        np.zeros(x0.size, dtype=bool),
        np.asarray(f(float(samples.setup.t_start), x0, args)),
        samples,
    )


CVODE = register(method_outside("cvode", _drive_cvode))
IDA = register(method_outside("ida", _drive_ida))

"""Initial value problems, one or many: checked, flattened, solved into a Trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.graph.environment import in_default_environment
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.methods.stiffness import is_stiff
from archimedes.simulate.problem import argument_checks as checks
from archimedes.simulate.problem.state_layout import as_state, layout_of
from archimedes.simulate.solves.batch_driver import Batch, BatchResult, batch_of, solve_batch
from archimedes.simulate.solves.driver import (
    FIRST_CALL,
    Collector,
    Final,
    ManyOutputs,
    Monitor,
    Outputs,
    Steps,
    solve,
)
from archimedes.simulate.solves.event_logs import EventFinal, EventOutputs, EventSteps, batch_table
from archimedes.simulate.solves.method_lookup import find_method
from archimedes.simulate.solves.model import DEFAULT_METHOD, MAX_STEPS, Options, model_of, setup_of
from archimedes.simulate.statuses import MANY_STEPS, message_of
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.stepping.trial_step import Setup
from archimedes.simulate.trajectory.trajectory import Trajectory, assembled
from archimedes.symbolic.core.trace import is_tracing

__all__ = ["BatchProblem", "Problem", "prepare", "prepare_batch", "step_limit"]

#: From this many outputs on they are computed apart from the steps.
MANY = 32


@dataclass
class _Prepared:
    """What one problem and many have in common: kernels, and the numbers of the solve."""

    kernels: Kernels
    setup: Setup

    def times(self, t_eval: Any) -> np.ndarray:
        """Return output times, checked."""
        return checks.check_times(t_eval, self.setup.t_start, self.setup.t_end)


@dataclass
class Problem(_Prepared):
    """An initial value problem on flat vectors, checked, with its kernels."""

    x0: np.ndarray
    args: tuple[Any, ...]
    max_steps: int
    #: Where the last solve ended.
    run: Any = None

    @in_default_environment
    def solve(
        self,
        times: np.ndarray | None,
        dense: bool = False,
        monitor: Monitor | None = None,
        final: bool = False,
    ) -> Trajectory:
        """Solve for the states at ``times``, at every step, or at the end only (``final``)."""
        plan, method = self.kernels.plan, self.kernels.plan.method
        collect: Any = None
        if method.drive is not None:
            if is_tracing():
                checks.refuse_traced(self.kernels.derivative()(0.0, self.x0, self.args))
            ends = np.array([self.setup.t_end]) if final else times
            found = method.drive(
                self.kernels, self.setup, self.x0, self.args, ends, self.max_steps, monitor
            )
        else:
            collect = self._collector(times, dense, final)
            found = solve(
                self.kernels, self.setup, self.x0, self.args, collect, self.max_steps, monitor
            )
        self.run = run = found.run
        return assembled(
            t=found.t,
            x=plan.layout.unpack(found.x, found.t.shape),
            u=None,
            y=None,
            status=found.status,
            message=message_of(
                found.status, float(run.t), self.max_steps, method.stiff, bool(_look_stiff(run))
            ),
            stats=found.stats or _statistics(method, run),
            dense=found.dense,
            events=None if plan.events is None else collect.log.table(plan.layout),
        )

    def _collector(self, times: np.ndarray | None, dense: bool, final: bool) -> Collector:
        watched = self.kernels.plan.events is not None
        if final:
            return (EventFinal if watched else Final)(self.kernels)
        if times is None or dense:
            return (EventSteps if watched else Steps)(self.kernels, self.setup, self.x0, times)
        if self.kernels.plain and len(times) >= MANY:
            return ManyOutputs(self.kernels, self.setup, self.x0, times)
        return (EventOutputs if watched else Outputs)(self.kernels, self.setup, times)


@dataclass
class BatchProblem(_Prepared):
    """Many initial value problems that differ in initial states and arguments."""

    batch: Batch
    max_steps: int

    @in_default_environment
    def solve(
        self,
        times: np.ndarray | None,
        dense: bool = False,
        threads: int | None = None,
        monitor: Monitor | None = None,
    ) -> Trajectory:
        """Solve all for the states at ``times``, or at every step of each."""
        found = solve_batch(
            self.kernels, self.setup, self.batch, times, dense, self.max_steps, threads, monitor
        )
        method, run, layout = self.kernels.plan.method, found.run, self.kernels.plan.layout
        return Trajectory(
            found.t,
            layout.unpack(found.x, found.t.shape),
            status=found.status,
            message=self._message(found),
            stats=_statistics(method, run),
            dense=found.dense,
            events=self._events(found),
        )

    def _events(self, found: BatchResult) -> Any:
        """Return all events of all instances, and how often each event fired in each."""
        if self.kernels.plan.events is None:
            return None
        signals, layout = found.run.signals, self.kernels.plan.layout
        table = batch_table(found.events, found.starts, layout, len(found.status))
        return {**table, "count": signals.count, "last": signals.last}

    def _message(self, found: BatchResult) -> str:
        """Say how many instances ended well, and what became of the first that did not."""
        bad = np.flatnonzero(found.status < 0)
        count = len(found.status)
        looks = int(np.sum(_look_stiff(found.run)))
        advice = f"; {looks} of {count} look stiff: method='rodas5p' or 'auto'" if looks else ""
        if not bad.size:
            return f"all {count} instances reached their end{advice}"
        first = int(bad[0])
        why = message_of(
            int(found.status[first]),
            float(found.run.t[first]),
            self.max_steps,
            self.kernels.plan.method.stiff,
        )
        return f"{bad.size} of {count} instances failed; instance {first}: {why}{advice}"


def _statistics(method: Method, run: Any) -> dict[str, Any]:
    """Return what a solve cost, or each of a batch."""
    more = {} if method.counts is None else method.counts(run.memory)
    counts = {"steps": run.accepted, "rejected": run.rejected, **more}
    one = np.ndim(run.accepted) == 0
    return {
        "method": method.name,
        **{name: int(n) if one else np.asarray(n) for name, n in counts.items()},
    }


def _look_stiff(run: Any) -> Any:
    """Tell which runs made many steps because of a stiff system."""
    suspicion = getattr(run, "suspicion", None)
    if suspicion is None:
        return np.zeros(np.shape(run.accepted), dtype=bool)
    return is_stiff(suspicion) & (run.accepted >= MANY_STEPS)


@in_default_environment
def prepare(
    func: Callable[..., Any],
    t_span: Any,
    x0: Any,
    method: str | Method | None,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    options: Options,
) -> Problem:
    """Check and flatten what a user gave."""
    start, end = checks.check_span(t_span, x0)
    state = as_state(x0)
    layout = layout_of(state)
    x = checks.check_state(state, layout)
    chosen = find_method(DEFAULT_METHOD if method is None else method)
    model = model_of(func, args, static_argnames)
    kernels = model.kernels(layout, chosen, options, log=True)
    limit = step_limit(options)
    setup = setup_of(layout, options, start, end, min(limit, FIRST_CALL))
    return Problem(kernels, setup, x, model.args, limit)


@in_default_environment
def prepare_batch(
    func: Callable[..., Any],
    t_span: Any,
    x0: Any,
    method: str | Method | None,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    options: Options,
    in_axes: Any,
) -> BatchProblem:
    """Check and flatten a batch; ``in_axes`` as in ``batch_of``."""
    start, end = checks.check_span(t_span, x0)
    given = checks.check_args(args)
    fixed = checks.static_places(func, static_argnames, len(given))
    axes = (in_axes,) * (1 + len(given)) if isinstance(in_axes, int) else tuple(in_axes)
    moving = tuple(a for k, a in enumerate(given) if k not in fixed)
    if len(axes) == 1 + len(given):
        axes = (axes[0], *(a for k, a in enumerate(axes[1:]) if k not in fixed))
    count, states, leaves, many = batch_of(as_state(x0), moving, axes)
    layout = layout_of(tree.map(lambda leaf: np.asarray(leaf)[0], states))
    checks.check_state(states, layout)
    chosen = find_method(DEFAULT_METHOD if method is None else method)
    model = model_of(func, args, static_argnames)
    own = tree.leaves(model.args[: len(model.args) - len(moving)])
    flat = [np.reshape(leaf, (count, -1)) for leaf in tree.leaves(states)]
    return BatchProblem(
        model.kernels(layout, chosen, options, log=True),
        setup_of(layout, options, start, end),
        Batch(
            count,
            np.concatenate(flat, axis=1).astype(np.float64),
            [*own, *leaves],
            tree.structure(model.args),
            [*(False for _ in own), *many],
        ),
        step_limit(options),
    )


def step_limit(options: Options, default: int = MAX_STEPS) -> int:
    """Return how many steps a solve may make."""
    if options.max_steps is not None and int(options.max_steps) < 1:
        raise ValueError(f"max_steps = {options.max_steps} must be at least 1")
    return default if options.max_steps is None else int(options.max_steps)

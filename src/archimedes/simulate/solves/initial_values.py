"""Initial value problems, one or many: checked, flattened, solved into a Trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function.batching.batch_axes import instance
from archimedes.lazy_dataclasses import lazy_dataclass
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.methods.stiffness import is_stiff
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.problem.state_layout import Layout, as_state, layout_of
from archimedes.simulate.progress import Monitor
from archimedes.simulate.solves.collectors import Result
from archimedes.simulate.solves.dense_output import BatchDense
from archimedes.simulate.solves.driver import FIRST_CALL, Task, drive
from archimedes.simulate.solves.instances import Instances, instances_of, one_instance
from archimedes.simulate.solves.method_lookup import find_method
from archimedes.simulate.solves.prepared_model import (
    DEFAULT_METHOD,
    MAX_STEPS,
    Model,
    Options,
    model_of,
    setup_of,
)
from archimedes.simulate.statuses import MANY_STEPS, RESET_NON_FINITE, message_of
from archimedes.simulate.stepping.run_state import Plan, Setup
from archimedes.simulate.stepping.solve_kernels import Kernels
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.simulate.trajectory.trajectory import Trajectory, assembled
from archimedes.symbolic.core.trace import is_tracing
from archimedes.system.floating_point import in_default_environment

__all__ = ["Problem", "prepare", "step_limit"]


@lazy_dataclass
class Problem:
    """Initial value problems on flat vectors, checked, with their kernels."""

    kernels: Kernels
    setup: Setup
    instances: Instances
    max_steps: int
    #: Where the last solve ended.
    run: Any = None

    def times(self, t_eval: Any) -> np.ndarray:
        """Return output times, checked."""
        return argument_checks.check_times(t_eval, self.setup.t_start, self.setup.t_end)

    @in_default_environment
    def solve(
        self,
        times: np.ndarray | None,
        dense: bool = False,
        monitor: Monitor | None = None,
        final: bool = False,
        threads: int | None = None,
    ) -> Trajectory:
        """Solve for the states at ``times``, at every step, or at the end only (``final``).

        A single solve keeps the interpolants of its steps where they are put out.
        """
        kernels, instances = self.kernels, self.instances
        dense = dense or (instances.alone and times is None)
        task = Task(kernels, self.setup, instances, self.max_steps, times, dense, final, threads)
        if not instances.alone:
            from archimedes.simulate.solves.groups import drive_groups

            found = drive_groups(task, monitor)
        elif kernels.plan.method.drive is not None:
            found = self._outside(times, monitor, final)
        else:
            found = drive(task, monitor)
        self.run = found.run
        return self._one(found) if instances.alone else self._many(found)

    def _outside(self, times: np.ndarray | None, monitor: Monitor | None, final: bool) -> Result:
        """Solve by a method that brings its own driver."""
        drive, x0, args = self.kernels.plan.method.drive, self.instances.x0[0], self.instances.args
        assert drive is not None
        if is_tracing():
            argument_checks.refuse_traced(self.kernels.derivative()(0.0, x0, args))
        ends = np.array([self.setup.t_end]) if final else times
        return drive(self.kernels, self.setup, x0, args, ends, self.max_steps, monitor)

    def _one(self, found: Result) -> Trajectory:
        """Return the trajectory of a single solve."""
        plan, run = self.kernels.plan, found.run
        status, count = found.status[0], found.lengths[0]
        looks = bool(_look_stiff(run))
        return assembled(
            t=found.t[0, :count],
            x=plan.layout.unpack(found.x[0, :count], (count,)),
            u=None,
            y=None,
            status=status,
            message=self._words(status, run, looks),
            stats=found.stats or _statistics(plan.method, run, int),
            dense=None if found.dense is None else found.dense[0],
            events=self._happened(found),
        )

    def _happened(self, found: Result) -> Any:
        """Return the events of a single solve as a table; None where none were watched for."""
        if self.kernels.plan.events is None:
            return None
        from archimedes.simulate.solves.event_logs import one_table

        return one_table(found.events[0], self.kernels.plan.layout)

    def _many(self, found: Result) -> Trajectory:
        """Return the trajectories of a batch."""
        plan = self.kernels.plan
        events = None
        if plan.events is not None:
            from archimedes.simulate.solves.event_logs import batch_table

            table = batch_table(found.events, found.starts, plan.layout, len(found.status))
            signals = found.run.signals
            count, last = map(self._here, (signals.count, signals.last))
            events = {**table, "count": count, "last": last}
        return Trajectory(
            found.t,
            plan.layout.unpack(found.x, found.t.shape),
            status=found.status,
            message=self._message(found),
            stats=_statistics(plan.method, found.run, self._here),
            dense=None if found.dense is None else BatchDense(found.dense),
            events=events,
        )

    def _words(self, status: int, run: Any, looks: bool = False, at: int | None = None) -> str:
        """Return the message of a run that ended so; ``at``: which one of a batch it is."""
        plan, t = self.kernels.plan, float(run.t if at is None else run.t[at])
        if status != RESET_NON_FINITE:
            return message_of(status, t, self.max_steps, plan.method.stiff, looks)
        here = ... if at is None else at
        x, fired = self._here(run.x)[here], self._here(run.signals.fired)[here]
        return message_of(status, t, reset=_reset_that_failed(plan, x, fired))

    def _here(self, array: Any) -> np.ndarray:
        """Return an array as NumPy's."""
        host = isinstance(array, np.ndarray)
        return array if host else self.kernels.backend.arrays.to_host(array)

    def _message(self, found: Result) -> str:
        """Say how many instances ended well, and what became of the first that did not."""
        bad = np.flatnonzero(found.status < 0)
        count = len(found.status)
        looks, run = 0, found.run
        if (run.accepted >= MANY_STEPS).any():
            run = tree.replace(run, suspicion=tree.map(self._here, run.suspicion))
            looks = int(np.sum(_look_stiff(run)))
        advice = f"; {looks} of {count} look stiff: method='rodas5p' or 'auto'" if looks else ""
        if not bad.size:
            return f"all {count} instances reached their end{advice}"
        first = int(bad[0])
        why = self._words(int(found.status[first]), found.run, at=first)
        return f"{bad.size} of {count} instances failed; instance {first}: {why}{advice}"


def _reset_that_failed(plan: Plan, x: np.ndarray, fired: np.ndarray) -> str:
    """Say which event's reset gave nan or infinity, and in which component of the state."""
    assert plan.events is not None
    resets = [event.reset for event in plan.events.events]
    numbers = [k for k, reset in enumerate(resets) if reset is not None and fired[k]]
    state = plan.layout.unpack(x)
    if hasattr(resets[numbers[0]], "written_as"):
        state = state[0]  # the user's part of a larger state
    names = [column.name for column in tree_columns(state, 0)]
    found = {name: float(v) for name, v in zip(names, x) if not np.isfinite(v)}
    values = ", ".join(f"{name} = {value}" for name, value in found.items())
    which = " and ".join(f"events[{k}]" for k in numbers)
    return f"the reset of {which} gave {values}"


def _statistics(method: Method, run: Any, shown: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what a solve cost, or each of a batch."""
    counts = {"steps": run.accepted, "rejected": run.rejected}
    if method.counts is not None:
        counts |= method.counts(run.memory)
    return {"method": method.name, **{name: shown(n) for name, n in counts.items()}}


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
    in_axes: Any = None,
) -> Problem:
    """Check and flatten what a user gave; ``in_axes``: for a batch, as in ``instances_of``."""
    if in_axes is None:
        argument_checks.refuse_device_arrays(x0=x0, args=args)
    else:
        home = argument_checks.home_of_arrays(options.backend, x0=x0, args=args)
        options.backend = options.backend if home is None else home.name
        if home is not None:
            x0, args = tree.map(home.arrays.own, x0), tree.map(home.arrays.own, args)
    start, end = argument_checks.check_span(t_span, x0)
    if in_axes is None:
        state = as_state(x0)
        layout = layout_of(state)
        x = argument_checks.check_state(state, layout)
        model = model_of(func, args, static_argnames)
        instances = one_instance(x, model.args)
    else:
        model = model_of(func, args, static_argnames)
        layout, instances = _batch(func, x0, args, static_argnames, in_axes, model)
    chosen = find_method(DEFAULT_METHOD if method is None else method)
    kernels = model.kernels(layout, chosen, options, log=True)
    limit = step_limit(options, chosen.most_steps or MAX_STEPS)
    setup = setup_of(layout, options, start, end, min(limit, FIRST_CALL))
    return Problem(kernels, setup, instances, limit)


def _batch(
    func: Callable[..., Any],
    x0: Any,
    args: Any,
    static_argnames: str | Sequence[str] | None,
    in_axes: Any,
    model: Model,
) -> tuple[Layout, Instances]:
    """Return the layout of one state of a batch, and its instances."""
    given = argument_checks.check_args(args)
    fixed = argument_checks.static_places(func, static_argnames, len(given))
    axes = (in_axes,) * (1 + len(given)) if isinstance(in_axes, int) else tuple(in_axes)
    moving = tuple(a for k, a in enumerate(given) if k not in fixed)
    if len(axes) == 1 + len(given):
        axes = (axes[0], *(a for k, a in enumerate(axes[1:]) if k not in fixed))
    count, states, leaves, many = instances_of(as_state(x0), moving, axes)
    layout = layout_of(tree.map(instance, states))
    argument_checks.check_state(states, layout)
    own = tree.leaves(model.args[: len(model.args) - len(moving)])
    flat = [np.reshape(leaf, (count, -1)) for leaf in tree.leaves(states)]
    return layout, Instances(
        count,
        np.concatenate(flat, axis=1).astype(np.float64),
        tree.structure(model.args).unflatten([*own, *leaves]),
        [*(False for _ in own), *many],
    )


def step_limit(options: Options, default: int = MAX_STEPS) -> int:
    """Return how many steps a solve may make."""
    if options.max_steps is not None and int(options.max_steps) < 1:
        raise ValueError(f"max_steps = {options.max_steps} must be at least 1")
    return default if options.max_steps is None else int(options.max_steps)

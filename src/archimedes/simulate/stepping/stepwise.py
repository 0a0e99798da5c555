"""Single runs of large models: the loops run in Python, everything slow in compiled functions.

The loops of a solve are plain NumPy. Recorded, they are one kernel, whose code holds the state's
numbers one by one. That is right for a rigid body, and hopeless for thousands of cells. Here the
same loops run as they are written, on arrays. The right-hand side, its Jacobian, what users wrote
for events and sampled parts, and whatever sums numbers up are compiled functions, so that results
have the same bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.function.batching.sorted_items import RunByRun
from archimedes.simulate.events.event import Watch
from archimedes.simulate.problem.inputs import Clock
from archimedes.simulate.problem.state_layout import Args, Layout
from archimedes.simulate.sparse.sparse_jacobians import CompressedJacobian
from archimedes.simulate.stepping.dense_output import END, state_in
from archimedes.simulate.stepping.solve_loops import make_step, try_step
from archimedes.simulate.stepping.trial_step import Integration, Plan, Run, Setup

if TYPE_CHECKING:
    from archimedes.simulate.stepping.solve_kernels import Kernels
    from archimedes.typing import Array, Scalar


@dataclass(frozen=True)
class _CompiledWatch(Watch):
    """Events whose functions are compiled, one by one: by their name and the event's number."""

    functions: dict[tuple[str, int], Callable[..., Any]] = field(default_factory=dict)

    def value(self, k: int, t: Scalar, x: Array, args: Args) -> Any:
        """Return g of event k."""
        return self.functions["value", k](float(t), x, args)

    def rate(self, k: int, t: Scalar, x: Array, xdot: Array, args: Args) -> Any:
        """Return dg/dt of event k."""
        return self.functions["rate", k](float(t), x, xdot, args)

    def reset(self, k: int, t: Scalar, x: Array, args: Args) -> Any:
        """Return the state after event k."""
        return self.functions["reset", k](float(t), x, args)


@dataclass(frozen=True)
class _CompiledClock(Clock):
    """Sampled parts that act by one compiled function."""

    compiled: Callable[..., Any] | None = None

    def flat_tick(self, layout: Layout, t: Array, x: Array, args: Args) -> Any:
        """Return the state after the parts that are due at t have acted."""
        assert self.compiled is not None
        return self.compiled(float(t), x, args)


def _compile_watch(watch: Watch, kernels: Kernels) -> Watch:
    """Return the same events with compiled functions."""

    def compiled(name: str, k: int) -> Callable[..., Any]:
        method, event = getattr(watch, name), watch.events[k]

        def call(*args: Any) -> Any:
            return method(k, *args)

        return kernels.compiled(call, f"events[{k}].{name}", (event.fn, event.reset))

    pairs = itertools.product(("value", "rate", "reset"), range(len(watch.events)))
    functions = {(name, k): compiled(name, k) for name, k in pairs}
    return _CompiledWatch(watch.events, watch.layout, watch.full, watch.log, functions)


def _compile_clock(clock: Clock, layout: Layout, kernels: Kernels) -> Clock:
    """Return the same sampled parts, compiled."""

    def tick(t: Array, x: Array, args: Args) -> Any:
        return clock.flat_tick(layout, t, x, args)

    compiled = kernels.compiled(tick, "sampled", tuple(part.update for part in clock.parts))
    return _CompiledClock(clock.parts, clock.single, clock.visible, compiled)


class _Bound:
    """f(t, x) for some arguments, with its Jacobian as one of few entries."""

    def __init__(self, steps: Stepwise, args: Args) -> None:
        self.steps, self.args = steps, args

    def __call__(self, t: Scalar, x: Array) -> Any:
        return self.steps.f(float(t), x, self.args)

    def linearize(self, t: Scalar, x: Array) -> tuple[Any, Any]:
        """Return df/dt and df/dx: see ``methods/implicit.py``."""
        return self.steps.jacobian(t, x, self.args).at(t, x, self.args)


class Stepwise:
    """What ``Kernels`` gives a single run, without recording the loops."""

    def __init__(self, kernels: Kernels) -> None:
        plan = kernels.plan
        self.kernels = kernels
        self.f = kernels.derivative()
        project = plan.project
        self.plan: Plan = replace(
            plan,
            project=None if project is None else kernels.compiled(project, "project"),
            events=plan.events and _compile_watch(plan.events, kernels),
            clock=plan.clock and _compile_clock(plan.clock, plan.layout, kernels),
            bound=lambda args: _Bound(self, args),
        )
        self._jacobians: dict[Any, CompressedJacobian] = {}

    def jacobian(self, t: Scalar, x: np.ndarray, args: Args) -> CompressedJacobian:
        """Return the Jacobian for arguments of this structure."""
        key = tree.structure(args), tuple(np.shape(leaf) for leaf in tree.leaves(args))
        jacobian = self._jacobians.get(key)
        if jacobian is None:
            compiled, factors = self.kernels.compiled, self.kernels.backend.block_factors()
            jacobian = CompressedJacobian(self.f, compiled, float(t), x, args, factors)
            self._jacobians[key] = jacobian
        return jacobian

    def begin(self, dense: bool) -> Callable[..., Run]:
        """``(setup, t, x, args) -> run``."""

        def begin(setup: Setup, t: Scalar, x: Array, args: Args) -> Run:
            with np.errstate(all="ignore"):
                return Integration(self.plan, setup, args).begin(t, x, dense)

        return begin

    def loop(self, loop: Callable[..., Any]) -> Callable[..., Any]:
        """Return a loop of ``solve_loops.py`` as a function ``(setup, args, run, *inputs)``."""

        def call(setup: Setup, args: Args, run: Run, *inputs: Any) -> Any:
            with np.errstate(all="ignore"):
                return loop(Integration(self.plan, setup, args), run, *inputs)

        return call

    def fill(self, times: Array, sign: float, x: Array) -> Callable[[Any, Any, Any], None]:
        """``(rows, chosen, done)``: outputs of steps into x, see ``Kernels.fill``."""
        layout, project = self.kernels.rows(), self.plan.project

        def states(row: Array, times: np.ndarray) -> np.ndarray:
            return np.stack([state_in(layout, row, t, project) for t in times])

        return RunByRun(states).bound(END, times, sign, x)

    def step_repeater(self, carried: bool) -> Callable[..., tuple[Run, int]]:
        """``(run, (setup, args), rows) -> run, count``: see ``Kernels.step_repeater``."""
        step = make_step if carried else try_step

        def run_on(run: Run, inputs: Any, rows: np.ndarray) -> tuple[Run, int]:
            ode, filled, going = Integration(self.plan, *inputs), 0, True
            with np.errstate(all="ignore"):
                while going and filled < len(rows):
                    run, row, accepted, going = step(ode, run)
                    if accepted:
                        rows[filled] = row
                        filled += 1
            return run, filled

        return run_on

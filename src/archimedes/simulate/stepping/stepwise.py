"""Single runs of large models: the loops run in Python, everything slow in compiled functions.

The loops of a solve are plain NumPy. Recorded, they are one kernel, whose code holds the state's
numbers one by one. That is right for a rigid body, and hopeless for thousands of cells. Here the
same loops run as they are written, on arrays. The right-hand side, its Jacobian, what users wrote
for events and sampled parts, and whatever sums numbers up are compiled functions, so that results
have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.function.batching.sorted_items import RunByRun
from archimedes.simulate.events.event import Watch
from archimedes.simulate.problem.inputs import Clock
from archimedes.simulate.problem.state_layout import (
    Args,
    Layout,
)
from archimedes.simulate.sparse.sparse_jacobians import CompressedJacobian
from archimedes.simulate.stepping.dense_output import END, state_in
from archimedes.simulate.stepping.solve_loops import make_step, try_step
from archimedes.simulate.stepping.trial_step import Integration, Plan, Run, Setup

if TYPE_CHECKING:
    from archimedes.simulate.stepping.solve_kernels import Kernels
    from archimedes.typing import Array, Scalar


#: (function, name, what it calls of the user's) -> what is called in its place.
Compile = Callable[[Callable[..., Any], str, tuple[Any, ...]], Callable[..., Any]]


@dataclass(frozen=True)
class _CompiledWatch(Watch):
    """Events whose functions are compiled, one by one; ``plain`` are these events as they are."""

    plain: Any = None
    compiled: Any = None
    made: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def _call(self, what: str, k: int, *args: Any) -> Any:
        function = self.made.get((what, k))
        if function is None:
            plain = getattr(self.plain, what)
            event = self.events[k]

            def call(*args: Any) -> Any:
                return plain(k, *args)

            function = self.compiled(call, f"events[{k}].{what}", (event.fn, event.reset))
            self.made[what, k] = function
        return function(*args)

    def value(self, k: int, t: Scalar, x: Array, args: Args) -> Any:
        """Return g of event k."""
        return self._call("value", k, float(t), x, args)

    def rate(self, k: int, t: Scalar, x: Array, xdot: Array, args: Args) -> Any:
        """Return dg/dt of event k."""
        return self._call("rate", k, float(t), x, xdot, args)

    def reset(self, k: int, t: Scalar, x: Array, args: Args) -> Any:
        """Return the state after event k."""
        return self._call("reset", k, float(t), x, args)


def compiled_watch(watch: Watch | None, compiled: Compile) -> Watch | None:
    """Return the same events with compiled functions."""
    if watch is None:
        return None
    return _CompiledWatch(**_own(watch), plain=watch, compiled=compiled)


@dataclass(frozen=True)
class _CompiledClock(Clock):
    """Sampled parts that act by one compiled function."""

    plain: Any = None
    compiled: Any = None
    made: dict[Any, Callable[..., Any]] = field(default_factory=dict)

    def flat_tick(self, layout: Layout, t: Scalar, x: Array, args: Args) -> Any:
        """Return the state after the parts that are due at t have acted."""
        if layout not in self.made:

            def tick(t: Scalar, x: Array, args: Args) -> Any:
                return self.plain.flat_tick(layout, t, x, args)

            updates = tuple(part.update for part in self.parts)
            self.made[layout] = self.compiled(tick, "sampled", updates)
        return self.made[layout](float(t), x, args)


def compiled_clock(clock: Clock | None, compiled: Compile) -> Clock | None:
    """Return the same sampled parts, compiled."""
    return clock and _CompiledClock(**_own(clock), plain=clock, compiled=compiled)


def _own(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


class _Bound:
    """f(t, x) for some arguments, with its Jacobian as one of few entries."""

    def __init__(self, steps: Stepwise, args: Args) -> None:
        self.steps, self.args = steps, args

    def __call__(self, t: Scalar, x: Array) -> Any:
        return self.steps.f(float(t), x, self.args)

    def linearize(self, t: Scalar, x: Array) -> tuple[Any, Any]:
        """Return df/dt and df/dx: see ``methods/linear_systems.py``."""
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
            events=compiled_watch(plan.events, kernels.compiled),
            clock=compiled_clock(plan.clock, kernels.compiled),
            bound=lambda args: _Bound(self, args),
        )
        self._jacobians: dict[Any, CompressedJacobian] = {}

    def jacobian(self, t: Scalar, x: np.ndarray, args: Args) -> CompressedJacobian:
        """Return the Jacobian for arguments of this structure."""
        key = tree.structure(args), tuple(np.shape(leaf) for leaf in tree.leaves(args))
        jacobian = self._jacobians.get(key)
        if jacobian is None:
            jacobian = self._jacobians[key] = CompressedJacobian(
                self.f,
                self.kernels.compiled,
                float(t),
                x,
                args,
                self.kernels.backend.block_factors(),
            )
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
        """``(rows, places, done)``: outputs of steps into x, see ``Kernels.fill``."""
        layout, project = self.kernels.rows(), self.plan.project

        def states(row: Array, times: np.ndarray) -> np.ndarray:
            return np.stack([state_in(layout, row, t, project) for t in times])

        return RunByRun(states).bound(END, times, sign, x)

    def step_repeater(self, carried: bool) -> Callable[..., tuple[Run, int]]:
        """``(run, (setup, args), rows) -> run, count``: see ``Kernels.repeated_step``."""
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

"""Native kernels of the loops, kept between calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from archimedes.backends import registry
from archimedes.backends.array_kinds import HOST
from archimedes.backends.registry import AUTO
from archimedes.function import Compiled
from archimedes.function.batching.repeated_calls import Repeated
from archimedes.function.recording_store import Current, compile_frozen, store
from archimedes.simulate.stepping.dense_output import END, RowLayout, state_in
from archimedes.simulate.stepping.solve_loops import make_step, try_step
from archimedes.simulate.stepping.trial_step import Integration, Plan, Run, Setup

if TYPE_CHECKING:
    from archimedes.function.batching.sorted_items import RepeatedBatch, RunByRun
    from archimedes.simulate.problem.state_layout import Args
    from archimedes.simulate.stepping.stepwise import Stepwise
    from archimedes.typing import Array, Scalar


#: From this many numbers in a state on systems are sparse, where steps are made in Python.
STEPWISE = 64


def in_python(plan: Plan) -> bool:
    """Return whether single runs step in Python: large ones of methods with linear systems."""
    return plan.method.stiff and plan.layout.size >= STEPWISE


def native(
    function: Callable[..., Any],
    name: str,
    watch: Sequence[Any] = (),
    backend: str | None = None,
    early: bool = False,
    drafts: bool = True,
) -> Compiled:
    """Compile a function at its first call: a loop is never short enough to interpret it first.

    With ``early`` it is interpreted until compiling is worth it, as other functions are. With
    ``drafts`` the first calls, which are short, run on unoptimized code. ``watch`` as in
    ``compile_frozen``.
    """
    backend = registry.check_backend("solve_ode", backend)
    backend = backend if early else registry.resolve_backend(backend)
    compiled = compile_frozen(function, watch, name, backend)
    compiled.drafts = drafts
    return compiled


class Kernels:
    """The loops of one plan as compiled functions, for one instance and for batches."""

    def __init__(self, plan: Plan, backend: str = AUTO, current: Current | None = None) -> None:
        self.plan = plan
        #: What runs them.
        self.backend = registry.get_backend(backend)
        #: What makes the plan of the functions that each thread has given last.
        self._current = current or Current((lambda: plan,))
        self.watched = Watched(self)
        self.made: dict[Any, Any] = {}

    @property
    def single(self) -> Kernels | Stepwise:
        """What makes the steps of a single run."""
        if self.backend.arrays is not HOST or not in_python(self.plan):
            return self
        from archimedes.simulate.stepping.stepwise import Stepwise

        return self.keep("stepwise", lambda: Stepwise(self))

    @property
    def plain(self) -> bool:
        """Whether runs go on without events and sampled parts."""
        return self.plan.events is None and self.plan.clock is None

    def current(self) -> Plan:
        """Return the plan to record now."""
        (make_plan,) = self._current.functions
        return make_plan()

    def rows(self, dense: bool = True) -> RowLayout:
        """Return the layout of the rows that ``make_steps`` returns."""
        return RowLayout(self.plan.layout.size, self.plan.method.dense_degree if dense else 0)

    def keep(self, key: Any, build: Callable[[], Any]) -> Any:
        """Return what is kept under a key, making it if needed."""
        value = self.made.get(key)
        if value is None:
            value = self.made.setdefault(key, build())
        return value

    def compiled(
        self,
        function: Callable[..., Any],
        name: str,
        watch: Sequence[Any] = (),
        early: bool = True,
        drafts: bool = False,
    ) -> Compiled:
        """Compile a part of the plan for the backend of the kernels; see ``native``."""
        is_default = self.backend is registry.default_backend()
        backend = AUTO if early and is_default else self.backend.name
        return native(function, name, watch, backend, early, drafts)

    def _compiled_loop(self, function: Callable[..., Any], name: str, early: bool) -> Compiled:
        return self.compiled(function, name, (self.watched,), early, drafts=True)

    def begin(self, dense: bool) -> Compiled:
        """``(setup, t, x, args) -> run``."""

        def begin(setup: Setup, t: Scalar, x: Array, args: Args) -> Run:
            return Integration(self.current(), setup, args).begin(t, x, dense)

        # It has no loop of ours, and is called once for each solve.
        return self.keep(("begin", dense), lambda: self._compiled_loop(begin, "begin", True))

    def loop(self, loop: Callable[..., Any], *fixed: Any) -> Compiled:
        """Return a loop of ``solve_loops.py`` as a kernel ``(setup, args, run, *inputs)``."""

        def kernel(setup: Setup, args: Args, run: Run, *inputs: Any) -> Any:
            return loop(Integration(self.current(), setup, args), run, *inputs, *fixed)

        build = lambda: self._compiled_loop(kernel, loop.__name__, False)  # noqa: E731
        return self.keep((loop, *fixed), build)

    def _one_step(self, carried: bool) -> Compiled:
        """``(run, setup, args, [time]) -> run, row, made, going``: one step, for native loops."""
        step = make_step if carried else try_step

        def one(run: Run, setup: Setup, args: Args, *time: Array) -> tuple[Any, ...]:
            return step(Integration(self.current(), setup, args), run, *time)

        return self._compiled_loop(one, step.__name__, False)

    def step_repeater(self, carried: bool) -> Repeated | None:
        """``(run, (setup, args), rows) -> run, count``: steps of a single run into rows.

        ``carried``: the run carries interpolants, as in ``make_steps``; otherwise these are single
        trials. None where the backend computes elsewhere.
        """
        if self.backend.arrays is not HOST:
            return None
        return self.keep(("one", carried), lambda: Repeated(self._one_step(carried)))

    def to_outputs(self, carried: bool) -> RepeatedBatch:
        """Steps of many runs with the outputs within them, each run for itself; see ``Items``.

        ``(run, (setup, args), many, items) -> run``; for devices. ``carried`` as above.
        """
        from archimedes.function.batching.sorted_items import RepeatedBatch

        def build() -> RepeatedBatch:
            width, step = self.rows().width, self._one_step(carried)
            return RepeatedBatch(step, self._state(), width, END, self.backend)

        return self.keep(("to outputs", carried), build)

    def _state(self) -> Compiled:
        """``(row, t) -> x``: the state at t in the step of a row."""
        rows, project = self.rows(), self.plan.project

        def state(row: Array, t: Scalar) -> Any:
            return state_in(rows, row, t, project)

        return self.compiled(state, "state", early=False, drafts=True)

    def over(self) -> RunByRun:
        """Return what computes outputs in the rows of steps."""
        from archimedes.function.batching.sorted_items import over_runs

        return self.keep("over", lambda: over_runs(self._state(), self.rows().width))

    def fill(self, times: Array, sign: float, x: Array) -> Callable[[Any, Any, Any], None]:
        """``(rows, chosen, done)``: outputs of steps into x, see ``over_runs``."""
        return self.over().bound(END, times, sign, x)

    def derivative(self) -> Compiled:
        """``(t, x, args) -> f``, on flat vectors."""

        def derivative(t: Scalar, x: Array, args: Args) -> Any:
            return self.current().derivative(args)(t, x)

        return self.keep("derivative", lambda: self.compiled(derivative, "derivative"))

    def jacobian(self) -> Compiled:
        """``(t, x, args) -> df/dx``, shape (n, n)."""
        from archimedes.function import jac

        def jacobian(t: Scalar, x: Array, args: Args) -> Any:
            return jac(self.current().derivative(args), argnums=1)(t, x)

        return self.keep("jacobian", lambda: self.compiled(jacobian, "jacobian", early=False))

    def project(self) -> Callable[[Any], Any] | None:
        """The projection over rows (m, n)."""
        project = self.plan.project
        if project is None:
            return None
        from archimedes.function import vmap

        build = lambda: vmap(self.compiled(project, "project", (), False, True))  # noqa: E731
        return self.keep("project", build)


class Watched:
    """The functions of users that a plan calls besides the derivative, which watches itself."""

    __slots__ = ("kernels",)

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    def __content__(self) -> tuple[Any, ...]:
        """Return events, resets and updates of sampled parts, of the plan to record now."""
        plan = self.kernels.current()
        events = () if plan.events is None else plan.events.events
        parts = () if plan.clock is None else plan.clock.parts
        return (*((e.fn, e.reset) for e in events), *(part.update for part in parts))


def kernels_for(key: Hashable, plan: Callable[[], Plan], backend: str | None = None) -> Kernels:
    """Return the kernels of a backend kept under this key, or those of a new plan.

    Functions of the same content as the plan's may have made the kernels that are kept: what is
    recorded from now on must not read those, which may change, and so asks for the plan again.
    """
    plan = functools.cache(plan)
    # Solvers have checked the name that a user gave.
    backend = registry.resolve_backend(backend or registry.check_backend("solve_ode", None))
    return store.find(
        ("kernels", key, backend), (plan,), lambda current: Kernels(plan(), backend, current)
    )

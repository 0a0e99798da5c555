"""Native kernels of the loops, kept between calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from archimedes.backends.array_kinds import HOST
from archimedes.backends.registry import (
    AUTO,
    check_backend,
    default_backend,
    get_backend,
    resolve_backend,
)
from archimedes.function import Compiled
from archimedes.function.batching.native_loops import Repeated
from archimedes.function.recording_store import Current, compile_frozen, store
from archimedes.simulate.stepping.dense_output import END, RowLayout, state_in
from archimedes.simulate.stepping.solve_loops import (
    make_step,
    try_step,
)
from archimedes.simulate.stepping.trial_step import Integration, Plan, Run, Setup

if TYPE_CHECKING:
    from archimedes.function.batching.sorted_items import Over, RepeatedBatch
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
    """Compile at the first call: a loop is never short enough to interpret it first (``early``).

    With ``drafts`` the first calls, which are short, run on code unoptimized. ``watch`` as in
    ``compile_frozen``.
    """
    backend = check_backend("solve_ode", backend)
    backend = backend if early else resolve_backend(backend)
    compiled = compile_frozen(function, watch, name, backend)
    compiled.drafts = drafts
    return compiled


class Kernels:
    """The loops of one plan as compiled functions, for one instance and for batches."""

    def __init__(self, plan: Plan, backend: str = AUTO, current: Current | None = None) -> None:
        self.plan = plan
        #: What runs them.
        self.backend = get_backend(backend)
        #: What makes the plan of the functions that each thread has given last.
        self._current = current or Current((lambda: plan,))
        self.watched = Watched(self)
        self.made: dict[Any, Any] = {}

    def keep(self, key: Any, build: Callable[[], Any]) -> Any:
        """Return what is kept under a key, making it if needed."""
        value = self.made.get(key)
        if value is None:
            value = self.made.setdefault(key, build())
        return value

    def _native(
        self,
        function: Callable[..., Any],
        watch: Sequence[Any] = (),
        name: str = "",
        early: bool = False,
        drafts: bool = True,
    ) -> Compiled:
        """``early``: it is interpreted until compiling is worth it, as other functions are."""
        backend = AUTO if early and self.backend is default_backend() else self.backend.name
        return native(function, name or function.__name__, watch, backend, early, drafts)

    def current(self) -> Plan:
        """Return the plan to record now."""
        (make_plan,) = self._current.functions
        return make_plan()

    def rows(self, dense: bool = True) -> RowLayout:
        """Return the layout of the rows that ``steps`` puts out."""
        return RowLayout(self.plan.layout.size, self.plan.method.dense_degree if dense else 0)

    def begin(self, dense: bool) -> Compiled:
        """``(setup, t, x, args) -> run``."""

        def begin(setup: Setup, t: Scalar, x: Array, args: Args) -> Run:
            return Integration(self.current(), setup, args).begin(t, x, dense)

        # It has no loop of ours, and is called once for each solve.
        return self.keep(("begin", dense), lambda: self._native(begin, (self.watched,), early=True))

    def loop(self, loop: Callable[..., Any], *fixed: Any) -> Compiled:
        """Return a loop of ``solve_loops.py`` as a kernel ``(setup, args, run, *inputs)``."""

        def kernel(setup: Setup, args: Args, run: Run, *inputs: Any) -> Any:
            return loop(Integration(self.current(), setup, args), run, *inputs, *fixed)

        build = lambda: self._native(kernel, (self.watched,), loop.__name__)  # noqa: E731
        return self.keep((loop, *fixed), build)

    @property
    def single(self) -> Kernels | Stepwise:
        """What makes the steps of a single run."""
        if self.backend.arrays is not HOST or not in_python(self.plan):
            return self
        from archimedes.simulate.stepping.stepwise import Stepwise

        return self.keep("stepwise", lambda: Stepwise(self))

    def compiled(
        self, function: Callable[..., Any], name: str, watch: Sequence[Any] = ()
    ) -> Compiled:
        """Compile a part of the plan that is called on its own."""
        return self._native(function, watch, name, early=True, drafts=False)

    def step_repeater(self, carried: bool) -> Repeated | None:
        """``(run, (setup, args), rows) -> run, count``: steps of a single run into rows.

        ``carried``: the run carries interpolants, as in ``make_steps``; otherwise these
        are single trials. None where the backend computes elsewhere.
        """
        if self.backend.arrays is not HOST:
            return None
        step = make_step if carried else try_step

        def one(run: Run, setup: Setup, args: Args) -> tuple[Any, ...]:
            return step(Integration(self.current(), setup, args), run)

        return self.keep(
            ("one", carried), lambda: Repeated(self._native(one, (self.watched,), step.__name__))
        )

    def to_outputs(self, carried: bool) -> RepeatedBatch:
        """Steps of many runs with the outputs within them, each run for itself; see ``Items``.

        ``(run, (setup, args), many, items) -> run``; for devices. ``carried`` as above.
        """
        from archimedes.function.batching.sorted_items import RepeatedBatch

        step = make_step if carried else try_step

        def one(run: Run, setup: Setup, args: Args, time: Array) -> tuple[Any, ...]:
            return step(Integration(self.current(), setup, args), run, time)

        def build() -> RepeatedBatch:
            stepped = self._native(one, (self.watched,), step.__name__)
            return RepeatedBatch(
                stepped,
                self._native(self._state, name="state"),
                self.rows().width,
                END,
                self.backend,
            )

        return self.keep(("to outputs", carried), build)

    def _state(self, row: Array, t: Scalar) -> Any:
        """Return the state at t in the step of a row."""
        return state_in(self.rows(), row, t, self.plan.project)

    @property
    def plain(self) -> bool:
        """Whether runs go on without events and sampled parts."""
        return self.plan.events is None and self.plan.clock is None

    def fill(self, times: Array, sign: float, x: Array) -> Callable[[Any, Any, Any], None]:
        """``(rows, places, done)``: outputs of steps into x, see ``over_runs``."""
        return self.over().bound(END, times, sign, x)

    def over(self) -> Over:
        """Return what computes outputs in the rows of steps."""
        from archimedes.function.batching.sorted_items import over_runs

        return self.keep(
            "fill", lambda: over_runs(self._native(self._state, name="state"), self.rows().width)
        )

    def derivative(self) -> Compiled:
        """``(t, x, args) -> f``, on flat vectors."""

        def derivative(t: Scalar, x: Array, args: Args) -> Any:
            return self.current().derivative(args)(t, x)

        return self.keep("derivative", lambda: self._native(derivative, early=True, drafts=False))

    def jacobian(self) -> Compiled:
        """``(t, x, args) -> df/dx``, shape (n, n)."""

        from archimedes.function import jac

        def jacobian(t: Scalar, x: Array, args: Args) -> Any:
            return jac(self.current().derivative(args), argnums=1)(t, x)

        return self.keep("jacobian", lambda: self._native(jacobian, drafts=False))

    def project(self) -> Callable[[Any], Any] | None:
        """The projection over rows (m, n)."""
        project = self.plan.project
        if project is None:
            return None
        from archimedes.function import vmap

        return self.keep("project", lambda: vmap(self._native(project, name="project")))


class Watched:
    """What users wrote that is called besides the derivative, which looks after itself."""

    __slots__ = ("kernels",)

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    @property
    def functions(self) -> tuple[Any, ...]:
        """Events, resets and updates of sampled parts, of the plan to record now."""
        plan = self.kernels.current()
        events = () if plan.events is None else plan.events.events
        parts = () if plan.clock is None else plan.clock.parts
        return (*((e.fn, e.reset) for e in events), *(part.update for part in parts))

    def __content__(self) -> tuple[Any, ...]:
        return self.functions


def kernels_for(key: Hashable, plan: Callable[[], Plan], backend: str | None = None) -> Kernels:
    """Return the kernels of a backend kept under this key, or those of a new plan.

    Functions of the same content as the plan's may have made the kernels that are kept: what is
    recorded from now on must not read those, which may change, and so asks for the plan again.
    """
    plan = functools.cache(plan)
    # Solvers have checked the name that a user gave.
    backend = resolve_backend(backend or check_backend("solve_ode", None))
    return store.find(
        ("kernels", key, backend), (plan,), lambda current: Kernels(plan(), backend, current)
    )

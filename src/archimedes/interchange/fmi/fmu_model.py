"""A model on flat arrays: all that an FMU computes, as functions that become C.

The memory of an FMU instance has a few arrays: the states, behind them the memories of sampled
parts (``x``), and the inputs and parameters by type (``real``, ``integer``, ``boolean``). Each
function here takes such arrays and returns others. A co-simulation is the solve itself: a trial
step of ``simulate/stepping/trial_step.py`` becomes a C function, and so does everything around it
that depends on the model; the loop is in ``templates/component.c``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import CodegenError
from archimedes.function import jac
from archimedes.interchange.fmi.fmu_variables import Banks, Branch, Leaf, branch_of
from archimedes.simulate.events.event import Event, Watch, check_events, side_of_zero
from archimedes.simulate.problem import argument_checks, state_layout
from archimedes.simulate.problem.inputs import Sampled, check_sampled
from archimedes.simulate.solves import initial_value_problem as ivp
from archimedes.simulate.solves.hybrid import Hybrid, hybrid_of
from archimedes.simulate.statuses import Status
from archimedes.simulate.stepping.trial_step import Integration, Plan, Run

#: The arrays that a model reads, besides time and state.
BANKS = ("real", "integer", "boolean")


@dataclass(frozen=True)
class Settings:
    """How an FMU solves: the options of a solve, checked."""

    options: ivp.Options
    dt: float | None
    start_time: float
    stop_time: float


class FmuModel:
    """What the user gave, flattened; its methods are the functions of the FMU."""

    def __init__(
        self,
        func: Callable[..., Any],
        x0: Any,
        inputs: Any,
        parameters: Any,
        outputs: Callable[..., Any] | None,
        events: Any,
        sampled: Any,
        settings: Settings,
    ) -> None:
        self.func, self.outputs_of, self.settings = func, outputs, settings
        state_layout.check_time_first(func)
        self.x0 = state_layout.as_state(x0)
        self.layout = state_layout.layout_of(self.x0)
        argument_checks.check_state(self.x0, self.layout)
        self.state_branch = branch_of(self.x0, "x", Banks(), "x0")
        self.has_inputs, self.has_parameters = inputs is not None, parameters is not None
        banks = Banks()
        self.input_branch = branch_of(inputs, "u", banks, "inputs")
        self.parameter_branch = branch_of(parameters, "p", banks, "parameters")
        self.banks = banks.arrays()
        self.events = check_events(events)
        self.parts = () if sampled is None else check_sampled(sampled)
        self.sampled = sampled
        self._prepare()

    # ---- arguments ------------------------------------------------------------------------

    @property
    def bank_names(self) -> tuple[str, ...]:
        """The arrays of inputs and parameters that are not empty."""
        return tuple(name for name in BANKS if self.banks[name].size)

    def rest(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Return (inputs, parameters), those that there are, from the arrays."""
        banks = dict(zip(self.bank_names, arrays, strict=True))
        rest = []
        if self.has_inputs:
            rest.append(self.input_branch.unpack(banks))
        if self.has_parameters:
            rest.append(self.parameter_branch.unpack(banks))
        return tuple(rest)

    @property
    def bank_arguments(self) -> tuple[tuple[str, Any], ...]:
        """The C expressions and examples of these arrays."""
        return tuple((f"data->{name}", self.banks[name]) for name in self.bank_names)

    def _prepare(self) -> None:
        """Make the solve of the flat model: of state and memories, with arrays as arguments."""
        rest, func, has_memory = self.rest, self.func, bool(self.parts)

        def flat(t: Any, x: Any, *more: Any) -> Any:
            memory, arrays = (more[:1], more[1:]) if has_memory else ((), more)
            return func(t, x, *memory, *rest(arrays))

        flat.written_as = func  # type: ignore[attr-defined]
        events = tuple(self._flat_event(event) for event in self.events)
        options = self.settings.options
        options = dataclasses.replace(options, dt=self.settings.dt, events=events)
        self.hybrid: Hybrid | None = None
        dynamics: Callable[..., Any] = flat
        state = tree.map(lambda leaf: leaf * 1.0, self.x0)
        if has_memory:
            parts = [self._flat_part(part) for part in self.parts]
            single = parts[0] if isinstance(self.sampled, Sampled) else parts
            self.hybrid = hybrid_of(flat, None, single, 0.0, 0.0)
            options.clock, options.events = self.hybrid.acting, self.hybrid.events(events)
            dynamics = self.hybrid.dynamics
            state = (state, tuple(tree.map(lambda leaf: leaf * 1.0, p.init) for p in self.parts))
        self.full_layout = state_layout.layout_of(state)
        self.start = np.array(self.full_layout.pack(state), dtype=np.float64)
        self.args = tuple(self.banks[name] for name in self.bank_names)
        self.method = ivp.find_method(options.method)
        if self.method.drive is not None:
            raise CodegenError(
                f"export_fmu: method={self.method.name!r} is a solver of another library, which "
                "does not go into C: choose one of ours, such as 'rk4', 'dop853' or 'rodas5p'"
            )
        self.options = options
        self.plan: Plan = ivp.model_of(dynamics, self.args).plan(
            self.full_layout, self.method, options
        )

    def _flat_event(self, event: Event) -> Event:
        """Return an event whose functions take the arrays."""
        rest, has_memory = self.rest, bool(self.parts)

        def flatten(own: Callable[..., Any]) -> Callable[..., Any]:
            def call(t: Any, x: Any, *more: Any) -> Any:
                memory, arrays = (more[:1], more[1:]) if has_memory else ((), more)
                return own(t, x, *memory, *rest(arrays))

            call.written_as = own  # type: ignore[attr-defined]
            return call

        reset = None if event.reset is None else flatten(event.reset)
        return dataclasses.replace(event, fn=flatten(event.fn), reset=reset)

    def _flat_part(self, part: Sampled) -> Sampled:
        """Return a sampled part whose functions take the arrays."""
        rest, own, key = self.rest, part.update, part.key

        def update(t: Any, x: Any, memory: Any, *arrays: Any, **keys: Any) -> Any:
            return own(t, x, memory, *rest(arrays), **keys)

        update.written_as = own  # type: ignore[attr-defined]
        flat_key = (lambda *arrays: key(*rest(arrays))) if callable(key) else key
        return dataclasses.replace(part, update=update, key=flat_key)

    # ---- sizes and variables --------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of continuous states."""
        return self.layout.size

    @property
    def memory_size(self) -> int:
        """Number of scalars in the memories of sampled parts."""
        return self.full_layout.size - self.layout.size

    @cached_property
    def memory_branch(self) -> Branch:
        """The memories of the sampled parts, ``m``."""
        if not self.parts:
            return branch_of((), "m", Banks(), "memory")
        inits = tuple(tree.map(lambda leaf: leaf * 1.0, part.init) for part in self.parts)
        visible = inits[0] if isinstance(self.sampled, Sampled) else inits
        return branch_of(visible, "m", Banks(), "memory")

    @cached_property
    def output_branch(self) -> Branch:
        """The outputs, with their values at the start; empty where there is no such function."""
        return self._output_parts[0]

    @cached_property
    def output_sizes(self) -> dict[str, int]:
        """Numbers of outputs by type."""
        return {name: array.size for name, array in self._output_parts[1].items()}

    @cached_property
    def _output_parts(self) -> tuple[Branch, dict[str, np.ndarray]]:
        banks = Banks()
        value: Any = ()
        if self.outputs_of is not None:
            value = self._outputs_at(self.settings.start_time, self.start, self.args)
            if value is None:
                raise CodegenError(
                    "export_fmu: outputs returned None instead of numbers: is a `return` missing?"
                )
        branch = branch_of(value, "y", banks, "outputs")
        return branch, banks.arrays()

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        """The output variables of the function `outputs`."""
        return self.output_branch.variables

    # ---- the functions --------------------------------------------------------------------

    def _split(self, x: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the user's state, and the memory as a tuple of no or one argument."""
        state = self.full_layout.unpack(np.copy(x))
        if self.hybrid is None:
            return state, ()
        return state[0], self.hybrid.between(0.0, state[1])

    def _outputs_at(self, t: Any, x: Any, arrays: Sequence[Any]) -> Any:
        assert self.outputs_of is not None
        state, memory = self._split(x)
        return self.outputs_of(t, state, *memory, *self.rest(arrays))

    @property
    def output_types(self) -> tuple[str, ...]:
        """The types that outputs have."""
        return tuple(name for name in BANKS if self.output_sizes[name])

    def outputs_by_type(self, t: Any, x: Any, *arrays: Any) -> tuple[Any, ...]:
        """Return the outputs as one array for each of their types."""
        leaves, treedef = tree.flatten(self._outputs_at(t, x, arrays))
        if not self.output_branch.treedef.matches(treedef):
            raise CodegenError("export_fmu: outputs returns another structure while it is recorded")
        banks: dict[str, list[Any]] = {name: [] for name in BANKS}
        dtypes = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}
        for leaf, known in zip(leaves, self.output_branch.leaves):
            if known is not None:
                flat = np.reshape(leaf, (-1,))
                banks[known.type].append(np.asarray(flat).astype(dtypes[known.type]))
        return tuple(np.concatenate(banks[name]) for name in self.output_types)

    def derivative(self, t: Any, x: Any, *arrays: Any) -> Any:
        """Return dx/dt of the continuous states."""
        return self.plan.derivative(arrays)(t, x)[: self.size]

    @cached_property
    def watch(self) -> Watch | None:
        """The events on flat vectors."""
        return self.plan.events

    def indicators(self, t: Any, x: Any, *arrays: Any) -> Any:
        """Return the event functions, shape (E,)."""
        assert self.watch is not None
        return self.watch.values(t, x, arrays)

    def sides(self, t: Any, x: Any, *arrays: Any) -> Any:
        """Return for each event whether its function is positive, or leaves zero that way."""
        assert self.watch is not None
        slope = self.plan.derivative(arrays)(t, x)
        rates = self.watch.rates(t, x, slope, arrays)
        return side_of_zero(self.watch.values(t, x, arrays), rates) > 0.0

    def reset(self, t: Any, x: Any, fired: Any, *arrays: Any) -> Any:
        """Return the state after the events that fired."""
        assert self.watch is not None
        for k, event in enumerate(self.watch.events):
            if event.reset is not None:
                x = np.where(fired[k], self.watch.reset(k, t, x, arrays), x)
        return self._project(x)

    def _project(self, x: Any) -> Any:
        return x if self.plan.project is None else self.plan.project(x)

    def sample(self, t: Any, x: Any, *arrays: Any) -> Any:
        """Return state and memories after the sampled parts that are due."""
        clock = self.options.clock
        assert clock is not None
        return clock.flat_tick(self.full_layout, t, x, arrays)

    def next_sample(self, t: Any) -> Any:
        """Return the time of the next sample."""
        clock = self.options.clock
        assert clock is not None
        return clock.stop(t, np.inf)

    def activate(self, k: int, t: Any, x: Any, *arrays: Any) -> Any:
        """Return state and memories after one sampled part has acted."""
        clock = self.options.clock
        assert clock is not None
        state, memories = self.full_layout.unpack(np.copy(x))
        visible = clock.visible_memories(memories)
        new = clock.parts[k].act(k, t, state, visible, arrays)
        parts = [*memories[:k], tree.map(lambda leaf: leaf * 1.0, new), *memories[k + 1 :]]
        return self.full_layout.pack((state, tuple(parts)))

    def advance(self, t: Any, x: Any, h: Any, *arrays: Any) -> Any:
        """Return the state after one step of the method."""
        f = self.plan.derivative(arrays)
        return self._project(self.method.step(f, t, x, h, self.method.start(f, t, x)).x)

    # ---- the solve ------------------------------------------------------------------------

    def _integration(
        self, start: Any, end: Any, tolerance: Any, arrays: Sequence[Any]
    ) -> Integration:
        options = dataclasses.replace(self.options)
        setup = options.setup(self.full_layout, 0.0, 1.0)
        scaled = {"rtol": setup.rtol * tolerance, "atol": setup.atol * tolerance}
        if not self.plan.adaptive:
            scaled = {}
        setup = tree.replace(setup, t_start=start, t_end=end, **scaled)
        return Integration(self.plan, setup, tuple(arrays))

    @cached_property
    def run_form(self) -> RunForm:
        """How a run lies in memory."""
        ode = self._integration(0.0, 1.0, 1.0, self.args)
        with np.errstate(all="ignore"):
            run = ode.begin(0.0, self.start, self.watch is not None)
        return RunForm.of(run)

    def begin_run(
        self, t: Any, x: Any, start: Any, end: Any, tolerance: Any, *arrays: Any
    ) -> tuple[Any, ...]:
        """Return the run that stands at t."""
        ode = self._integration(start, end, tolerance, arrays)
        return self.run_form.pack(ode.begin(t, x, self.watch is not None))

    def restart_run(self, *given: Any) -> tuple[Any, ...]:
        """Return a run after its inputs have changed: the method begins again, with its step."""
        run, ode = self._given_run(given)
        begun = ode.begin(run.t, run.x, run.dense is not None)
        signals = run.signals
        if signals is not None:
            g, rate = begun.signals.g, begun.signals.rate
            signals = tree.replace(signals, g=g, rate=rate, g_before=g, rate_before=rate)
        failed = begun.status == Status.NON_FINITE
        status = np.where(failed, begun.status, run.status)
        return self.run_form.pack(
            tree.replace(run, memory=begun.memory, status=status, signals=signals)
        )

    def attempt(self, *given: Any) -> tuple[Any, ...]:
        """Return the run after one trial step.

        A step that was cut short at the end of the span does not make later ones shorter.
        """
        run, ode = self._given_run(given)
        run = tree.replace(run, status=np.where(run.status == 0, Status.RUNNING, run.status))
        new = ode.attempt(run, None if run.dense is None else lambda t: t != t).run
        if self.plan.adaptive:
            cut = (new.accepted > run.accepted) & (new.status == Status.FINISHED)
            wish = np.where(np.abs(new.h) > np.abs(run.h), new.h, run.h)
            new = tree.replace(new, h=np.where(cut, wish, new.h))
        return self.run_form.pack(new)

    def _given_run(self, given: Sequence[Any]) -> tuple[Run, Integration]:
        count = len(self.run_form.names)
        run = self.run_form.unpack(given[:count])
        start, end, tolerance = given[count : count + 3]
        return run, self._integration(start, end, tolerance, given[count + 3 :])

    # ---- derivatives ----------------------------------------------------------------------

    def unknowns(self, x: Any, real: Any, t: Any, memory: Any, *others: Any) -> Any:
        """Return derivatives, real outputs and event functions as one vector.

        ``others``: integers and booleans.
        """
        full = np.concatenate([x, memory]) if self.memory_size else x
        arrays = ((real,) if self.banks["real"].size else ()) + others
        parts = [self.derivative(t, full, *arrays)]
        if self.outputs_of is not None and self.output_sizes["real"]:
            parts.append(self.outputs_by_type(t, full, *arrays)[0])
        if self.events:
            parts.append(self.indicators(t, full, *arrays))
        return np.concatenate(parts)

    @cached_property
    def jacobian(self) -> Any:
        """The sparse Jacobian of ``unknowns`` in states, real inputs and parameters."""
        return jac(self.unknowns, argnums=(0, 1), sparse=True)

    @property
    def jacobian_examples(self) -> tuple[Any, ...]:
        """Example arguments of ``unknowns``."""
        others = tuple(self.banks[name] for name in self.bank_names if name != "real")
        x, memory = self.start[: self.size], self.start[self.size :]
        return (x, self.banks["real"], self.settings.start_time, memory, *others)


@dataclass(frozen=True)
class RunForm:
    """How a :class:`Run` lies in memory: its leaves by type, one behind the other."""

    treedef: Any
    types: tuple[str, ...]
    offsets: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    examples: Mapping[str, np.ndarray]
    paths: tuple[str, ...]

    @classmethod
    def of(cls, run: Run) -> RunForm:
        """Return the form of a run like this one."""
        leaves, treedef = tree.flatten(run)
        banks, types, offsets = Banks(), [], []
        kinds = {"f": "real", "i": "integer", "b": "boolean"}
        for leaf in leaves:
            kind = kinds[np.asarray(leaf).dtype.kind]
            types.append(kind)
            offsets.append(banks.add(kind, np.asarray(leaf)))
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        paths = tuple(path.removeprefix("run.") for path in treedef.paths("run"))
        return cls(treedef, tuple(types), tuple(offsets), shapes, banks.arrays(), paths)

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that are not empty."""
        return tuple(name for name in BANKS if self.examples[name].size)

    def offset(self, path: str) -> int:
        """Return where a leaf lies in the array of its type."""
        return self.offsets[self.paths.index(path)]

    def unpack(self, arrays: Sequence[Any]) -> Run:
        """Return the run that lies in the arrays."""
        banks = dict(zip(self.names, arrays, strict=True))
        leaves = [
            banks[kind][offset : offset + math.prod(shape)].reshape(shape)
            for kind, offset, shape in zip(self.types, self.offsets, self.shapes)
        ]
        return self.treedef.unflatten(leaves)

    def pack(self, run: Run) -> tuple[Any, ...]:
        """Return the arrays of a run."""
        banks: dict[str, list[Any]] = {name: [] for name in self.names}
        for leaf, kind in zip(tree.leaves(run), self.types, strict=True):
            if np.size(leaf):
                banks[kind].append(np.reshape(leaf, (-1,)))
        dtypes = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}
        return tuple(np.concatenate(banks[name]).astype(dtypes[name]) for name in self.names)

"""What an FMU tells an importer: its variables, which depends on which, and its interfaces.

An array is one variable in FMI 3, and one for each element in FMI 2; value references count the
scalars, so that both have the same table in C.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.errors import CodegenError, UnitsError
from archimedes.function.derivatives.sparse import SparsePattern
from archimedes.graph.derivatives.rules import IS_SMOOTH
from archimedes.graph.derivatives.sparsity import pattern
from archimedes.graph.dtypes import is_float
from archimedes.graph.ops import BLOCK, CODES, CONST, ELEMENT, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Map, Nest, Pack, Scan
from archimedes.interchange.fmi.fmu_model import FmuModel
from archimedes.interchange.fmi.fmu_variables import Leaf, element_names
from archimedes.physical_units import parse_unit

_TO_FLOAT = CODES["f64"]
#: From the warning to the user's line.
_FRAMES = 10


@dataclass(frozen=True)
class Variable:
    """A variable of the FMU.

    ``bank`` and ``offset`` say where it lies in an instance, ``rule`` when it may be set (NEVER,
    START, INPUT, DISCRETE or TUNABLE), ``derivative_of`` the reference of the state.
    """

    name: str
    reference: int
    bank: str
    offset: int
    shape: tuple[int, ...]
    type: str
    causality: str
    variability: str
    initial: str | None
    rule: str
    start: np.ndarray | None = None
    units: str = ""
    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    derivative_of: int | None = None

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)

    @property
    def element_names(self) -> list[str]:
        """Names of the scalars."""
        if self.name.startswith("der("):
            return [f"der({name})" for name in element_names(self.name[4:-1], self.shape)]
        return element_names(self.name, self.shape)


@dataclass(frozen=True)
class Clock:
    """A clock of scheduled execution."""

    name: str
    reference: int
    interval: float
    shift: float
    description: str


class Description:
    """Everything that ``modelDescription.xml`` and the tables in C are written from."""

    def __init__(
        self,
        model: FmuModel,
        name: str,
        identifier: str,
        kinds: frozenset[str],
        version: str,
        summary: str,
    ) -> None:
        self.model, self.name, self.identifier = model, name, identifier
        self.kinds, self.version, self.summary = kinds, version, summary
        self.token = ""
        options = model.settings.options
        self.settings_dt = model.settings.dt
        self.tolerance = float(options.rtol)
        self.variables: list[Variable] = []
        self._names: set[str] = set()
        self._count = 0
        self._add_variables()
        self.clocks = self._clocks() if "se" in kinds else []

    # ---- variables ------------------------------------------------------------------------

    def _add(self, **fields: Any) -> Variable:
        variable = Variable(reference=self._count, **fields)
        if variable.name in self._names:
            raise CodegenError(
                f"export_fmu: two variables would be called {variable.name}: rename one of the "
                "fields or keys"
            )
        self._names.add(variable.name)
        self.variables.append(variable)
        self._count += variable.size
        return variable

    def _add_variables(self) -> None:
        model = self.model
        self._add(
            name="time", bank="time", offset=0, shape=(), type="real", causality="independent",
            variability="continuous", initial=None, rule="NEVER", units="s",
            description="Simulation time",
        )  # fmt: skip
        states = []
        causality = "local" if model.outputs_of is not None else "output"
        for leaf in model.state_branch.variables:
            states.append(
                self._add_leaf(leaf, "x", causality, "continuous", "exact", "START", type="real")
            )
        for leaf, state in zip(model.state_branch.variables, states):
            self._add(
                name=f"der({state.name})", bank="dx", offset=leaf.offset, shape=leaf.shape,
                type="real", causality="local", variability="continuous", initial="calculated",
                rule="NEVER", units=_rate_units(leaf.units), derivative_of=state.reference,
                description=f"Time derivative of {state.name}",
            )  # fmt: skip
        for leaf in model.input_branch.variables:
            continuous = leaf.type == "real"
            self._add_leaf(
                leaf, leaf.type, "input", "continuous" if continuous else "discrete", "exact",
                "INPUT" if continuous else "DISCRETE",
            )  # fmt: skip
        for leaf in model.parameter_branch.variables:
            self._add_leaf(leaf, leaf.type, "parameter", "tunable", "exact", "TUNABLE")
        for leaf in model.memory_branch.variables:
            self._add_leaf(
                leaf, "x", "local", "discrete", "exact", "START", shift=model.size, type="real"
            )
        for leaf in model.outputs:
            variability = "continuous" if leaf.type == "real" else "discrete"
            self._add_leaf(
                leaf, f"y_{leaf.type}", "output", variability, "calculated", "NEVER", start=None
            )
        if model.events and self.version == "3.0":
            for k, event in enumerate(model.events):
                title = getattr(event.fn, "__name__", "")
                self._add(
                    name=f"event[{k + 1}]", bank="z", offset=k, shape=(), type="real",
                    causality="local", variability="continuous", initial="calculated",
                    rule="NEVER", description="" if title == "<lambda>" else title,
                )  # fmt: skip

    def _add_leaf(
        self,
        leaf: Leaf,
        bank: str,
        causality: str,
        variability: str,
        initial: str,
        rule: str,
        shift: int = 0,
        **changes: Any,
    ) -> Variable:
        start = changes.pop("start", leaf.value)
        return self._add(
            name=leaf.name, bank=bank, offset=leaf.offset + shift, shape=leaf.shape,
            type=changes.get("type", leaf.type), causality=causality, variability=variability,
            initial=initial, rule=rule, start=start, units=leaf.units,
            description=leaf.description, minimum=leaf.minimum, maximum=leaf.maximum,
            nominal=leaf.nominal,
        )  # fmt: skip

    def _clocks(self) -> list[Clock]:
        model, clocks = self.model, []
        for k, part in enumerate(model.parts):
            text = getattr(part.update, "__name__", "").replace("<lambda>", "")
            clocks.append(
                Clock(
                    f"clock.sampled[{k + 1}]", self._count, float(part.dt or 0.0), part.offset, text
                )
            )
            self._count += 1
        if model.settings.dt:
            text = "Advances the state to the time of activation"
            clocks.append(Clock("clock.step", self._count, model.settings.dt, 0.0, text))
            self._count += 1
        return clocks

    def of(self, bank: str) -> list[Variable]:
        """Return the variables of a bank."""
        return [v for v in self.variables if v.bank == bank]

    @property
    def states(self) -> list[Variable]:
        """The continuous states."""
        return [v for v in self.of("x") if v.variability == "continuous"]

    @property
    def outputs(self) -> list[Variable]:
        """The outputs."""
        return [v for v in self.variables if v.causality == "output"]

    @property
    def nominals(self) -> np.ndarray:
        """Nominal values of the states."""
        values = [np.full(v.size, v.nominal or 1.0) for v in self.states]
        return np.concatenate(values)

    # ---- dependencies ---------------------------------------------------------------------

    @cached_property
    def pattern(self) -> SparsePattern:
        """Where the Jacobian of derivatives, outputs and event functions has entries."""
        return self.model.jacobian.pattern(*self.model.jacobian_examples)

    @cached_property
    def dependencies(self) -> dict[tuple[str, int], set[int]]:
        """References of the scalars on which each scalar unknown depends, by bank and offset."""
        return _Dependencies(self).sets

    def knowns(self, initial: bool) -> set[int]:
        """Return the references of the scalars that unknowns may depend on.

        During initialization these are all variables that have start values, else inputs, states
        and time.
        """
        found: set[int] = set()
        for v in self.variables:
            known = v.causality in ("input", "independent")
            known = known or (v.bank == "x" and v.variability == "continuous")
            if known or (initial and v.initial == "exact"):
                found |= set(range(v.reference, v.reference + v.size))
        return found

    @property
    def dependency_table(self) -> tuple[list[int], list[int]]:
        """Where the dependencies of each unknown begin, and their references, row by row."""
        sizes, knowns = self.model.output_sizes, self.knowns(initial=False)
        banks = {"dx": self.model.size, "y_real": sizes["real"], "z": len(self.model.events)}
        banks |= {"y_integer": sizes["integer"], "y_boolean": sizes["boolean"]}
        starts, references = [0], list[int]()
        for bank, size in banks.items():
            for k in range(size):
                references += sorted(self.dependencies[bank, k] & knowns)
                starts.append(len(references))
        return starts, references


class _Dependencies:
    """Which unknowns depend on which knowns: by values too, where there is no derivative."""

    def __init__(self, description: Description) -> None:
        from archimedes.function import Compiled

        model = description.model
        where: dict[tuple[str, int], int] = {}
        for v in description.variables:
            for k in range(v.size):
                where[v.bank, v.offset + k] = v.reference + k
        x = model.start
        examples = (model.settings.start_time, x, *model.args)
        columns = [where["time", 0]]
        columns += [where.get(("x", k), -1) for k in range(x.size)]
        for name in model.bank_names:
            columns += [where[name, k] for k in range(model.banks[name].size)]
        self.sets: dict[tuple[str, int], set[int]] = {}

        #: References of integers that something else than a conversion to float reads.
        counted: set[int] = set()

        def follow(function: Any, banks: Sequence[tuple[str, int]]) -> None:
            recording = Compiled(function).recording(*examples)
            graph, reference = recording.graph, dict(zip(recording.graph.inputs, columns))
            for i in graph.live():
                if graph.op[i] != _TO_FLOAT:
                    counted.update(reference[j] for j in graph.operands(i) if j in reference)
            found = _reach(graph)
            rows = [(bank, k) for bank, count in banks for k in range(count)]
            at = 0
            for out in recording.outs:
                for _ in range(math.prod(out.shape)):
                    key = rows.pop(0)
                    if out.spec.traced:
                        self.sets[key] = {columns[j] for j in found[at]} - {-1}
                        at += 1
                    else:
                        self.sets[key] = set()

        follow(model.derivative, [("dx", model.size)])
        if model.outputs:
            sizes = [(f"y_{name}", model.output_sizes[name]) for name in model.output_types]
            follow(model.outputs_by_type, sizes)
        if model.events:
            follow(model.indicators, [("z", len(model.events))])
        for leaf in (*model.input_branch.variables, *model.parameter_branch.variables):
            if leaf.is_plain_int and where["integer", leaf.offset] not in counted:
                warnings.warn(
                    f"export_fmu: {leaf.path} = {leaf.value} is a Python int, so that it is an "
                    "integer in the FMU and fractions cannot be set, but the model uses it as a "
                    f"float: give {leaf.value}.0, or np.int64({leaf.value}) if it is an integer",
                    stacklevel=_FRAMES,
                )


def _reach(graph: Graph) -> list[list[int]]:
    """Return the inputs that each output of a graph is computed from, by their numbers.

    Where every operation has a derivative, these are the entries of the Jacobian. Elsewhere, what
    leaves a region depends on all that enters it.
    """
    if _is_smooth(graph):
        entries = pattern(graph, range(len(graph.inputs)))
        rows: list[list[int]] = [[] for _ in graph.outputs]
        for row, column in zip(entries.rows.tolist(), entries.columns.tolist()):
            rows[row].append(column)
        return rows
    sets = [0] * len(graph)
    for k, node in enumerate(graph.inputs):
        sets[node] = 1 << k
    for i in graph.live():
        if graph.op[i] != INPUT:
            for j in graph.operands(i):
                sets[i] |= sets[j]
    return [_bits(sets[node]) for node in graph.outputs]


#: Operations that move values, and have no derivative of their own.
_MOVES = frozenset({INPUT, CONST, OUT, REGION, ELEMENT, BLOCK})

#: Regions that choose nothing themselves: what their bodies do decides.
_SMOOTH_REGIONS = (Call, Map, Nest, Pack, Scan)


def _is_smooth(graph: Graph) -> bool:
    """Return whether all values are floats that carry derivatives, in loops and calls too."""
    for i in graph.live():
        if not (IS_SMOOTH[graph.op[i]] or graph.op[i] in _MOVES):
            return False
        if graph.op[i] == INPUT and not is_float(graph.dtype[i]):
            return False
        if graph.op[i] == REGION:
            region = graph.regions[i]
            own_rule = isinstance(region, Call) and region.derivative is not None
            if type(region) not in _SMOOTH_REGIONS or own_rule:
                return False
            if not all(map(_is_smooth, region.bodies)):
                return False
    return True


def _bits(number: int) -> list[int]:
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


def _rate_units(units: str) -> str:
    """Return the unit of a derivative.

    >>> _rate_units("m"), _rate_units("rad"), _rate_units("")
    ('m/s', 'rad/s', '')
    """
    if not units:
        return ""
    if units in ("rad", "deg"):
        return f"{units}/s"
    try:
        return str(parse_unit(units) / parse_unit("s"))
    except UnitsError:
        return ""

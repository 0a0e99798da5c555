"""What an FMU says about itself: ``modelDescription.xml`` of FMI 2.0 and 3.0.

Nothing of the FMU runs for this. Every number, index and name is checked, since the file may come
from anywhere: what is returned is consistent. Both versions are read into the same records, with
the names of FMI 3.0 for types: ``Real`` of 2.0 is ``Float64``, ``Integer`` is ``Int32``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archimedes.interchange.fmi.fmu_archive import FmuArchive
from archimedes.xml_elements import Element, number, parse_elements

FILE = "modelDescription.xml"
#: Numbers in all variables together, and event indicators.
MOST_NUMBERS, MOST_INDICATORS = 10_000_000, 1_000_000

#: Types of FMI 2.0 by those of 3.0, and what the numbers of each type are here.
OLD_TYPES = {"Real": "Float64", "Integer": "Int32", "Boolean": "Boolean", "String": "String"}
OLD_TYPES["Enumeration"] = "Enumeration"
FLOATS = {"Float64": np.float64, "Float32": np.float32}
INTEGERS = {
    f"{sign}Int{bits}": np.dtype(f"{sign.lower()}int{bits}").type
    for sign in ("", "U")
    for bits in (8, 16, 32, 64)
}
INTEGERS["Enumeration"] = np.int64
DTYPES: dict[str, Any] = {**FLOATS, **INTEGERS, "Boolean": np.bool_, "Clock": np.bool_}
OTHERS = ("String", "Binary")
CAUSALITIES = (
    *("local", "input", "output", "parameter", "calculatedParameter", "independent"),
    "structuralParameter",
)
VARIABILITIES = ("constant", "fixed", "tunable", "discrete", "continuous")
#: Interfaces by their short name.
KINDS = {"me": "ModelExchange", "cs": "CoSimulation", "se": "ScheduledExecution"}


@dataclass(frozen=True)
class FmuVariable:
    """A variable of an FMU.

    Parameters
    ----------
    name : str
        Name, as the FMU spells it.
    reference : int
        Number under which the binary knows it.
    type : str
        Type of FMI 3.0: "Float64", "Int32", "Boolean", "String", ...
    causality : str
        "input", "output", "parameter", "local", ...
    variability : str
        "continuous", "discrete", "tunable", "fixed" or "constant".
    start : array, str or None
        Start value.
    unit : str
        Unit, "" where none is given.
    description : str
        What it is, in words.
    limits : (float, float)
        Smallest and largest value.
    shape : tuple of int
        Shape, () for a number.
    initial : str
        "exact", "approx", "calculated" or "".
    state : str or None
        The state of which this is the derivative.

    Examples
    --------
    >>> FmuVariable("h", 1, "Float64", unit="m").unit
    'm'
    """

    name: str
    reference: int
    type: str
    causality: str = "local"
    variability: str = "continuous"
    start: Any = None
    unit: str = ""
    description: str = ""
    limits: tuple[float, float] = (-math.inf, math.inf)
    shape: tuple[int, ...] = ()
    initial: str = ""
    state: str | None = None
    nominal: float = 1.0

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers or truth values."""
        return self.type in DTYPES and self.type != "Clock"


@dataclass(frozen=True)
class FmuInterface:
    """One of the interfaces of an FMU: the name of its binary, and what it can do."""

    identifier: str
    directional_derivatives: bool = False
    state_can_be_copied: bool = False
    completed_step_needed: bool = True
    variable_steps: bool = False
    only_one_instance: bool = False
    needs_other_tool: bool = False
    event_mode: bool = False
    step: float | None = None
    #: Source files of FMI 2.0; those of 3.0 are in a file of their own.
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class FmuDescription:
    """What ``modelDescription.xml`` says.

    Parameters
    ----------
    version : str
        "2.0" or "3.0".
    name : str
        Name of the model.
    token : str
        The ``guid`` or ``instantiationToken``, which the binary compares with its own.
    interfaces : dict
        Interfaces by "me", "cs" and "se".
    variables : dict
        Variables by name, in the order of the file.
    outputs : tuple of str
        Names of the outputs.
    states, derivatives : tuple of str
        Names of the continuous states and of their derivatives, in the same order.
    indicators : int
        Number of event indicators.
    """

    version: str
    name: str
    token: str
    interfaces: dict[str, FmuInterface]
    variables: dict[str, FmuVariable]
    outputs: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    derivatives: tuple[str, ...] = ()
    indicators: int = 0
    text: str = ""
    tool: str = ""
    #: Start and stop time, tolerance and step size that the author suggests.
    experiment: dict[str, float] = field(default_factory=dict)

    @property
    def size_x(self) -> int:
        """How many numbers the continuous states are together."""
        return sum(self.variables[name].size for name in self.states)

    def named(self, causality: str) -> list[FmuVariable]:
        """Return the variables of a causality, in the order of the file."""
        return [v for v in self.variables.values() if v.causality == causality]


def read_description(archive: FmuArchive) -> FmuDescription:
    """Read what an FMU says about itself; raise a ValueError for what contradicts itself."""
    root = parse_elements(archive.read(FILE), f"{archive.name}/{FILE}")
    if root.tag != "fmiModelDescription":
        raise root.error(f"the root is <{root.tag}>, expected <fmiModelDescription>")
    version = root.get("fmiVersion")
    if version == "2.0":
        return _Reader2(root).read()
    if re.fullmatch(r"3\.0(\.\d+)?", version):
        return _Reader3(root).read()
    raise root.error(f"fmiVersion is {version[:20]!r}: FMI 2.0 and 3.0 can be read")


# ---- attributes --------------------------------------------------------------------------------


def _whole(of: Element, name: str, most: int, least: int = 0) -> int:
    text = of.get(name)
    if not re.fullmatch(r"\d{1,20}", text, re.ASCII) or not least <= int(text) <= most:
        raise of.error(f"{name} is {text[:40]!r}, expected a whole number from {least} to {most}")
    return int(text)


def _flag(of: Element, name: str, default: bool = False) -> bool:
    text = of.attributes.get(name, str(default).lower()).strip()
    if text not in ("true", "false", "1", "0"):
        raise of.error(f"{name} is {text[:40]!r}, expected true or false")
    return text in ("true", "1")


def _number(of: Element, name: str) -> float | None:
    return number(of.attributes[name], of, name) if name in of.attributes else None


def _limit(of: Element, name: str, unlimited: float) -> float:
    """Return a limit; "INF" and "-INF" are how XML spells that there is none."""
    text = of.attributes.get(name, "").strip()
    if not text or text == ("INF" if unlimited > 0.0 else "-INF"):
        return unlimited
    return number(text, of, name)


def _choice(of: Element, name: str, choices: tuple[str, ...], default: str) -> str:
    text = of.attributes.get(name, default)
    if text not in choices:
        raise of.error(f"{name} is {text[:40]!r}, expected one of {', '.join(choices)}")
    return text


def _identifier(of: Element) -> str:
    text = of.get("modelIdentifier")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,200}", text):
        raise of.error(
            f"modelIdentifier is {text[:40]!r}; it names the binary and its functions, so it must "
            "be a name of C"
        )
    return text


def file_name(of: Element) -> str:
    """Return the name of a source file, which must be inside the FMU."""
    text = of.get("name")
    parts = text.split("/")
    if not text or "\\" in text or ":" in text or ".." in parts or "" in parts:
        raise of.error(f"the source file {text[:60]!r} is not inside the FMU")
    return text


# ---- both versions -----------------------------------------------------------------------------


class _Reader:
    """Reads one file; what the versions spell differently is in the classes below."""

    token = "guid"
    prefix = ""

    def __init__(self, root: Element) -> None:
        self.root = root
        self.units_of_types: dict[str, tuple[str, float, float]] = {}
        self.variables: dict[str, FmuVariable] = {}
        self.numbers = 0

    def read(self) -> FmuDescription:
        root = self.root
        interfaces = {
            kind: self.interface(element)
            for kind, tag in KINDS.items()
            if (element := root.find(tag)) is not None
        }
        if not interfaces:
            raise root.error(f"none of <{'>, <'.join(KINDS.values())}> is there: nothing to run")
        self.read_types(root.find("TypeDefinitions"))
        self.read_variables(root.need("ModelVariables"))
        description = FmuDescription(
            self.version,
            root.get("modelName"),
            self.read_token(),
            interfaces,
            self.variables,
            text=root.attributes.get("description", ""),
            tool=root.attributes.get("generationTool", ""),
            experiment=self.experiment(root.find("DefaultExperiment")),
        )
        structure = root.find("ModelStructure")
        return description if structure is None else self.read_structure(description, structure)

    version = ""

    def read_token(self) -> str:
        token = self.root.get(self.token)
        if not token:
            raise self.root.error(
                f"{self.token} is empty: the binary could not be told from others"
            )
        return token

    def interface(self, element: Element) -> FmuInterface:
        raise NotImplementedError

    def read_types(self, element: Element | None) -> None:
        raise NotImplementedError

    def read_variables(self, element: Element) -> None:
        raise NotImplementedError

    def read_structure(self, description: FmuDescription, structure: Element) -> FmuDescription:
        raise NotImplementedError

    def experiment(self, element: Element | None) -> dict[str, float]:
        if element is None:
            return {}
        names = ("startTime", "stopTime", "tolerance", "stepSize")
        values = {name: _number(element, name) for name in names}
        given = {name: value for name, value in values.items() if value is not None}
        for name in ("tolerance", "stepSize"):
            if given.get(name, 1.0) <= 0.0:
                raise element.error(f"{name} is {given[name]}, which must be positive")
        if given.get("stopTime", math.inf) < given.get("startTime", 0.0):
            raise element.error(f"stopTime {given['stopTime']} lies before startTime")
        return given

    def variable(self, of: Element, typed: Element, kind: str, shape: tuple[int, ...]) -> None:
        """Add a variable; `typed` is the element with the attributes of its type."""
        name = of.get("name")
        if not name or any(ord(letter) < 32 for letter in name):
            raise of.error(f"the variable's name {name[:40]!r} is empty or has control characters")
        if name in self.variables:
            raise of.error(f"a second variable is called {name[:80]!r}")
        declared = typed.attributes.get("declaredType", "")
        unit, lowest, highest = self.units_of_types.get(declared, ("", -math.inf, math.inf))
        causality = _choice(of, "causality", CAUSALITIES, "local")
        usual = "continuous" if kind in FLOATS else "discrete"
        lower, upper = _limit(typed, "min", lowest), _limit(typed, "max", highest)
        if lower > upper:
            raise of.error(f"{name[:80]}: min {lower} lies above max {upper}")
        self.numbers += math.prod(shape)
        if self.numbers > MOST_NUMBERS:
            raise of.error(f"{name[:80]}: more than {MOST_NUMBERS} numbers are too many")
        self.variables[name] = FmuVariable(
            name,
            _whole(of, "valueReference", 2**32 - 1),
            kind,
            causality,
            _choice(of, "variability", VARIABILITIES, usual),
            self.start(typed, kind, shape, name),
            typed.attributes.get("unit", unit),
            of.attributes.get("description", ""),
            (lower, upper),
            shape,
            of.attributes.get("initial", ""),
            nominal=abs(_number(typed, "nominal") or 1.0),
        )

    def start(self, typed: Element, kind: str, shape: tuple[int, ...], name: str) -> Any:
        text = typed.attributes.get("start")
        if text is None or kind in OTHERS:
            return text
        words, count = text.split(), math.prod(shape)
        if len(words) not in (1, count) or (count != 1 and not words):
            raise typed.error(f"{name[:80]}: {len(words)} start values for {count} numbers")
        what = f"the start value of {name[:80]}"
        values = [_value(word, kind, typed, what) for word in words]
        array = np.array(values, dtype=DTYPES[kind])
        return np.broadcast_to(array, count).reshape(shape).copy()

    def pick(self, wanted: list[FmuVariable], of: Element) -> tuple[str, ...]:
        names = tuple(v.name for v in wanted)
        if len(set(names)) < len(names):
            raise of.error("a variable is listed twice")
        return names

    def with_states(
        self, description: FmuDescription, derivatives: tuple[str, ...], of: Element
    ) -> FmuDescription:
        """Return the description with the states of which these are the derivatives."""
        states = []
        for name in derivatives:
            variable = self.variables[name]
            if variable.state is None:
                raise of.error(f"{name[:80]} is listed as a derivative, but does not say of what")
            state = self.variables[variable.state]
            if state.type != "Float64" or state.shape != variable.shape:
                raise of.error(f"{name[:80]} cannot be the derivative of {state.name[:80]}")
            states.append(state.name)
        if len(set(states)) < len(states):
            raise of.error("two derivatives of the same state are listed")
        return replace(description, states=tuple(states), derivatives=derivatives)


def _value(word: str, kind: str, of: Element, what: str) -> Any:
    if kind in FLOATS:
        return number(word, of, what)
    if kind == "Boolean":
        if word not in ("true", "false", "1", "0"):
            raise of.error(f"{what} is {word[:40]!r}, expected true or false")
        return word in ("true", "1")
    limits = np.iinfo(DTYPES[kind]) if kind in INTEGERS else None
    if not re.fullmatch(r"[+-]?\d{1,20}", word, re.ASCII):
        raise of.error(f"{what} is {word[:40]!r}, expected a whole number")
    if limits is None or not limits.min <= int(word) <= limits.max:
        raise of.error(f"{what} is {word}, which is no {kind}")
    return int(word)


# ---- FMI 2.0 -----------------------------------------------------------------------------------


class _Reader2(_Reader):
    version = "2.0"

    def interface(self, element: Element) -> FmuInterface:
        sources = element.find("SourceFiles")
        return FmuInterface(
            _identifier(element),
            _flag(element, "providesDirectionalDerivative"),
            _flag(element, "canGetAndSetFMUstate"),
            not _flag(element, "completedIntegratorStepNotNeeded"),
            _flag(element, "canHandleVariableCommunicationStepSize"),
            _flag(element, "canBeInstantiatedOnlyOncePerProcess"),
            _flag(element, "needsExecutionTool"),
            sources=() if sources is None else tuple(file_name(file) for file in sources),
        )

    def read_types(self, element: Element | None) -> None:
        for simple in element or ():
            for typed in simple:
                low, high = _limit(typed, "min", -math.inf), _limit(typed, "max", math.inf)
                unit = typed.attributes.get("unit", "")
                self.units_of_types[simple.attributes.get("name", "")] = (unit, low, high)

    def read_variables(self, element: Element) -> None:
        derivatives: list[tuple[Element, str, int]] = []
        elements = [part for part in element if part.tag == "ScalarVariable"]
        for scalar in elements:
            typed = [part for part in scalar if part.tag in OLD_TYPES]
            if len(typed) != 1:
                raise scalar.error(f"a variable needs one of <{'>, <'.join(OLD_TYPES)}>")
            self.variable(scalar, typed[0], OLD_TYPES[typed[0].tag], ())
            if "derivative" in typed[0].attributes:
                index = _whole(typed[0], "derivative", len(elements), 1)
                derivatives.append((scalar, scalar.get("name"), index))
        names = list(self.variables)
        for _, name, index in derivatives:
            self.variables[name] = replace(self.variables[name], state=names[index - 1])

    def read_structure(self, description: FmuDescription, structure: Element) -> FmuDescription:
        variables = list(self.variables.values())

        def unknowns(tag: str) -> tuple[str, ...]:
            element = structure.find(tag)
            if element is None:
                return ()
            indices = [_whole(unknown, "index", len(variables), 1) for unknown in element]
            return self.pick([variables[index - 1] for index in indices], element)

        outputs, derivatives = unknowns("Outputs"), unknowns("Derivatives")
        indicators = 0
        if "numberOfEventIndicators" in self.root.attributes:
            indicators = _whole(self.root, "numberOfEventIndicators", MOST_INDICATORS)
        description = replace(description, outputs=outputs, indicators=indicators)
        return self.with_states(description, derivatives, structure)


# ---- FMI 3.0 -----------------------------------------------------------------------------------


class _Reader3(_Reader):
    version = "3.0"
    token = "instantiationToken"

    def interface(self, element: Element) -> FmuInterface:
        step = _number(element, "fixedInternalStepSize")
        return FmuInterface(
            _identifier(element),
            _flag(element, "providesDirectionalDerivatives"),
            _flag(element, "canGetAndSetFMUState"),
            _flag(element, "needsCompletedIntegratorStep"),
            _flag(element, "canHandleVariableCommunicationStepSize"),
            _flag(element, "canBeInstantiatedOnlyOncePerProcess"),
            _flag(element, "needsExecutionTool"),
            _flag(element, "hasEventMode"),
            step,
        )

    def read_types(self, element: Element | None) -> None:
        for typed in element or ():
            low, high = _limit(typed, "min", -math.inf), _limit(typed, "max", math.inf)
            unit = typed.attributes.get("unit", "")
            self.units_of_types[typed.attributes.get("name", "")] = (unit, low, high)

    def read_variables(self, element: Element) -> None:
        elements = [part for part in element if part.tag in DTYPES or part.tag in OTHERS]
        references: dict[int, Element] = {}
        for typed in elements:
            reference = _whole(typed, "valueReference", 2**32 - 1)
            if reference in references:
                raise typed.error(f"a second variable has the valueReference {reference}")
            references[reference] = typed
        for typed in elements:
            shape = tuple(
                self.length(part, references) for part in typed if part.tag == "Dimension"
            )
            self.variable(typed, typed, typed.tag, shape)
        self.by_reference = {v.reference: v for v in self.variables.values()}
        for typed in elements:
            if "derivative" in typed.attributes:
                state = self.named(typed, "derivative").name
                name = typed.get("name")
                self.variables[name] = replace(self.variables[name], state=state)
        self.by_reference = {v.reference: v for v in self.variables.values()}

    def length(self, dimension: Element, references: dict[int, Element]) -> int:
        if "start" in dimension.attributes:
            return _whole(dimension, "start", MOST_NUMBERS)
        reference = _whole(dimension, "valueReference", 2**32 - 1)
        source = references.get(reference)
        if source is None or source.attributes.get("causality") != "structuralParameter":
            raise dimension.error(f"no structural parameter has the valueReference {reference}")
        return _whole(source, "start", MOST_NUMBERS)

    def start(self, typed: Element, kind: str, shape: tuple[int, ...], name: str) -> Any:
        if kind == "String":
            starts = [part.get("value") for part in typed if part.tag == "Start"]
            return starts[0] if len(starts) == 1 and not shape else (starts or None)
        return super().start(typed, kind, shape, name)

    def named(self, of: Element, attribute: str = "valueReference") -> FmuVariable:
        reference = _whole(of, attribute, 2**32 - 1)
        if reference not in self.by_reference:
            raise of.error(f"no variable has the valueReference {reference}")
        return self.by_reference[reference]

    def read_structure(self, description: FmuDescription, structure: Element) -> FmuDescription:
        def unknowns(tag: str) -> tuple[str, ...]:
            return self.pick([self.named(u) for u in structure if u.tag == tag], structure)

        derivatives = unknowns("ContinuousStateDerivative")
        indicators = sum(self.variables[name].size for name in unknowns("EventIndicator"))
        if indicators > MOST_INDICATORS:
            raise structure.error(f"{indicators} event indicators; at most {MOST_INDICATORS}")
        description = replace(description, outputs=unknowns("Output"), indicators=indicators)
        return self.with_states(description, derivatives, structure)

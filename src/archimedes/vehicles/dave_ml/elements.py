"""Reads the elements of a DAVE-ML file: variables, tables, functions and check cases.

Names and rules are those of ANSI/AIAA S-119-2011 and of the DAVE-ML 2.0 reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archimedes.typing import Array, Scalar
from archimedes.vehicles.dave_ml import sources
from archimedes.xml_elements import Element, number, numbers


def new_key(key: str, among: Container[str], element: Element, kind: str) -> str:
    """Return an identifier that nothing of its kind has yet."""
    if not key:
        raise element.error(f"{kind} is empty")
    if key in among:
        raise element.error(f"{kind} {key!r} is defined twice")
    return key


def optional_number(element: Element, name: str, default: Any) -> Any:
    """Return an attribute that is a number, or the default."""
    text = element.attributes.get(name)
    return default if text is None else number(text, element, f"{name} of <{element.tag}>")


def range_of(element: Element, low: str, high: str) -> tuple[float, float]:
    """Return the bounds that two attributes give, infinite without them."""
    least, most = optional_number(element, low, -np.inf), optional_number(element, high, np.inf)
    if least > most:
        raise element.error(f"{low} {least} is above {high} {most}")
    return least, most


def increasing(points: np.ndarray, element: Element, what: str) -> tuple[float, ...]:
    """Return breakpoints, which must increase."""
    if not np.all(np.diff(points) > 0):
        raise element.error(f"{what} must increase strictly")
    return tuple(points.tolist())


@dataclass(frozen=True)
class Variable:
    """A signal of the model; `source` is what makes it, None for inputs and constants."""

    id: str
    name: str
    units: str
    initial: float | None
    least: float
    most: float
    roles: frozenset[str]
    sign: str
    axis_system: str
    description: str
    place: str
    source: sources.Expression | sources.Lookup | None = None

    @property
    def reads(self) -> dict[str, str]:
        """The variables it is made of, each with the place where that is said."""
        if isinstance(self.source, sources.Lookup):
            return dict.fromkeys(self.source.variables, self.place)
        parts = () if self.source is None else self.source.walk()
        return {part.name: part.place for part in parts if isinstance(part, sources.Reference)}

    def limit(self, x: Scalar) -> Any:
        """Hold a value within minValue and maxValue."""
        return sources.limit(x, self.least, self.most)


@dataclass(frozen=True)
class Signal:
    """A value in check data; `name` is the name of a variable (`by_name`) or its varID."""

    name: str
    by_name: bool
    units: str | None
    value: float
    tolerance: float | None


@dataclass(frozen=True)
class Shot:
    """One check case: what goes in, what comes out, and values in between."""

    name: str
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    internal: tuple[Signal, ...]
    place: str


@dataclass
class Definitions:
    """All that a file defines, and what was met on the way."""

    name: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    breakpoints: dict[str, tuple[float, ...]] = field(default_factory=dict)
    tables: dict[str, Element] = field(default_factory=dict)
    shots: list[Shot] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    approximated: list[str] = field(default_factory=list)
    tables_used: set[str] = field(default_factory=set)


#: Elements that hold a table or name one.
TABLES = "griddedTableRef griddedTableDef griddedTable ungriddedTableRef ungriddedTableDef"
TABLES += " ungriddedTable"


def read_table(definition: Element, model: Definitions) -> tuple[list[tuple[float, ...]], Any]:
    """Return the breakpoints of a function's table and its values, the last axis fastest.

    Of scattered points, the values are rows of coordinates and value.
    """
    parts = [part for part in definition if part.tag in TABLES.split()]
    if len(parts) != 1:
        raise definition.error("<functionDefn> must hold one table")
    table = parts[0]
    if table.tag.endswith("Ref"):
        key = table.get("gtID" if table.tag == "griddedTableRef" else "utID")
        if key not in model.tables:
            raise table.error(f"table {key!r} is not defined")
        model.tables_used.add(key)
        table = model.tables[key]
    return _read_grid(table, model) if table.tag.startswith("gridded") else _read_points(table)


def _read_grid(table: Element, model: Definitions) -> tuple[list[tuple[float, ...]], Any]:
    keys = [part.get("bpID") for part in table.need("breakpointRefs")]
    for key in keys:
        if key not in model.breakpoints:
            raise table.error(f"breakpoints {key!r} are not defined")
    label = table.attributes.get("gtID", table.attributes.get("name", ""))
    data = numbers(table.need("dataTable"), f"table {label!r}")
    return [model.breakpoints[key] for key in keys], data


def _read_points(table: Element) -> tuple[list[tuple[float, ...]], Any]:
    """Sort the points of an ungridded table if they fill a grid, or return them as they are."""
    label = table.attributes.get("utID", table.attributes.get("name", ""))
    rows = [numbers(part, f"table {label!r}") for part in table if part.tag == "dataPoint"]
    if not rows or len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        raise table.error(f"table {label!r} needs <dataPoint>s of coordinates and one value each")
    points = np.array(rows)
    if len(np.unique(points[:, :-1], axis=0)) != len(points):
        raise table.error(f"ungridded table {label!r}: a point is given twice")
    axes = [np.unique(column) for column in points.T[:-1]]
    breakpoints = [tuple(axis.tolist()) for axis in axes]
    if len(points) != np.prod([len(axis) for axis in axes]):
        return breakpoints, points
    order = np.lexsort(points.T[:-1][::-1])
    return breakpoints, points[order, -1]


def read_function(element: Element, model: Definitions) -> None:
    """Connect a function's table with the variable that it makes."""
    name = element.attributes.get("name", "")
    if element.find("functionDefn") is None:
        output = element.need("dependentVarPts")
        references = [part for part in element if part.tag == "independentVarPts"]
        what = f"independentVarPts of function {name!r}"
        points = [increasing(numbers(part, what), part, what) for part in references]
        data = numbers(output, f"dependentVarPts of function {name!r}")
    else:
        output = element.need("dependentVarRef")
        references = [part for part in element if part.tag == "independentVarRef"]
        points, data = read_table(element.need("functionDefn"), model)
    if len(references) != len(points):
        raise element.error(
            f"function {name!r} has {len(references)} variables, its table {len(points)} axes"
        )
    if data.ndim == 1 and data.size != np.prod([len(p) for p in points]):
        shape = " x ".join(str(len(p)) for p in points)
        raise element.error(f"function {name!r}: {data.size} values for {shape} breakpoints")
    axes = tuple(_axis(part, p) for part, p in zip(references, points))
    _report_axes(name, axes, data, model, element)
    key = output.get("varID")
    if key not in model.variables:
        raise output.error(f"function {name!r} makes {key!r}, which no variableDef defines")
    variable = model.variables[key]
    if variable.source is not None:
        raise output.error(f"variable {key!r} is computed twice: also by function {name!r}")
    if variable.roles & {"isInput", "isControl", "isDisturbance"}:
        raise output.error(f"variable {key!r} is an input and made by function {name!r}")
    try:
        lookup = sources.Lookup(name or key, axes, data)
    except ValueError as error:
        raise element.error(f"function {name!r}: {error}") from None
    model.variables[key] = replace(variable, source=lookup, place=element.place)


def _axis(element: Element, points: tuple[float, ...]) -> sources.Axis:
    choices = []
    for name, known in (("extrapolate", sources.EXTRAPOLATE), ("interpolate", sources.INTERPOLATE)):
        choices.append(element.attributes.get(name, known[0]))
        if choices[-1] not in known:
            raise element.error(f"{name}={choices[-1]!r} is not one of {', '.join(known)}")
    return sources.Axis(element.get("varID"), points, *range_of(element, "min", "max"), *choices)


def _report_axes(
    name: str, axes: tuple[sources.Axis, ...], data: Array, model: Definitions, element: Element
) -> None:
    kinds = {axis.interpolate for axis in axes if len(axis.points) > 1}
    if {"linear", "cubicSpline"} <= kinds:
        raise element.error(
            f"function {name!r} is linear in one variable and cubic in another; use one for all"
        )
    if data.ndim == 2:
        if kinds != {"linear"}:
            raise element.error(f"function {name!r}: scattered points are interpolated linearly")
        model.approximated.append(
            f"function {name!r}: scattered points are joined by a Delaunay triangulation, which "
            "the standard leaves open"
        )
    if "cubicSpline" in kinds:
        model.approximated.append(f"function {name!r}: cubic splines have not-a-knot ends")


#: Elements with a meaning here, and the elements that are read inside them.
READ = {
    "DAVEfunc": "fileHeader variableDef breakpointDef griddedTableDef ungriddedTableDef function "
    "checkData",
    "fileHeader": "",
    "variableDef": "calculation isInput isControl isDisturbance isState isStateDeriv isOutput",
    "calculation": "math",
    "breakpointDef": "bpVals",
    "griddedTableDef": "breakpointRefs dataTable",
    "griddedTable": "breakpointRefs dataTable",
    "breakpointRefs": "bpRef",
    "ungriddedTableDef": "dataPoint",
    "ungriddedTable": "dataPoint",
    "function": "independentVarPts dependentVarPts independentVarRef dependentVarRef functionDefn",
    "functionDefn": TABLES,
    "checkData": "staticShot",
    "staticShot": "checkInputs internalValues checkOutputs",
    "checkInputs": "signal",
    "internalValues": "signal",
    "checkOutputs": "signal",
    "signal": "signalName signalID varID signalUnits signalValue tol",
}
#: Elements that do not change what a model computes.
IGNORED = {"description", "provenance", "provenanceRef", "uncertainty", "isStdAIAA"}
IGNORED |= {"confidenceBound", "author", "creationDate", "fileCreationDate", "fileVersion"}
IGNORED |= {"reference", "modificationRecord", "extraDocRef", "documentRef", "address"}
IGNORED |= {"fileCreationInfo", "classification", "dataAssumptions"}


def read_definitions(root: Element) -> Definitions:
    """Read the elements of a DAVEfunc file."""
    if root.tag != "DAVEfunc":
        raise root.error(f"a DAVE-ML model starts with <DAVEfunc>, this file with <{root.tag}>")
    model = Definitions()
    _survey(root, model)
    header = root.find("fileHeader")
    model.name = "" if header is None else header.attributes.get("name", "")
    readers: dict[str, Callable[[Element, Definitions], None]] = {
        "variableDef": _variable,
        "breakpointDef": _breakpoints,
        "griddedTableDef": _table,
        "ungriddedTableDef": _table,
        "function": read_function,
        "checkData": read_check_data,
    }
    for tag, reader in readers.items():
        for element in root:
            if element.tag == tag:
                reader(element, model)
    if not model.variables:
        raise root.error("the model defines no variable")
    return model


def _survey(element: Element, model: Definitions) -> None:
    """Count what is ignored; refuse what is unknown, since it may matter."""
    read = READ.get(element.tag, "").split()
    for part in element:
        if part.tag in read:
            if part.tag != "math":
                _survey(part, model)
        elif part.tag in IGNORED or part.tag.startswith("{"):
            model.ignored[part.tag] += 1
        else:
            raise part.error(
                f"<{part.tag}> in <{element.tag}> is not known from ANSI/AIAA S-119-2011; remove "
                "it if the model does not depend on it"
            )


def _variable(element: Element, model: Definitions) -> None:
    key = new_key(element.get("varID"), model.variables, element, "varID")
    calculation, told = element.find("calculation"), element.attributes
    source = None if calculation is None else sources.parse(calculation.need("math"))
    roles = frozenset(part.tag for part in element if part.tag.startswith("is"))
    if source is not None and roles & {"isInput", "isControl", "isDisturbance"}:
        raise element.error(
            f"variable {key!r} is an input and has a calculation; it can only be one of them"
        )
    for part in () if source is None else source.walk():
        if isinstance(part, sources.Piecewise) and part.otherwise is None:
            model.approximated.append(f"{key}: nan where no piece applies, <otherwise> is missing")
        if isinstance(part, sources.Apply) and part.operation == "quotient":
            model.approximated.append(f"{key}: <quotient> is a whole number; some tools divide")
    description = element.find("description")
    model.variables[key] = Variable(
        key,
        told.get("name", key).strip(),
        told.get("units", "").strip(),
        optional_number(element, "initialValue", None),
        *range_of(element, "minValue", "maxValue"),
        roles,
        told.get("sign", ""),
        told.get("axisSystem", ""),
        "" if description is None else " ".join(description.text.split()),
        element.place,
        source,
    )


def _breakpoints(element: Element, model: Definitions) -> None:
    key = new_key(element.get("bpID"), model.breakpoints, element, "bpID")
    points = numbers(element.need("bpVals"), f"breakpoints {key!r}")
    model.breakpoints[key] = increasing(points, element, f"breakpoints {key!r}")


def _table(element: Element, model: Definitions) -> None:
    key = element.attributes.get("gtID") or element.attributes.get("utID")
    if not key:
        raise element.error(f"<{element.tag}> has no attribute gtID or utID")
    model.tables[new_key(key, model.tables, element, "table")] = element


def read_check_data(element: Element, model: Definitions) -> None:
    """Read the check cases of a file."""
    for shot in element:
        if shot.tag == "staticShot":
            name = shot.attributes.get("name", f"shot {len(model.shots) + 1}")
            inputs, inside = (_signals(shot.find(t)) for t in ("checkInputs", "internalValues"))
            outputs = _signals(shot.need("checkOutputs"), tolerance=True)
            model.shots.append(Shot(name, inputs, outputs, inside, shot.place))


def _signals(element: Element | None, tolerance: bool = False) -> tuple[Signal, ...]:
    result = []
    for part in element or ():
        named = [p for p in part if p.tag in ("signalName", "signalID", "varID")]
        if not named:
            raise part.error("<signal> has neither <signalName> nor <varID>")
        tol = part.need("tol") if tolerance else part.find("tol")
        allowed = None if tol is None else number(tol.text, tol, f"tol of {named[0].text!r}")
        if tol is not None and allowed is not None and allowed < 0.0:
            raise tol.error(f"tol of {named[0].text!r} is negative")
        element = part.find("signalUnits")
        units = None if element is None else element.text
        value = number(part.need("signalValue").text, part, f"value of {named[0].text!r}")
        result.append(Signal(named[0].text, named[0].tag == "signalName", units, value, allowed))
    return tuple(result)

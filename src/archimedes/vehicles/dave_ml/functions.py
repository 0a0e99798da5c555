"""Functions of a DAVE-ML file: which table makes which variable, and how it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.vehicles.dave_ml.attributes import increasing, range_of
from archimedes.vehicles.dave_ml.definitions import Definitions
from archimedes.vehicles.dave_ml.lookups import EXTRAPOLATE, INTERPOLATE, Axis, Lookup
from archimedes.vehicles.dave_ml.numbers_in_text import numbers
from archimedes.vehicles.dave_ml.xml_elements import Element

__all__ = ["TABLES", "read_function"]

#: Elements that hold a table or name one.
TABLES = "griddedTableRef griddedTableDef griddedTable ungriddedTableRef ungriddedTableDef"
TABLES += " ungriddedTable"


def read_function(element: Element, found: Definitions) -> None:
    """Connect a function's table with the variable that it makes."""
    name = element.attributes.get("name", "")
    if element.find("functionDefn") is None:
        output = element.need("dependentVarPts")
        references = [part for part in element if part.tag == "independentVarPts"]
        points = [
            increasing(numbers(part, what), part, what)
            for part in references
            for what in [f"independentVarPts of function {name!r}"]
        ]
        data = numbers(output, f"dependentVarPts of function {name!r}")
    else:
        output = element.need("dependentVarRef")
        references = [part for part in element if part.tag == "independentVarRef"]
        points, data = _table_of(element.need("functionDefn"), found)
    if len(references) != len(points):
        raise element.error(
            f"function {name!r} has {len(references)} independent variables, its table "
            f"{len(points)} axes"
        )
    size = int(np.prod([len(p) for p in points]))
    if data.size != size:
        shape = " x ".join(str(len(p)) for p in points)
        raise element.error(f"function {name!r}: {data.size} values for {shape} breakpoints")
    axes = tuple(_axis(part, p) for part, p in zip(references, points))
    _report_axes(name, axes, found, element)
    key = output.get("varID")
    if key not in found.variables:
        raise output.error(f"function {name!r} makes {key!r}, which no variableDef defines")
    variable = found.variables[key]
    if variable.source is not None:
        raise output.error(f"variable {key!r} is made twice: also by function {name!r}")
    if variable.roles & {"isInput", "isControl", "isDisturbance"}:
        raise output.error(f"variable {key!r} is an input and made by function {name!r}")
    try:
        lookup = Lookup(name or key, axes, data)
    except ValueError as error:
        raise element.error(f"function {name!r}: {error}") from None
    found.variables[key] = replace(variable, source=lookup, place=element.place)


def _axis(element: Element, points: tuple[float, ...]) -> Axis:
    told = element.attributes
    extrapolate = told.get("extrapolate", "neither")
    interpolate = told.get("interpolate", "linear")
    for what, value, known in (
        ("extrapolate", extrapolate, EXTRAPOLATE),
        ("interpolate", interpolate, INTERPOLATE),
    ):
        if value not in known:
            raise element.error(f"{what}={value!r} is not one of {', '.join(known)}")
    return Axis(
        element.get("varID"), points, *range_of(element, "min", "max"), extrapolate, interpolate
    )


def _report_axes(name: str, axes: tuple[Axis, ...], found: Definitions, element: Element) -> None:
    kinds = {axis.interpolate for axis in axes if len(axis.points) > 1}
    if {"linear", "cubicSpline"} <= kinds:
        raise element.error(
            f"function {name!r} is linear in one variable and a cubic spline in another; use one "
            "of them for all"
        )
    if "cubicSpline" in kinds:
        found.approximated.append(
            f"function {name!r}: cubic splines have not-a-knot ends, which the standard leaves open"
        )


def _table_of(definition: Element, found: Definitions) -> tuple[list[tuple[float, ...]], Any]:
    """Return the breakpoints of a function's table and its values, the last axis fastest."""
    parts = [part for part in definition if part.tag in TABLES.split()]
    if len(parts) != 1:
        raise definition.error("<functionDefn> must hold one table")
    table = parts[0]
    if table.tag.endswith("Ref"):
        key = table.get("gtID" if table.tag == "griddedTableRef" else "utID")
        if key not in found.tables:
            raise table.error(f"table {key!r} is not defined")
        found.tables_used.add(key)
        table = found.tables[key]
    return _gridded(table, found) if table.tag.startswith("gridded") else _scattered(table)


def _gridded(table: Element, found: Definitions) -> tuple[list[tuple[float, ...]], Any]:
    keys = [part.get("bpID") for part in table.need("breakpointRefs")]
    for key in keys:
        if key not in found.breakpoints:
            raise table.error(f"breakpoints {key!r} are not defined")
    label = table.attributes.get("gtID", table.attributes.get("name", ""))
    return [found.breakpoints[key] for key in keys], numbers(
        table.need("dataTable"), f"table {label!r}"
    )


def _scattered(table: Element) -> tuple[list[tuple[float, ...]], Any]:
    """Sort the points of an ungridded table that fill a grid."""
    label = table.attributes.get("utID", table.attributes.get("name", ""))
    rows = [numbers(part, f"table {label!r}") for part in table if part.tag == "dataPoint"]
    if not rows or len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        raise table.error(f"table {label!r} needs <dataPoint>s of coordinates and one value each")
    points = np.array(rows)
    axes = [np.unique(column) for column in points.T[:-1]]
    whole = len(np.unique(points[:, :-1], axis=0)) == len(points)
    if not whole or len(points) != np.prod([len(axis) for axis in axes]):
        raise table.error(
            f"ungridded table {label!r}: its {len(points)} points do not fill a grid, and "
            "scattered points are not interpolated: resample it to a griddedTableDef"
        )
    order = np.lexsort(points.T[:-1][::-1])
    return [tuple(axis.tolist()) for axis in axes], points[order, -1]

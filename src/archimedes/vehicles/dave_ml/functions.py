"""Functions of a DAVE-ML file: which table makes which variable, and how it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.vehicles.dave_ml.attributes import increasing, range_of
from archimedes.vehicles.dave_ml.definitions import Definitions
from archimedes.vehicles.dave_ml.lookups import EXTRAPOLATE, INTERPOLATE, Axis, Lookup
from archimedes.vehicles.dave_ml.table_elements import read_table
from archimedes.xml_elements import Element, numbers

__all__ = ["read_function"]


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
        points, data = read_table(element.need("functionDefn"), found)
    if len(references) != len(points):
        raise element.error(
            f"function {name!r} has {len(references)} independent variables, its table "
            f"{len(points)} axes"
        )
    if data.ndim == 1 and data.size != np.prod([len(p) for p in points]):
        shape = " x ".join(str(len(p)) for p in points)
        raise element.error(f"function {name!r}: {data.size} values for {shape} breakpoints")
    axes = tuple(_axis(part, p) for part, p in zip(references, points))
    _report_axes(name, axes, data, found, element)
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


def _report_axes(
    name: str, axes: tuple[Axis, ...], data: Any, found: Definitions, element: Element
) -> None:
    kinds = {axis.interpolate for axis in axes if len(axis.points) > 1}
    if {"linear", "cubicSpline"} <= kinds:
        raise element.error(
            f"function {name!r} is linear in one variable and a cubic spline in another; use one "
            "of them for all"
        )
    if data.ndim == 2:
        if kinds != {"linear"}:
            raise element.error(f"function {name!r}: scattered points are interpolated linearly")
        found.approximated.append(
            f"function {name!r}: scattered points are joined by a Delaunay triangulation, which "
            "the standard leaves open"
        )
    if "cubicSpline" in kinds:
        found.approximated.append(
            f"function {name!r}: cubic splines have not-a-knot ends, which the standard leaves open"
        )

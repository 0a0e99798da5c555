"""Tables of a DAVE-ML file, gridded and not."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.vehicles.dave_ml.definitions import Definitions
from archimedes.xml_elements import Element, numbers

__all__ = ["TABLES", "read_table"]

#: Elements that hold a table or name one.
TABLES = "griddedTableRef griddedTableDef griddedTable ungriddedTableRef ungriddedTableDef"
TABLES += " ungriddedTable"


def read_table(definition: Element, found: Definitions) -> tuple[list[tuple[float, ...]], Any]:
    """Return the breakpoints of a function's table and its values, the last axis fastest.

    Of scattered points, the values are rows of coordinates and value.
    """
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

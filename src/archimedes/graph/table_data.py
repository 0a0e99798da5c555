"""Longer tables as data of a program, apart from its code.

Machine code for a program is made once, whatever numbers its longer tables hold (time series,
interpolants): they lie beside the code, which is linked to where they are. So that code may be
used for other data, two things about the data are part of its name: which tables are equal to each
other (equal ones are one in the code), and which equal a table of the elementary functions.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from archimedes.graph.digests import LONG_TABLE, table_digest
from archimedes.graph.elementary.coefficients import logarithm_table
from archimedes.graph.elementary.trigonometric import LIMBS
from archimedes.graph.program import Graph


def data_tables(graph: Graph) -> list[np.ndarray]:
    """Return the longer tables of a program and its bodies, in the order they are visited."""
    tables: list[np.ndarray] = []
    seen: set[str] = set()

    def visit(g: Graph) -> None:
        digest = g.digest()
        if digest in seen:
            return
        seen.add(digest)
        tables.extend(table for table in g.tables if len(table) >= LONG_TABLE)
        for region in g.regions.values():
            tables.extend(table for table in region.tables if len(table) >= LONG_TABLE)
            for body in region.bodies:
                visit(body)

    visit(graph)
    return tables


def data_form(tables: list[np.ndarray]) -> tuple[object, ...]:
    """Return what code may assume of tables: which are equal, and which are of known content."""
    keys = [table_digest(table) for table in tables]
    first = {key: k for k, key in reversed(list(enumerate(keys)))}
    known = _elementary() if keys else set()
    return tuple((first[key], key if key in known else None) for key in keys)


@lru_cache(maxsize=1)
def _elementary() -> set[str]:
    """Tables that elementary functions bring along when they are expanded."""
    own = (LIMBS, *logarithm_table())
    arrays = [np.asarray(table) for table in own]
    arrays += [a.astype(np.float32) for a in arrays if a.dtype == np.float64]
    return {table_digest(a) for a in arrays}

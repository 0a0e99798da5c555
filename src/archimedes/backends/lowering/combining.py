"""How values along reduced axes are combined."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from archimedes.graph.dtypes import B8, I64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph

__all__ = ["combining", "identity"]


@cache
def combining(name: str, dtype: int) -> Graph:
    """Return the graph of an operation on two values of a dtype."""
    g = Graph()
    a, b = g.input(dtype), g.input(dtype)
    g.outputs = [g.emit(CODES[name], a, b)]
    return g


def identity(name: str, dtype: int) -> Any:
    """Return the number that leaves every other as it is, to the bit, where they are combined.

    >>> identity("add", 0), identity("min", 0)
    (-0.0, inf)
    """
    if dtype == I64:
        top = 2**63 - 1
        return {"mul": 1, "min": top, "max": -top - 1, "and": -1}.get(name, 0)
    if dtype == B8:
        return name == "and"
    return {"add": -0.0, "mul": 1.0, "min": math.inf, "max": -math.inf}[name]

"""A program of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.graph import CODES, F64, I64, Graph

from ..graph.spec import validate
from .values import normal, samples

#: Instances of a batch: whole tiles of every width, and an incomplete one.
COUNT = 37


@dataclass
class Program:
    """A graph, its name in C, and sample values of its inputs, one array of shape (n,) each.

    ``plain`` is the same function in plain Python, one instance at a time, where there is one.
    """

    name: str
    graph: Graph
    columns: list[np.ndarray]
    plain: Callable[..., Sequence[Any]] | None = None

    @property
    def count(self) -> int:
        return len(self.columns[0]) if self.columns else 1


def program(
    name: str, g: Graph, plain: Callable[..., Sequence[Any]] | None = None, columns: Any = None
) -> Program:
    """A program on ordinary values, or on the given ones."""
    validate(g)
    rng = np.random.default_rng(0)
    kinds = {F64: lambda: normal(rng, COUNT), I64: lambda: rng.integers(-2, 5, COUNT)}
    if columns is None:
        columns = [kinds.get(d, lambda d=d: samples(d, COUNT, rng))() for d in g.input_dtypes]
    return Program(name, g, list(columns), plain)


def emit(g: Graph, name: str, *ids: int) -> int:
    return g.emit(CODES[name], *(int(i) for i in ids))


def graph_of(dtypes: Sequence[int], build: Callable[..., int | Sequence[int]]) -> Graph:
    """Graph with inputs of these dtypes; ``build(graph, *ids)`` returns its outputs."""
    g = Graph()
    outs = build(g, *(g.input(d) for d in dtypes))
    g.outputs = [outs] if isinstance(outs, int) else [int(i) for i in outs]
    return g

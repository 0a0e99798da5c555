"""Entries of sparse derivatives as programs, kept on disk: another process does not differentiate.

What is kept beside the compiled code (``backends/code_cache.py``) is the derivative's program, by
the program it was made of. Programs with regions, and short ones, are made anew each time.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from archimedes.backends import code_cache as cache
from archimedes.function.derivatives.jacobian_blocks import gradient_of
from archimedes.graph.derivatives.jacobian_graphs import Entries, jacobian_graph
from archimedes.graph.program import Graph

__all__ = ["stored_entries"]

#: Shorter programs are differentiated sooner than read.
SHORT = 200
_LISTS = ("op", "a", "b", "c", "dtype", "inputs", "outputs")


def stored_entries(graph: Graph, wrt: Sequence[int], symmetric: bool, triangle: bool) -> Entries:
    """Return the entries of the Jacobian in the inputs ``wrt``.

    ``symmetric``: of the Hessian of the single output, ``triangle``: of that the lower triangle.
    """
    if len(graph) < SHORT or graph.regions or graph.tables or graph.lines is not None:
        return _differentiated(graph, wrt, symmetric, triangle)
    parts = (graph.lasting_digest(), tuple(wrt), symmetric, triangle)
    version = (marshal.version, sys.version_info[:2], cache.sources_digest(Path(__file__).parent))
    key = cache.cache_key("entries", *parts, *version)
    data = cache.read(key)
    if data is not None:
        return _unpacked(data)
    made = _differentiated(graph, wrt, symmetric, triangle)
    if not made.graph.regions and not made.graph.tables:
        cache.write(key, _packed(made))
    return made


def _differentiated(graph: Graph, wrt: Sequence[int], symmetric: bool, triangle: bool) -> Entries:
    source = gradient_of(graph, wrt) if symmetric else graph
    return jacobian_graph(source, wrt, symmetric=symmetric, triangle=triangle)


def _packed(made: Entries) -> bytes:
    graph = made.graph
    lists = [getattr(graph, name) for name in _LISTS]
    places = (made.rows.tolist(), made.columns.tolist(), made.shape, made.mode, made.colors)
    return marshal.dumps((lists, graph.value, places))


def _unpacked(data: bytes) -> Entries:
    lists, value, (rows, columns, *rest) = marshal.loads(data)
    graph = Graph()
    for name, given in zip(_LISTS, lists):
        setattr(graph, name, given)
    graph.value = value
    where = np.array([rows, columns], dtype=np.int64)
    return Entries(graph, where[0], where[1], *rest)

"""Constant tables read at traced positions."""

from __future__ import annotations

import numpy as np

from archimedes.graph.dtypes import code_of
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.dispatch import lift, wrap
from archimedes.symbolic.core.trace import current_trace

__all__ = ["read_table"]


def read_table(table: np.ndarray, index: SymbolicArray) -> SymbolicArray:
    """Read a constant 1-D array at traced positions, clamped to its range."""
    trace = current_trace()
    index = lift(index)
    flat = [trace.graph.lookup(table, i) for i in trace.ids_of(index).ravel().tolist()]
    code = code_of(table.dtype)
    assert code is not None
    return wrap(np.array(flat, dtype=np.int64).reshape(index.shape), code, trace)

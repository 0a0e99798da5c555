"""NumPy-shaped arrays of graph nodes: what a function sees while it is being recorded."""

from archimedes.symbolic.core.array import SymbolicArray, is_traced
from archimedes.symbolic.core.dispatch import lift, wrap
from archimedes.symbolic.core.scalars import SymbolicNumber, SymbolicScalar
from archimedes.symbolic.core.trace import Trace, current_trace, is_tracing, trace_error

__all__ = [
    "SymbolicArray",
    "SymbolicNumber",
    "SymbolicScalar",
    "Trace",
    "current_trace",
    "is_traced",
    "is_tracing",
    "lift",
    "trace_error",
    "wrap",
]

"""NumPy-shaped arrays of graph nodes: what a function sees while it is being recorded."""

from archimedes.symbolic.array import SymbolicArray, is_traced
from archimedes.symbolic.dispatch import lift, wrap
from archimedes.symbolic.scalars import SymbolicNumber, SymbolicScalar
from archimedes.symbolic.trace import Trace, current_trace, is_tracing, trace_error

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

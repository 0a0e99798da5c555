"""NumPy-shaped arrays of graph nodes: what a function sees while it is being recorded."""

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import lift, wrap
from archimedes.symbolic.core.scalars import SymbolicNumber, SymbolicScalar
from archimedes.symbolic.core.trace import (
    Trace,
    current_trace,
    is_tracing,
    trace_error,
    while_recording,
)
from archimedes.symbolic.core.traced_value import as_traced
from archimedes.symbolic.recorded.recorded_array import RecordedArray

__all__ = [
    "RecordedArray",
    "SymbolicArray",
    "SymbolicNumber",
    "SymbolicScalar",
    "Trace",
    "as_traced",
    "current_trace",
    "is_tracing",
    "lift",
    "trace_error",
    "wrap",
]


def _begin() -> None:
    # Most of the package is needed for recording alone: it is imported when that begins.
    from archimedes.symbolic import recording_context  # noqa: F401  it fills the tables
    from archimedes.symbolic.recorded import numpy_overrides

    numpy_overrides.install()


def _end() -> None:
    from archimedes.symbolic.recorded import numpy_overrides

    numpy_overrides.uninstall()


while_recording(_begin, _end)

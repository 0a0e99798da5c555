"""Recordings used inside other recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.function.recording import Recording
from archimedes.graph import Call, inline
from archimedes.symbolic import current_trace, is_tracing
from archimedes.symbolic.core.traced_content import holds_traced
from archimedes.symbolic.recorded.recorded_array import RecordedArray

__all__ = ["INLINE_LIMIT", "apply_recording", "has_traced"]

#: A recorded function called from another is copied into it up to this many operations.
INLINE_LIMIT = 1000


def has_traced(leaves: Sequence[Any]) -> bool:
    """Tell whether a call with these leaves is part of a recording."""
    if not is_tracing():
        return False
    return any(type(x) is RecordedArray or holds_traced(x) for x in leaves)


def apply_recording(recording: Recording, leaves: Sequence[Any], limit: int = INLINE_LIMIT) -> Any:
    """Use a recording inside the current trace: copied up to ``limit`` nodes, else as a Call."""
    graph = recording.blocks
    inputs = recording.inputs(leaves)
    into = current_trace().graph
    if len(graph) <= limit:
        outs = inline(into, graph, inputs)
    else:
        outs = into.region(Call(np.array(inputs), graph)).tolist()
    return recording.result(outs)

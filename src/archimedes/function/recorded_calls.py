"""Recordings used inside other recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.function.recording import Recording
from archimedes.graph import Call, inline
from archimedes.graph.blocks.references import is_block_like
from archimedes.symbolic import current_trace, is_tracing, lift
from archimedes.symbolic.core.loop_nests import is_long
from archimedes.symbolic.recorded.recorded_array import RecordedArray

__all__ = ["INLINE_LIMIT", "apply_recording", "has_traced"]

#: A recorded function called from another is copied into it up to this many operations.
INLINE_LIMIT = 1000


def has_traced(leaves: Sequence[Any]) -> bool:
    """Tell whether a call with these leaves is part of a recording."""
    if not is_tracing():
        return False
    return any(type(x) is RecordedArray or is_traced(x) for x in leaves)


def apply_recording(recording: Recording, leaves: Sequence[Any], limit: int = INLINE_LIMIT) -> Any:
    """Use a recording inside the current trace: copied up to ``limit`` nodes, else as a Call."""
    into = current_trace().graph
    if len(recording.blocks) <= limit:
        outs = inline(into, recording.blocks, recording.inputs(leaves))
    else:
        recording = _in_blocks(recording, leaves)
        outs = into.region(Call(np.array(recording.inputs(leaves)), recording.blocks)).tolist()
    return recording.result(outs)


def _in_blocks(recording: Recording, leaves: Sequence[Any]) -> Recording:
    """Return the recording with blocks for arrays that lie in blocks here, and then for results.

    Whatever is done inside: a caller that has blocks need not take them apart for each call.
    """
    trace = current_trace()
    forms, out_forms = recording.forms(), recording.out_forms()
    blocks = tuple(
        form.block
        or (is_long(form.size) and is_block_like(trace.graph, trace.elements_of(lift(leaf))))
        for leaf, form in zip(leaves, forms)
    )
    if not any(blocks):
        return recording
    outs = tuple(form.block or is_long(form.size) for form in out_forms)
    if all(form.block == block for form, block in zip((*forms, *out_forms), blocks + outs)):
        return recording
    key = ("in blocks", blocks, outs)
    found = recording.memo.get(key)
    if found is None:
        program = recording.in_forms(blocks, outs)
        found = recording.memo[key] = replace(recording, blocks=program, memo={})
    return found

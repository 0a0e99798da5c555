"""Running a recording on numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.backends import interpreter
from archimedes.function.recording import OutLeaf, Recording
from archimedes.graph.dtypes import DTYPES

__all__ = ["Executor"]


class Executor:
    """Runs one recording: on single arguments, or on a batch along leading axes."""

    __slots__ = ("recording",)

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Evaluate on leaves that match the recording and rebuild the result tree."""
        values: list[Any] = []
        for leaf, spec in zip(leaves, self.recording.leaves):
            if spec.code >= 0:
                values.extend(np.asarray(leaf, dtype=DTYPES[spec.code]).ravel())
        results = interpreter.run(self.recording.graph, values)

        def take(out: OutLeaf) -> Any:
            block = np.array(results[out.start : out.stop], dtype=DTYPES[out.spec.code])
            return block.reshape(out.spec.shape)[()]

        return self.recording.rebuild(take)

    def batch(self, leaves: Sequence[Any], batched: Sequence[bool], count: int) -> Any:
        """Evaluate ``count`` instances; batched leaves have a leading axis of that length.

        Returns the result tree with a leading axis on every traced leaf.
        """
        values: list[Any] = []
        for leaf, spec, many in zip(leaves, self.recording.leaves, batched):
            if spec.code < 0:
                continue
            array = np.asarray(leaf, dtype=DTYPES[spec.code])
            if many:
                values.extend(array.reshape(count, spec.size).T)
            else:
                values.extend(array.ravel())
        results = interpreter.run(self.recording.graph, values)

        def take(out: OutLeaf) -> Any:
            block = np.empty((out.spec.size, count), dtype=DTYPES[out.spec.code])
            for row, value in zip(block, results[out.start : out.stop]):
                row[...] = value
            return np.ascontiguousarray(block.T).reshape(count, *out.spec.shape)

        return self.recording.rebuild(take)

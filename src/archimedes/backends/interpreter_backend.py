"""The interpreter as a backend: runs at once, with nothing to build."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.backends.leaves import put_values, values_in
from archimedes.backends.protocol import Backend, Figures, Kernel, Program
from archimedes.graph.regions.base import has_blocks
from archimedes.graph.text import statistics

__all__ = ["InterpretedProgram", "Interpreter"]


class InterpretedProgram(Kernel):
    """A graph that is run node by node."""

    sources = ("graph",)

    def __init__(self, program: Program) -> None:
        self.program = program
        self._kinds = program.graph.input_dtypes, program.graph.output_dtypes

    @cached_property
    def _one_by_one(self) -> bool:
        """Whether there are blocks, so that instances run one at a time."""
        return has_blocks(self.program.graph)

    def call(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Compute one instance."""
        given, made = self._kinds
        put_values(run(self.program.graph, values_in(inputs, given)), made, outputs)

    def call_batch(
        self,
        inputs: Sequence[np.ndarray],
        batched: Sequence[bool],
        outputs: Sequence[np.ndarray],
        count: int,
        threads: int | None = None,
    ) -> None:
        """Compute many instances: values are arrays over them, unless there are blocks."""
        if not count:
            return
        if self._one_by_one:
            for k in range(count):
                row = [x[k] if many else x for x, many in zip(inputs, batched)]
                self.call(row, [out[k, ...] for out in outputs])
            return
        values: list[Any] = []
        for array, many in zip(inputs, batched):
            values.extend(array.reshape(count, -1).T if many else array.ravel())
        results = iter(run(self.program.graph, values))
        for out in outputs:
            columns = np.empty((out.size // count, count), out.dtype)
            for row, value in zip(columns, results):
                row[...] = value
            out[...] = columns.T.reshape(out.shape)

    def source(self, kind: str) -> str:
        """Return the graph as text."""
        return str(self.program.graph)

    def figures(self) -> Figures:
        """Return what is known without compiling."""
        return Figures(operations=statistics(self.program.graph).total)


class Interpreter(Backend):
    """The reference that every other backend must equal bit for bit."""

    name = "interpreter"
    reads_tables_in_place = True

    def build(self, program: Program) -> Kernel:
        """Return the program as it is."""
        return InterpretedProgram(program)


BACKEND = Interpreter()

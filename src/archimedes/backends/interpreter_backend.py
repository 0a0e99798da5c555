"""The interpreter as a backend: runs at once, with nothing to build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.backends.protocol import Backend, Figures, Kernel, Program
from archimedes.graph.text import statistics

__all__ = ["InterpretedProgram", "Interpreter"]


class InterpretedProgram(Kernel):
    """A graph that is run node by node."""

    sources = ("graph",)

    def __init__(self, program: Program) -> None:
        self.program = program

    def call(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Compute one instance."""
        values: list[Any] = []
        for array in inputs:
            values.extend(array.ravel())
        results = run(self.program.graph, values)
        at = 0
        for out in outputs:
            end = at + out.size
            # A list is written to one axis; where there is none, its only item.
            if out.ndim:
                out.reshape(-1)[:] = results[at:end]
            else:
                out[()] = results[at]
            at = end

    def call_batch(
        self,
        inputs: Sequence[np.ndarray],
        batched: Sequence[bool],
        outputs: Sequence[np.ndarray],
        count: int,
        threads: int | None = None,
    ) -> None:
        """Compute many instances: values are arrays over them."""
        values: list[Any] = []
        for array, many in zip(inputs, batched):
            values.extend(array.reshape(count, -1).T if many and count else array.ravel())
        if not count:
            return
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

    def build(self, program: Program) -> Kernel:
        """Return the program as it is."""
        return InterpretedProgram(program)


BACKEND = Interpreter()

"""Run a graph with NumPy: the reference that every other backend must equal bit for bit.

A value is a NumPy scalar or an array over a batch; values of one graph broadcast against each
other, so that a value shared by all instances stays a scalar. A block is a 1-D array of its
elements: graphs with blocks run one instance at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.backends.leaves import put_values, values_in
from archimedes.backends.protocol import Backend, Figures, Flags, Kernel, Leaves, Program, Threads
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.ops import ARITY, BLOCK, CONST, ELEMENT, INPUT, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import has_blocks
from archimedes.graph.text import statistics
from archimedes.system.floating_point import in_default_environment

# Operators on NumPy scalars are several times quicker than the ufuncs, with the same results.
_QUICK = {name: getattr(operator, name) for name in ("add", "sub", "mul", "neg")}
_QUICK |= {name: getattr(operator, name) for name in ("lt", "le", "eq", "ne")}
_QUICK["div"] = operator.truediv
_FUNCTIONS: tuple[Any, ...] = tuple(_QUICK.get(op.name, op.numpy) for op in TABLE)
_MAKE = tuple(dtype.type for dtype in DTYPES)

Instruction = tuple[int, int, int, int, int]


@in_default_environment
def run(g: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Evaluate a graph on NumPy scalars or arrays of one batch shape; floating errors are silent.

    Returns one value per output, as it falls out: a scalar where nothing depended on the batch.
    """
    with np.errstate(all="ignore"):
        return evaluate(g, inputs)


def evaluate(g: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Evaluate as ``run`` does, under the caller's ``errstate``."""
    return _Evaluation()(g, inputs)


class _Evaluation:
    """One run: bodies of loops are asked once what their outputs depend on, not at each step."""

    def __init__(self) -> None:
        # By identity; the graph is kept, so that no other one is taken for it.
        self._live: dict[int, tuple[Graph, list[int]]] = {}

    def __call__(self, g: Graph, inputs: Sequence[Any]) -> list[Any]:
        if id(g) not in self._live:
            self._live[id(g)] = g, g.live()
        return _values(g, self._live[id(g)][1], inputs, self)


def _values(g: Graph, live: list[int], inputs: Sequence[Any], body: _Evaluation) -> list[Any]:
    v: list[Any] = [None] * len(g.op)
    op, a, b, c = g.op, g.a, g.b, g.c
    for i in live:
        code = op[i]
        arity = ARITY[code]
        if arity == 2 and code != ELEMENT:
            v[i] = _FUNCTIONS[code](v[a[i]], v[b[i]])
        elif code == OUT:
            v[i] = v[a[i]][b[i]]
        elif code == LOOKUP:
            table = g.tables[b[i]]
            v[i] = table[_within(v[a[i]], len(table))]
        elif arity == 1:
            v[i] = _FUNCTIONS[code](v[a[i]])
        elif arity == 3:
            v[i] = _FUNCTIONS[code](v[a[i]], v[b[i]], v[c[i]])
        elif code == INPUT:
            v[i] = inputs[a[i]]
        elif code == CONST:
            v[i] = _MAKE[g.dtype[i]](g.value[i])
        elif code == ELEMENT:
            block = v[a[i]]
            v[i] = block[_within(v[b[i]], len(block))]
        elif code == BLOCK:
            v[i] = g.tables[b[i]]
        elif code == REGION:
            region = g.regions[i]
            v[i] = region.evaluate([v[j] for j in region.inputs.tolist()], body)
    return [v[i] for i in g.outputs]


def _within(index: Any, length: int) -> Any:
    """Return an index, or an array of them, clamped to a length."""
    if isinstance(index, np.integer):
        # A hundred times as fast for one.
        return min(max(int(index), 0), length - 1)
    return np.clip(index, 0, length - 1)


# ---- the backend: runs at once, with nothing to build -------------------------------------------


class InterpretedProgram(Kernel):
    """A graph that is run node by node."""

    sources = ("graph",)

    def __init__(self, program: Program) -> None:
        self.program = program
        self._types = program.graph.input_dtypes, program.graph.output_dtypes

    @cached_property
    def _one_by_one(self) -> bool:
        """Whether there are blocks, so that instances run one at a time."""
        return has_blocks(self.program.graph)

    def call(self, inputs: Leaves, outputs: Leaves) -> None:
        """Compute one instance."""
        graph = self.program.graph
        in_types, out_types = self._types
        put_values(run(graph, values_in(inputs, in_types)), out_types, outputs)

    def call_batch(
        self, inputs: Leaves, batched: Flags, outputs: Leaves, count: int, threads: Threads = None
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

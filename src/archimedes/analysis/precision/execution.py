"""Run a graph in one arithmetic and keep what its nodes computed, in all bodies and all steps.

Executions of a body are kept under the regions that lead to it (a key: the node of each region and
the number of its body) and numbered by the steps of the loops around it (a path), so that those of
two arithmetics can be compared one by one, also where branches or loops went different ways. Of
long loops a part of the steps is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.analysis.precision.arithmetics import Arithmetic
from archimedes.backends.protocol import ArrayType, Kernel, Program
from archimedes.backends.registry import default_backend
from archimedes.graph.dtypes import DTYPES, item_type, length_of
from archimedes.graph.ops import (
    ARITY,
    BLOCK,
    CONST,
    ELEMENT,
    INPUT,
    LOOKUP,
    OUT,
    REGION,
)
from archimedes.graph.passes import with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Scan
from archimedes.graph.regions.base import Region, has_blocks
from archimedes.system.floating_point import in_default_environment

Key = tuple[tuple[int, int], ...]
Path = tuple[int, ...]

#: So many numbers of a body are kept at most, and so many of its executions.
_NUMBERS, _EXECUTIONS = 1 << 20, 1 << 12
#: Operations of a loop from which on it pays to compile it, and how many of its steps are kept.
_LONG = 30_000
_STEPS = 1 << 13


class Executions:
    """The executions of one body: a row of node values for each that was kept, with its path.

    ``steps``: where the last axis of the values is the steps of a loop, their numbers.
    """

    def __init__(self, graph: Graph, live: list[int]) -> None:
        self.graph, self.live = graph, live
        self.capacity = max(32, min(_EXECUTIONS, _NUMBERS // max(1, len(live))))
        self.rows: dict[Path, list[Any]] = {}
        self.steps: np.ndarray | None = None
        self.count = 0
        self._stride = 1
        self._last: Path | None = None

    def add(self, path: Path, values: list[Any]) -> None:
        """Keep an execution; every other one is dropped when there are too many."""
        if self._last is not None:
            self.rows.pop(self._last, None)  # it was kept for being the last so far
        self._last = path if self.count % self._stride else None
        self.rows[path] = values
        self.count += 1
        if len(self.rows) > self.capacity:
            self.rows = dict(list(self.rows.items())[::2])
            self._stride *= 2


class Execution:
    """Runs a graph; ``bodies`` holds what was computed, by key.

    ``compiled``: long loops may run as native code.
    """

    def __init__(self, arithmetic: Arithmetic, compiled: bool = True) -> None:
        self.arithmetic = arithmetic
        self._compiled = compiled and arithmetic.program is not None
        self.bodies: dict[Key, Executions] = {}
        # By identity; what they are of is kept, so that nothing else is taken for it.
        self._live: dict[int, tuple[Graph, list[int]]] = {}
        self._regions: dict[int, tuple[Region, Region]] = {}
        self._kernels: dict[int, Kernel] = {}

    @in_default_environment
    def run(self, graph: Graph, inputs: Sequence[Any], sample: int = 0) -> list[Any]:
        """Return the outputs for float64, int64 and bool inputs: scalars, batches or blocks."""
        values = [
            self.arithmetic.array(x) if np.asarray(x).dtype == np.float64 else x for x in inputs
        ]
        with np.errstate(all="ignore"):
            return self._evaluate(graph, values, (), (sample,))

    def _executions(self, g: Graph, key: Key) -> Executions:
        known = self.bodies.get(key)
        if known is None:
            if id(g) not in self._live:
                self._live[id(g)] = g, g.live()
            known = self.bodies[key] = Executions(g, self._live[id(g)][1])
        return known

    def _evaluate(self, g: Graph, inputs: Sequence[Any], key: Key, path: Path) -> list[Any]:
        executions = self._executions(g, key)
        functions, arithmetic = self.arithmetic.functions, self.arithmetic
        v: list[Any] = [None] * len(g.op)
        op, a, b, c = g.op, g.a, g.b, g.c
        for i in executions.live:
            code = op[i]
            arity = ARITY[code]
            if code == OUT:
                v[i] = v[a[i]][b[i]]
            elif code == LOOKUP:
                v[i] = _item(arithmetic.table(g.tables[b[i]]), v[a[i]])
            elif code == ELEMENT:
                v[i] = _item(v[a[i]], v[b[i]])
            elif arity == 2:
                v[i] = functions[code](v[a[i]], v[b[i]])
            elif arity == 1:
                v[i] = functions[code](v[a[i]])
            elif arity == 3:
                v[i] = functions[code](v[a[i]], v[b[i]], v[c[i]])
            elif code == INPUT:
                v[i] = inputs[a[i]]
            elif code == CONST:
                v[i] = arithmetic.constant(g.value[i], g.dtype[i])
            elif code == BLOCK:
                v[i] = arithmetic.table(g.tables[b[i]])
            elif code == REGION:
                operands = [v[j] for j in g.regions[i].inputs.tolist()]
                v[i] = self._run_region(g.regions[i], operands, (key, i), path)
        executions.add(path, v)
        return [v[i] for i in g.outputs]

    def _run_region(
        self, region: Region, values: list[Any], where: tuple[Key, int], path: Path
    ) -> list[Any]:
        if id(region) not in self._regions:
            self._regions[id(region)] = region, self.arithmetic.region(region)
        region = self._regions[id(region)][1]
        key, node = where
        if self._is_worth_compiling(region, values):
            return self._run_compiled(region, values, (*key, (node, 0)), path)
        bodies = list(map(id, region.bodies))
        counts = [0] * len(bodies)

        def run(body: Graph, operands: Sequence[Any]) -> list[Any]:
            number = bodies.index(id(body))
            counts[number] += 1
            step = counts[number] - 1
            return self._evaluate(body, operands, (*key, (node, number)), (*path, step))

        return self.arithmetic.evaluate(region, values, run)

    # ---- long loops: native code gives the states of all steps; then steps are a batch -------

    def _is_worth_compiling(self, region: Region, values: list[Any]) -> bool:
        if not isinstance(region, Scan) or not self._compiled:
            return False
        if region.has_effects or has_blocks(region.body) or not region.carry:
            return False
        if (region.slices and not region.stacked) or (region.outs and not region.stacked):
            return False
        numbers = values[: region.carry] + values[region.carry + region.slices :]
        long = region.length * len(region.body) >= _LONG
        return long and all(np.ndim(x) == 0 for x in numbers)

    def _run_compiled(self, region: Any, values: list[Any], key: Key, path: Path) -> list[Any]:
        n, s, length = region.carry, region.slices, region.length
        body = region.body
        inputs = [np.asarray(x) for x in values]
        kernel = self._kernels.get(id(region))
        whole = with_outputs(body, [*body.outputs, *body.inputs[:n]])
        kinds = whole.output_dtypes
        shapes = [() if k < n else (length,) for k in range(len(kinds))]
        codes = list(map(item_type, kinds))
        if kernel is None:
            kernel = self._kernels[id(region)] = self._compile(region, whole, codes, shapes)
        narrow = self.arithmetic.array(np.float64(0)).dtype
        types = [narrow if DTYPES[code] == np.float64 else DTYPES[code] for code in codes]
        outs = [np.empty(shape, dtype) for shape, dtype in zip(shapes, types)]
        kernel.call(inputs, outs)
        steps = np.arange(length)
        if length > _STEPS:
            even = np.linspace(0, length - 1, _STEPS // 2).astype(np.int64)
            few = _STEPS // 4
            steps = np.unique(np.concatenate([even, steps[:few], steps[-few:]]))
        at = length - 1 - steps if region.reverse else steps
        states = [x[at] for x in outs[len(body.outputs) :]]
        operands = [*states, *(x[at] for x in inputs[n : n + s]), *values[n + s :]]
        self._evaluate(body, operands, key, (*path, 0))
        self.bodies[key].steps = steps
        return [x[()] for x in outs[: len(body.outputs)]]

    def _compile(
        self, region: Any, body: Graph, codes: list[int], shapes: Sequence[tuple[int, ...]]
    ) -> Kernel:
        """Compile a scan that also puts out the states at the start of all steps."""
        n, s = region.carry, region.slices
        kinds = body.input_dtypes
        kinds = [*kinds[:n], *map(region.of_steps, kinds[n : n + s]), *kinds[n + s :]]
        g = Graph.with_inputs(kinds)
        g.outputs = g.region(replace(region, inputs=g.inputs, body=body, stacked=True)).tolist()
        assert self.arithmetic.program is not None
        g = self.arithmetic.program(g)
        lengths = [(length_of(k),) if length_of(k) else () for k in g.input_dtypes]
        inputs = [ArrayType(item_type(k), size) for k, size in zip(g.input_dtypes, lengths)]
        codes = [item_type(kind) for kind in g.output_dtypes]
        outputs = [ArrayType(code, shape) for code, shape in zip(codes, shapes)]
        return default_backend().build(Program(g, tuple(inputs), tuple(outputs), "precision"))


def _item(table: Any, index: Any) -> Any:
    """Return the elements of a table or block at an index, or an array of them, clamped to it."""
    if isinstance(index, np.integer):
        return table[min(max(int(index), 0), len(table) - 1)]
    return table[np.clip(index, 0, len(table) - 1)]

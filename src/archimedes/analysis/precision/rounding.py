"""The same program with some of its operations in float32 and all others in float64.

An operation in float32 rounds its operands and its result, as a program with casts does: a sum,
difference, product, quotient or root of float32 numbers that is rounded to float64 and then to
float32 is the float32 result (Figueroa, "When is double rounding innocuous?", ACM SIGNUM Newsletter
30(3), 1995), and elementary functions of float32 are defined that way. All values keep the type
float64, so that nothing changes between bodies, and any backend runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from archimedes.graph.blocks.building import each
from archimedes.graph.dtypes import F32, F64, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.passes import DeepTransformer, Outputs, Rewriter
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest, Region, Solve
from archimedes.graph.regions.block_regions import Accumulate

#: Whether a node of a graph is computed in float32.
IsSingle = Callable[[Graph, int], bool]

_TO_SINGLE, _TO_DOUBLE = CODES["f32"], CODES["f64"]
#: Ops whose result is a float32 number if their operands are.
EXACT = frozenset(
    (
        *map(CODES.__getitem__, ("neg", "abs", "select", "min", "max", "copysign", "stop")),
        *map(CODES.__getitem__, ("floor", "ceil", "trunc", "rint")),
    )
)


def round_some(graph: Graph, is_single: IsSingle) -> Graph:
    """Return the program with the operations that are to be so in float32.

    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["mul"], x, g.const(0.1))]
    >>> from archimedes.backends.interpreter import run
    >>> float(run(round_some(g, lambda graph, node: True), [1.0])[0])
    0.10000000149011612
    """
    return Rewriter(lambda g, rewriter: _Rounding(g, rewriter, is_single), key=id)(graph)


class _Rounding(DeepTransformer):
    def __init__(self, src: Graph, rewriter: Rewriter, is_single: IsSingle) -> None:
        super().__init__(src, rewriter)
        self.is_single = is_single
        #: Nodes of the new graph that are float32 numbers.
        self.rounded: set[int] = set()

    def program(self) -> Graph:
        dst = super().program()
        self.copy_lines()
        return dst

    def round(self, i: int) -> int:
        """Return a node rounded to float32, if it is of float64."""
        dst = self.dst
        if dst.dtype[i] != F64 or i in self.rounded:
            return i
        i = dst.emit(_TO_DOUBLE, dst.emit(_TO_SINGLE, i))
        self.rounded.add(i)
        return i

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        code = self.src.op[i]
        if not self.is_single(self.src, i):
            return self.dst.emit(code, *operands)
        node = self.dst.emit(code, *map(self.round, operands))
        if code in EXACT and self.dst.dtype[node] == F64:
            self.rounded.add(node)
        return self.round(node)

    def input(self, i: int) -> int:
        node = super().input(i)
        return self.round(node) if self.is_single(self.src, i) else node

    def lookup(self, i: int) -> int:
        node = super().lookup(i)
        return self.round(node) if self.is_single(self.src, i) else node

    def element(self, i: int) -> int:
        node = super().element(i)
        return self.round(node) if self.is_single(self.src, i) else node

    def region(self, i: int, region: Region) -> Outputs:
        if not self.is_single(self.src, i):
            return super().region(i, region)
        if isinstance(region, Nest) and region.combine:
            body = self.rewriter(region.body)
            return self._in_single(replace(self.relink(region), body=_narrow_outputs(body)))
        if isinstance(region, (Solve, Accumulate)):
            inputs = [self._cast(self.to[j], _TO_SINGLE, F64) for j in region.inputs.tolist()]
            return self._in_single(replace(region, inputs=inputs, dtype=region.dtype | F32))
        return super().region(i, region)

    def _in_single(self, region: Region) -> Outputs:
        """Append a region that computes in float32; its outputs are cast back."""
        return [self._cast(out, _TO_DOUBLE, F32) for out in self.dst.region(region).tolist()]

    def _cast(self, i: int, code: int, of: int) -> int:
        """Cast a number or a block if it is of a type."""
        return each(self.dst, code, i) if item_type(self.dst.dtype[i]) == of else i


def _narrow_outputs(body: Graph) -> Graph:
    """Return a body whose float64 outputs are float32, so that they are combined in float32."""
    copy = DeepTransformer(body, Rewriter(lambda g, r: None, key=id), sources=False).program()
    copy.outputs = [copy.emit(_TO_SINGLE, i) if copy.dtype[i] == F64 else i for i in copy.outputs]
    return copy

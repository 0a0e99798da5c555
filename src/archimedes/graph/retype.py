"""The same program in float32: what a target without double arithmetic computes.

Every float64 becomes float32: inputs, outputs, tables and constants (rounded; what float32 cannot
hold becomes inf, as when an array is cast). Elementary functions are those of float32, that is,
computed in float64 and rounded once. Bit moves of float64 keep their meaning: ``bits`` widens its
operand and ``from_bits`` rounds its result. The interpreter on the new graph is the reference.
"""

from __future__ import annotations

import numpy as np

from archimedes.graph.dtypes import F32, F64
from archimedes.graph.ops import CODES
from archimedes.graph.passes import DeepTransformer, Origin, Outputs, Rewriter
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region


def retype(graph: Graph, origin: dict[int, Origin] | None = None) -> Graph:
    """Return the program with float32 in place of float64.

    ``origin`` gets an entry for the new graph and each new body: where its nodes come from.

    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["mul"], x, g.const(0.1))]
    >>> retype(g).output_dtypes == [F32]
    True
    """
    # Bodies are known by their identity: each has its own lines.
    return Rewriter(_Retype, origin, key=id)(graph)


class _Retype(DeepTransformer):
    """Writes a graph in float32."""

    def dtype(self, dtype: int) -> int:
        return dtype | F32 if dtype & 3 == F64 else dtype

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        """Append an op whose float64 operands have become float32."""
        dst, code = self.dst, self.src.op[i]
        if code == CODES["bits"]:
            return dst.emit(code, dst.emit(CODES["f64"], *operands))
        if code == CODES["from_bits"]:
            return dst.emit(CODES["f32"], dst.emit(code, *operands))
        if code in (CODES["f64"], CODES["f32"]):
            narrow = dst.dtype[operands[0]] == F32
            return operands[0] if narrow else dst.emit(CODES["f32"], *operands)
        return dst.emit(code, *operands)

    def const(self, i: int) -> int:
        return self.dst.const(self.src.value[i], self.dtype(self.src.dtype[i]))

    def table(self, table: np.ndarray) -> np.ndarray:
        if table.dtype != np.float64:
            return table
        with np.errstate(over="ignore"):
            return table.astype(np.float32)

    def region(self, i: int, region: Region) -> Outputs:
        return self.dst.region(self.relink(region).retype(self.rewriter, self.dtype)).tolist()

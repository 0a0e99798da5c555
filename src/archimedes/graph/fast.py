"""The ``fast`` numerics mode: what it changes is written into the graph, once for all backends.

* A product that only one sum or difference reads becomes part of it, as an ``fma``. A product
  that others read too stays, so that error-free transformations keep their meaning.
* Divisors that two or more divisions share, and constant ones, are inverted once: ``u / d`` and
  ``v / d`` become ``u * r`` and ``v * r`` with ``r = 1 / d``. Where ``r`` over- or underflows (d
  below 2**-1022 or above 2**1022) so do the products.

Elementary functions are expanded with fused programs of their own; their divisions stay. Every
backend runs the resulting graph as it is written, so they agree to the bit in this mode too.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from archimedes.graph.dtypes import F32, F64, is_float
from archimedes.graph.expand import expand, program
from archimedes.graph.ops import CODES
from archimedes.graph.passes import EmitNode, rewrite
from archimedes.graph.program import Graph, plain_graphs

ADD, SUB, MUL, DIV, NEG, FMA = (CODES[n] for n in ("add", "sub", "mul", "div", "neg", "fma"))
#: The exponent of the smallest normal number.
_LEAST = {F64: -1022, F32: -126}


def fast(graph: Graph, *, calls: bool = False) -> Graph:
    """Return the program with fused multiply-adds and shared reciprocals, and nothing elementary.

    ``calls`` is as in :func:`~archimedes.graph.expand.expand`.

    >>> g = Graph()
    >>> x, y, z = g.add_inputs(F64, 3).tolist()
    >>> g.outputs = [g.emit(ADD, g.emit(MUL, x, y), z)]
    >>> print(fast(g))
    graph (3 f64)
      %0 = input 0 : f64
      %1 = input 1 : f64
      %2 = input 2 : f64
      %3 = fma %0 %1 %2 : f64
      return %3
    """
    shared = rewrite(graph, _with_reciprocals)
    return expand(rewrite(shared, _with_fma), calls=calls, text=_program_with_fma)


@cache
def _program_with_fma(name: str, dtype: int) -> Graph:
    with plain_graphs():
        return rewrite(program(name, dtype), _with_fma)


def _with_reciprocals(src: Graph) -> EmitNode:
    """Multiply by the reciprocals of shared and of constant divisors."""
    divisors = Counter(src.b[i] for i in src.live() if src.op[i] == DIV)

    def invert(i: int) -> bool:
        value, least = src.value.get(i), _LEAST[src.dtype[i]]
        if value is None:
            return divisors[i] > 1
        return 2.0**least <= abs(value) <= 2.0**-least

    def emit(dst: Graph, i: int, operands: tuple[int, ...]) -> int:
        code = src.op[i]
        if code == DIV and invert(src.b[i]):
            top, divisor = operands
            inverse = dst.emit(DIV, dst.const(1.0, dst.dtype[divisor]), divisor)
            return dst.emit(MUL, top, inverse)
        return dst.emit(code, *operands)

    return emit


def _with_fma(src: Graph) -> EmitNode:
    """Fuse a product into the sum that alone reads it; of two such products, the later one."""
    live = src.live()
    uses = Counter(j for i in live for j in src.operands(i))
    uses.update(src.outputs)

    def is_product(dst: Graph, j: int, moved: int) -> bool:
        return src.op[j] == MUL and uses[j] == 1 and dst.op[moved] == MUL

    def emit(dst: Graph, i: int, operands: tuple[int, ...]) -> int:
        code = src.op[i]
        if code not in (ADD, SUB) or not is_float(src.dtype[i]):
            return dst.emit(code, *operands)
        a, b = operands
        if is_product(dst, src.b[i], b):
            x, y = dst.a[b], dst.b[b]
            return dst.emit(FMA, *((x, y) if code == ADD else _negate_product(dst, x, y)), a)
        if is_product(dst, src.a[i], a):
            c = b if code == ADD else dst.emit(NEG, b)
            return dst.emit(FMA, dst.a[a], dst.b[a], c)
        return dst.emit(code, a, b)

    return emit


def _negate_product(g: Graph, x: int, y: int) -> tuple[int, int]:
    """Return the factors of the negated product; negating a literal costs nothing."""
    return (x, g.emit(NEG, y)) if y in g.value else (g.emit(NEG, x), y)

"""Replace elementary functions by the programs of exact primitives that define them.

A backend that lowers the exact rows of the op table lowers everything: ``expand`` traces each
program of ``graph/elementary`` once, as a graph, and copies it to where it is called. Equal
parts (the argument reduction that sin and cos share) become one by hash-consing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from archimedes.graph.blocks.fusion import fuse_loops
from archimedes.graph.dtypes import B8, F32, F64, I64
from archimedes.graph.elementary.primitives import Primitives
from archimedes.graph.elementary.table import PROGRAMS, in_float32
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.passes import EmitNode, inline, rewrite
from archimedes.graph.program import Graph, plain_graphs
from archimedes.graph.regions import Call, Switch, While

_IS_ELEMENTARY = tuple(op.elementary for op in TABLE)


class GraphValue:
    """A scalar of a graph with Python's operators; literals take the dtype of their partner.

    >>> g = Graph()
    >>> x = GraphValue(g, g.input(F64))
    >>> g.outputs = [(2.0 * x + 1.0).id]
    """

    __slots__ = ("graph", "id")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, i: int) -> None:
        self.graph = graph
        self.id = i

    def __neg__(self) -> GraphValue:
        return _emit("neg", self)

    def __invert__(self) -> GraphValue:
        return _emit("not", self)


Operand = GraphValue | float | int
_LITERALS = {bool: B8, int: I64, float: F64}


def _id_of(graph: Graph, x: Operand, dtype: int | None) -> int:
    if isinstance(x, GraphValue):
        return x.id
    return graph.const(x, _LITERALS[type(x)] if dtype is None else dtype)


def _emit(name: str, *operands: Operand) -> GraphValue:
    """Append an op to the graph its operands belong to."""
    first = next(x for x in operands if isinstance(x, GraphValue))
    graph = first.graph
    dtype = graph.dtype[first.id]
    return GraphValue(graph, graph.emit(CODES[name], *(_id_of(graph, x, dtype) for x in operands)))


#: Python's operators: the name of the method without underscores, the op, whether they are swapped.
_OPERATORS = (
    *((name, name, False) for name in ("add", "sub", "mul", "and", "or", "xor")),
    *(("truediv", "div", False), ("lshift", "shl", False), ("rshift", "shr", False)),
    *((name, name, False) for name in ("lt", "le", "eq", "ne")),
    *(("gt", "lt", True), ("ge", "le", True)),
)


def _operator(name: str, swapped: bool) -> Callable[[GraphValue, Operand], GraphValue]:
    if swapped:
        return lambda self, other: _emit(name, other, self)
    return lambda self, other: _emit(name, self, other)


for _python, _name, _swapped in _OPERATORS:
    setattr(GraphValue, f"__{_python}__", _operator(_name, _swapped))
    setattr(GraphValue, f"__r{_python}__", _operator(_name, not _swapped))


class GraphPrimitives(Primitives):
    """The primitives of ``elementary`` programs as nodes of the graph their operands live in.

    ``branch`` makes a ``Switch`` whose first branch is the ordinary side, ``loop`` a ``While``.

    >>> g = Graph()
    >>> x = GraphValue(g, g.input(F64))
    >>> g.outputs = [PROGRAMS["sin"].program(GraphPrimitives(), x).id]
    """

    @staticmethod
    def where(c: GraphValue, a: Operand, b: Operand) -> GraphValue:
        """``a`` where ``c`` holds, else ``b``; two literals give a float64 or an int64."""
        graph = c.graph
        typed = next((x for x in (a, b) if isinstance(x, GraphValue)), None)
        dtype = None if typed is None else graph.dtype[typed.id]
        ids = _id_of(graph, a, dtype), _id_of(graph, b, dtype)
        return GraphValue(graph, graph.emit(CODES["select"], c.id, *ids))

    @staticmethod
    def lookup(table: Sequence[float] | Sequence[int], i: GraphValue) -> GraphValue:
        """Entry ``i`` of a constant table, ``i`` clamped."""
        return GraphValue(i.graph, i.graph.lookup(np.asarray(table), i.id))

    @staticmethod
    def branch(
        cond: GraphValue,
        f_true: Callable[..., tuple[Operand, ...]],
        f_false: Callable[..., tuple[Operand, ...]],
        *args: Operand,
    ) -> tuple[GraphValue, ...]:
        """Make a ``Switch`` on ``cond``; branch 0 is ``f_false``."""
        graph = cond.graph
        ids = [_id_of(graph, x, None) for x in args]
        dtypes = [graph.dtype[i] for i in ids]
        branches = tuple(trace_program(side, dtypes) for side in (f_false, f_true))
        index = graph.emit(CODES["i64"], cond.id)
        return _values(graph, graph.region(Switch(np.array([index, *ids]), branches)))

    @staticmethod
    def loop(
        cond: Callable[..., Operand],
        body: Callable[..., tuple[Operand, ...]],
        state: tuple[Operand, ...],
        limit: int,
    ) -> tuple[GraphValue, ...]:
        """Make a ``While`` that carries the whole state."""
        graph = next(x.graph for x in state if isinstance(x, GraphValue))
        ids = [_id_of(graph, x, None) for x in state]
        dtypes = [graph.dtype[i] for i in ids]
        condition = trace_program(lambda *values: (cond(*values),), dtypes)
        region = While(np.array(ids), condition, trace_program(body, dtypes), len(ids), limit)
        return _values(graph, graph.region(region))


#: Primitives that are ops, by the names of the ops where those differ.
_SAME = ("abs", "sqrt", "floor", "rint", "copysign", "bits", "from_bits", "f64", "f32")
_PRIMITIVES = {name: name for name in _SAME}
_PRIMITIVES |= {"shift_right_logical": "lshr", "int_rem": "modulo"}
_PRIMITIVES |= {"to_int": "truncate", "to_float": "f64"}
for _primitive, _name in _PRIMITIVES.items():
    setattr(GraphPrimitives, _primitive, staticmethod(partial(_emit, _name)))


def _values(graph: Graph, ids: np.ndarray) -> tuple[GraphValue, ...]:
    return tuple(GraphValue(graph, i) for i in ids.tolist())


def trace_program(function: Callable[..., tuple[Operand, ...]], dtypes: Sequence[int]) -> Graph:
    """Run a function on the inputs of a new graph."""
    graph = Graph()
    values = [GraphValue(graph, graph.input(d)) for d in dtypes]
    graph.outputs = [_id_of(graph, x, None) for x in function(*values)]
    return graph


@cache
def program(name: str, dtype: int) -> Graph:
    """Return the graph of an elementary function on float64 or float32 operands.

    Example: ``program("sin", F64)`` has one input and one output.
    """
    row = PROGRAMS[name]
    text = in_float32(row.program) if dtype == F32 else row.program
    primitives = GraphPrimitives()
    with plain_graphs():
        return trace_program(lambda *values: (text(primitives, *values),), [dtype] * row.arity)


def expand(
    graph: Graph, *, calls: bool = False, text: Callable[[str, int], Graph] = program
) -> Graph:
    """Return an equal graph without elementary functions, in all bodies of regions too.

    Live nodes only; all inputs stay; loops over blocks are fused (``fusion.py``). The interpreter
    gives the same bits for both graphs. The programs of the functions are copied to where they
    are called, which runs fastest; with ``calls`` they become ``Call`` regions, so that a backend
    may write each once. ``text`` gives the program of a function by name and dtype.
    """
    insert = _emit_call if calls else inline

    def emitter(src: Graph) -> EmitNode:
        def emit(dst: Graph, i: int, operands: tuple[int, ...]) -> int:
            return insert(dst, text(TABLE[src.op[i]].name, src.dtype[i]), operands)[0]

        return emit

    return rewrite(fuse_loops(graph), emitter, own=_IS_ELEMENTARY)


def _emit_call(dst: Graph, body: Graph, operands: Sequence[int]) -> list[int]:
    return dst.region(Call(np.array(operands), body)).tolist()

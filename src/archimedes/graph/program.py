"""The program: an append-only list of scalar operations in single-assignment form.

A node is an opcode and up to three operands, held in parallel lists and named by its position.
Making a node folds constants, applies exact identities (``simplify.py``) and returns an equal
node where there is one already, so that the trace is the optimiser.
"""

from __future__ import annotations

import operator
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import GraphError
from archimedes.graph.digests import constant_key, frozen, is_live, program_digest, table_digest
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, block_type, item_type, length_of
from archimedes.graph.ops import (
    ARITY,
    BLOCK,
    CODES,
    CONST,
    ELEMENT,
    INPUT,
    LOOKUP,
    OUT,
    REGION,
    TABLE,
)
from archimedes.graph.text import render

if TYPE_CHECKING:
    from archimedes.graph.regions import Region


class _Origins(threading.local):
    """What this thread wants to know of where nodes come from; None if nobody asks.

    ``find`` finds the user's line that a node comes from; ``kind`` is a class of graphs that keep
    more, for checks of the program (``analysis/units/recording.py``).
    """

    find: Callable[[], Any] | None = None
    kind: type[Graph] | None = None


origins = _Origins()


@contextmanager
def plain_graphs() -> Iterator[None]:
    """Make ordinary graphs in the block, for programs that are kept and shared by all."""
    before = origins.find, origins.kind
    origins.find, origins.kind = None, None
    try:
        yield
    finally:
        origins.find, origins.kind = before


#: Ids from here on are no nodes: they stand for elements of blocks (``references.py``).
FIRST_REFERENCE = 1 << 40
#: A trace longer than this stops: long data belongs in ``vmap`` and ``scan``.
MAX_NODES = 8_000_000

_COMMUTES = tuple(op.commutative for op in TABLE)
#: The dtype code of an op's result, -1 where it is that of the last operand.
_RESULT = tuple(op.result if isinstance(op.result, int) else -1 for op in TABLE)
#: Folded by Python, whose floats are IEEE doubles: quicker than NumPy.
_PLAIN = {CODES["add"]: operator.add, CODES["sub"]: operator.sub, CODES["mul"]: operator.mul}
#: Folded by its rule, which knows products that are no less exact.
_POW = CODES["pow"]
#: Simplification rule of each op, filled in by ``simplify.py``: ``rule(graph, a, b, c)``. Operands
#: that commute come in the order of their ids.
RULES: list[Any] = [None] * len(TABLE)


# NumPy's own, also while names in its module are replaced (``symbolic/recorded/creation.py``).
_array, _asarray = np.array, np.asarray
#: Up to this many elements the ids of a constant array are kept.
_KEPT_SIZE = 256


def _constant_type(dtype: np.dtype) -> int:
    """Return the type of the constants in an array of floats, ints or bools."""
    if dtype.kind == "f":
        return F32 if dtype.itemsize == 4 else F64
    return B8 if dtype.kind == "b" else I64


class Graph:
    """A scalar program with inputs and outputs: nodes, how they are made and how they are read.

    ``op``, ``a``, ``b``, ``c`` and ``dtype`` are parallel lists over nodes; ``value`` maps the id
    of a constant to its Python number; ``regions`` maps the id of a region node to its region;
    ``tables`` are the constant arrays that ``lookup`` nodes read. ``inputs`` and ``outputs`` are
    lists of ids. ``lines`` are the user's lines each node was made at, kept on request
    (``symbolic/source_lines.py``).

    >>> from archimedes.graph.ops import CODES
    >>> g = Graph()
    >>> x = g.input(F64)
    >>> g.outputs = [g.emit(CODES["mul"], x, g.const(1.0))]
    >>> g.outputs == [x]
    True
    """

    def __new__(cls) -> Graph:
        return super().__new__(origins.kind or cls)

    def __init__(self) -> None:
        self.op: list[int] = []
        self.a: list[int] = []
        self.b: list[int] = []
        self.c: list[int] = []
        self.dtype: list[int] = []
        self.value: dict[int, Any] = {}
        self.regions: dict[int, Region] = {}
        self.tables: list[np.ndarray] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.input_names: list[str] | None = None
        self.output_names: list[str] | None = None
        self.lines: list[Any] | None = None if origins.find is None else []
        #: First reference to a block by its node; starts, ascending, and the nodes in that order.
        self.first_references: dict[int, int] = {}
        self.reference_starts: list[int] = []
        self.referenced: list[int] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._operations: defaultdict[int, dict[Any, int]] = defaultdict(dict)
        #: Hashes of the finished program, by what counts in them.
        self._digests: dict[tuple[bool, bool], str] = {}
        #: Ids of small constant arrays by content: a matrix is used many times.
        self._constants: dict[Any, np.ndarray] = {}
        #: Kept by ``derivatives/sparsity.py`` for bodies, which are finished.
        self._pattern: Any = None

    @classmethod
    def with_inputs(cls, dtypes: Iterable[int]) -> Graph:
        """Return an empty program with inputs of these types.

        >>> Graph.with_inputs([F64, I64]).inputs
        [0, 1]
        """
        g = cls()
        for dtype in dtypes:
            g.input(dtype)
        return g

    def __len__(self) -> int:
        return len(self.op)

    # ---- reading -----------------------------------------------------------------------

    def operands(self, i: int) -> Iterable[int]:
        """Return the ids a node reads."""
        op = self.op[i]
        if op == REGION:
            return self.regions[i].inputs.tolist()
        arity = ARITY[op]
        if arity == 2:
            return (self.a[i], self.b[i])
        if arity == 1:
            return (self.a[i],)
        return (self.a[i], self.b[i], self.c[i]) if arity else ()

    def effects(self) -> list[int]:
        """Return the ids of regions that call back into Python, in their bodies or themselves."""
        return [i for i, region in self.regions.items() if region.has_effects]

    def live(self, outputs: Sequence[int] | None = None) -> list[int]:
        """Return, ascending, the ids that the outputs depend on (inputs only where used).

        Regions with effects count as outputs: they run though nothing reads their results.
        """
        wanted = bytearray(len(self.op))
        top = -1
        for i in (*(self.outputs if outputs is None else outputs), *self.effects()):
            wanted[i] = 1
            top = max(top, i)
        op, a, b, c = self.op, self.a, self.b, self.c
        for i in range(top, -1, -1):
            if not wanted[i]:
                continue
            arity = ARITY[op[i]]
            if arity == 2:  # most of them
                wanted[a[i]] = wanted[b[i]] = 1
            elif arity:
                wanted[a[i]] = 1
                if arity > 2:
                    wanted[b[i]] = wanted[c[i]] = 1
            elif op[i] == REGION:
                for j in self.regions[i].inputs.tolist():
                    wanted[j] = 1
        return list(compress(range(top + 1), wanted))

    def dependents(self, sources: Iterable[int], outputs: Sequence[int] | None = None) -> bytearray:
        """Mark the sources, and the live nodes that depend on one of them."""
        marked = bytearray(len(self.op))
        for i in sources:
            marked[i] = 1
        for i in self.live(outputs):
            if not marked[i] and any(marked[j] for j in self.operands(i)):
                marked[i] = 1
        return marked

    @property
    def input_dtypes(self) -> list[int]:
        """Dtype codes of the inputs."""
        return [self.dtype[i] for i in self.inputs]

    @property
    def output_dtypes(self) -> list[int]:
        """Dtype codes of the outputs."""
        return [self.dtype[i] for i in self.outputs]

    # ---- making nodes ------------------------------------------------------------------

    def _append(self, op: int, a: int, b: int, c: int, dtype: int) -> int:
        i = len(self.op)
        if i >= MAX_NODES:
            raise GraphError(
                f"the trace has passed {MAX_NODES:,} operations. Arrays are traced element by "
                "element, so long data belongs in arc.vmap (over instances) or arc.scan (over "
                "steps), which are recorded once whatever their length."
            )
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        self.c.append(c)
        self.dtype.append(dtype)
        if self.lines is not None:
            self.lines.append(origins.find() if origins.find else None)
        return i

    def emit(self, op: int, a: int, b: int = -1, c: int = -1) -> int:
        """Return the node for an operation, simplified or shared where possible."""
        if a > b and _COMMUTES[op]:
            a, b = b, a
        # A number, mostly: a tuple for every node keeps the garbage collector busy.
        index, key = self._operations[op], (a << 42) + b if c < 0 else (a, b, c)
        known = index.get(key)
        if known is not None:
            return known
        if self.referenced and max(a, b, c) >= FIRST_REFERENCE:
            operands = (a, b, c)[: ARITY[op]]
            i = index[key] = self.emit(op, *(self.node_of(j) for j in operands))
            return i
        value, rule = self.value, RULES[op]
        simpler = None
        if a in value and (b < 0 or b in value) and op != _POW:
            simpler = self.fold(op, *(a, b, c)[: ARITY[op]])
        if rule is not None and simpler is None:
            simpler = rule(self, a, b, c)
        if simpler is not None:
            index[key] = simpler
            return simpler
        result, dtypes = _RESULT[op], self.dtype
        if result < 0:
            result = dtypes[c if c >= 0 else b if b >= 0 else a]
        i = len(dtypes)
        if i >= MAX_NODES or self.lines is not None:
            self._append(op, a, b, c, result)
        else:  # what ``_append`` does: all recording goes through here
            self.op.append(op)
            self.a.append(a)
            self.b.append(b)
            self.c.append(c)
            dtypes.append(result)
        index[key] = i
        return i

    def emit_simplified(self, op: int, a: int, b: int = -1, c: int = -1) -> int:
        """Return the node for an operation that no rule simplifies, like those of other graphs."""
        if a > b and _COMMUTES[op]:
            a, b = b, a
        index, key = self._operations[op], (a << 42) + b if c < 0 else (a, b, c)
        i = index.get(key)
        if i is None:
            result = _RESULT[op]
            if result < 0:
                result = self.dtype[c if c >= 0 else b if b >= 0 else a]
            i = index[key] = self._append(op, a, b, c, result)
        return i

    def fold(self, op: int, *ids: int) -> int | None:
        """Return the constant that an operation gives, None if an operand is no constant."""
        values: list[Any] = [self.value.get(i) for i in ids]
        evaluate, dtype = TABLE[op].numpy, self.dtype[ids[-1]]
        if None in values or evaluate is None:
            return None
        if dtype == F64 and op in _PLAIN:
            return self.const(_PLAIN[op](*values))
        with np.errstate(all="ignore"):
            out = evaluate(*(DTYPES[self.dtype[i]].type(v) for i, v in zip(ids, values)))
        return self.const(out, dtype if _RESULT[op] < 0 else _RESULT[op])

    def const(self, value: Any, dtype: int = F64) -> int:
        """Return the node of a constant; ``value`` is converted to ``dtype`` (default float64).

        For a block type, return a block filled with the constant.
        """
        if dtype > B8:
            return self.block(np.full(length_of(dtype), value, dtype=DTYPES[item_type(dtype)]))
        if dtype == F64:
            value = float(value)
        elif dtype == F32:
            with np.errstate(over="ignore"):  # a number beyond float32 is inf, as when it is cast
                value = float(np.float32(value))
        elif dtype == I64:
            value = (int(value) + 2**63) % 2**64 - 2**63
        else:
            value = bool(value)
        key = constant_key(value, dtype)
        i = self._index.get(key)
        if i is None:
            i = self._append(CONST, -1, -1, -1, dtype)
            self._index[key] = i
            self.value[i] = value
        return i

    def literal(self, value: float, dtype: int = F64) -> int:
        """Return the node of a number that the recorded function writes; ``const`` is for ours."""
        return self.const(value, dtype)

    def constants(self, array: np.ndarray) -> np.ndarray:
        """Return ids, in the array's shape, of the constants in a float, int or bool array."""
        array = _asarray(array)
        dtype = _constant_type(array.dtype)
        key = (array.dtype.num, array.shape, array.tobytes())
        ids = self._constants.get(key)
        if ids is None:
            flat = [self.const(value, dtype) for value in array.ravel().tolist()]
            ids = np.array(flat, dtype=np.int64).reshape(array.shape)
            if array.size <= _KEPT_SIZE:
                self._constants[key] = ids
        return _array(ids)

    def input(self, dtype: int) -> int:
        """Append an input and return its id."""
        i = self._append(INPUT, len(self.inputs), -1, -1, dtype)
        self.inputs.append(i)
        return i

    def add_inputs(self, dtype: int, count: int) -> np.ndarray:
        """Append many inputs of one dtype and return their ids."""
        return np.array([self.input(dtype) for _ in range(count)], dtype=np.int64)

    def lookup(self, table: np.ndarray, index: int) -> int:
        """Return ``table[clip(index, 0, len(table) - 1)]`` for a constant 1-D table."""
        table = np.ascontiguousarray(table)
        index = self.node_of(index)
        if is_live(table):
            return self.element(self.block(table), index)
        if index in self.value:
            at = min(max(self.value[index], 0), len(table) - 1)
            return int(self.constants(table[at : at + 1])[0])
        dtype, number = self._table(table)
        return self._shared(LOOKUP, index, number, dtype)

    def _table(self, table: np.ndarray) -> tuple[int, int]:
        """Return dtype and number of a constant table."""
        dtype = _constant_type(table.dtype)
        table = frozen(table, DTYPES[dtype])
        key = ("table", table_digest(table))
        number = self._index.get(key)
        if number is None:
            number = len(self.tables)
            self.tables.append(table)
            self._index[key] = number
        return dtype, number

    def _shared(self, op: int, a: int, b: int, dtype: int) -> int:
        """Return a structural node; equal ones are one node."""
        key = (op, a, b, -1)
        i = self._index.get(key)
        if i is None:
            i = self._index[key] = self._append(op, a, b, -1, dtype)
        return i

    def block(self, table: np.ndarray) -> int:
        """Return a constant 1-D table as a block: one value of many elements."""
        table = np.ascontiguousarray(table)
        dtype, number = self._table(table)
        return self._shared(BLOCK, -1, number, block_type(dtype, len(table)))

    def constant_table(self, block: int) -> np.ndarray | None:
        """Return the table of a constant block, or None; the content of live ones is not known."""
        if self.op[block] != BLOCK:
            return None
        table = self.tables[self.b[block]]
        return None if is_live(table) else table

    def first_reference(self, block: int) -> int:
        """Return the reference to the first element of a block; the others follow it."""
        first = self.first_references.get(block)
        if first is None:
            first = FIRST_REFERENCE
            if self.referenced:
                # One is left out between two: runs of references do not pass from one to another.
                last = self.referenced[-1]
                first = self.reference_starts[-1] + length_of(self.dtype[last]) + 1
            self.first_references[block] = first
            self.reference_starts.append(first)
            self.referenced.append(block)
        return first

    def node_of(self, i: int) -> int:
        """Return the node that reads the element of a reference; a node is returned as it is."""
        if i < FIRST_REFERENCE:
            return i
        at = bisect_right(self.reference_starts, i) - 1
        return self.element(self.referenced[at], self.const(i - self.reference_starts[at], I64))

    def element(self, block: int, index: int) -> int:
        """Return ``block[clip(index, 0, length - 1)]``, or the node that was packed there."""
        at = self.value.get(index)
        if at is not None:
            at = min(max(at, 0), length_of(self.dtype[block]) - 1)
            table = self.constant_table(block)
            if table is not None:
                return int(self.constants(table[at : at + 1])[0])
            if self.op[block] == OUT:
                node = self.regions[self.a[block]].element(self, self.b[block], at)
                if node is not None:
                    return node
            index = self.const(at, I64)
        return self._shared(ELEMENT, block, index, item_type(self.dtype[block]))

    def region(self, region: Region) -> np.ndarray:
        """Append a region and return the ids of its outputs."""
        if region.inputs.size and int(region.inputs.max()) >= FIRST_REFERENCE:
            region = region.with_inputs([self.node_of(i) for i in region.inputs.tolist()])
        key = (REGION, region.key())
        i = self._index.get(key)
        if i is None:
            i = self._append(REGION, -1, -1, -1, B8)
            self._index[key] = i
            self.regions[i] = region
        outs = [self._shared(OUT, i, k, dtype) for k, dtype in enumerate(region.out_dtypes)]
        return _array(outs, dtype=np.int64)

    # ---- what it is ---------------------------------------------------------------------

    def digest(self, lasting: bool = False, data: bool = True) -> str:
        """Return a hash of the program's content. Call it only on finished graphs.

        ``lasting``: of what the program computes, the same in every process. Derivative rules,
        which are objects of one process, are left out. Without ``data``: not of what is in its
        longer tables, so that programs that differ only in such data have the same hash (see
        ``graph/table_data.py``).
        """
        digest = self._digests.get((lasting, data))
        if digest is None:
            digest = self._digests[lasting, data] = program_digest(self, lasting, data)
        return digest

    def __repr__(self) -> str:
        return render(self)

"""What a program is: its nodes in parallel lists, and how they are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.graph.ops import ARITY, REGION

if TYPE_CHECKING:
    from archimedes.graph.regions import Region

__all__ = ["Nodes", "origins"]


class _Origins(threading.local):
    """How this thread finds the user's line a node comes from; None where nobody asked."""

    find: Callable[[], Any] | None = None


origins = _Origins()


class Nodes:
    """The nodes of a program, to be read; ``Graph`` makes them.

    ``op``, ``a``, ``b``, ``c`` and ``dtype`` are parallel lists over nodes; ``value`` maps the id
    of a constant to its Python number; ``regions`` maps the id of a region node to its region;
    ``tables`` are the constant arrays that ``lookup`` nodes read. ``inputs`` and ``outputs`` are
    lists of ids. ``lines`` are the user's lines each node was made at, kept on request
    (``symbolic/source_lines.py``).
    """

    __slots__ = (
        "_constants",
        "_digests",
        "_index",
        "_pattern",
        "a",
        "b",
        "c",
        "dtype",
        "first_references",
        "input_names",
        "inputs",
        "lines",
        "op",
        "output_names",
        "outputs",
        "reference_starts",
        "referenced",
        "regions",
        "tables",
        "value",
    )

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
        #: Hashes of the finished program, by what counts in them.
        self._digests: dict[tuple[bool, bool], str] = {}
        #: Ids of small constant arrays by content: a matrix is used many times.
        self._constants: dict[Any, np.ndarray] = {}
        #: Kept by ``derivatives/sparsity.py`` for bodies, which are finished.
        self._pattern: Any = None

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
        if arity == 3:
            return (self.a[i], self.b[i], self.c[i])
        return ()

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
            if arity:
                wanted[a[i]] = 1
                if arity > 1:
                    wanted[b[i]] = 1
                    if arity > 2:
                        wanted[c[i]] = 1
            elif op[i] == REGION:
                for j in self.regions[i].inputs.tolist():
                    wanted[j] = 1
        return list(compress(range(top + 1), wanted))

    @property
    def input_dtypes(self) -> list[int]:
        """Dtype codes of the inputs."""
        return [self.dtype[i] for i in self.inputs]

    @property
    def output_dtypes(self) -> list[int]:
        """Dtype codes of the outputs."""
        return [self.dtype[i] for i in self.outputs]

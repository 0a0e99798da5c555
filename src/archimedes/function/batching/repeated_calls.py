"""A compiled function called again and again natively, its state going from call to call.

This is for loops whose number of rounds is known only when they run, and that put out a row in some
of them: the rows lie in an array of the caller, not in the program, which is that of one round.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from archimedes import tree
from archimedes.backends.protocol import ArrayType, Kernel
from archimedes.function.compiled import Compiled
from archimedes.function.execution.tiers import Tiers
from archimedes.graph.dtypes import DTYPES

T = TypeVar("T")

#: Calls, or seconds in them, after which an unoptimized kernel is optimized.
FEW, LONG = 10, 0.05
#: Types that say all of a number; arrays have more to say, and other leaves are their content.
_NUMBERS = {float, int, np.ndarray, *(dtype.type for dtype in DTYPES)}


class _Packing:
    """Leaves of one dtype in one array: ``at`` are the numbers of leaves, ``spans`` where they lie.

    Many small arrays cost more to make than a short loop takes to run.
    """

    def __init__(self, code: int, kinds: Sequence[ArrayType]) -> None:
        self.dtype = DTYPES[code]
        self.at = [k for k, kind in enumerate(kinds) if kind.code == code]
        sizes = [int(np.prod(kinds[k].shape)) for k in self.at]
        self.starts = [0, *itertools.accumulate(sizes)]
        self.spans = [
            (k, slice(start, start + size), kinds[k].shape)
            for k, start, size in zip(self.at, self.starts, sizes)
            if kinds[k].shape
        ]
        self.numbers = [(k, start) for k, start in zip(self.at, self.starts) if not kinds[k].shape]
        self.positions = np.array([start for _, start in self.numbers], dtype=np.intp)

    def empty(self) -> np.ndarray:
        """Return an array for the leaves."""
        return np.empty(self.starts[-1], self.dtype)

    def pack(self, array: np.ndarray, leaves: Sequence[Any]) -> None:
        """Put leaves into an array."""
        if self.numbers:
            array[self.positions] = [leaves[k] for k, _ in self.numbers]
        for k, span, _ in self.spans:
            array[span] = leaves[k].reshape(-1)

    def unpack(self, array: np.ndarray, leaves: list[Any]) -> None:
        """Put copies of the leaves that lie in an array into a list."""
        for k, start in self.numbers:
            leaves[k] = array[start]
        for k, span, shape in self.spans:
            leaves[k] = array[span].reshape(shape).copy()


class LeafBuffers:
    """Arrays for leaves, one per dtype, and the ``parts`` that belong to each leaf."""

    def __init__(self, kinds: Sequence[ArrayType]) -> None:
        self.groups = [_Packing(code, kinds) for code in sorted({kind.code for kind in kinds})]
        self.arrays = [group.empty() for group in self.groups]
        self.parts: list[Any] = [None] * len(kinds)
        for group, array in zip(self.groups, self.arrays):
            for k, start, stop in zip(group.at, group.starts, group.starts[1:]):
                self.parts[k] = array[start:stop]

    def fill(self, leaves: Sequence[Any]) -> None:
        """Put leaves in."""
        for group, array in zip(self.groups, self.arrays):
            group.pack(array, leaves)

    def leaves(self) -> list[Any]:
        """Return copies of the leaves."""
        leaves: list[Any] = [None] * len(self.parts)
        for group, array in zip(self.groups, self.arrays):
            group.unpack(array, leaves)
        return leaves


class LoopBuffers:
    """The memory of one loop: the state read, the state written, and what stays."""

    def __init__(self, kernel: Kernel, carry: int, inputs: Sequence[ArrayType]) -> None:
        self.here, self.there = LeafBuffers(inputs[:carry]), LeafBuffers(inputs[:carry])
        self.fixed = LeafBuffers(inputs[carry:])
        flags = np.zeros((2, 1), dtype=bool)
        self.run = kernel.repeating(
            [*self.here.parts, *self.fixed.parts], [*self.there.parts, *flags], carry
        )


class UnoptimizedCalls:
    """Calls of an unoptimized kernel, which is optimized once it was called often or for long."""

    __slots__ = ("calls", "complete", "seconds", "tiers")

    def __init__(self, tiers: Tiers) -> None:
        self.tiers, self.calls, self.seconds = tiers, 0, 0.0
        #: Whether there is nothing more to do.
        self.complete = False

    def run(self, call: Callable[..., T], *args: Any) -> T:
        """Call the kernel by ``call``, and count it."""
        begin = time.perf_counter()
        result = call(*args)
        self.calls, self.seconds = self.calls + 1, self.seconds + time.perf_counter() - begin
        if self.calls >= FEW or self.seconds > LONG:
            self.complete = True
            self.tiers.complete()
        return result


class LoopKernel:
    """A function ready to be repeated for one kind of arguments.

    ``tree`` is the structure of its state, ``carry`` how many leaves that has, ``inputs`` the types
    of these and of the numbers that stay.
    """

    def __init__(self, function: Compiled, state: Any, fixed: tuple[Any, ...]) -> None:
        _, recording, tiers = function.lookup((state, *fixed), {})
        if tiers is None:
            raise TypeError(f"{function.name}: repeated calls are for numbers")
        self.tree = tree.structure(state)
        self.carry = self.tree.num_leaves
        inputs, outputs = tiers.program.inputs, tiers.program.outputs
        if inputs[: self.carry] != outputs[: self.carry]:
            raise TypeError(f"{function.name}: its state changes shape or dtype")
        #: Which leaves of ``fixed`` are numbers.
        self.traced = [spec.traced for spec in recording.leaves[self.carry :]]
        self.inputs = inputs
        self.tiers, self.kernel, self.unoptimized = tiers, tiers.kernel(), UnoptimizedCalls(tiers)
        #: Memory that no thread is using.
        self.free: list[LoopBuffers] = []

    def buffers(self) -> LoopBuffers:
        """Return memory of one's own."""
        return LoopBuffers(self.kernel, self.carry, self.inputs)

    def run(self, leaves: Sequence[Any], rows: np.ndarray) -> tuple[Any, int]:
        """Go on from the state in ``leaves``, which are followed by those that stay."""
        try:
            buffers = self.free.pop()
        except IndexError:
            buffers = self.buffers()
        buffers.here.fill(leaves[: self.carry])
        buffers.fixed.fill(list(itertools.compress(leaves[self.carry :], self.traced)))
        last, filled = self.repeat(buffers, rows)
        state = self.tree.unflatten(last.leaves())
        self.free.append(buffers)
        return state, filled

    def repeat(self, buffers: LoopBuffers, rows: np.ndarray) -> tuple[LeafBuffers, int]:
        """Go on from the state that is in ``buffers.here``.

        Returns the buffers with the last state, and the number of rows.
        """
        first = self.unoptimized
        calls, filled = buffers.run(rows) if first.complete else first.run(buffers.run, rows)
        return (buffers.there if calls % 2 else buffers.here), filled


def _kinds(leaves: Sequence[Any]) -> Any:
    """Return what tells kinds of leaves apart: quicker than to describe them for a recording."""
    types = tuple(map(type, leaves))
    arrays = [(x.shape, x.strides, x.dtype.num) for x in leaves if type(x) is np.ndarray]
    others = [x for x, kind in zip(leaves, types) if kind not in _NUMBERS]
    return types, tuple(arrays), tuple(others)


class Repeated:
    """``function(state, *fixed) -> (state, row, made, going)``, called until it need not go on.

    ``made``: the row counts; ``going``: there is another round.

    >>> from archimedes.function import compile
    >>> def halve(x, least):
    ...     return x / 2, np.stack([x]), x < 4, x / 2 > least
    >>> rows = np.empty((8, 1))
    >>> x, count = Repeated(compile(halve))(np.float64(8.0), (1.0,), rows)
    >>> float(x), count, rows[0]
    (1.0, 1, array([2.]))
    """

    def __init__(self, function: Compiled) -> None:
        self.function = function
        self._known: dict[Any, LoopKernel] = {}

    def __call__(self, state: Any, fixed: tuple[Any, ...], rows: np.ndarray) -> tuple[Any, int]:
        """Go on from a state until ``rows`` (m, width) are full or it does not go on.

        Returns the last state and the number of rows.
        """
        leaves, treedef = tree.flatten((state, *fixed))
        return self._kind(leaves, treedef, state, fixed).run(leaves, rows)

    def kind(self, arguments: tuple[Any, ...]) -> LoopKernel:
        """Return the function ready for arguments of this kind, the state first."""
        leaves, treedef = tree.flatten(arguments)
        return self._kind(leaves, treedef, arguments[0], arguments[1:])

    def _kind(self, leaves: Any, treedef: Any, state: Any, fixed: tuple[Any, ...]) -> LoopKernel:
        key = (treedef, _kinds(leaves))
        try:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = LoopKernel(self.function, state, fixed)
            return known
        except TypeError:  # an object that cannot be hashed
            return LoopKernel(self.function, state, fixed)

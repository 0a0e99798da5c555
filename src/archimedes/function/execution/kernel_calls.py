"""Kernels called on leaves: these become arrays of the backend's kind, results what they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.protocol import Kernel, Program
from archimedes.function.leaf_specs import LeafSpec
from archimedes.graph.dtypes import I64, STATIC

__all__ = ["KernelCalls", "canonical"]


class KernelCalls:
    """How kernels of one program are called with leaves described by ``specs``.

    ``stays``: the leaves are arrays of the backend's kind, and so are the results; otherwise all
    are NumPy's and are moved.
    """

    __slots__ = ("arrays", "kinds", "specs", "stays")

    def __init__(
        self, specs: Sequence[LeafSpec], program: Program, arrays: Arrays, stays: bool
    ) -> None:
        self.specs, self.kinds, self.arrays, self.stays = specs, program.outputs, arrays, stays

    @property
    def result_kind(self) -> Arrays:
        """The arrays that results are returned in."""
        return self.arrays if self.stays else HOST

    def call(self, kernel: Kernel, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the traced result leaves of one instance."""
        arrays, specs = self.arrays, self.specs
        given = [arrays.take(x, s.code, s.shape) for x, s in zip(leaves, specs) if s.code != STATIC]
        outs = [arrays.empty(*kind) for kind in self.kinds]
        kernel.call(given, outs)
        if self.stays:
            return tuple([arrays.result(out) for out in outs])
        return tuple([HOST.result(arrays.to_host(out)) for out in outs])

    def copy(self, values: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
        """Copy results into the caller's arrays."""
        for value, place in zip(values, outs):
            self.result_kind.copy_into(value, place)
        return tuple(outs)

    def batch(
        self,
        kernel: Kernel,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None,
        out: Sequence[Any] | None,
    ) -> tuple[Any, ...]:
        """Return the traced result leaves of ``count`` instances, in ``out`` where given."""
        if not self.stays:
            places = self._batch_from_host(kernel, leaves, batched, count, threads)
            return tuple(places) if out is None else self.copy(places, out)
        arrays = self.arrays
        given, flags = self._given(arrays, leaves, batched, count)
        if out is not None and not _overlapping(arrays, out, given):
            kernel.call_batch(given, flags, out, count, threads)
            return tuple(out)
        places = self._empty(arrays, count)
        kernel.call_batch(given, flags, places, count, threads)
        return tuple(places) if out is None else self.copy(places, out)

    def _empty(self, arrays: Arrays, count: int) -> list[Any]:
        return [arrays.empty(code, (count, *shape)) for code, shape in self.kinds]

    def _given(
        self, arrays: Arrays, leaves: Sequence[Any], batched: Sequence[bool], count: int
    ) -> tuple[list[Any], list[bool]]:
        """Return the traced leaves as arrays of a kind, and which of them are batched."""
        given, flags = [], []
        for leaf, spec, many in zip(leaves, self.specs, batched):
            if spec.traced:
                shape = (count, *spec.shape) if many else spec.shape
                given.append(arrays.take(leaf, spec.code, shape))
                flags.append(many)
        return given, flags

    def _batch_from_host(
        self,
        kernel: Kernel,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None,
    ) -> list[Any]:
        """Evaluate NumPy's arrays on a device: the backend moves them, or they are moved whole."""
        given, flags = self._given(HOST, leaves, batched, count)
        places = self._empty(HOST, count)
        if kernel.call_batch_from_host(given, flags, places, count, threads):
            return places
        there, _ = self._given(self.arrays, leaves, batched, count)
        results = self._empty(self.arrays, count)
        kernel.call_batch(there, flags, results, count, threads)
        return [self.arrays.to_host(result) for result in results]


def _overlapping(arrays: Arrays, outs: Sequence[Any], given: Sequence[Any]) -> bool:
    """Tell whether a result array shares memory with an argument."""
    return any(arrays.may_overlap(a, b) for a in outs for b in given)


def canonical(leaf: Any, spec: LeafSpec) -> Any:
    """Return a leaf in the one form that entries take."""
    if spec.code == STATIC:
        return spec.value
    if spec.shape:
        return HOST.take(leaf, spec.code, spec.shape)
    if spec.weak:
        return int(leaf) if spec.code == I64 else float(leaf)
    return HOST.take(leaf, spec.code, ())[()]

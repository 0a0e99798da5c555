"""Kernels called on leaves: these become arrays of the backend's kind, results become trees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MemberDescriptorType
from typing import Any

from archimedes import tree
from archimedes.backends.array_kinds import HOST, Arrays
from archimedes.backends.protocol import Form, Kernel, Known, Leaf, Program, Struct, Tuple
from archimedes.backends.registry import default_backend
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording
from archimedes.graph.dtypes import DTYPE_NAMES, DTYPES, I64, STATIC
from archimedes.tree.nodes import field_names
from archimedes.tree.structs import is_struct
from archimedes.tree.treedef import LEAF, TreeDef


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
        inputs = [
            arrays.take(x, s.code, s.shape) for x, s in zip(leaves, specs) if s.code != STATIC
        ]
        outs = [arrays.empty(*kind) for kind in self.kinds]
        kernel.call(inputs, outs)
        if self.stays:
            return tuple([arrays.result(out) for out in outs])
        return tuple([HOST.result(arrays.to_host(out)) for out in outs])

    def copy(self, values: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
        """Copy results into the caller's arrays."""
        for value, out in zip(values, outs):
            self.result_kind.copy_into(value, out)
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
        arrays = self.arrays
        if not self.stays:
            results = self._batch_from_host(kernel, leaves, batched, count, threads)
        else:
            inputs, flags = self._batch_inputs(arrays, leaves, batched, count)
            into = out is not None and not any(
                arrays.may_overlap(a, b) for a in out for b in inputs
            )
            results = list(out) if into and out is not None else self._empty(arrays, count)
            kernel.call_batch(inputs, flags, results, count, threads)
            if into:
                return tuple(results)
        return tuple(results) if out is None else self.copy(results, out)

    def _empty(self, arrays: Arrays, count: int) -> list[Any]:
        return [arrays.empty(code, (count, *shape)) for code, shape in self.kinds]

    def _batch_inputs(
        self, arrays: Arrays, leaves: Sequence[Any], batched: Sequence[bool], count: int
    ) -> tuple[list[Any], list[bool]]:
        """Return the traced leaves as arrays of a kind, and which of them are batched."""
        inputs, flags = [], []
        for leaf, spec, many in zip(leaves, self.specs, batched):
            if spec.traced:
                shape = (count, *spec.shape) if many else spec.shape
                inputs.append(arrays.take(leaf, spec.code, shape))
                flags.append(many)
        return inputs, flags

    def _batch_from_host(
        self,
        kernel: Kernel,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None,
    ) -> list[Any]:
        """Evaluate NumPy's arrays on a device: the backend moves them, or they are moved whole."""
        inputs, flags = self._batch_inputs(HOST, leaves, batched, count)
        results = self._empty(HOST, count)
        if kernel.call_batch_from_host(inputs, flags, results, count, threads):
            return results
        inputs, _ = self._batch_inputs(self.arrays, leaves, batched, count)
        results = self._empty(self.arrays, count)
        kernel.call_batch(inputs, flags, results, count, threads)
        return [self.arrays.to_host(result) for result in results]


def canonical(leaf: Any, spec: LeafSpec) -> Any:
    """Return a leaf in the one form that entries take."""
    if spec.code == STATIC:
        return spec.value
    if spec.shape:
        return HOST.take(leaf, spec.code, spec.shape)
    if spec.weak:
        return int(leaf) if spec.code == I64 else float(leaf)
    return HOST.take(leaf, spec.code, ())[()]


def result_arrays(
    name: str, recording: Recording, out: Any, arrays: Arrays = HOST, count: int | None = None
) -> list[Any]:
    """Return the arrays of ``out`` that take the traced results of a recording, in order.

    ``out`` must have the structure of the result and an array of the right shape and dtype in
    each leaf, of the kind ``arrays``; ``count`` is the length of the leading axis of a batch.
    Results that do not depend on the arguments are written at once.
    """
    leaves, treedef = tree.flatten(out)
    difference = recording.out_tree.difference(treedef, "out")
    if difference is not None:
        raise ValueError(
            f"{name}: out does not have the structure of the result: {difference}; pass what an "
            "earlier call returned"
        )
    targets = []
    for leaf, result, path in zip(leaves, recording.outs, treedef.paths("out")):
        if not result.spec.traced:
            if arrays.owns(leaf):
                arrays.copy_into(result.spec.value, leaf)
            continue
        shape = result.spec.shape if count is None else (count, *result.spec.shape)
        _check(f"{name}: {path}", leaf, arrays, shape, result.spec.code)
        targets.append(leaf)
    for k, (array, path) in enumerate(zip(targets, treedef.paths("out"))):
        if any(arrays.may_overlap(array, other) for other in targets[:k]):
            raise ValueError(f"{name}: {path} shares memory with another array of out")
    return targets


def _check(where: str, leaf: Any, arrays: Arrays, shape: tuple[int, ...], code: int) -> None:
    kind = "" if arrays is HOST else f"{arrays.kind} "
    wanted = f"a C-contiguous, writable {DTYPE_NAMES[code]} {kind}array of shape {shape}"
    if not arrays.owns(leaf):
        hint = "; a 0-d array np.empty(()) takes a scalar result" if shape == () else ""
        raise TypeError(f"{where} is a {type(leaf).__name__}, it must be {wanted}{hint}")
    its_shape, dtype = arrays.describe(leaf)
    if its_shape != shape or dtype != DTYPES[code]:
        raise ValueError(f"{where} has shape {its_shape} and dtype {dtype}, not {wanted}")
    if not arrays.is_plain(leaf):
        raise ValueError(f"{where} is not {wanted}: it is a view with gaps, or read-only")


#: Static values that are compared by type and value in generated code.
SIMPLE = (str, bool, int, type(None))


def is_plain_struct(node: TreeDef) -> bool:
    """Return whether a node is a struct whose fields lie in its instance dict."""
    cls = node.kind.cls
    if not is_struct(cls) or cls.__dictoffset__ == 0:
        return False
    data, static = field_names(cls)
    members = [getattr(cls, name, None) for name in (*data, *static)]
    return len(data) == len(node.children) and not any(
        isinstance(m, (MemberDescriptorType, property)) for m in members
    )


def result_form(recording: Recording) -> Form | None:
    """Return the form of a result, or None where it has parts that the entry cannot build."""
    if any(not out.spec.traced for out in recording.outs):
        return None
    return _form(recording.out_tree, iter(range(len(recording.outs))))


def _form(node: TreeDef, numbers: Iterator[int]) -> Form | None:
    if node is LEAF:
        return Leaf(next(numbers))
    cls = node.kind.cls
    if cls is type(None):
        return Known(None)
    parts = tuple(part for child in node.children if (part := _form(child, numbers)) is not None)
    if len(parts) < len(node.children):
        return None
    if cls is tuple:
        return Tuple(parts)
    if not is_plain_struct(node) or any(type(v) not in SIMPLE for v in node.aux or ()):
        return None
    data, static = field_names(cls)
    fields = tuple(sys.intern(name) for name in (*data, *static))
    return Struct(cls, fields, (*parts, *(Known(v) for v in node.aux or ())))


def array_functions(
    functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
) -> Mapping[str, Callable[..., int]] | None:
    """Return the functions by name, or None where they cannot be had.

    See ``Backend.array_functions`` for what describes them and how they are called.
    """
    return default_backend().array_functions(functions, sources)

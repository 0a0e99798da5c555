"""The short way from a call of ``vmap`` with CuPy's arrays to the launch of a kernel.

An entry looks at its arguments once and starts the kernel; what it does not know (arrays of other
packages, other shapes, overlapping results, too little memory) goes the long way, which has the
errors too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from archimedes.backends.cuda.device import cupy
from archimedes.backends.entry_forms import EntryRequest, Form, Known, Leaf, Tuple
from archimedes.graph.dtypes import DTYPES

if TYPE_CHECKING:
    from archimedes.backends.cuda.cuda_kernel import CudaProgram


def batch_entry(program: CudaProgram, request: EntryRequest) -> Callable[..., Any] | None:
    """Return ``entry(*leaves)``, or ``entry(*leaves, *results)`` for results in given arrays.

    None where arguments are numbers, which would have to be moved each time.
    """
    traced = [a for a in request.arguments if a.traced]
    if not request.batch or any(a.weak for a in traced) or not request.results:
        return None
    count, into, known = len(request.arguments), request.into, _Known(request)
    total = count + (len(request.results) if into else 0)
    flags, finish = tuple(a.batched for a in traced), _builder(request.form)
    current = cupy().cuda.runtime.getDevice

    def entry(*values: Any) -> Any:
        if len(values) != total:
            return NotImplemented
        device = current()
        arrays, rows = known.arguments(values[:count], device)
        if not rows:
            return NotImplemented
        if into:
            outs = known.check_outputs(values[count:], arrays, rows, device)
        else:
            outs = known.empty(rows)
        if outs is None:
            return NotImplemented
        program.compiled(flags, device).start([*arrays, *outs], rows)
        return None if into else finish(outs)

    return entry


class _Known:
    """The arguments and results that an entry handles itself."""

    def __init__(self, request: EntryRequest) -> None:
        self.module = cupy()
        #: Arguments with their dtypes; those without one must be the very object.
        self.leaves = [(a, DTYPES[a.code] if a.traced else None) for a in request.arguments]
        self.results = [(DTYPES[r.code], r.shape) for r in request.results]

    def arguments(self, values: Sequence[Any], device: int) -> tuple[list[Any], int]:
        """Return the arrays among the arguments and how many instances they have (0: none)."""
        kind, rows, arrays = self.module.ndarray, -1, []
        for x, (leaf, dtype) in zip(values, self.leaves):
            if dtype is None:
                if x is not leaf.value:
                    return [], 0
                continue
            if type(x) is not kind or x.dtype != dtype or not x.flags.c_contiguous:
                return [], 0
            shape = x.shape
            if leaf.batched:
                if rows < 0 and shape:
                    rows = shape[0]
                if shape[:1] != (rows,) or shape[1:] != leaf.shape:
                    return [], 0
            elif shape != leaf.shape:
                return [], 0
            if x.device.id != device:
                return [], 0
            arrays.append(x)
        return arrays, max(rows, 0)

    def empty(self, rows: int) -> list[Any] | None:
        """Return arrays for results, None if the memory is not sufficient."""
        make = self.module.empty
        try:
            return [make((rows, *shape), dtype) for dtype, shape in self.results]
        except self.module.cuda.memory.OutOfMemoryError:
            return None

    def check_outputs(
        self, outs: Sequence[Any], arrays: Sequence[Any], rows: int, device: int
    ) -> list[Any] | None:
        """Return the caller's arrays for results if kernels can write to them as they are."""
        kind = self.module.ndarray
        spans = [(x.data.ptr, x.data.ptr + x.nbytes) for x in arrays]
        for x, (dtype, shape) in zip(outs, self.results):
            plain = type(x) is kind and x.dtype == dtype and x.flags.c_contiguous
            if not plain or x.shape != (rows, *shape) or x.device.id != device:
                return None
            start = x.data.ptr
            end = start + x.nbytes
            if any(start < stop and begin < end for begin, stop in spans):
                return None
            spans.append((start, end))
        return list(outs)


def _builder(form: Form) -> Callable[[Sequence[Any]], Any]:
    """Return the function that builds a result from its leaves."""
    if isinstance(form, Leaf):
        number = form.place
        return lambda outs: outs[number]
    if isinstance(form, Known):
        value = form.value
        return lambda outs: value
    parts = [_builder(part) for part in form.parts]
    if isinstance(form, Tuple):
        return lambda outs: tuple([part(outs) for part in parts])
    cls, fields = form.cls, form.fields

    def make(outs: Sequence[Any]) -> Any:
        result: Any = object.__new__(cls)
        result.__dict__.update(zip(fields, [part(outs) for part in parts]))
        return result

    return make

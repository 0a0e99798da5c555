"""The short way from a call of ``vmap`` with CuPy's arrays to the launch of a kernel.

An entry looks at its arguments once and starts the kernel; what it does not know (arrays of other
packages, other shapes, overlapping results, too little memory) goes the long way, which has the
errors too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.cuda.device import cupy
from archimedes.backends.entry_forms import Argument, EntryRequest, Form, Known, Leaf, Result, Tuple
from archimedes.graph.dtypes import DTYPES

if TYPE_CHECKING:
    from archimedes.backends.cuda.cuda_kernel import CudaProgram

__all__ = ["batch_entry"]


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

    def entry(*given: Any) -> Any:
        if len(given) != total:
            return NotImplemented
        device = current()
        arrays, rows = known.arguments(given[:count], device)
        if not rows:
            return NotImplemented
        outs = known.given(given[count:], arrays, rows, device) if into else known.empty(rows)
        if outs is None:
            return NotImplemented
        program.compiled(flags, device).start([*arrays, *outs], rows)
        return None if into else finish(outs)

    return entry


class _Known:
    """The arrays that an entry takes as they are."""

    def __init__(self, request: EntryRequest) -> None:
        self.module = cupy()
        self.places = [_Argument(a) for a in request.arguments]
        self.results = [_Result(r) for r in request.results]

    def arguments(self, given: Sequence[Any], device: int) -> tuple[list[Any], int]:
        """Return the arrays among the arguments and how many instances they have (0: none)."""
        kind, rows, arrays = self.module.ndarray, -1, []
        for x, place in zip(given, self.places):
            if place.dtype is None:
                if x is not place.value:
                    return [], 0
                continue
            if type(x) is not kind or x.dtype != place.dtype or not x.flags.c_contiguous:
                return [], 0
            shape = x.shape
            if place.batched:
                if rows < 0 and shape:
                    rows = shape[0]
                if shape[:1] != (rows,) or shape[1:] != place.shape:
                    return [], 0
            elif shape != place.shape:
                return [], 0
            if x.device.id != device:
                return [], 0
            arrays.append(x)
        return arrays, max(rows, 0)

    def empty(self, rows: int) -> list[Any] | None:
        """Return arrays for results, None where the memory does not suffice."""
        make = self.module.empty
        try:
            return [make((rows, *r.shape), r.dtype) for r in self.results]
        except self.module.cuda.memory.OutOfMemoryError:
            return None

    def given(
        self, outs: Sequence[Any], arrays: Sequence[Any], rows: int, device: int
    ) -> list[Any] | None:
        """Return the caller's arrays for results if kernels can write to them as they are."""
        kind = self.module.ndarray
        spans = [(x.data.ptr, x.data.ptr + x.nbytes) for x in arrays]
        for x, r in zip(outs, self.results):
            plain = type(x) is kind and x.dtype == r.dtype and x.flags.c_contiguous
            if not plain or x.shape != (rows, *r.shape) or x.device.id != device:
                return None
            start = x.data.ptr
            end = start + x.nbytes
            if any(start < stop and begin < end for begin, stop in spans):
                return None
            spans.append((start, end))
        return list(outs)


class _Argument:
    """An argument leaf; without a dtype it must be this very object."""

    __slots__ = ("batched", "dtype", "shape", "value")

    def __init__(self, argument: Argument) -> None:
        self.dtype: np.dtype | None = DTYPES[argument.code] if argument.traced else None
        self.shape, self.value, self.batched = argument.shape, argument.value, argument.batched


class _Result:
    __slots__ = ("dtype", "shape")

    def __init__(self, result: Result) -> None:
        self.dtype, self.shape = DTYPES[result.code], result.shape


def _builder(form: Form) -> Callable[[Sequence[Any]], Any]:
    """Return what makes a result of its leaves."""
    if isinstance(form, Leaf):
        place = form.place
        return lambda outs: outs[place]
    if isinstance(form, Known):
        value = form.value
        return lambda outs: value
    parts = [_builder(part) for part in form.parts]
    if isinstance(form, Tuple):
        return lambda outs: tuple([part(outs) for part in parts])
    cls, fields = form.cls, form.fields

    def make(outs: Sequence[Any]) -> Any:
        made: Any = object.__new__(cls)
        made.__dict__.update(zip(fields, [part(outs) for part in parts]))
        return made

    return make

"""Traced arrays made of anything array-like, dtypes, and the order of elements in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import ShapeDtypeError
from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, code_of, is_float
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.loop_nests import Make, constant_ids, elementwise
from archimedes.symbolic.core.trace import Trace, current_trace, range_error, trace_error
from archimedes.symbolic.core.traced_value import HOLDERS, Operand, Traced, TracedValue
from archimedes.symbolic.core.user_frames import user_line

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["lift", "wrap"]


def axis_order(x: np.ndarray) -> tuple[int, ...] | None:
    """Return the axes of an array from the slowest to the fastest in memory, None for C order.

    Gaps and reversed axes do not count: it is the order of ``x.copy("K")``.

    >>> axis_order(np.zeros((2, 3))), axis_order(np.zeros((2, 3)).T)
    (None, (1, 0))
    """
    if x.ndim < 2 or x.flags.c_contiguous:
        return None
    template = np.empty_like(x, subok=False)
    if template.flags.c_contiguous:
        return None
    return tuple(sorted(range(x.ndim), key=lambda axis: -template.strides[axis]))


def copy_in_order(values: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    """Return a copy with its axes in another order in memory, which owns that memory.

    >>> copy_in_order(np.zeros((2, 3)), (1, 0)).strides
    (8, 16)
    """
    if order is None:
        return values.copy()
    shuffled = np.empty([values.shape[axis] for axis in order], values.dtype)
    copy = np.empty_like(shuffled.transpose(np.argsort(order)))
    copy[...] = values
    return copy


def match_layout(ids: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    """Return new ids in the memory order that NumPy's elementwise functions would choose.

    The order decides whether a later ``reshape`` or ``ravel`` is a view, which shows when it is
    written to. ``sources`` are the ids (one or two arrays) that the new ones were made from.
    """
    if ids.ndim < 2 or all(s.flags.c_contiguous for s in sources):
        return ids
    template = np.add(*sources) if len(sources) == 2 else np.positive(sources[0])
    template[...] = ids
    return template


def copy_layout(x: Traced, like: Traced) -> Traced:
    """Return a traced array as a fresh one in the memory order of another of its shape."""
    ids = np.empty_like(like.ids)
    ids[...] = x.ids
    return TracedValue.array(ids, x.code, x.owner)


# ---- arrays of other classes --------------------------------------------------------------------

_PLAIN = frozenset({np.ndarray, np.memmap})
_OWN = "archimedes."
#: What to write instead, by the name of the class: importing ``numpy.ma`` takes a while.
_REMEDIES = {
    "MaskedArray": "fill its gaps first: x.filled(np.nan), or pass x.data and x.mask",
    "matrix": "its * and ** are those of matrices: pass np.asarray(x), and write @",
    "recarray": "pass its columns as arrays, or a struct of them (@arc.struct)",
}


def refuse_subclass(
    x: object, name: Callable[[], str], line: Callable[[], str] | None = None
) -> None:
    """Raise for an array of a class whose operators have another meaning; ``name()`` names it.

    Arrays in files (``np.memmap``) are arrays; so are those of this package.
    """
    kind = type(x)
    if kind in _PLAIN or not isinstance(x, np.ndarray) or kind.__module__.startswith(_OWN):
        return
    names = [c.__name__ for c in kind.__mro__ if c.__module__.partition(".")[0] == "numpy"]
    remedy = next((_REMEDIES[n] for n in names if n in _REMEDIES), "pass np.asarray(x)")
    where = f", at\n  {line()}\n" if line is not None else ", "
    raise ShapeDtypeError(
        f"{name()} is a {kind.__module__}.{kind.__qualname__}, whose rules a recorded function "
        f"would not keep{where}{remedy}."
    )


# ---- dtypes -------------------------------------------------------------------------------------

_TO = {F64: CODES["f64"], F32: CODES["f32"], I64: CODES["i64"]}
_TRUNCATE, _NE = CODES["truncate"], CODES["ne"]


def cast(g: Graph, i: int, target: int) -> int:
    """Emit the conversion of one node to a dtype, with NumPy's ``astype`` meaning."""
    source = g.dtype[i]
    if source == target:
        return i
    if target == B8:
        return g.emit(_NE, i, g.const(0, source))
    if target == I64 and source in (F64, F32):
        return g.emit(_TRUNCATE, i)
    return g.emit(_TO[target], i)


def cast_ids(g: Graph, ids: np.ndarray, source: int, target: int) -> np.ndarray:
    """Convert an array of ids from one dtype to another."""
    if source == target:
        return ids
    return map_ids(g, ids, source, lambda body, i: cast(body, i, target))


def map_ids(g: Graph, ids: np.ndarray, code: int, make: Make) -> np.ndarray:
    """Return ids of ``make(graph, id)`` for each of an array of ids, in its order of memory."""
    (results,) = elementwise(g, [ids], [code], ids.shape, make)
    return match_layout(results, ids)


def code_of_dtype(dtype: DTypeLike) -> int:
    """Return the code of a dtype that can be traced; raise for any other."""
    code = code_of(np.dtype(dtype))
    if code is None:
        raise trace_error(
            f"dtype {np.dtype(dtype)} cannot be traced", "Use float64, float32, int64 or bool."
        )
    return code


# ---- lifting ------------------------------------------------------------------------------------

# NumPy's own, also while names in its module are replaced (``recorded/numpy_patching.py``).
_array, _asarray, _stack = np.array, np.asarray, np.stack
_ID = np.dtype(np.int64)
#: What NumPy's promotion sees: a dtype, or the type of a weak Python number. An operand's *kind*
#: is its index here.
_TOKENS: tuple[Any, ...] = (*DTYPES, float, int)
_WEAK_FLOAT, _WEAK_INT = len(DTYPES), len(DTYPES) + 1
#: Kinds of Python numbers by dtype code: a bool counts as NumPy's.
_WEAK_KINDS = {F64: _WEAK_FLOAT, I64: _WEAK_INT, B8: B8}
#: Integers of a recording are int64.
INT64_LIMIT = 2**63


def wrap(
    ids: np.ndarray | Sequence[int] | int,
    dtype: int,
    trace: Trace | None = None,
    weak: bool = False,
) -> Traced:
    """Make a traced array of ids; without axes a NumPy scalar, or a Python number if ``weak``."""
    trace = trace or current_trace()
    ids = _asarray(ids, dtype=_ID)
    if ids.ndim:
        return TracedValue.array(ids, dtype, trace)
    form = TracedValue.number if weak else TracedValue.scalar
    return form(ids, dtype, trace)


def lift(x: Operand) -> Traced:
    """Return a traced array for anything array-like: arrays, numbers, nested lists of either.

    A Python number becomes the scalar that NumPy makes of it.
    """
    if isinstance(x, TracedValue):
        return TracedValue.scalar(x.ids, x.code, x.owner) if x.weak else x
    trace = current_trace()
    if isinstance(x, (list, tuple)):
        array = _from_sequence(x)
        if isinstance(array, TracedValue):
            return array
    elif (holder := HOLDERS.get(type(x))) is not None:
        traced = holder.traced(x)
        if traced is not None:
            return traced
        array = holder.plain(x)
    else:
        if type(x) is not np.ndarray and isinstance(x, np.ndarray):
            refuse_subclass(x, lambda: "a value", user_line)
        array = _asarray(x)
    if array.dtype == object:
        return _from_objects(array, trace)
    code = code_of(array.dtype)
    if code is None:
        raise trace_error(
            f"arrays of dtype {array.dtype} cannot be traced",
            "Use float64, float32, int64 or bool: for example x.astype(float).",
        )
    is_array = isinstance(x, np.ndarray) or array.ndim
    form = TracedValue.array if is_array else TracedValue.scalar
    return form(constant_ids(trace.graph, array), code, trace)


def _from_sequence(x: Sequence[Operand]) -> Operand:
    """Build an array from a nested list; traced parts make it traced."""
    parts = [_from_sequence(item) if isinstance(item, (list, tuple)) else item for item in x]
    if is_traced(parts):
        lifted = lift_many(parts)
        shapes = {a.shape for a in lifted}
        if len(shapes) > 1:
            raise ValueError(
                "setting an array element with a sequence: the parts have different shapes "
                f"{sorted(shapes)}"
            )
        ids = _stack([a.ids for a in lifted])
        return wrap(ids if ids.flags.c_contiguous else ids.copy(), lifted[0].code)
    return _array(parts)


def _from_objects(array: np.ndarray, trace: Trace) -> Traced:
    """Lift NumPy's object arrays, which is how it stores traced scalars."""
    items = array.ravel().tolist()
    for item in items:
        if not isinstance(item, (TracedValue, int, float, np.generic)):
            raise trace_error(
                f"an array holds a {type(item).__name__}, which cannot be traced",
                "Traced arrays hold numbers only.",
            )
    parts = lift_many(items)
    if not parts:
        return wrap(np.zeros(array.shape, dtype=np.int64), F64, trace)
    return wrap(_array([p.ids[()] for p in parts]).reshape(array.shape), parts[0].code, trace)


def kind_of(x: Traced | float) -> int:
    """Return the kind of a traced array or of a Python number."""
    if isinstance(x, TracedValue):
        return _WEAK_KINDS[x.code] if x.weak else x.code
    return _WEAK_FLOAT if type(x) is float else _WEAK_INT


@cache
def _common_dtype(kinds: frozenset[int], weak: bool) -> int:
    """Return the dtype NumPy would give an array or concatenation of these.

    With ``weak``, Python numbers adapt to the arrays, as they do in operators and ``np.where``.
    """
    adapt = weak and min(kinds) < _WEAK_FLOAT
    tokens = [
        t if isinstance(t, np.dtype) else t(0) if adapt else np.dtype(t)
        for t in (_TOKENS[k] for k in kinds)
    ]
    code = code_of(np.result_type(*tokens))
    assert code is not None  # the four dtypes are closed under promotion
    return code


def lift_many(items: Sequence[Operand], weak: bool = False) -> list[Traced]:
    """Lift several things to traced arrays of one common dtype, as stacking them would.

    With ``weak``, Python numbers adapt to the arrays, as they do in operators and ``np.where``.
    """
    ready = [as_operand(x) for x in items]
    if not ready:
        return []
    code = _common_dtype(frozenset([kind_of(x) for x in ready]), weak)
    trace = current_trace()
    return [TracedValue.array(operand_ids(trace, x, code), code, trace) for x in ready]


def as_float(x: Operand) -> Traced:
    """Lift to a traced floating-point array: ints and bools become float64, as NumPy's do."""
    x = lift(x)
    if is_float(x.code):
        return x
    trace = current_trace()
    return wrap(cast_ids(trace.graph, trace.elements_of(x), x.code, F64), F64, trace)


def floats(*arrays: Operand) -> list[Traced]:
    """Lift to traced arrays of one floating dtype: ints become float64, float32 alone stays."""
    return lift_many([as_float(a) for a in arrays])


def as_operand(x: Operand) -> Traced | float:
    """Return Python numbers as they are and anything else as a traced array."""
    if isinstance(x, TracedValue) or type(x) is float or type(x) is int:
        return x
    return lift(x)


def operand_ids(trace: Trace, x: Traced | float, code: int) -> np.ndarray:
    """Return the ids of an operand, converted to a dtype."""
    if isinstance(x, TracedValue):
        ids = x.ids if x.owner is trace else trace.elements_of(x)
        return ids if x.code == code else cast_ids(trace.graph, ids, x.code, code)
    if code == I64 and not -INT64_LIMIT <= x < INT64_LIMIT:
        raise range_error(int(x))
    return _array(trace.graph.literal(x, code), dtype=_ID)


@cache
def resolve_dtypes(
    ufunc: np.ufunc, kinds: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dtype codes that NumPy's loop takes and gives."""
    tokens = [_TOKENS[k] for k in kinds]
    if min(kinds) >= _WEAK_FLOAT:
        # A ufunc on Python numbers alone computes with their default dtypes.
        tokens = [np.dtype(t) for t in tokens]
    dtypes = ufunc.resolve_dtypes((*tokens, *(None,) * ufunc.nout))
    # Loops may take a narrower integer (np.ldexp's exponent): what counts is what they give.
    takes = [I64 if d.kind == "i" else code_of(d) for d in dtypes[: ufunc.nin]]
    gives = [code_of(d) for d in dtypes[ufunc.nin :]]
    if None in takes or None in gives:
        names = ", ".join(str(t) for t in tokens)
        raise trace_error(
            f"np.{ufunc.__name__} of ({names}) gives a dtype that cannot be traced",
            "Convert the operands first, for example with x.astype(float).",
        )
    return tuple(takes), tuple(gives)  # type: ignore[arg-type]

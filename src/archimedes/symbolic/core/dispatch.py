"""Elementwise application of NumPy ufuncs to traced arrays.

NumPy decides everything but the arithmetic: shapes by its broadcasting of the id arrays, dtypes
by ``ufunc.resolve_dtypes``. The arithmetic is a row in ``ufuncs.py``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.graph.blocks.references import scalar_ids
from archimedes.graph.dtypes import B8, DTYPES, F64, I64, code_of, is_float
from archimedes.graph.elementary.table import PROGRAMS
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.casting import cast_ids, laid_out
from archimedes.symbolic.core.subclasses import refuse_subclass
from archimedes.symbolic.core.trace import Trace, current_trace, range_error, trace_error, user_line
from archimedes.symbolic.core.traced_content import HOLDERS
from archimedes.symbolic.core.traced_value import TracedValue
from archimedes.symbolic.core.ufunc_formulas import Loop, int_power
from archimedes.symbolic.core.ufuncs import UFUNCS
from archimedes.symbolic.core.wide import constant_ids, elementwise, in_loops, is_wide

__all__ = ["apply_ufunc", "as_float", "floats", "laid_like", "lift", "lift_many", "wrap"]

# NumPy's own, also while names in its module are replaced (``creation.py``).
_array, _asarray, _empty, _stack = np.array, np.asarray, np.empty, np.stack
_ID = np.dtype(np.int64)
#: What NumPy's promotion sees: a dtype, or the type of a weak Python number. An operand's *kind*
#: is its place here.
_TOKENS: tuple[Any, ...] = (*DTYPES, float, int)
_WEAK_FLOAT, _WEAK_INT = len(DTYPES), len(DTYPES) + 1
#: Kinds of Python numbers by dtype code: a bool counts as NumPy's.
_WEAK_KINDS = {F64: _WEAK_FLOAT, I64: _WEAK_INT, B8: B8}
#: Integers of a recording are int64.
_LIMIT = 2**63
_COMPARISONS = frozenset(
    {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
)


def laid_like(x: Any, like: Any) -> Any:
    """Return a traced array as a fresh one in the memory order of another of its shape."""
    ids = np.empty_like(like.ids)
    ids[...] = x.ids
    return TracedValue.array(ids, x.code, x.owner)


def wrap(ids: Any, dtype: int, trace: Trace | None = None, weak: bool = False) -> Any:
    """Make a traced array of ids; without axes a NumPy scalar, or a Python number if ``weak``."""
    trace = trace or current_trace()
    ids = _asarray(ids, dtype=_ID)
    if ids.ndim:
        return TracedValue.array(ids, dtype, trace)
    form = TracedValue.number if weak else TracedValue.scalar
    return form(ids, dtype, trace)


def lift(x: Any) -> Any:
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
        found = holder.traced(x)
        if found is not None:
            return found
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


def _from_sequence(x: Sequence[Any]) -> Any:
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


def _from_objects(array: np.ndarray, trace: Trace) -> Any:
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


def _kind(x: Any) -> int:
    """The kind of a traced array or of a Python number."""
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


def lift_many(items: Sequence[Any], weak: bool = False) -> list[Any]:
    """Lift several things to traced arrays of one common dtype, as stacking them would.

    With ``weak``, Python numbers adapt to the arrays, as they do in operators and ``np.where``.
    """
    ready = [_operand(x) for x in items]
    if not ready:
        return []
    code = _common_dtype(frozenset([_kind(x) for x in ready]), weak)
    trace = current_trace()
    return [TracedValue.array(_ids(trace, x, code), code, trace) for x in ready]


def as_float(x: Any) -> Any:
    """Lift to a traced floating-point array: ints and bools become float64, as NumPy's do."""
    x = lift(x)
    if is_float(x.code):
        return x
    trace = current_trace()
    return wrap(cast_ids(trace.graph, trace.elements_of(x), x.code, F64), F64, trace)


def floats(*arrays: Any) -> list[Any]:
    """Lift to traced arrays of one floating dtype: ints become float64, float32 alone stays."""
    return lift_many([as_float(a) for a in arrays])


def _operand(x: Any) -> Any:
    """Return Python numbers as they are and anything else as a traced array."""
    if isinstance(x, TracedValue) or type(x) is float or type(x) is int:
        return x
    return lift(x)


def _ids(trace: Trace, x: Any, code: int) -> np.ndarray:
    """Return the ids of an operand, converted to a dtype."""
    if isinstance(x, TracedValue):
        ids = x.ids if x.owner is trace else trace.elements_of(x)
        return ids if x.code == code else cast_ids(trace.graph, ids, x.code, code)
    if code == I64 and not -_LIMIT <= x < _LIMIT:
        raise range_error(x)
    return _array(trace.graph.const(x, code), dtype=_ID)


def _is_wide(x: Any) -> bool:
    return type(x) is int and not -_LIMIT <= x < _LIMIT


@cache
def _resolved(ufunc: np.ufunc, kinds: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
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


def _columns(operands: Sequence[np.ndarray]) -> tuple[tuple[int, ...], list[list[int]]]:
    """Return the shape that one or two operands broadcast to, and the ids of each in C order."""
    shape = operands[0].shape
    if len(operands) == 2 and operands[1].shape != shape:
        shape = np.broadcast(*operands).shape
    return shape, [_spread(ids, shape) for ids in operands]


def _spread(ids: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    if ids.shape != shape:
        wide = _empty(shape, _ID)
        wide[...] = ids
        ids = wide
    return ids.ravel().tolist()


def apply_ufunc(
    ufunc: np.ufunc, inputs: Sequence[Any], dtype: Any = None, number: bool = False
) -> Any:
    """Apply a row of the ufunc table elementwise; ``number`` makes results Python numbers."""
    trace = current_trace()
    ready = [_operand(x) for x in inputs]
    takes, gives = _resolved(ufunc, tuple([_kind(x) for x in ready]))
    if dtype is not None:
        wanted = code_of(np.dtype(dtype))
        if wanted is None:
            raise trace_error(f"dtype {dtype} cannot be traced", "Use float64 or float32.")
        takes = tuple(wanted for _ in takes)
        gives = tuple(wanted for _ in gives)
    if takes[0] == I64 and ufunc in _COMPARISONS and any(map(_is_wide, ready)):
        # NumPy compares with an integer of any size: beyond int64, infinity does as well.
        ready = [math.copysign(math.inf, x) if _is_wide(x) else x for x in ready]
        takes = (F64, F64)
    operands = [_ids(trace, x, code) for x, code in zip(ready, takes)]
    what = UFUNCS[ufunc][takes[0]]
    # Operands that broadcast against each other may give more than any of them has.
    if operands[0].size >= _ANY or operands[-1].size >= _ANY:
        wide = _in_loops(what, operands, takes, gives, trace, number)
        if wide is not None:
            return wide
    if trace.graph.referenced:
        operands = [scalar_ids(trace.graph, ids) for ids in operands]
    shape, columns = _columns(operands)
    if isinstance(what, int):
        flat = list(map(trace.graph.emit, repeat(what), *columns))
    else:
        flat = list(map(what, repeat(Loop(trace.graph, takes[0])), *columns))
    if len(gives) == 1:
        return _result(flat, shape, operands, gives[0], trace, number)
    several = zip(*flat) if flat else ((),) * len(gives)
    return tuple(
        _result(ids, shape, operands, code, trace, number) for ids, code in zip(several, gives)
    )


#: Two arrays, each of fewer elements than this, give none that is a loop.
_ANY = 8
#: What an elementary function costs, which is a program, and what a formula does, in operations.
_HEAVY, _FORMULA = 16, 4
_ELEMENTARY = frozenset(CODES[name] for name in PROGRAMS)


def _in_loops(
    what: Any,
    operands: Sequence[np.ndarray],
    takes: Sequence[int],
    gives: Sequence[int],
    trace: Trace,
    number: bool,
) -> Any:
    """Apply a row of the ufunc table to wide arrays; None where they are not."""
    if len(operands) == 1 and not is_wide(operands[0].size):
        return None
    shape = np.broadcast(*operands).shape
    if what is int_power and operands[1].size > 1:
        return None
    size = math.prod(shape)
    weight = (_HEAVY if what in _ELEMENTARY else 1) if isinstance(what, int) else _FORMULA
    # An outer product has many more elements than what it is made of: no literals among them.
    spread = size // max(1, sum(map(_size, operands)))
    if not in_loops(trace.graph, size, *operands, weight=max(weight, min(spread, _HEAVY))):
        return None

    def make(body: Graph, *inputs: int) -> Any:
        if isinstance(what, int):
            return body.emit(what, *inputs)
        return what(Loop(body, takes[0]), *inputs)

    made = elementwise(trace.graph, operands, takes, shape, make)
    results = [_wrapped(ids, operands, code, trace) for ids, code in zip(made, gives)]
    return results[0] if len(gives) == 1 else tuple(results)


def _wrapped(ids: np.ndarray, operands: Sequence[np.ndarray], code: int, trace: Trace) -> Any:
    return TracedValue.array(laid_out(ids, *operands) if ids.ndim > 1 else ids, code, trace)


_size = operator.attrgetter("size")


def _result(
    flat: Sequence[int],
    shape: tuple[int, ...],
    operands: Sequence[np.ndarray],
    code: int,
    trace: Trace,
    number: bool,
) -> Any:
    ids = _array(flat, dtype=_ID).reshape(shape)
    if len(shape) > 1:
        ids = laid_out(ids, *operands)
    if shape:
        return TracedValue.array(ids, code, trace)
    form = TracedValue.number if number else TracedValue.scalar
    return form(ids, code, trace)

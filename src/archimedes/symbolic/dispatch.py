"""Elementwise application of NumPy ufuncs to traced arrays.

NumPy decides everything but the arithmetic: shapes by its broadcasting of the id arrays, dtypes
by ``ufunc.resolve_dtypes``. The arithmetic is a row in ``ufuncs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, DTYPES, F32, F64, I64, code_of
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.trace import Trace, current_trace, trace_error

__all__ = ["apply_ufunc", "cast", "cast_ids", "laid_out", "lift", "lift_many", "wrap"]

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
    flat = [cast(g, i, target) for i in ids.ravel().tolist()]
    return laid_out(np.array(flat, dtype=np.int64).reshape(ids.shape), ids)


def laid_out(ids: np.ndarray, *sources: np.ndarray) -> np.ndarray:
    """Give fresh ids the memory order that NumPy's elementwise functions would choose.

    The order decides whether a later ``reshape`` or ``ravel`` is a view, which shows when it is
    written to. ``sources`` are the ids (one or two arrays) that the new ones were made from.
    """
    if ids.ndim < 2 or all(s.flags.c_contiguous for s in sources):
        return ids
    template = np.add(*sources) if len(sources) == 2 else np.positive(sources[0])
    template[...] = ids
    return template


def wrap(ids: Any, dtype: int, trace: Trace | None = None, weak: bool = False) -> Any:
    """Make a traced array of ids."""
    from archimedes.symbolic.array import SymbolicArray

    return SymbolicArray(np.asarray(ids, dtype=np.int64), dtype, trace or current_trace(), weak)


def lift(x: Any) -> Any:
    """Return a traced array for anything array-like: arrays, numbers, nested lists of either."""
    from archimedes.symbolic.array import SymbolicArray

    if isinstance(x, SymbolicArray):
        return x
    trace = current_trace()
    if isinstance(x, (list, tuple)):
        array = _from_sequence(x)
        if isinstance(array, SymbolicArray):
            return array
    else:
        array = np.asarray(x)
    if array.dtype == object:
        return _from_objects(array, trace)
    code = code_of(array.dtype)
    if code is None:
        raise trace_error(
            f"arrays of dtype {array.dtype} cannot be traced",
            "Use float64, float32, int64 or bool: for example x.astype(float).",
        )
    return SymbolicArray(trace.graph.constants(array), code, trace)


def _from_sequence(x: Sequence[Any]) -> Any:
    """Build an array from a nested list; traced parts make it traced."""
    from archimedes.symbolic.array import SymbolicArray

    parts = [_from_sequence(item) if isinstance(item, (list, tuple)) else item for item in x]
    if any(isinstance(p, SymbolicArray) or _has_objects(p) for p in parts):
        arrays = lift_many(parts)
        shapes = {a.shape for a in arrays}
        if len(shapes) > 1:
            raise ValueError(
                "setting an array element with a sequence: the parts have different shapes "
                f"{sorted(shapes)}"
            )
        return wrap(np.stack([a.ids for a in arrays]), arrays[0].code)
    return np.array(parts)


def _has_objects(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == object


def _from_objects(array: np.ndarray, trace: Trace) -> Any:
    """Lift NumPy's object arrays, which is how it stores traced scalars."""
    from archimedes.symbolic.array import SymbolicArray

    items = array.ravel().tolist()
    for item in items:
        if not isinstance(item, (SymbolicArray, int, float, np.generic)):
            raise trace_error(
                f"an array holds a {type(item).__name__}, which cannot be traced",
                "Traced arrays hold numbers only.",
            )
    parts = lift_many(items)
    if not parts:
        return wrap(np.zeros(array.shape, dtype=np.int64), F64, trace)
    return wrap(np.array([p.ids[()] for p in parts]).reshape(array.shape), parts[0].code, trace)


def _token(x: Any) -> Any:
    """What NumPy's promotion sees: a dtype, or the type of a weak Python number."""
    from archimedes.symbolic.array import SymbolicArray

    if isinstance(x, SymbolicArray):
        if x.weak:
            return float if x.code == F64 else int
        return DTYPES[x.code]
    if type(x) in (int, float):
        return type(x)
    return np.asarray(x).dtype


def _is_weak(token: Any) -> bool:
    return token is int or token is float


def common_dtype(items: Sequence[Any], weak: bool = False) -> int:
    """Return the dtype NumPy would give an array or concatenation of these.

    With ``weak``, Python numbers adapt to the arrays, as they do in operators and ``np.where``.
    """
    tokens = [_token(x) for x in items]
    if not weak or all(_is_weak(t) for t in tokens):
        tokens = [np.dtype(t) for t in tokens]
    code = code_of(np.result_type(*(t(0) if _is_weak(t) else t for t in tokens)))
    if code is None:
        raise trace_error(
            "these dtypes have no common type that can be traced", "Use float64 or int64 arrays."
        )
    return code


def lift_many(items: Sequence[Any], weak: bool = False) -> list[Any]:
    """Lift several things to traced arrays of one common dtype, as stacking them would.

    ``weak`` is as in ``common_dtype``.
    """
    from archimedes.symbolic.array import SymbolicArray

    ready = [
        x if isinstance(x, SymbolicArray) or type(x) in (int, float) else lift(x) for x in items
    ]
    if not ready:
        return []
    code = common_dtype(ready, weak)
    trace = current_trace()
    g = trace.graph
    result = []
    for x in ready:
        if isinstance(x, SymbolicArray):
            result.append(wrap(cast_ids(g, trace.ids_of(x), x.code, code), code, trace))
        else:
            result.append(wrap(g.const(x, code), code, trace))
    return result


_resolved: dict[Any, tuple[tuple[int, ...], tuple[int, ...]]] = {}


def resolve(ufunc: np.ufunc, tokens: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dtype codes NumPy's loop takes and gives for operands of these types."""
    key = (ufunc, tokens)
    found = _resolved.get(key)
    if found is None:
        if all(_is_weak(t) for t in tokens):
            # A ufunc on Python numbers alone computes with their default dtypes.
            tokens = tuple(np.dtype(t) for t in tokens)
        dtypes = ufunc.resolve_dtypes((*tokens, *(None,) * ufunc.nout))
        # Loops may take a narrower integer (np.ldexp's exponent): what counts is what they give.
        taken = [I64 if d.kind == "i" else code_of(d) for d in dtypes[: ufunc.nin]]
        codes = taken + [code_of(d) for d in dtypes[ufunc.nin :]]
        if None in codes:
            names = ", ".join(str(t) for t in tokens)
            raise trace_error(
                f"np.{ufunc.__name__} of ({names}) gives a dtype that cannot be traced",
                "Convert the operands first, for example with x.astype(float).",
            )
        found = (tuple(codes[: ufunc.nin]), tuple(codes[ufunc.nin :]))  # type: ignore[arg-type]
        _resolved[key] = found
    return found


def apply_ufunc(
    ufunc: np.ufunc, build: int | Callable[..., Any], inputs: Sequence[Any], dtype: Any = None
) -> Any:
    """Apply a row of the ufunc table elementwise.

    ``build`` is an opcode, or a function ``(graph, dtype, *ids) -> id`` (or a tuple of ids where
    the ufunc has several results).
    """
    from archimedes.symbolic.array import SymbolicArray

    trace = current_trace()
    g = trace.graph
    ready = [
        x if isinstance(x, SymbolicArray) or type(x) in (int, float) else lift(x) for x in inputs
    ]
    tokens = tuple(_token(x) for x in ready)
    takes, gives = resolve(ufunc, tokens)
    if dtype is not None:
        wanted = code_of(np.dtype(dtype))
        if wanted is None:
            raise trace_error(f"dtype {dtype} cannot be traced", "Use float64 or float32.")
        takes = tuple(wanted for _ in takes)
        gives = tuple(wanted for _ in gives)
    arrays = []
    for x, code in zip(ready, takes):
        if isinstance(x, SymbolicArray):
            arrays.append(cast_ids(g, trace.ids_of(x), x.code, code))
        else:
            arrays.append(np.asarray(g.const(x, code)))
    loop = takes[0]
    weak = all(_is_weak(t) for t in tokens) and ufunc in _PYTHON_OPERATORS
    if len(arrays) == 1:
        shape = arrays[0].shape
        columns = [arrays[0].ravel().tolist()]
    elif arrays[0].shape == arrays[1].shape and len(arrays) == 2:
        shape = arrays[0].shape
        columns = [a.ravel().tolist() for a in arrays]
    else:
        spread = np.broadcast_arrays(*arrays)
        shape = spread[0].shape
        columns = [a.ravel().tolist() for a in spread]
    if isinstance(build, int):
        emit = g.emit
        if len(columns) == 1:
            flat = [emit(build, i) for i in columns[0]]
        else:
            flat = [emit(build, i, j) for i, j in zip(*columns)]
    else:
        flat = [build(g, loop, *row) for row in zip(*columns)]
    rows = np.array(flat, dtype=np.int64)
    if ufunc.nout == 1:
        return wrap(laid_out(rows.reshape(shape), *arrays), gives[0], trace, weak)
    rows = rows.reshape(-1, ufunc.nout)
    return tuple(
        wrap(laid_out(rows[:, k].reshape(shape), *arrays), gives[k], trace, weak)
        for k in range(ufunc.nout)
    )


#: Python's own operators keep Python numbers weak; functions such as np.sin do not.
_PYTHON_OPERATORS = frozenset(
    {
        np.add,
        np.subtract,
        np.multiply,
        np.true_divide,
        np.floor_divide,
        np.remainder,
        np.negative,
        np.positive,
        np.absolute,
    }
)

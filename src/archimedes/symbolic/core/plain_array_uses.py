"""What to write instead where a plain NumPy array meets a traced value: ``TABLE[k]``.

An array made outside the recording is of NumPy's own class, whose indexing and methods are C code
that asks a traced value for its number. NumPy's functions take traced values, so the error reads
the user's expression and writes it with one of them. See docs/decisions/004-numpy-creation.md.
"""

from __future__ import annotations

import ast
import dis
import linecache
from itertools import islice
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from archimedes.errors import refer_to

#: Methods of arrays that write to them.
_WRITERS = frozenset({"fill", "put", "partition", "sort", "setfield", "setflags", "resize"})
#: Methods of arrays that take other arrays, and the functions that take traced ones.
_READERS = {
    **{name: name for name in ("choose", "dot", "mean", "searchsorted", "std", "take", "var")},
    "item": "take",
}
_STORES = frozenset({"STORE_SUBSCR", "STORE_SLICE"})
_UNKNOWN = object()

WRITING = "Copy it inside the function first: a = np.array(a), then write to the copy." + refer_to(
    "outside array"
)


def expression_at(frame: FrameType, at: int) -> ast.expr | None:
    """Return the expression that a frame is computing, if its source can be read."""
    code = frame.f_code
    first, last, start, end = next(islice(code.co_positions(), at // 2, None))
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _value(frame: FrameType, node: ast.expr) -> Any:
    """Return what a name, or an attribute of one, stands for in a frame; nothing is called."""
    if isinstance(node, ast.Name):
        if node.id in frame.f_locals:
            return frame.f_locals[node.id]
        return frame.f_globals.get(node.id, _UNKNOWN)
    if isinstance(node, ast.Attribute):
        owner = _value(frame, node.value)
        return getattr(owner, "__dict__", {}).get(node.attr, _UNKNOWN)
    return _UNKNOWN


def _statement(frame: FrameType) -> ast.AST | None:
    """Return what stands on the line that a frame is at, if that is a statement."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    try:
        return ast.parse(line)
    except (SyntaxError, ValueError):
        return None


def is_given_traced_arrays(frame: FrameType, at: int) -> bool:
    """Return whether names in the expression that a frame is computing hold traced values."""
    expression: ast.AST | None = expression_at(frame, at)
    if dis.opname[frame.f_code.co_code[at]] in _STORES:
        expression = _statement(frame)  # the expression is the target alone
    parts = () if expression is None else ast.walk(expression)
    values = (_value(frame, node) for node in parts if isinstance(node, ast.expr))
    return any(getattr(value, "holds_traced_values", False) is True for value in values)


def explain_plain_array_use(
    frame: FrameType, at: int, dtype: np.dtype | None = None
) -> tuple[str, str] | None:
    """Return what is wrong and what to write where a plain array met a traced value.

    ``at`` is the place in the frame's code (``f_lasti``), ``dtype`` that of the traced value, if
    it is known. None means that the frame is doing something else.
    """
    expression = expression_at(frame, at)
    if expression is None:
        return None
    text = ast.unparse(expression)
    operation = dis.opname[frame.f_code.co_code[at]]
    if operation in _STORES:
        return _writing(text)
    if isinstance(expression, ast.Subscript):
        return _reading(frame, expression, dtype)
    if isinstance(expression, ast.Compare) and operation == "CONTAINS_OP":
        array, item = ast.unparse(expression.comparators[0]), ast.unparse(expression.left)
        return f"a traced value is looked for ({text})", f"Write np.any({array} == {item})."
    if isinstance(expression, ast.Call):
        return _calling(frame, expression)
    return None


def _writing(text: str) -> tuple[str, str]:
    return (
        f"a traced value cannot be written into a plain NumPy array ({text}): one made outside "
        "the recorded function, or computed from such arrays alone",
        WRITING,
    )


def _reading(
    frame: FrameType, expression: ast.Subscript, dtype: np.dtype | None
) -> tuple[str, str] | None:
    base, index = expression.value, expression.slice
    array, key, text = (ast.unparse(node) for node in (base, index, expression))
    if dtype is None:
        dtype = getattr(_value(frame, index), "dtype", None)
    if dtype is not None and dtype.kind == "b":
        return _masking(text, array, key)
    if dtype is not None and dtype.kind == "f":
        return (
            f"a plain NumPy array is read at an index that is no integer ({text})",
            f"Write np.take({array}, ({key}).astype(int)).",
        )
    keys = index.elts if isinstance(index, ast.Tuple) else [index]
    whole = [isinstance(k, ast.Slice) and not (k.lower or k.upper or k.step) for k in keys]
    if any(isinstance(k, ast.Slice) and not w for k, w in zip(keys, whole)):
        return None  # the size of the result is traced
    if whole.count(False) != 1 or any(isinstance(k, ast.Constant) for k in keys):
        copy = ast.Call(_name("np.array"), [base], [])
        remedy = ast.unparse(ast.Subscript(copy, index, ast.Load()))
    else:
        axis = whole.index(False)
        value = _value(frame, base)
        flat = isinstance(base, ast.List) or getattr(value, "ndim", 2) == 1
        key = ast.unparse(keys[axis])
        remedy = f"np.take({array}, {key})" if flat else f"np.take({array}, {key}, axis={axis})"
    return (
        f"a plain NumPy array or list is read at a traced index ({text}), which only NumPy's "
        "functions take",
        f"Write {remedy}." + refer_to("table"),
    )


def _masking(text: str, array: str, mask: str) -> tuple[str, str]:
    return (
        f"a plain NumPy array is read under a mask of traced values ({text}): the shape of the "
        "result would depend on values",
        (
            f"Keep the shape: np.where({mask}, {array}, 0.0), or np.sum({array}, where={mask})."
            + refer_to("mask")
        ),
    )


def _name(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _calling(frame: FrameType, call: ast.Call) -> tuple[str, str] | None:
    text = ast.unparse(call)
    function = call.func
    owner = _value(frame, function.value) if isinstance(function, ast.Attribute) else None
    if not isinstance(function, ast.Attribute) or isinstance(owner, (ModuleType, np.ufunc)):
        return _calling_with_lists(frame, call)
    name, array = function.attr, ast.unparse(function.value)
    if not hasattr(np.ndarray, name) or not (
        owner is _UNKNOWN or isinstance(owner, (np.ndarray, np.flatiter))
    ):
        return None
    if name in _WRITERS:
        return _writing(text)
    arguments = [ast.unparse(a) for a in (*call.args, *call.keywords)]
    if name == "compress":
        return _masking(text, array, arguments[0])
    if name not in _READERS:
        return None
    remedy = f"np.{_READERS[name]}({', '.join([array, *arguments])})"
    if name == "dot" and len(call.args) == len(arguments) == 1:
        product = ast.BinOp(function.value, ast.MatMult(), call.args[0])
        remedy += f" or {ast.unparse(product)}"
    return (
        f"a method of a plain NumPy array was given a traced value ({text}), which only NumPy's "
        "functions take",
        f"Write {remedy}." + refer_to("table"),
    )


def _calling_with_lists(frame: FrameType, call: ast.Call) -> tuple[str, str] | None:
    """Explain ``np.sin([x, y])``: NumPy looks at arrays, not at the items of a list."""
    literal = (ast.List, ast.Tuple, ast.ListComp)
    lists = [
        isinstance(a, literal) or isinstance(_value(frame, a), (list, tuple)) for a in call.args
    ]
    if not any(lists):
        return None
    text = ast.unparse(call)
    make = _name("np.array")
    call.args = [ast.Call(make, [a], []) if is_list else a for a, is_list in zip(call.args, lists)]
    return (
        f"a list that holds traced values was given to a NumPy function ({text})",
        f"Make an array of it: {ast.unparse(call)}.",
    )

"""The methods that every struct has: repr, HTML table, replace, equality and hash by content."""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import Field
from typing import Any, TypeVar

import numpy as np

from archimedes.display import short_name, summary_text
from archimedes.errors import StructError
from archimedes.tracebacks import boundary
from archimedes.tree.operations import flatten

__all__ = ["replace"]


def show_scalar(value: object) -> str:
    return str(value) if isinstance(value, (np.number, np.bool_)) else repr(value)


def show_tuple(value: tuple) -> str:
    inner = ", ".join(map(show_value, value))
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def show_dict(value: dict) -> str:
    return f"{{{', '.join(f'{show_value(k)}: {show_value(v)}' for k, v in value.items())}}}"


SHOW: dict[type, Callable[[Any], str]] = {
    list: lambda value: f"[{', '.join(map(show_value, value))}]",
    tuple: show_tuple,
    dict: show_dict,
}


def show_value(value: object) -> str:
    """Return the repr of a value, with NumPy scalars written as plain numbers.

    >>> import numpy as np
    >>> show_value([np.float64(0.5), np.zeros(2)])
    '[0.5, array([0., 0.])]'
    """
    return SHOW.get(type(value), show_scalar)(value)


#: Longest text of a struct in one line; beyond, a line for each field says what it holds.
ONE_LINE = 160


@reprlib.recursive_repr()
def struct_repr(self: Any) -> str:
    """Return the text of a struct, such as ``Body.State(pos=array([0., 0., 0.]))``.

    >>> from archimedes.tree import struct
    >>> @struct
    ... class Log:
    ...     t: np.ndarray
    >>> Log(np.arange(1000.0))
    Log
      t: array (1000,), 0 to 999
    """
    shown = [f.name for f in dataclasses.fields(self) if f.repr]
    inner = ", ".join(f"{name}={show_value(getattr(self, name))}" for name in shown)
    text = f"{short_name(type(self))}({inner})"
    return text if len(text) <= ONE_LINE and "\n" not in text else summary_text(self)


def struct_html(self: Any) -> str:
    """Return a nested HTML table of names, shapes, units and values."""
    import html  # slow to import, and needed in notebooks only

    rows = []
    for f in dataclasses.fields(self):
        if not f.repr:
            continue
        value = getattr(self, f.name)
        nested = getattr(type(value), "_repr_html_", None) is struct_html
        shape = getattr(value, "shape", None)
        cells = (
            html.escape(f.name),
            "" if shape is None else html.escape(str(tuple(shape))),
            html.escape(str(f.metadata.get("units", ""))),
            struct_html(value) if nested else f"<pre>{html.escape(show_value(value))}</pre>",
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>name</th><th>shape</th><th>units</th><th>value</th></tr>"
    caption = f"<caption>{html.escape(short_name(type(self)))}</caption>"
    return f"<table>{caption}{head}{''.join(rows)}</table>"


T = TypeVar("T")


def is_kind(f: Field, kind: str) -> bool:
    # dataclasses keeps ClassVar and InitVar entries among the fields, told apart only by this.
    return f._field_type is getattr(dataclasses, kind)  # type: ignore[attr-defined]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the known name closest to `name`, or all of them."""
    import difflib  # only needed for a message

    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known names: {', '.join(known) or 'none'}"


@boundary
def replace(tree: T, /, **changes: Any) -> T:
    """Return a copy of a struct, dataclass instance or namedtuple with some fields changed.

    The copy is made by the constructor, so ``__post_init__`` runs on it.

    Parameters
    ----------
    tree : struct
        What to copy.
    **changes
        New values by the name of the field.

    Examples
    --------
    >>> from archimedes.tree import replace, struct
    >>> @struct
    ... class Gains:
    ...     p: float
    ...     d: float = 0.0
    >>> replace(Gains(p=1.0), d=0.5)
    Gains(p=1.0, d=0.5)
    """
    cls: Any = type(tree)
    names = getattr(tree, "_fields", None)
    if isinstance(tree, tuple) and names is not None:
        check_names(cls, changes, names)
        return tree._replace(**changes)  # type: ignore[attr-defined]
    stored, required, accepted = _replaceable_fields(cls)
    if not changes.keys() <= accepted:
        check_names(cls, changes, (*stored, *sorted(accepted.difference(stored))))
    for name in required:
        if name not in changes:
            raise StructError(
                f"{cls.__qualname__}.replace: {name!r} is an InitVar without a default, whose "
                "value is not kept; give it again"
            )
    for name in stored:
        if name not in changes:
            changes[name] = getattr(tree, name)
    return cls(**changes)


@functools.lru_cache(maxsize=1024)
def _replaceable_fields(cls: type) -> tuple[tuple[str, ...], tuple[str, ...], frozenset[str]]:
    """Return the fields an instance stores, the InitVars without defaults, and all of `replace`."""
    known = getattr(cls, "__dataclass_fields__", None)
    if known is None:
        raise StructError(
            f"replace needs a struct, a dataclass instance or a namedtuple, got {cls.__qualname__}"
        )
    entries = [f for f in known.values() if f.init and not is_kind(f, "_FIELD_CLASSVAR")]
    once = [f for f in entries if is_kind(f, "_FIELD_INITVAR")]
    stored = tuple(f.name for f in entries if f not in once)
    required = tuple(f.name for f in once if f.default is dataclasses.MISSING)
    return stored, required, frozenset(f.name for f in entries)


def check_names(cls: type, changes: Iterable[str], known: Iterable[str]) -> None:
    known = tuple(known)
    for name in changes:
        if name not in known:
            raise StructError(
                f"{cls.__qualname__}.replace: no field {name!r}; {nearest(name, known)}"
            )


def same_value(a: Any, b: Any) -> bool:
    """Compare two leaves: arrays and numbers by shape and elements, other objects by ``==``."""
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return np.shape(a) == np.shape(b) and bool(np.all(a == b))
    return bool(a == b)


def struct_eq(self: Any, other: Any) -> Any:
    """Return True if `other` is of the same type and holds the same content.

    Arrays are equal if they have the same shape and all elements are equal (nan is not). Static
    fields must agree in type as well: 1 and 1.0 are different structures.
    """
    if type(self) is not type(other):
        return NotImplemented
    leaves, treedef = flatten(self)
    other_leaves, other_def = flatten(other)
    return treedef.matches(other_def) and all(map(same_value, leaves, other_leaves))


def struct_hash(self: Any) -> int:
    """Hash by content; raises TypeError where a leaf, such as an array, is not hashable."""
    leaves, treedef = flatten(self)
    try:
        return hash((treedef.content_hash, *leaves))
    except TypeError:
        for path, leaf in zip(treedef.paths(), leaves):
            if type(leaf).__hash__ is None:
                raise StructError(
                    f"{type(self).__qualname__} is not hashable: its leaf {path} is of type "
                    f"{type(leaf).__qualname__}. Hash its structure instead "
                    "(tree.structure(x)), or mark the field static."
                ) from None
        raise

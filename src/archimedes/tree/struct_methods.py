"""The methods that every struct has: replace, equality and hash by content."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from archimedes.errors import StructError
from archimedes.tree.field_rules import is_kind
from archimedes.tree.operations import flatten

__all__ = ["replace"]

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the known name closest to `name`, or all of them."""
    import difflib  # only needed for a message

    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known names: {', '.join(known) or 'none'}"


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
    cls = type(tree)
    names = getattr(tree, "_fields", None)
    if isinstance(tree, tuple) and names is not None:
        check_names(cls, changes, names)
        return tree._replace(**changes)  # type: ignore[attr-defined]
    known = getattr(cls, "__dataclass_fields__", None)
    if known is None:
        raise StructError(
            f"replace needs a struct, a dataclass instance or a namedtuple, got {cls.__qualname__}"
        )
    entries = [f for f in known.values() if not is_kind(f, "_FIELD_CLASSVAR")]
    check_names(cls, changes, [f.name for f in entries if f.init])
    for f in entries:
        if not f.init or f.name in changes:
            continue
        if not is_kind(f, "_FIELD_INITVAR"):
            changes[f.name] = getattr(tree, f.name)
        elif f.default is dataclasses.MISSING:
            raise StructError(
                f"{cls.__qualname__}.replace: {f.name!r} is an InitVar without a default, whose "
                "value is not kept; give it again"
            )
    return cls(**changes)


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

"""Resolves the annotations of dataclass fields, postponed ones and forward references too."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
import weakref
from collections.abc import Mapping
from typing import Any

from archimedes.errors import StructError

__all__ = ["field_hints", "learn_hints"]

OWN: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()


def evaluate(cls: type, module: Mapping[str, Any], local: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate the annotations of the fields that the body of `cls` declares.

    Each class is evaluated alone, so that equal names in the modules of two classes of one family
    are not mixed up.
    """
    names = {f.name for f in dataclasses.fields(cls)}
    own = {n: a for n, a in inspect.get_annotations(cls).items() if n in names}
    inner = {n: v for n, v in vars(cls).items() if isinstance(v, type)}
    scope = {**local, cls.__name__: cls, **inner}
    holder = types.SimpleNamespace(__annotations__=own)
    return typing.get_type_hints(holder, dict(module), scope, include_extras=True)


def learn_hints(cls: type, module: Mapping[str, Any], local: Mapping[str, Any]) -> None:
    """Resolve the annotations of `cls` in the scope of its class statement, if they can be now.

    A name that is defined only later is looked up in the module at first use.
    """
    try:
        OWN[cls] = evaluate(cls, module, local)
    except NameError:
        OWN.pop(cls, None)


def field_hints(cls: type) -> dict[str, Any]:
    """Return the resolved annotation of each field of a dataclass, inherited ones included."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        if base not in OWN:
            module = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
            try:
                OWN[base] = evaluate(base, module, {})
            except NameError as error:
                raise StructError(
                    f"{base.__qualname__}: the annotation {error.name!r} cannot be found; define "
                    "or import it in the module of the class"
                ) from error
        hints.update(OWN[base])
    return hints

"""What `@struct` settles before `dataclasses` sees the class: own defaults, keyword-only fields."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field
from types import MemberDescriptorType
from typing import Any

import numpy as np

__all__ = ["prepare_fields"]


def copy_factory(default: Any) -> Callable[[], Any] | None:
    """Return a factory of copies for a default that instances must not share, else None."""
    if isinstance(default, Field):
        return None
    if isinstance(default, np.ndarray):
        return default.copy
    mutable = type(default).__hash__ is None
    if mutable or (dataclasses.is_dataclass(default) and not isinstance(default, type)):
        return functools.partial(copy.deepcopy, default)
    return None


def is_kind(f: Field, kind: str) -> bool:
    # dataclasses keeps ClassVar and InitVar entries among the fields, told apart only by this.
    return f._field_type is getattr(dataclasses, kind)  # type: ignore[attr-defined]


def own_fields(cls: type, kw_only: bool) -> dict[str, Field]:
    """Return the fields and InitVars that the body of `cls` declares, defaults included.

    `dataclasses` itself sorts the annotations, postponed ones too, on a stand-in class without
    bases and without an ``__init__``, so nothing is checked or changed yet.
    """
    annotations = inspect.get_annotations(cls)
    given = {name: cls.__dict__[name] for name in annotations if name in cls.__dict__}
    body = {name: value for name, value in given.items() if isinstance(value, Field)}
    # Without a docstring `dataclasses` would write one, which takes longest of all.
    probe = type(cls.__name__, (), {"__doc__": "-", **body, "__annotations__": dict(annotations)})
    probe.__module__ = cls.__module__
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(probe)
    found: dict[str, Field] = probe.__dataclass_fields__  # type: ignore[attr-defined]
    return {name: f for name, f in found.items() if not is_kind(f, "_FIELD_CLASSVAR")}


def inherited_fields(cls: type) -> dict[str, Field]:
    """Return the fields and InitVars of the bases, in the order `dataclasses` gives them."""
    found: dict[str, Field] = {}
    for base in cls.__mro__[:0:-1]:
        found.update(base.__dict__.get("__dataclass_fields__", {}))
    return {name: f for name, f in found.items() if not is_kind(f, "_FIELD_CLASSVAR")}


def copy_defaults(cls: type, kw_only: bool) -> None:
    """Give each instance its own copy of defaults that can be changed in place, such as arrays."""
    for written in cls.__dict__.values():
        if isinstance(written, Field) and (factory := copy_factory(written.default)):
            written.default, written.default_factory = MISSING, factory
    for name, f in own_fields(cls, kw_only).items():
        factory = copy_factory(cls.__dict__.get(name))
        if factory is not None and not is_kind(f, "_FIELD_INITVAR"):
            setattr(cls, name, dataclasses.field(default_factory=factory))


def has_default(cls: type, name: str, f: Field) -> bool:
    if f.default is not MISSING or f.default_factory is not MISSING:
        return True
    written = getattr(cls, name, MISSING)  # a base's default survives a new annotation
    if isinstance(written, Field):
        return written.default is not MISSING or written.default_factory is not MISSING
    return written is not MISSING and not isinstance(written, MemberDescriptorType)


def prepare_fields(cls: type, kw_only: bool) -> list[str]:
    """Settle the defaults and the keyword-only fields of `cls` in place.

    A field without a default that inheritance places after one with a default becomes
    keyword-only. Returns the names of inherited fields that had to be declared again for that;
    their annotations are to be removed once the dataclass is made.
    """
    copy_defaults(cls, kw_only)
    own, inherited = own_fields(cls, kw_only), inherited_fields(cls)
    again = []
    after_inherited = after_own = False
    for name, f in {**inherited, **own}.items():
        if not f.init or f.kw_only is True:
            continue
        if name in own and has_default(cls, name, f):
            after_own = True
            # An override keeps the place of the field it replaces.
            after_inherited = after_inherited or name in inherited
        elif name not in own and (f.default is not MISSING or f.default_factory is not MISSING):
            after_inherited = True
        elif name in own and after_inherited:
            make_keyword_only(cls, name)
        elif name not in own and (after_inherited or after_own):
            again.append(name)
            redeclared = copy.copy(f)
            redeclared.kw_only = True
            setattr(cls, name, redeclared)
            cls.__annotations__[name] = f.type
    return again


def make_keyword_only(cls: type, name: str) -> None:
    written = cls.__dict__.get(name, MISSING)
    if isinstance(written, Field):
        written.kw_only = True
    else:
        setattr(cls, name, dataclasses.field(kw_only=True))

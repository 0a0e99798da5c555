"""The walk over all that a function reads: the one rule of what a function is.

Starting from a function (and from static arguments) the walk follows what plain Python can
reach: code, defaults, variables of enclosing functions, globals, ``module.name``, attributes of
objects in ``__dict__`` and ``__slots__``, class attributes and methods along the inheritance,
properties, partials, containers and what they hold, arrays, other recorded functions. Of objects,
classes and modules it takes the names that the code mentions; all of them where code could read
others (``getattr``, ``vars``, dataclasses, code of installed packages).

It gives a ``key``, equal for functions that record the same, and the ``places`` it has read.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from archimedes.function.identity.container_reads import (
    open_array,
    open_content,
    open_dict,
    open_list,
    open_live,
    open_number,
    open_proxy,
    open_recorded_array,
    open_set,
    open_traced_array,
    open_tuple,
)
from archimedes.function.identity.function_reads import (
    open_builtin,
    open_descriptor,
    open_function,
    open_getter,
    open_method,
    open_partial,
    open_wrapper,
)
from archimedes.function.identity.live_arrays import reachable_by_name
from archimedes.function.identity.object_reads import (
    open_class,
    open_fixed,
    open_instance,
    open_module,
    open_reference,
)
from archimedes.function.identity.traversal import Traversal
from archimedes.symbolic import SymbolicArray
from archimedes.symbolic.recorded.recorded_array import RecordedArray

__all__ = ["Walk"]

Opener = Callable[[Traversal, Any, str], None]

#: How to look into objects of these very classes.
_OPENERS: dict[type, Opener] = {
    FunctionType: open_function,
    MethodType: open_method,
    BuiltinFunctionType: open_builtin,
    functools.partial: open_partial,
    type(functools.lru_cache(lambda: None)): open_wrapper,
    property: open_descriptor,
    staticmethod: open_descriptor,
    classmethod: open_descriptor,
    ModuleType: open_module,
    weakref.ref: open_reference,
    ContextVar: open_reference,
    list: open_list,
    dict: open_dict,
    MappingProxyType: open_proxy,
    set: open_set,
    frozenset: open_set,
    bytearray: open_set,
    deque: open_set,
    np.ndarray: open_array,
    SymbolicArray: open_traced_array,
    RecordedArray: open_recorded_array,
    slice: open_number,
    operator.attrgetter: open_getter,
    operator.methodcaller: open_getter,
    operator.itemgetter: open_getter,
    **dict.fromkeys(
        (
            *(np.ufunc, type(np.dot), MemberDescriptorType, GetSetDescriptorType),
            *(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
            *(MethodWrapperType, object),
        ),
        open_fixed,
    ),
}
#: Bases whose content counts besides the attributes of their subclasses.
_BASES: dict[type, Opener] = {
    list: open_list,
    dict: open_dict,
    tuple: open_tuple,
    set: open_set,
    frozenset: open_set,
    deque: open_set,
    bytearray: open_set,
    np.ndarray: open_array,
    weakref.ref: open_reference,
    np.generic: open_number,
    functools.partial: open_partial,
    float: open_number,
    int: open_number,
    str: open_number,
    ModuleType: open_module,
}


class Walk(Traversal):
    """What some objects read, without what functions of the code ``hosts`` read."""

    __slots__ = ()
    bases = _BASES

    def opener(self, value: Any) -> Opener:
        """Return what looks into a value."""
        found = _OPENERS.get(type(value))
        if found is not None:
            return found
        if isinstance(value, SymbolicArray):
            return open_traced_array
        return open_class if isinstance(value, type) else open_instance

    def settle(self) -> None:
        """Read arrays where they lie if every way to them can lead elsewhere while recording."""
        found, self.live = self.live, []
        counts = self.references or {}
        candidates = [array for array, _ in found]
        arrays, self.holders = reachable_by_name(
            candidates, self.objects, counts, self.spaces, self.hosts
        )
        for value, path in found:
            if any(value is a for a in arrays):
                open_live(self, value, path)
                self.live.append((value, path))
            else:
                open_content(self, value, path)
        self.references = None

    @staticmethod
    def pickled(value: Any) -> Hashable:
        """Return what an object written in C would be pickled as."""
        made = value.__reduce_ex__(2)
        if isinstance(made, str) or not any(made[2:]):
            raise TypeError  # known by its name, or without content
        return Walk((made[1:],), every=True).key

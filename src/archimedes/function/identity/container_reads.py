"""What containers, arrays and numbers hold."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import numpy as np

from archimedes.function.identity.data_places import (
    ArrayPlace,
    ContentPlace,
    DictPlace,
    ListPlace,
    LivePlace,
    ProxyPlace,
)
from archimedes.function.identity.live_arrays import may_be_live
from archimedes.function.identity.object_parts import ordered_items
from archimedes.function.identity.traversal import Same, Traversal
from archimedes.symbolic import SymbolicArray
from archimedes.symbolic.recorded.recorded_array import RecordedArray
from archimedes.symbolic.recorded.recorded_memory import root_of
from archimedes.tree.content import content_key

__all__ = [
    "open_array",
    "open_content",
    "open_dict",
    "open_list",
    "open_live",
    "open_number",
    "open_proxy",
    "open_recorded_array",
    "open_set",
    "open_traced_array",
    "open_tuple",
]


def open_list(walk: Traversal, value: list[Any], path: str) -> None:
    """A list: its items."""
    walk.found.append(ListPlace(path, value))
    items = [walk.token(v, f"{path}[{k}]") for k, v in enumerate(list.__iter__(value))]
    walk.add(value, "list", *items)


def open_dict(walk: Traversal, value: dict[Any, Any], path: str) -> None:
    """A dict: its items, in their order where it keeps one."""
    if isinstance(value, OrderedDict):  # its order is not that of its table
        walk.found.append(ContentPlace(path, value, ordered_items))
        pairs: Any = OrderedDict.items(value)
    else:
        walk.found.append(DictPlace(path, value))
        pairs = dict.items(value)
    for key, held in pairs:
        walk.add(value, walk.token(key, path), walk.token(held, f"{path}[{key!r}]"))
    walk.add(value, "dict", len(value))


def open_proxy(walk: Traversal, value: Any, path: str) -> None:
    """A view of a mapping that cannot be written to: its items."""
    walk.found.append(ProxyPlace(path, value))
    for key, held in value.items():
        walk.add(value, walk.token(key, path), walk.token(held, f"{path}[{key!r}]"))
    walk.add(value, "proxy", len(value))


def open_set(walk: Traversal, value: Any, path: str) -> None:
    """Sets, byte arrays and deques: what they hold."""
    read: Any = frozenset if isinstance(value, (set, frozenset)) else bytes
    if isinstance(value, deque):
        read = tuple
        for k, item in enumerate(value):
            walk.add(value, walk.token(item, f"{path}[{k}]"))
    if not isinstance(value, frozenset):
        walk.found.append(ContentPlace(path, value, read))
    if not isinstance(value, deque):
        walk.add(value, content_key(read(value)))


def open_tuple(walk: Traversal, value: Any, path: str) -> None:
    """A tuple of a class of its own: its items."""
    walk.add(value, *[walk.token(v, f"{path}[{k}]") for k, v in enumerate(value)])


def open_number(walk: Traversal, value: Any, path: str) -> None:
    """A number: its value."""
    walk.add(value, content_key(value))


def open_array(walk: Traversal, value: np.ndarray, path: str) -> None:
    """An array: its bytes and how they are laid out, or its objects; later, if it may be live."""
    if may_be_live(value):
        walk.has_large = True
        if walk.references is not None:
            walk.live.append((value, path))
            return
    open_content(walk, value, path)


def open_live(walk: Traversal, value: np.ndarray, path: str) -> None:
    """An array whose numbers are read where they lie: which one it is."""
    walk.found.append(LivePlace(path, value))
    walk.add(value, "live", Same(value), value.dtype.str, value.shape)


def open_content(walk: Traversal, value: np.ndarray, path: str) -> None:
    """Identify an array by its content: dtype, shape and bytes, or the objects that it holds."""
    plain = value if type(value) is np.ndarray else np.ndarray.view(value, np.ndarray)
    if plain.dtype.hasobject:
        walk.add(value, *[walk.token(v, path) for v in plain.ravel().tolist()])
    content = plain.tobytes()
    walk.found.append(ArrayPlace(path, plain, content))
    walk.add(value, plain.dtype.str, plain.shape, plain.strides)
    if not plain.dtype.hasobject:
        walk.add(value, content)


def open_recorded_array(walk: Traversal, value: RecordedArray, path: str) -> None:
    """An array made while recording: of numbers, or of traced values."""
    nodes = root_of(value)._nodes
    if nodes is None:
        open_array(walk, value, path)
    else:
        open_traced_array(walk, nodes.array, path)
        walk.add(value, Same(value))


def open_traced_array(walk: Traversal, value: SymbolicArray, path: str) -> None:
    """A value of a recording."""
    walk.traced.append((path, value))
    walk.token(value, path)
    walk.add(value, Same(value))

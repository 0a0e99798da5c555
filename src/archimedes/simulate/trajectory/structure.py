"""The structure of a tree as JSON, so that a file can give it back.

A description has the classes of structs, attitudes and named tuples by name, and a file is data of
somebody: a name stands for a class only if this process has registered that class as a node of
trees, with the same fields. The modules of this package are imported for that, no others. What is
not known here becomes a dict that carries the same names.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.tree.nodes import KINDS, field_names, intern, kind_of, sort_keys
from archimedes.tree.treedef import LEAF, TreeDef

#: Modules of this package; none that runs when it is imported.
OURS = re.compile(r"archimedes(\.[a-z]\w*)+", re.ASCII)
DTYPE = re.compile(r"[<>|=]?[biufcSU]\d{1,6}", re.ASCII)
LEAF_TEXT = "*"
PLAIN = (list, tuple, type(None))
DICTS = {"dict": dict, "OrderedDict": OrderedDict}
STEP_BY_NAME = re.compile(r"\.(\w+)")

Json = Any


def describe_tree(value: Any, lead: int) -> Json:
    """Return structure, and dtype and shape of each leaf without its `lead` axes, as JSON.

    >>> describe_tree({"a": np.zeros((5, 3))}, 1)
    {'tree': ['dict', ['a'], ['*']], 'leaves': [['<f8', [3]]]}
    """
    leaves, treedef = tree.flatten(value)
    rows = [[np.asarray(leaf).dtype.str, list(np.shape(leaf)[lead:])] for leaf in leaves]
    return {"tree": _describe(treedef), "leaves": rows}


def is_describable(value: Any) -> bool:
    """Return whether `describe_tree` can write the structure: each node has keys or fields."""
    return all(map(_has_names, _nodes(tree.structure(value))))


def _nodes(node: TreeDef) -> Iterator[TreeDef]:
    yield node
    for child in node.children:
        yield from _nodes(child)


def _has_names(node: TreeDef) -> bool:
    if node is LEAF or node.kind.cls in PLAIN:
        return True
    if node.kind.cls in DICTS.values():
        return all(isinstance(key, str) or type(key) is int for key in node.aux)
    labels = node.kind.labels(node.aux, len(node.children))
    return all(STEP_BY_NAME.fullmatch(label) for label in labels)


def recall_tree(description: Json) -> Any:
    """Return a tree as `describe_tree` has described it, with zeros for leaves.

    The zeros take no memory, whatever shape is claimed. A description that cannot be one is a
    ValueError.
    """
    try:
        treedef = _recall(description["tree"], depth=0)
        leaves = [_zeros(dtype, shape) for dtype, shape in description["leaves"]]
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{error}") from error
    if treedef.num_leaves != len(leaves):
        raise ValueError(f"{len(leaves)} leaves, places for {treedef.num_leaves}")
    return treedef.unflatten(leaves)


def _zeros(dtype: str, shape: list[int]) -> np.ndarray:
    whole = all(type(n) is int and n >= 0 for n in shape)
    if not DTYPE.fullmatch(dtype) or not whole or math.prod(shape) > 2**62:
        raise ValueError(f"a leaf of dtype {dtype}, shape {shape}")
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))


def _describe(node: TreeDef) -> Json:
    if node is LEAF:
        return LEAF_TEXT
    cls, children = node.kind.cls, [_describe(child) for child in node.children]
    if cls in PLAIN:
        return [cls.__name__, children]
    if cls in DICTS.values():
        keys = list(node.aux) if cls is OrderedDict else list(sort_keys(node.aux))
        order = [] if keys == list(node.aux) else [[keys.index(k) for k in node.aux]]
        return [cls.__name__, keys, children, *order]
    labels = list(node.kind.labels(node.aux, len(children)))
    if labels == [".array"] and not dataclasses.is_dataclass(cls):
        return LEAF_TEXT  # a wrapper that is called by its own name
    names = [label[1:] for label in labels]
    static = _describe_static(cls, node.aux)
    return ["class", f"{cls.__module__}:{cls.__qualname__}", names, children, static]


def _describe_static(cls: type, aux: Any) -> Json:
    """Return the static fields by name as JSON; None if they cannot be written."""
    if not dataclasses.is_dataclass(cls):
        return {} if issubclass(cls, tuple) else None
    try:
        return {name: _encode(each) for name, each in zip(field_names(cls)[1], aux, strict=True)}
    except TypeError:
        return None


def _encode(value: Any) -> Json:
    """Return a static value as JSON, a tuple as ``{"tuple": [...]}``."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return {"tuple": [_encode(each) for each in value]}
    raise TypeError(f"{type(value).__name__} is not written to files")


def _decode(value: Json) -> Any:
    return tuple(map(_decode, value["tuple"])) if isinstance(value, dict) else value


def _recall(node: Json, depth: int) -> TreeDef:
    if node == LEAF_TEXT:
        return LEAF
    if depth > 100:
        raise ValueError("it is nested more than 100 deep")
    kind = node[0]
    if kind == "class":
        name, fields, parts, static = node[1:]
        return _recall_class(name, fields, parts, static, depth)
    *keys, children = node[1:3] if kind in DICTS else node[1:2]
    below = tuple(_recall(child, depth + 1) for child in children)
    for cls in PLAIN:
        if kind == cls.__name__:
            return intern(kind_of(cls), below, None)
    names = tuple(keys[0])
    if len(names) != len(below) or len(set(names)) != len(names):
        raise ValueError(f"{len(below)} parts named {list(names)}")
    order = node[3] if len(node) > 3 else range(len(names))
    if sorted(order) != list(range(len(names))):
        raise ValueError(f"an order of keys {order}")
    if kind == "dict" and sort_keys(names) != names:
        raise ValueError(f"keys {list(names)}")
    return intern(kind_of(DICTS[kind]), below, tuple(names[k] for k in order))


def _recall_class(name: str, fields: Json, children: Json, static: Json, depth: int) -> TreeDef:
    """Return the structure of a class of that name and those fields, or of a dict."""
    below = tuple(_recall(child, depth + 1) for child in children)
    cls = _class_named(name) if static is not None else None
    if cls is not None and set(static) == set(_static_names(cls)):
        aux = tuple(_decode(static[n]) for n in _static_names(cls)) or _empty_aux(cls)
        kind = kind_of(cls)
        if list(kind.labels(aux, len(below))) == [f".{field}" for field in fields]:
            return intern(kind, below, aux)
    if fields == ["array"] and below == (LEAF,):
        return LEAF
    pairs = dict(zip(fields, below, strict=True))
    keys = tuple(sorted(pairs))
    return intern(kind_of(dict), tuple(pairs[key] for key in keys), tuple(fields))


def _static_names(cls: type) -> list[str]:
    return field_names(cls)[1] if dataclasses.is_dataclass(cls) else []


def _empty_aux(cls: type) -> Any:
    return () if dataclasses.is_dataclass(cls) else None


@functools.lru_cache(maxsize=256)
def _import_ours(module: str) -> None:
    """Import a module of this package, so that its structs are registered."""
    if OURS.fullmatch(module):
        try:
            importlib.import_module(module)
        except ImportError:  # of another version, or what it needs is not installed
            return


def _class_named(name: str) -> type | None:
    """Return the class that is registered as a node of trees under a name; the latest one."""
    module, _, qualname = name.partition(":")
    _import_ours(module)
    for cls in reversed(list(KINDS)):
        if cls.__module__ == module and cls.__qualname__ == qualname:
            named = dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")
            return cls if named else None
    return None

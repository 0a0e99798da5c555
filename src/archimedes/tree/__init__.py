"""Trees: structs and containers of arrays, taken apart into leaves and put together again."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archimedes.tree import containers as _containers  # noqa: F401  registers Python's containers
from archimedes.tree.nodes import register_node
from archimedes.tree.operations import (
    all,
    flatten,
    flatten_up_to,
    is_leaf,
    leaves,
    map,
    paths,
    reduce,
    structure,
    unflatten,
)
from archimedes.tree.struct_methods import replace
from archimedes.tree.structs import (
    InitVar,
    field,
    fields,
    is_struct,
    register_dataclass,
    register_struct,
    struct,
)
from archimedes.tree.treedef import TreeDef
from archimedes.tree.vectors import ravel

if TYPE_CHECKING:
    from archimedes.tree.config import StructConfig, UnionConfig

__all__ = [
    "InitVar",
    "StructConfig",
    "TreeDef",
    "UnionConfig",
    "all",
    "field",
    "fields",
    "flatten",
    "flatten_up_to",
    "is_leaf",
    "is_struct",
    "leaves",
    "map",
    "paths",
    "ravel",
    "reduce",
    "register_dataclass",
    "register_node",
    "register_struct",
    "replace",
    "struct",
    "structure",
    "unflatten",
]


def __getattr__(name: str) -> Any:
    # Reading configuration files is rare: its modules are imported on first use.
    if name in ("StructConfig", "UnionConfig"):
        return getattr(import_module("archimedes.tree.config"), name)
    raise AttributeError(f"module 'archimedes.tree' has no attribute {name!r}")

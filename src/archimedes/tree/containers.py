"""Python's own containers as nodes: None, list, tuple, namedtuple and the dicts.

The children of a dict are in the order of its sorted keys, so that the leaves of two dicts with
the same keys correspond however they were filled. The order in which it was filled belongs to its
structure all the same: a rebuilt dict is filled in that order, and a function that depends on it
(``list(d.values())``) is recorded once for each. The leaves of an OrderedDict are in its own order.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from archimedes.tree.nodes import RESOLVERS, install_node, named

__all__: list[str] = []

Keys = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def sort_keys(keys: Keys) -> Keys:
    """Sort dict keys; keys of mixed or unordered types are sorted by type name and repr."""
    try:
        return tuple(sorted(keys))
    except TypeError:
        return tuple(sorted(keys, key=lambda k: (type(k).__qualname__, repr(k))))


def key_labels(keys: Keys, n: int) -> list[str]:
    return [f"[{key!r}]" for key in keys]


def sorted_labels(keys: Keys, n: int) -> list[str]:
    return key_labels(sort_keys(keys), n)


def refill(keys: Keys, children: Iterable) -> Iterable[tuple[Any, Any]]:
    """Return the items of a dict in its own order, of values in the order of its sorted keys."""
    order = sort_keys(keys)
    if order == keys:
        return zip(keys, children)
    values = dict(zip(order, children))
    return ((key, values[key]) for key in keys)


def show_sorted(keys: Keys, children: Sequence[str]) -> str:
    return f"{{{', '.join(f'{k!r}: {c}' for k, c in refill(keys, children))}}}"


def show_dict(keys: Keys, children: Sequence[str]) -> str:
    return f"{{{', '.join(f'{k!r}: {c}' for k, c in zip(keys, children))}}}"


def differ_keys(keys: Keys, other: Keys) -> tuple[str, str]:
    if keys != other and sort_keys(keys) == sort_keys(other):
        return (f"dict with keys {list(keys)}", f"the same keys in another order, {list(other)}")
    return (f"dict with keys {list(keys)}", f"dict with keys {list(other)}")


def take_dict(obj: dict) -> tuple[Iterable, Keys]:
    keys = tuple(obj)
    return [obj[k] for k in sort_keys(keys)], keys


def take_defaultdict(obj: defaultdict) -> tuple[Iterable, Any]:
    keys = tuple(obj)
    return [obj[k] for k in sort_keys(keys)], (obj.default_factory, keys)


def make_defaultdict(aux: Any, children: list) -> defaultdict:
    factory, keys = aux
    return defaultdict(factory, refill(keys, children))


install_node(
    type(None),
    take_apart=lambda obj: ((), None),
    put_together=lambda aux, children: None,
    show=lambda aux, children: "None",
)
install_node(
    list,
    take_apart=lambda obj: (obj, None),
    put_together=lambda aux, children: children,
    show=lambda aux, children: f"[{', '.join(children)}]",
)
install_node(
    tuple,
    take_apart=lambda obj: (obj, None),
    put_together=lambda aux, children: tuple(children),
    show=lambda aux, children: f"({', '.join(children)}{',' * (len(children) == 1)})",
)
install_node(
    dict,
    take_apart=take_dict,
    put_together=lambda keys, children: dict(refill(keys, children)),
    labels=sorted_labels,
    show=show_sorted,
    differ=differ_keys,
    aux_key=lambda keys: keys,
    free_key=sort_keys,
)
install_node(
    OrderedDict,
    take_apart=lambda obj: (obj.values(), tuple(obj)),
    put_together=lambda keys, children: OrderedDict(zip(keys, children)),
    labels=key_labels,
    show=lambda keys, children: f"OrderedDict({show_dict(keys, children)})",
    differ=differ_keys,
    aux_key=lambda keys: keys,
)
install_node(
    defaultdict,
    take_apart=take_defaultdict,
    put_together=make_defaultdict,
    labels=lambda aux, n: sorted_labels(aux[1], n),
    show=lambda aux, children: f"defaultdict({show_sorted(aux[1], children)})",
    free_key=lambda aux: (aux[0], sort_keys(aux[1])),
)


def register_namedtuple(cls: type) -> bool:
    """List `cls` if it is a namedtuple type: a subclass of tuple with ``_fields``."""
    names = getattr(cls, "_fields", None)
    if not (issubclass(cls, tuple) and isinstance(names, tuple)):
        return False
    install_node(
        cls,
        take_apart=lambda obj: (obj, None),
        # Not cls(*children): a user's __new__ may check its arguments, and leaves are any objects.
        put_together=lambda aux, children: tuple.__new__(cls, children),
        labels=lambda aux, n: [f".{name}" for name in names],
        show=lambda aux, children: named(cls.__name__, names, children),
    )
    return True


RESOLVERS.append(register_namedtuple)

"""TreeDef: the shape of a tree without its leaves, one object per distinct shape.

TreeDefs are interned: two trees of the same structure share one TreeDef, so comparing structures
is comparing identities. The table holds them weakly; a structure nobody uses is forgotten.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from archimedes.errors import StructError
from archimedes.records import record
from archimedes.tree.content import content_key, is_mutable, snapshot

__all__ = ["TreeDef"]

Take = Callable[[], Any]


@record
class NodeKind:
    """What the library knows of one type of inner node.

    ``build(treedef, take)`` makes an object, calling ``take()`` for each leaf in order.
    ``labels(aux, n)`` names the children in paths (``.pos``, ``[0]``, ``['mass']``).
    ``show(aux, children)`` is the text of a node from the texts of its children.
    ``differ(aux, other)`` tells in words how two nodes of this kind differ, given their aux.
    ``free_key(aux)`` is equal for nodes that differ only in the order a dict was filled in.
    """

    cls: type
    name: str
    build: Callable[[TreeDef, Take], Any]
    labels: Callable[[Any, int], Sequence[str]]
    show: Callable[[Any, Sequence[str]], str]
    differ: Callable[[Any, Any], tuple[str, str]]
    aux_key: Callable[[Any], Hashable] = content_key
    free_key: Callable[[Any], Hashable] = content_key


class TreeDef:
    """The structure of a tree: its node types, field names, dict keys (in order) and static values.

    It is immutable and hashable, and equal structures are the same object. It is made by
    :func:`archimedes.tree.structure` and :func:`archimedes.tree.flatten`.

    Parameters
    ----------
    kind : NodeKind
        Type of the node.
    children : tuple of TreeDef
        Structures of the children.
    aux : object
        Static data of the node.

    Examples
    --------
    >>> from archimedes import tree
    >>> tree.structure({"a": 1.0, "b": [2.0, None]})
    TreeDef({'a': *, 'b': [*, None]})
    """

    kind: NodeKind
    children: tuple[TreeDef, ...]
    aux: Any
    num_leaves: int
    build: Callable[[TreeDef, Take], Any]
    content_hash: int
    shared: bool

    def __init__(self, kind: NodeKind, children: tuple[TreeDef, ...], aux: object):
        put = object.__setattr__
        put(self, "kind", kind)
        put(self, "children", children)
        put(self, "aux", snapshot(aux))
        put(self, "num_leaves", sum(c.num_leaves for c in children))
        put(self, "build", kind.build)
        # Identity hashes die with the object; structs need a hash that survives re-interning.
        free = kind.free_key(aux)
        put(self, "content_hash", hash((kind, free, *(c.content_hash for c in children))))
        put(self, "shared", not is_mutable(aux))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"TreeDef is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"TreeDef is immutable: cannot delete {name!r}")

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build a tree of this structure.

        Structs are filled in without calling ``__init__`` or ``__post_init__``, so a leaf may be
        any object.

        Parameters
        ----------
        leaves : iterable
            The leaves, in the order of flatten.
        """
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise StructError(
                f"unflatten: {self!r} has {self.num_leaves} leaves, but {len(leaves)} were given"
            )
        return self.build(self, iter(leaves).__next__)

    def paths(self, root: str = "") -> list[str]:
        """Return the path of each leaf, in order, such as ``x.att`` for ``root="x"``.

        Parameters
        ----------
        root : str, optional
            Name of the tree itself.
        """
        start = 1 if not root else 0
        return [p[start:] if p.startswith(".") else p for p in self._walk(root)]

    def _walk(self, prefix: str) -> Iterator[str]:
        if self is LEAF:
            yield prefix
        labels = self.kind.labels(self.aux, len(self.children))
        for label, child in zip(labels, self.children, strict=True):
            yield from child._walk(prefix + label)

    def difference(
        self,
        other: TreeDef,
        root: str = "",
        leaves: Sequence[Any] | None = None,
        other_leaves: Sequence[Any] | None = None,
        ordered: bool = False,
    ) -> str | None:
        """Describe where another structure first differs from this one; None if it does not.

        Parameters
        ----------
        other : TreeDef
            The other structure.
        root : str, optional
            Name of the tree itself.
        leaves, other_leaves : sequence, optional
            Leaves of both trees. With them, the text names the types of leaves too, as in ``"at
            x.att: Quaternion against ndarray"``.
        ordered : bool, optional
            Whether the order in which dicts were filled counts. By default leaves correspond by
            key.
        """
        seen = 0
        stack = [(self, other, root)]
        while stack:
            a, b, path = stack.pop()
            if a is b:
                seen += a.num_leaves
                continue
            key = a.kind.aux_key if ordered else a.kind.free_key
            if a.kind is b.kind and key(a.aux) == key(b.aux):
                if len(a.children) == len(b.children):
                    labels = a.kind.labels(a.aux, len(a.children))
                    below = zip(a.children, b.children, [path + label for label in labels])
                    stack.extend(reversed(list(below)))
                    continue
                name = a.kind.name
                sides = (f"{name} of {len(a.children)}", f"{name} of {len(b.children)}")
            elif a.kind is b.kind:
                sides = a.kind.differ(a.aux, b.aux)
            else:
                sides = (_type_name(a, leaves, seen), _type_name(b, other_leaves, seen))
            where = path[1:] if path.startswith(".") else path
            return f"at {where or 'the root'}: {sides[0]} against {sides[1]}"
        return None

    def matches(self, other: TreeDef) -> bool:
        """Return whether the leaves correspond: both are equal but for the order of dicts.

        Parameters
        ----------
        other : TreeDef
            The other structure.
        """
        return self is other or self.difference(other) is None

    def _show(self) -> str:
        return self.kind.show(self.aux, [c._show() for c in self.children])

    def __repr__(self) -> str:
        return f"TreeDef({self._show()})"

    def __copy__(self) -> TreeDef:
        return self

    def __deepcopy__(self, memo: dict) -> TreeDef:
        return self


def _type_name(node: TreeDef, leaves: Sequence[Any] | None, index: int) -> str:
    if node is not LEAF or leaves is None:
        return node.kind.name
    return type(leaves[index]).__qualname__


class Leaf:
    """Names the kind of the leaf structure; never instantiated."""


LEAF_KIND = NodeKind(
    cls=Leaf,
    name="a leaf",
    build=lambda treedef, take: take(),
    labels=lambda aux, n: (),
    show=lambda aux, children: "*",
    differ=lambda aux, other: ("a leaf", "a leaf"),
)

LEAF = TreeDef(LEAF_KIND, (), None)
object.__setattr__(LEAF, "num_leaves", 1)

TABLE: weakref.WeakValueDictionary[Hashable, TreeDef] = weakref.WeakValueDictionary()
LOCK = threading.RLock()


def intern(kind: NodeKind, children: tuple[TreeDef, ...], aux: object) -> TreeDef:
    """Return the one TreeDef of this kind, children and aux, making it if there is none."""
    key = kind.aux_key(aux)
    with LOCK:
        treedef = TABLE.get((kind, children, key))
        if treedef is None:
            treedef = TABLE[kind, children, key] = TreeDef(kind, children, aux)
        return treedef

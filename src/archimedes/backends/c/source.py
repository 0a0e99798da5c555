"""What the C backend takes and gives: arguments of a function, and its source in pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from archimedes.backends.c.support import PRELUDE

__all__ = ["Argument", "CSource", "Stats", "assemble"]


@dataclass(frozen=True)
class Argument:
    """One argument or result of a C function: a block of neighbouring inputs or outputs.

    ``name`` is a C identifier, ``dtype`` a code of ``graph/dtypes.py`` (as in the graph that is
    given: in float mode F64 stands for ``float``), ``shape`` the shape of the row-major array.
    An input of shape ``()`` is passed by value, everything else by pointer; an array without
    elements has no parameter.

    >>> Argument("P", 0, (3, 3)).size
    9
    """

    name: str
    dtype: int
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of scalars in the argument."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Stats:
    """Counts of a rendered function.

    ``operations``: worst case of one call, by op of the graph (elementary functions by name);
    ``primitives``: the same with elementary functions replaced by what they consist of.
    ``statements``, ``functions``, ``tables`` and ``table_bytes`` are of the source text, helpers
    not counted.
    """

    operations: Mapping[str, int]
    primitives: Mapping[str, int]
    statements: int
    functions: int
    tables: int
    table_bytes: int


@dataclass(frozen=True)
class CSource:
    """A rendered function, in the pieces that a translation unit is put together from.

    ``prototype``: the head of the function, without semicolon. ``types``: typedef of its
    workspace, which a header shows with the prototype (empty where there is none). ``text``:
    tables, static functions and the function itself. ``helpers``: static functions by name that
    the text needs, callee before caller; several sources in one file share them, see
    :func:`assemble`. ``workspace_type`` names the typedef of the last parameter (or is empty),
    ``workspace_bytes`` its size where types are aligned to their size. ``trace`` pairs lines of
    ``text`` (from 1) with the annotation that applies from there on.
    """

    name: str
    prototype: str
    types: str
    text: str
    helpers: Mapping[str, str]
    workspace_type: str
    workspace_bytes: int
    stats: Stats
    trace: tuple[tuple[int, str], ...] = field(default=())

    def __str__(self) -> str:
        return assemble([self])


def assemble(sources: Sequence[CSource], *, types: bool = True, include: str = "") -> str:
    """Put functions into one translation unit: prelude, helpers (once each), then the functions.

    ``types=False`` leaves the typedefs to a header, whose ``include`` lines come after the
    prelude. The result compiles as C99, C11 and C++17, freestanding.

    >>> assemble([]) == PRELUDE
    True
    """
    helpers: dict[str, str] = {}
    for source in sources:
        helpers.update(source.helpers)
    parts = [PRELUDE, *([include] if include else []), *helpers.values()]
    for source in sources:
        parts += [source.types] if types and source.types else []
        parts.append(source.text)
    return "\n".join(parts)

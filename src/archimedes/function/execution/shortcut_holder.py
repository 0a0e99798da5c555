"""The last tier of the call path: generated paths that a function tries before all else."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from archimedes import tree
from archimedes.function.execution.tiers import CallForm, Tiers

__all__ = ["SHORTCUTS", "ShortcutHolder"]

#: How many kinds of calls of a function keep a generated path, and how many it remembers.
SHORTCUTS, REMEMBERED = 4, 256


class ShortcutHolder:
    """A function with generated call paths of its recent kinds of calls, newest first.

    Such a path checks its arguments and returns NotImplemented for others, so that a call may try
    all of them before anything is looked at. ``_into_shortcuts`` are those with ``out=``.
    """

    __slots__ = ("_into_shortcuts", "_offered", "_shortcuts")

    def __init__(self) -> None:
        self._shortcuts: tuple[Callable[..., Any], ...] = ()
        self._into_shortcuts: tuple[Callable[..., Any], ...] = ()
        #: Kinds of calls that were looked at, by the number of their recording, and their paths.
        self._offered: dict[tuple[int, CallForm], weakref.ref[Any] | None] = {}

    def _offer(self, tiers: Tiers, form: CallForm, args: tuple[Any, ...]) -> None:
        """Let the next calls of this kind take a generated path, if one can be made."""
        key = (tiers.number, form)
        if key in self._offered:
            return
        if len(self._offered) >= REMEMBERED:  # recordings come and go
            self._offered.clear()
        self._offered[key] = None
        fast = tiers.shortcut(form, tree.structure(args))
        if fast is None:
            return
        self._offered[key] = weakref.ref(fast)
        if form.into:
            self._into_shortcuts = (fast, *self._into_shortcuts[: SHORTCUTS - 1])
        else:
            self._shortcuts = (fast, *self._shortcuts[: SHORTCUTS - 1])

    def _withdraw(self, tiers: Tiers) -> None:
        """Let go of the paths of a recording, which hold its code."""
        keys = [key for key in self._offered if key[0] == tiers.number]
        found = [self._offered.pop(key) for key in keys]
        gone = [path() for path in found if path is not None]
        self._shortcuts = tuple(f for f in self._shortcuts if f not in gone)
        self._into_shortcuts = tuple(f for f in self._into_shortcuts if f not in gone)

    def _withdraw_all(self) -> None:
        """Let go of all paths."""
        self._shortcuts = self._into_shortcuts = ()
        self._offered.clear()

"""The last tier of the call path: generated paths that a function tries before all else."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from archimedes import tree
from archimedes.function.execution.tiers import CallForm, Tiers

__all__ = ["SHORTCUTS", "ShortcutHolder"]

#: How many kinds of calls of a function keep a generated path.
SHORTCUTS = 4


class ShortcutHolder:
    """A function with generated call paths of its recent kinds of calls, newest first.

    Such a path checks its arguments and returns NotImplemented for others, so that a call may try
    all of them before anything is looked at. ``_into_shortcuts`` are those with ``out=``.
    """

    def __init__(self) -> None:
        self._shortcuts: tuple[Callable[..., Any], ...] = ()
        self._into_shortcuts: tuple[Callable[..., Any], ...] = ()
        #: Kinds of calls that were looked at, of recordings still in use, and their paths.
        self._paths: weakref.WeakKeyDictionary[Tiers, dict[CallForm, Any]] = (
            weakref.WeakKeyDictionary()
        )

    def _offer(self, tiers: Tiers, form: CallForm, args: tuple[Any, ...]) -> None:
        """Let the next calls of this kind take a generated path, if one can be made."""
        known = self._paths.setdefault(tiers, {})
        if form in known:
            return
        known[form] = None
        fast = known[form] = tiers.shortcut(form, tree.structure(args))
        if fast is not None and form.into:
            self._into_shortcuts = (fast, *self._into_shortcuts[: SHORTCUTS - 1])
        elif fast is not None:
            self._shortcuts = (fast, *self._shortcuts[: SHORTCUTS - 1])

    def _withdraw(self, tiers: Tiers | None = None) -> None:
        """Let go of the paths of a recording (None: of all), which hold its code."""
        paths = None if tiers is None else list(self._paths.get(tiers, {}).values())
        self._shortcuts = tuple(f for f in self._shortcuts if paths is not None and f not in paths)
        self._into_shortcuts = tuple(
            f for f in self._into_shortcuts if paths is not None and f not in paths
        )

"""The last tier of the call path: generated paths that a function tries before all else."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from archimedes import tree
from archimedes.function.execution.shortcuts import Shortcut, call_through
from archimedes.function.execution.tiers import CallForm, Tiers

__all__ = ["SHORTCUTS", "ShortcutHolder"]

#: How many kinds of calls of a function keep a generated path, and how many it remembers.
SHORTCUTS, REMEMBERED = 4, 256


class _Offer(NamedTuple):
    """The path of a kind of calls that was looked at, if it has one."""

    path: Shortcut | None
    function: weakref.ref[Any] | None


class ShortcutHolder:
    """A function with generated call paths of its recent kinds of calls, newest first.

    Such a path checks its arguments and returns NotImplemented for others, so that a call may try
    all of them before anything is looked at. ``_into_shortcuts`` are those with ``out=``.

    The newest one is what Python calls: ``__call__`` is a slot that holds it, which saves a
    function and its arguments between the caller and the path. It refers to its owner weakly: a
    strong reference would be a cycle, and native code would be kept until the next collection.
    """

    __slots__ = ("__call__", "_into_shortcuts", "_offered", "_shortcuts")

    def __init__(self) -> None:
        self._shortcuts: tuple[Callable[..., Any], ...] = ()
        self._into_shortcuts: tuple[Callable[..., Any], ...] = ()
        #: Kinds of calls that were looked at, by the number of their recording.
        self._offered: dict[tuple[int, CallForm], _Offer] = {}
        self._withdraw_all()

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Evaluate a call that the newest path does not take."""
        raise NotImplementedError

    def _offer(self, tiers: Tiers, form: CallForm, args: tuple[Any, ...]) -> None:
        """Let the next calls of this kind take a generated path, if one can be made."""
        key = (tiers.number, form)
        offer = self._offered.get(key)
        if offer is not None:
            if offer.path is None or offer.path.is_current:
                return
            self._remove([self._offered.pop(key)])
        if len(self._offered) >= REMEMBERED:  # recordings come and go
            self._offered.clear()
        path = tiers.shortcut(form, tree.structure(args))
        if path is None:
            self._offered[key] = _Offer(None, None)
            return
        fast = path.function()
        self._offered[key] = _Offer(path, weakref.ref(fast))
        if form.into:
            self._into_shortcuts = (fast, *self._into_shortcuts[: SHORTCUTS - 1])
        else:
            self._shortcuts = (fast, *self._shortcuts[: SHORTCUTS - 1])
            self._call_first(path.front(weakref.ref(self)))

    def _withdraw(self, tiers: Tiers) -> None:
        """Let go of the paths of a recording, which hold its code."""
        keys = [key for key in self._offered if key[0] == tiers.number]
        self._remove([self._offered.pop(key) for key in keys])

    def _remove(self, offers: list[_Offer]) -> None:
        gone = [offer.function() for offer in offers if offer.function is not None]
        self._into_shortcuts = tuple(f for f in self._into_shortcuts if f not in gone)
        rest = tuple(f for f in self._shortcuts if f not in gone)
        if rest[:1] != self._shortcuts[:1]:  # the one that is called first
            self._call_first(call_through(weakref.ref(self)))
        self._shortcuts = rest

    def _withdraw_all(self) -> None:
        """Let go of all paths."""
        self._shortcuts = self._into_shortcuts = ()
        self._offered.clear()
        self._call_first(call_through(weakref.ref(self)))

    def _call_first(self, path: Callable[..., Any]) -> None:
        # By the slot itself: a subclass may have a method __call__ of its own.
        ShortcutHolder.__dict__["__call__"].__set__(self, path)

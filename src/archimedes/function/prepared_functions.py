"""Functions recorded for the store: taken as they are, because they are looked up by content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archimedes.function.compiled import Compiled

__all__ = ["prepared_function"]


def prepared_function(
    function: Callable[..., Any],
    watch: Sequence[Any] = (),
    name: str | None = None,
    backend: str | None = None,
    loops_from: int | None = None,
) -> Compiled:
    """Compile what is kept in the store of recordings (``identity/store.py``).

    Whoever keeps it knows by the content of the user's functions when it is out of date, so that
    nothing is compared at each call. ``watch`` are functions of users that it calls itself, or
    the ``Current`` that holds them: they must not change state while they are recorded.
    """
    made = Compiled(
        function, name=name, backend=backend, loops_from=loops_from, freeze=True, watch=watch
    )
    made.lenient = False
    return made

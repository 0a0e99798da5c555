"""Compiled functions as methods: bound to their first argument."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from archimedes.graph import Graph, Statistics

if TYPE_CHECKING:
    from archimedes.function.checking import Check
    from archimedes.function.reporting import Report

__all__ = ["CompiledMethod"]


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class CompiledMethod(functools.partial, Generic[P, R]):
    """A compiled function bound to its first argument: what ``model.method`` gives."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, /, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
            """Call the function with its first argument in place."""

    @property
    def _compiled(self) -> Any:
        return self.func

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph used for these arguments."""
        return self._compiled.graph(*self.args, *args, **kwargs)

    def statistics(self, *args: Any, **kwargs: Any) -> Statistics:
        """Return figures about the graph used for these arguments."""
        return self._compiled.statistics(*self.args, *args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Compile for these arguments, time it, and return the figures."""
        return self._compiled.report(*self.args, *args, **kwargs)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Run the method as plain Python on these numbers, with its checks of values."""
        return self._compiled.check(*self.args, *args, **kwargs)

    def explain(self) -> str:
        """Say what was recorded and why, for all instances."""
        return self._compiled.explain()

"""Rates of states, which solvers integrate: their units are those of the state per second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.analysis.units.checking import UnitsCheck, UnitsReport
from archimedes.analysis.units.recording import pin
from archimedes.checks import is_traced
from archimedes.physical_units import parse_unit
from archimedes.symbolic import current_trace, lift, wrap

__all__ = ["check_rates", "check_update", "require_rates"]

_SECOND = parse_unit("s")


def require_rates(f: Callable[[Any, Any], Any], t: Any, x: Any) -> Any:
    """Return a vector with the units of a state, after requiring that its rates are per second.

    ``f(t, x)`` gives the rates of the elements of ``x``. The name of this function tells the
    propagation that the sum is such a requirement.
    """
    graph = current_trace().graph
    t = t if is_traced(t) else pin(float(t), _SECOND, wrap, graph)
    return lift(x) + f(t, x) * pin(1.0, _SECOND, wrap, graph)


def check_rates(
    func: Callable[..., Any],
    t: Any,
    x: Any,
    args: Sequence[Any] = (),
    static_argnames: str | Sequence[str] | None = None,
) -> UnitsReport:
    """Return the findings about the units of a model ``dx/dt = func(t, x, *args)``.

    Values that are traced, in a recording under way, are replaced by zeros of their shapes.
    """
    values = [tree.map(_stand_in, value) for value in (t, x, *args)]
    check = UnitsCheck(func, None, static_argnames)
    names = check.signature.positional
    if len(names) < 2:
        raise TypeError(f"the model must take time and state, func(t, x, ...), not {names}")
    check.rates_of = names[1]
    check.units = {names[0]: "s"}
    return check(*values)


def check_update(
    update: Callable[..., Any], values: Sequence[Any], keywords: dict[str, Any], alone: bool
) -> UnitsReport:
    """Return the findings about a sampled part ``update(t, x, u, *args)``, which returns its u.

    ``alone``: u is the memory of this part; else that of all parts.
    """
    check = UnitsCheck(update)
    names = check.signature.positional
    if len(names) > 2:
        check.units = {names[0]: "s"}
        check.like = names[2] if alone else None
    return check(*(tree.map(_stand_in, value) for value in values), **keywords)


def _stand_in(leaf: Any) -> Any:
    if not is_traced(leaf):
        return leaf
    zeros = np.zeros(np.shape(leaf), dtype=leaf.dtype)
    return zeros if zeros.ndim else zeros.item()

"""Units of models and of their sampled parts, checked before a solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.analysis.units.rates import check_rates, check_update
from archimedes.simulate.problem.argument_checks import check_args

if TYPE_CHECKING:
    from archimedes.simulate.problem.inputs import Sampled

__all__ = ["check_model_units"]


def check_model_units(
    func: Callable[..., Any],
    t_span: Sequence[float],
    x0: Any,
    args: Any,
    inputs: Callable[[Any], Any] | None,
    sampled: Sampled | Sequence[Sampled] | None,
    static_argnames: str | Sequence[str] | None = None,
    in_axes: Any = None,
) -> None:
    """Raise UnitsError if the derivative of a state has not the unit of the state per second.

    Arguments are those of ``solve_ode``.
    """
    t, args = float(t_span[0]), tuple(check_args(args))
    if in_axes is not None:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * (1 + len(args))
        x0, *rest = (_first(value, axis) for value, axis in zip((x0, *args), axes))
        args = tuple(rest)
    given = [] if inputs is None else [inputs(t)]
    several = isinstance(sampled, (list, tuple))
    parts: list[Sampled] = [] if sampled is None else [*sampled] if several else [sampled]  # type: ignore[misc,list-item]
    if parts:
        given.append(tuple(part.init for part in parts) if several else parts[0].init)
    check_rates(func, t, x0, (*given, *args), static_argnames).raise_if_any()
    for part in parts:
        keywords = {}
        if part.key is not None:
            keywords["key"] = part.key(*args) if callable(part.key) else part.key
        values = (t, x0, given[-1], *args)
        check_update(part.update, values, keywords, alone=not several).raise_if_any()


def _first(value: Any, axis: int | None) -> Any:
    """Return the first instance of a batch."""
    if axis is None:
        return value
    return tree.map(lambda leaf: np.take(np.asarray(leaf), 0, axis=axis), value)

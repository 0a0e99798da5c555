"""A model's rates and outputs as functions of some of its numbers, recorded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.operation.conditions import Condition
from archimedes.function import jac
from archimedes.function.identity.store import Current, form_of, prepared
from archimedes.function.prepared_functions import prepared_function

__all__ = ["Model", "ModelFunctions"]


@dataclass(frozen=True)
class ModelFunctions:
    """What is left of conditions, as a function of what is free; ``split`` is the way back.

    ``parts`` are the recorded functions, which all models of the same content share; what is not
    free (``start``) and the time are arguments of theirs.
    """

    parts: tuple[Any, Any]
    start: np.ndarray
    moving: np.ndarray
    unravel: Callable[[Any], Any]
    t: Any

    def misfit(self, zs: Any, aims: Any, args: Any) -> Any:
        """Return the numbers of the conditions less ``aims``; slacks follow the unknowns in zs."""
        return self.parts[0](zs, self.start, aims, self.t, args)

    def slopes(self, zs: Any, aims: Any, args: Any) -> Any:
        """Return the derivatives of ``misfit`` in zs."""
        return self.parts[1](zs, self.start, aims, self.t, args)

    def split(self, z: Any) -> Any:
        """Return x and u (or None) for numbers of what is free."""
        full = np.array(self.start)
        full[self.moving] = z
        return self.unravel(full)


class Model:
    """Functions of states and inputs, with or without the latter."""

    def __init__(
        self, dynamics: Any, outputs: Any, x: Any, u: Any, args: tuple[Any, ...], t: Any
    ) -> None:
        self.given, self.t, self.driven = (dynamics, outputs), float(t), u is not None
        self.form = (form_of((x, u)), form_of(args))
        numbers = tree.map(lambda leaf: np.asarray(leaf) * 1.0, (x, u if self.driven else ()))
        self._unravel = tree.ravel(numbers)[1]
        self._recorded = prepared("rates and outputs", self.given, self.form, self._functions)

    def _functions(self, current: Current) -> tuple[Any, ...]:
        def rates(t: Any, x: Any, u: Any, args: Any) -> Any:
            return current.functions[0](t, x, *((u,) if driven else ()), *args)

        def seen(t: Any, x: Any, u: Any, args: Any) -> Any:
            return current.functions[1](t, x, *((u,) if driven else ()), *args)

        driven = self.driven
        return tuple(
            prepared_function(call, (current,), call.__name__)
            for call, given in zip((rates, seen), self.given)
            if given is not None
        )

    def split(self, full: Any) -> tuple[Any, Any]:
        """Return x and u (or None) for all their numbers."""
        x, u = self._unravel(full)
        return x, u if self.driven else None

    def rates(self, x: Any, u: Any, args: Any) -> Any:
        """Return dx/dt."""
        return self._recorded[0](self.t, x, u, args)

    def seen(self, x: Any, u: Any, args: Any) -> Any:
        """Return the outputs."""
        return self._recorded[1](self.t, x, u, args)

    def functions(
        self, start: np.ndarray, moving: np.ndarray, wanted: Sequence[Condition]
    ) -> ModelFunctions:
        """Return what is left of conditions where the numbers at ``moving`` are free."""
        places = [c.place for c in wanted]
        loose = np.array([c.low < c.high for c in wanted])
        driven, unravel, count = self.driven, self._unravel, len(moving)
        recorded = self._recorded

        def misfit(zs: Any, start: Any, aims: Any, t: Any, args: Any) -> Any:
            full, goals = np.array(start), np.array(aims)
            full[moving] = zs[:count]
            goals[loose] = zs[count:]
            x, u = unravel(full)
            values = [call(t, x, u if driven else None, args) for call in recorded]
            return np.concatenate([tree.ravel(v)[0] * 1.0 for v in values])[places] - goals

        def make(current: Current) -> tuple[Any, Any]:
            made = prepared_function(misfit, name="misfit")
            return made, jac(made)

        settings = (self.form, tuple(moving.tolist()), tuple(places), tuple(loose.tolist()))
        parts = prepared("conditions", self.given, settings, make)
        return ModelFunctions(parts, start, moving, self.split, self.t)

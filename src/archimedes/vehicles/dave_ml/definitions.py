"""The parts of a DAVE-ML model: variables, check cases, and all that a file defines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.vehicles.dave_ml.expressions import Expression, Reference
from archimedes.vehicles.dave_ml.lookups import Lookup
from archimedes.xml_elements import Element

__all__ = ["Definitions", "Shot", "Signal", "Variable"]


@dataclass(frozen=True)
class Variable:
    """A signal of the model; `source` is what makes it, None for inputs and constants."""

    id: str
    name: str
    units: str
    initial: float | None
    least: float
    most: float
    roles: frozenset[str]
    sign: str
    axis_system: str
    description: str
    place: str
    source: Expression | Lookup | None = None

    @property
    def reads(self) -> dict[str, str]:
        """The variables it is made of, each with the place where that is said."""
        if isinstance(self.source, Lookup):
            return dict.fromkeys(self.source.variables, self.place)
        parts = () if self.source is None else self.source.walk()
        return {part.name: part.place for part in parts if isinstance(part, Reference)}

    def limit(self, x: Any) -> Any:
        """Hold a value within minValue and maxValue."""
        x = x if self.least == -np.inf else np.maximum(x, self.least)
        return x if self.most == np.inf else np.minimum(x, self.most)


@dataclass(frozen=True)
class Signal:
    """A value in check data; `name` is the name of a variable (`by_name`) or its varID."""

    name: str
    by_name: bool
    units: str | None
    value: float
    tolerance: float | None
    place: str


@dataclass(frozen=True)
class Shot:
    """One check case: what goes in, what comes out, and values in between."""

    name: str
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    internal: tuple[Signal, ...]
    place: str


@dataclass
class Definitions:
    """All that a file defines, and what was met on the way."""

    name: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    breakpoints: dict[str, tuple[float, ...]] = field(default_factory=dict)
    tables: dict[str, Element] = field(default_factory=dict)
    shots: list[Shot] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    approximated: list[str] = field(default_factory=list)
    tables_used: set[str] = field(default_factory=set)

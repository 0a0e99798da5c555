"""What a trim is given by name: what is free, within which bounds, and what is prescribed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.control.operation.named_numbers import NamedNumbers, entries_of

__all__ = ["Condition", "Known", "conditions_of", "limits_of", "moving_numbers"]


@dataclass(frozen=True)
class Condition:
    """A named number of rates or outputs, and where it should lie."""

    name: str
    place: int
    low: float
    high: float


class Known:
    """Names of states and inputs; where both have one, it needs its "x." or "u."."""

    def __init__(self, x: NamedNumbers, u: NamedNumbers) -> None:
        self.x, self.u, self.n = x, u, len(x.names)
        both = set(x.names) & set(u.names)
        self.full = tuple(
            f"{root}.{name}" if name in both else name
            for root, part in (("x", x), ("u", u))
            for name in part.names
        )

    def entries(self, wanted: Any, what: str) -> list[int]:
        """Return where names lie among states and inputs; "x" and "u" are all of them."""
        found: set[int] = set()
        for name in (wanted,) if isinstance(wanted, str) else wanted:
            for root, part, first in (("x", self.x, 0), ("u", self.u, self.n)):
                if name == root and name not in self.full:  # all states, or all inputs
                    found.update(range(first, first + len(part.names)))
                    break
                inside = name.removeprefix(f"{root}.")
                if inside != name:
                    found.update(first + k for k in entries_of([inside], part.names, what))
                    break
            else:
                found.update(entries_of([name], self.full, what))
        return sorted(found)


def moving_numbers(known: Known, free: Any, fixed: Any) -> np.ndarray:
    """Return where the unknowns lie among states and inputs."""
    every = range(len(known.full)) if free is None else known.entries(free, "free")
    held = known.entries(fixed, "fixed")
    moving = np.array([k for k in every if k not in held], dtype=int)
    if moving.size == 0:
        raise ValueError("trim: nothing is free; name fewer states and inputs in fixed")
    return moving


def limits_of(known: Known, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of all states and inputs, by their names."""
    low, high = np.full(len(known.full), -np.inf), np.full(len(known.full), np.inf)
    for name, pair in (bounds or {}).items():
        places = known.entries([name], "bounds")
        low[places], high[places] = _pair(pair, f"bounds[{name!r}]")
    return low, high


def _pair(given: Any, what: str) -> tuple[float, float]:
    pair = given if isinstance(given, (tuple, list)) else (given, given)
    values = np.asarray([np.nan if v is None else v for v in pair], dtype=float)
    if values.shape != (2,):
        raise ValueError(f"{what} must be a number or a pair (lower, upper), got {given!r}")
    low = -np.inf if pair[0] is None else float(values[0])
    high = np.inf if pair[1] is None else float(values[1])
    if not low <= high:
        raise ValueError(f"{what} is crossed or nan: lower {low}, upper {high}")
    return low, high


def conditions_of(known: Known, seen: NamedNumbers | None, rates: Any, targets: Any) -> Any:
    """Return the conditions on rates, then on outputs."""
    wanted: dict[int, tuple[float, float] | None] = dict.fromkeys(range(known.n), (0.0, 0.0))
    for name, value in (rates or {}).items():
        for k in known.entries([name], "rates"):
            if k >= known.n:
                raise ValueError(f"rates names {name!r}, which is an input: inputs have no rates")
            wanted[k] = None if value is None else _pair(value, f"rates[{name!r}]")
    found = [
        Condition(f"rate of {known.full[k]}", k, *edges)
        for k, edges in wanted.items()
        if edges is not None
    ]
    if targets and seen is None:
        raise ValueError("targets prescribes outputs: give the function outputs too")
    for name, value in (targets or {}).items():
        assert seen is not None
        for k in entries_of([name], seen.names, "targets"):
            low, high = _pair(value, f"targets[{name!r}]")
            found.append(Condition(seen.names[k], known.n + k, low, high))
    if not found:
        raise ValueError("trim: nothing is prescribed; give rates or targets")
    return found

"""Messages made columns of numbers: what readers of MCAP files and ROS bags share.

A message is nested data: mappings, objects with fields, lists, arrays, numbers. Its numbers are
named by their paths, ``pose.position.x`` or ``position[2]``. Texts are left out, as are lists of
more than `MOST_ELEMENTS` numbers, which are pictures and clouds of points. A number that a message
has not is nan.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from archimedes.interchange.logs.topics import Topic

#: Elements of the longest list that becomes columns, and columns of a topic.
MOST_ELEMENTS, MOST_COLUMNS = 256, 4096
#: How deep messages may be nested.
DEEPEST = 32


class Messages:
    """Messages of one topic, collected one by one."""

    def __init__(self, name: str, units: Mapping[str, str] | None = None) -> None:
        self.name, self.units = name, dict(units or {})
        self.times: list[float] = []
        self.columns: dict[str, list[float]] = {}
        self.full = False

    def add(self, time: float, message: Any) -> None:
        """Add a message with its time in s."""
        count = len(self.times)
        self.times.append(time)
        for path, value in numbers_in(message):
            if path not in self.columns and len(self.columns) >= MOST_COLUMNS:
                self.full = True
                continue
            column = self.columns.setdefault(path, [])
            column.extend([np.nan] * (count - len(column)))
            if len(column) == count:
                column.append(value)

    def topic(self) -> Topic:
        """Return the topic."""
        if self.full:
            what = f"the first {MOST_COLUMNS} numbers of its messages are read"
            warnings.warn(f"{self.name}: {what}", stacklevel=5)
        times = np.array(self.times, dtype=float)
        columns = {
            path: np.array(column + [np.nan] * (len(times) - len(column)))
            for path, column in self.columns.items()
        }
        units = {path: unit for path in columns if (unit := self.unit(path))}
        return Topic(self.name, times, columns, units)

    def unit(self, path: str) -> str:
        """Return the unit of a column: its own, or that of the list it is in."""
        return self.units.get(path) or self.units.get(path.partition("[")[0], "")


def numbers_in(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Yield path and value of each number in a message.

    >>> list(numbers_in({"pos": [1, 2.5], "name": "x", "ok": True}))
    [('pos[0]', 1.0), ('pos[1]', 2.5), ('ok', 1.0)]
    """
    if depth > DEEPEST:
        raise ValueError(f"messages are nested more than {DEEPEST} levels deep")
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        yield path or "value", as_float(value)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from numbers_in(part, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, (list, tuple, np.ndarray)):
        if len(value) <= MOST_ELEMENTS:
            for k, part in enumerate(value):
                yield from numbers_in(part, f"{path}[{k}]", depth + 1)
    elif value is not None and hasattr(value, "__dataclass_fields__"):
        for key in value.__dataclass_fields__:
            if not key.startswith("__"):
                part = getattr(value, key)
                yield from numbers_in(part, f"{path}.{key}" if path else key, depth + 1)


def as_float(value: Any) -> float:
    """Return a number as a float; whole numbers beyond its range are infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf

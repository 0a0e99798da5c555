"""What every reader of logs returns: topics, with times and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.display import brief, number, text_table

__all__ = ["Topic", "Topics", "as_columns", "scaled"]


@dataclass(frozen=True, repr=False)
class Topic:
    """The samples of one topic of a log.

    Parameters
    ----------
    name : str
        Name of the topic: ``"sensor_accel"``, ``"IMU[1]"``, ``"/imu/data"``.
    times : array (N,)
        Times in s, on a clock that all topics of the log share.
    columns : mapping
        Arrays (N,) of numbers by the names of their fields: ``"x"``, ``"xyz[2]"``,
        ``"angular_velocity.x"``.
    units : mapping, optional
        Units of those columns for which the log states one.

    Examples
    --------
    >>> import numpy as np
    >>> Topic("gyro", np.array([0.0, 0.1]), {"x": np.zeros(2)}, {"x": "rad/s"})
    gyro: 2 samples, 0 to 0.1 s, 10 Hz: x (rad/s)
    """

    name: str
    times: np.ndarray
    columns: Mapping[str, np.ndarray]
    units: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def rate(self) -> float:
        """Samples per second, by the median interval; nan with fewer than two samples."""
        step = float(np.median(np.diff(self.times))) if len(self) > 1 else 0.0
        return 1.0 / step if step > 0.0 else float("nan")

    def __repr__(self) -> str:
        names = [f"{c} ({u})" if (u := self.units.get(c)) else c for c in self.columns]
        text = f"{self.name}: {len(self)} samples"
        if len(self):
            text += f", {number(self.times[0])} to {number(self.times[-1])} s"
            text += f", {number(self.rate, 3)} Hz" if len(self) > 1 else ""
        return f"{text}: {', '.join(names)}"


class Topics(dict[str, Topic]):
    """The topics of a log by name; printed, a table of what there is.

    Examples
    --------
    >>> import numpy as np
    >>> Topics(gyro=Topic("gyro", np.array([0.0, 0.1]), {"x": np.zeros(2)}, {"x": "rad/s"}))
    topic  samples  from (s)  to (s)  rate (Hz)  columns
    gyro         2         0     0.1         10  x (rad/s)
    """

    def __repr__(self) -> str:
        rows = [["topic", "samples", "from (s)", "to (s)", "rate (Hz)", "columns"]]
        for topic in self.values():
            names = [f"{c} ({u})" if (u := topic.units.get(c)) else c for c in topic.columns]
            span = [number(t, 4) for t in topic.times[[0, -1]]] if len(topic) else ["", ""]
            rate = number(topic.rate, 3) if len(topic) > 1 else ""
            rows.append([topic.name, str(len(topic)), *span, rate, brief(", ".join(names))])
        return text_table(rows)


def as_columns(name: str, values: Any) -> dict[str, np.ndarray]:
    """Return samples of arrays (N, ...) as columns ``name[k]`` or ``name[i, j]``.

    >>> import numpy as np
    >>> sorted(as_columns("q", np.zeros((5, 2))))
    ['q[0]', 'q[1]']
    """
    values = np.asarray(values)
    if values.ndim == 1:
        return {name: values}
    places = np.ndindex(*values.shape[1:])
    return {f"{name}[{', '.join(map(str, k))}]": values[(slice(None), *k)] for k in places}


def scaled(values: np.ndarray, factor: float) -> np.ndarray:
    """Return values times a factor, by division where it is one over a whole number.

    That rounds once: 0.01 is no double, 100 is.

    >>> scaled(np.array([3.0, 7.0]), 0.01), 7.0 * 0.01
    (array([0.03, 0.07]), 0.07)
    """
    whole = round(1.0 / factor) if 1e-15 < factor < 1.0 else 0
    return values / whole if whole and abs(whole * factor - 1.0) < 1e-12 else values * factor

"""Controls of an interactive page: which number of a model a slider, switch or key moves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archimedes.checks import check_choice, check_type
from archimedes.display import Readable, for_reading
from archimedes.simulate.trajectory.columns import Column

__all__ = ["Control"]

#: Sliders that a page gets by itself.
MOST_SLIDERS = 12
KINDS = ("slider", "switch", "pulse")


@dataclass(frozen=True, eq=False, repr=False)
class Control(Readable):
    """How a reader moves one number of a model: an input, a parameter or a gain.

    Parameters
    ----------
    low : float, optional
        Value at the left end of the slider, or of a switch that is off. In the unit of the model.
    high : float, optional
        Value at the right end of the slider, or of a switch that is on.
    kind : {"slider", "switch", "pulse"}, optional
        A slider, a switch between `low` and `high`, or a button that plays `pulse`.
    label : str, optional
        What stands beside it. By default the name of what it moves.
    units : str, optional
        Unit of the number. By default that of the field of its struct. Angles in ``"rad"`` are
        shown in degrees.
    keys : str or sequence of str, optional
        Keys, as browsers name them (``"w"``, ``"ArrowUp"``): of a slider the one that lowers it and
        the one that raises it, of a switch or a pulse one. The space bar always pauses.
    axis : int, optional
        Axis of a gamepad that moves the slider; ``~axis`` for the opposite direction.
    button : int, optional
        Button of a gamepad for a switch or a pulse.
    returns : bool, optional
        Return to the first value when the key or the stick is let go. False by default.
    rate : float, optional
        Time in s in which a key moves the slider from end to end.
    pulse : sequence of (float, float), optional
        What a pulse plays: pairs of a duration in s of the model's time and the value during it.
        Then the first value comes back.

    Examples
    --------
    >>> from archimedes.viewer import Control
    >>> Control(-0.4, 0.4, units="rad", keys=("s", "w"), axis=1, returns=True).high
    0.4
    >>> Control(kind="pulse", keys="1", pulse=[(0.5, 0.1), (0.5, -0.1)]).keys
    ('1',)
    """

    low: float = 0.0
    high: float = 1.0
    kind: str = "slider"
    label: str = ""
    units: str | None = None
    keys: Any = ()
    axis: int | None = None
    button: int | None = None
    returns: bool = False
    rate: float = 1.5
    pulse: Sequence[tuple[float, float]] = ()

    def __post_init__(self) -> None:
        """Check the ends and the keys."""
        check_choice(self.kind, "Control: kind", KINDS)
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"Control: low must be below high, got {self.low!r} and {self.high!r}")
        keys = (self.keys,) if isinstance(self.keys, str) else tuple(self.keys)
        wanted = 2 if self.kind == "slider" else 1
        if keys and (len(keys) != wanted or " " in keys or len(set(keys)) < len(keys)):
            raise ValueError(
                f"Control: a {self.kind} has {wanted} key{'s' if wanted > 1 else ''}, not the "
                f"space bar, got {self.keys!r}"
            )
        if (self.kind == "pulse") != bool(self.pulse):
            raise ValueError(
                'Control: give kind="pulse" and pulse=[(seconds, value), ...] together'
            )
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise ValueError(f"Control: rate must be positive, in s, got {self.rate!r}")
        object.__setattr__(self, "keys", keys)


def describe_control(
    control: Control, name: str, value: float, targets: list[list[int]]
) -> dict[str, Any]:
    """Return what the page needs; `targets` are pairs of a model and a place in its row."""
    own = control.units or ""
    _, units = for_reading(np.array([control.low, control.high, value]), own)
    return {
        "name": name,
        "label": control.label or name.replace("_", " "),
        "units": units,
        "per": 1.0 if units == own else float(np.rad2deg(1.0)),
        "kind": control.kind,
        "low": float(control.low),
        "high": float(control.high),
        "value": value,
        "keys": list(control.keys),
        "axis": control.axis,
        "button": control.button,
        "returns": control.returns,
        "rate": float(control.rate),
        "pulse": [[float(seconds), float(level)] for seconds, level in control.pulse],
        "targets": targets,
    }


def as_control(given: Any, name: str) -> Control:
    """Return what stands for a control: a Control, a pair (low, high), or a bool for a switch."""
    if isinstance(given, Control):
        return given
    if isinstance(given, bool):
        return Control(kind="switch")
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return Control(float(given[0]), float(given[1]))
    raise TypeError(
        f"controls[{name!r}] must be (low, high), True for a switch, or a Control, got {given!r}"
    )


def choose_controls(
    controls: Mapping[str, Any] | None,
    columns: Mapping[str, tuple[int, Column]],
    values: np.ndarray,
    switches: Collection[int] = (),
) -> dict[str, tuple[int, Control]]:
    """Return controls by name with the place in the row that each moves.

    `columns` are the numbers that can be moved, by name; without `controls`, the first few of them
    have sliders over their limits, or over a range about their value; `switches` are places of
    bools.
    """
    if controls is None:
        controls = dict.fromkeys(list(columns)[:MOST_SLIDERS])
    check_type(controls, "controls", Mapping, "write controls={'throttle': (0.0, 1.0)}")
    chosen = {}
    for name, given in controls.items():
        column = name if name in columns else _by_ending(str(name), columns)
        k, about = columns[column]
        if given is None:
            control = Control(kind="switch") if k in switches else _over_range(about, values[k])
        else:
            control = as_control(given, name)
        if control.units is None:
            control = replace(control, units=about.units)
        _check_start(str(name), control, float(values[k]))
        chosen[str(name)] = (k, control)
    _check_keys(chosen)
    return chosen


def _check_start(name: str, control: Control, value: float) -> None:
    """Raise for a first value that the slider cannot show."""
    beyond = control.kind == "slider" and not control.low <= value <= control.high
    if beyond or not np.isfinite(value):
        raise ValueError(
            f"controls: {name!r} starts at {value:g}, outside its range from {control.low:g} to "
            f"{control.high:g}: give it a range with that value, controls={{{name!r}: (low, high)}}"
        )


def _check_keys(chosen: Mapping[str, tuple[int, Control]]) -> None:
    """Raise where two controls have the same key."""
    owners: dict[str, str] = {}
    for name, (_, control) in chosen.items():
        for key in control.keys:
            plain = key.lower() if len(key) == 1 else key
            if owners.setdefault(plain, name) != name:
                raise ValueError(f"controls: the key {key!r} moves {owners[plain]!r} and {name!r}")


def _by_ending(name: str, columns: Mapping[str, Any]) -> str:
    """Return the one column whose path ends in a name."""
    ends = [column for column in columns if column.endswith((f".{name}", f"[{name!r}]"))]
    if len(ends) != 1:
        what = "is ambiguous" if ends else "moves nothing"
        raise ValueError(
            f"controls: {name!r} {what}; inputs and parameters are {', '.join(ends or columns)}"
        )
    return ends[0]


def _over_range(column: Column, value: float) -> Control:
    """Return the slider of a number: over its limits, or from zero to twice its value."""
    if column.limits is not None:
        return Control(*column.limits)
    reach = 2.0 * float(value) if value else 1.0
    low, high = sorted((0.0 if value else -1.0, reach))
    return Control(low, high)

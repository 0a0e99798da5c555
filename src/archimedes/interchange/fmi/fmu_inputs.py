"""What users give an FMU by name: inputs over time, parameters and start values, all checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archimedes.interchange.fmi.description_reader import (
    DTYPES,
    FLOATS,
    FmuDescription,
    FmuVariable,
)
from archimedes.simulate import InputSeries

#: Causalities of what can be set before the simulation.
STARTS = ("parameter", "input", "local", "output")


def check_value(variable: FmuVariable, value: Any, what: str) -> Any:
    """Return a value for a variable, in its type; raise for one that it cannot take."""
    name = f"{what}[{variable.name!r}]"
    if variable.type == "String":
        if not isinstance(value, str) and not variable.shape:
            raise TypeError(f"{name} = {value!r} must be a text")
        return value
    if not variable.is_number:
        raise TypeError(f"{name}: variables of type {variable.type} cannot be set")
    array, dtype = np.asarray(value), np.dtype(DTYPES[variable.type])
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} = {value!r} must be a number (type {variable.type})")
    if array.shape != variable.shape:
        raise ValueError(f"{name} has shape {array.shape}, the FMU's variable {variable.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} = {value!r} must be finite")
    low, high = variable.limits
    if array.dtype.kind != "b" and ((array < low) | (array > high)).any():
        raise ValueError(f"{name} = {value!r} is outside its limits, {low:.6g} to {high:.6g}")
    whole = array.astype(dtype)
    if dtype.kind in "biu" and (whole != array).any():
        raise TypeError(f"{name} = {value!r} is no value of the type {variable.type}")
    return whole


def check_parameters(
    description: FmuDescription, values: Mapping[str, Any] | None
) -> list[tuple[FmuVariable, Any]]:
    """Return the variables to set before the simulation, with their values."""
    pairs = []
    for name, value in (values or {}).items():
        variable = _find(description, name, "parameters", description.named("parameter"))
        if variable.causality == "structuralParameter":
            raise ValueError(
                f"parameters[{name!r}] changes the sizes of arrays (a structural parameter): these "
                "keep the values of the file"
            )
        if variable.variability == "constant" or variable.causality not in STARTS:
            raise ValueError(f"parameters[{name!r}] cannot be set: it is a constant or calculated")
        if variable.initial == "calculated":
            raise ValueError(f"parameters[{name!r}] cannot be set: the FMU calculates it")
        pairs.append((variable, check_value(variable, value, "parameters")))
    return pairs


def _find(
    description: FmuDescription, name: str, what: str, choices: list[FmuVariable]
) -> FmuVariable:
    if name not in description.variables:
        names = [variable.name for variable in choices]
        shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise ValueError(
            f"{what}: {description.name} has no variable {name!r}; {what} are: {shown or 'none'}"
        )
    return description.variables[name]


def is_smooth(variable: FmuVariable) -> bool:
    """Return whether an input may change between events."""
    return variable.type in FLOATS and variable.variability == "continuous"


class FmuInputs:
    """The inputs of a simulation as functions of time.

    Parameters
    ----------
    description : FmuDescription
        The FMU.
    given : mapping, InputSeries or callable, optional
        By name a number, an `InputSeries` or a function of time; or one `InputSeries` or function
        that returns values by name.
    start : float, optional
        Time at which functions are asked first.
    """

    def __init__(self, description: FmuDescription, given: Any, start: float = 0.0) -> None:
        self.sources: dict[str, Any] = {}
        self.whole: Any = None
        if given is None:
            names: list[str] = []
        elif isinstance(given, Mapping):
            self.sources = {name: _source(value, name) for name, value in given.items()}
            names = list(given)
        elif callable(given):
            self.whole, values = given, given(start)
            if not isinstance(values, Mapping):
                raise TypeError(
                    f"inputs must return values by name, as in {{'force': 1.0}}, it returned "
                    f"{values!r}"
                )
            names = list(values)
        else:
            raise TypeError(
                f"inputs is a {type(given).__name__}: give values by name, {{'force': 1.0}}, each "
                "a number, a function of time or an arc.InputSeries"
            )
        choices = description.named("input")
        self.variables = [_find(description, name, "inputs", choices) for name in names]
        for variable in self.variables:
            if variable.causality != "input":
                raise ValueError(
                    f"inputs[{variable.name!r}] is a variable of the kind {variable.causality!r}; "
                    f"inputs are: {', '.join(v.name for v in choices) or 'none'}"
                )
        self.at(start)

    def check_discrete(self) -> None:
        """Refuse functions of time for inputs that change at events only."""
        for variable in self.variables:
            source = self.sources.get(variable.name, self.whole)
            if callable(source) and not isinstance(source, InputSeries) and not is_smooth(variable):
                raise TypeError(
                    f"inputs[{variable.name!r}] is discrete: in model exchange it changes only at "
                    "events, so give a number or an arc.InputSeries, whose samples are events"
                )

    def at(self, t: float) -> list[Any]:
        """Return the values at a time, in the order of the variables."""
        given = self.whole(t) if self.whole is not None else self.sources
        return [
            check_value(v, source(t) if callable(source) else source, "inputs")
            for v in self.variables
            for source in (given[v.name],)
        ]

    def held_from(self, t: float) -> Callable[[float], list[Any]]:
        """Return the values as a function of time, for a span from t without jumps inside.

        What is held between samples, and what is no real number, keeps its value at t.
        """
        now = self.at(t)
        if self.whole is not None:
            is_held = getattr(self.whole, "hold", "") == "zoh"
            moving = [not is_held and is_smooth(v) for v in self.variables]
        else:
            moving = [
                callable(self.sources[v.name])
                and getattr(self.sources[v.name], "hold", "") != "zoh"
                and is_smooth(v)
                for v in self.variables
            ]
        if not any(moving):
            return lambda time: now

        def values(time: float) -> list[Any]:
            return [new if m else old for new, old, m in zip(self.at(time), now, moving)]

        return values

    def jumps(self) -> np.ndarray:
        """Return the times at which inputs jump or bend, sorted."""
        every = [self.whole, *self.sources.values()]
        times = [series.t for series in every if isinstance(series, InputSeries)]
        return np.unique(np.concatenate([np.zeros(0), *times]))


def _source(value: Any, name: str) -> Any:
    if callable(value) or not isinstance(value, (Mapping, set, str)):
        return value
    raise TypeError(f"inputs[{name!r}] is a {type(value).__name__}: give a number or a function")

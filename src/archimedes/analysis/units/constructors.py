"""Structs that the checked function makes: their fields get the units that they declare.

While a check is recorded, a profile function of this thread looks at each new struct. A zero with
the unit of the field is added to each traced number in it, which says the unit, and where it was
said. The struct is a new one of the recorded function, and its values stay what they are.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection
from types import FrameType
from typing import Any

from archimedes import tree
from archimedes.analysis.units.declarations import field_units, read_units
from archimedes.analysis.units.recording import Declared, is_checking, pin
from archimedes.graph.dtypes import is_float
from archimedes.physical_units import Unit
from archimedes.symbolic import SymbolicArray, as_traced, current_trace, is_tracing, wrap

__all__ = ["declaring_units"]


class declaring_units:
    """Have structs that this thread makes inside the block say the units of their fields.

    ``states`` are classes whose instances may hold rates, with the units of the fields per second.
    """

    def __init__(self, states: Collection[type]) -> None:
        self.states = states
        self.count = 0

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        sys.setprofile(self._look)

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(self._before)

    def _look(self, frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event != "return" or code.co_name != "__init__" or not code.co_argcount:
            return
        value = frame.f_locals.get(code.co_varnames[0])
        cls: Any = type(value)
        if not tree.is_struct(cls) or not dataclasses.is_dataclass(cls) or not is_tracing():
            return
        names = [f.name for f in dataclasses.fields(cls)]
        if is_checking() and all(hasattr(value, name) for name in names):
            self._declare(value)

    def _declare(self, value: Any) -> None:
        cls = type(value)
        declared = field_units(value)
        if not declared:
            return
        self.count += 1
        may_be_rate = (
            cls in self.states or cls.__name__.endswith("State") or hasattr(cls, "kinematics")
        )
        for name, text in declared.items():
            number = as_traced(getattr(value, name))
            unit = read_units(text, f"{cls.__qualname__}.{name}")
            if not isinstance(unit, Unit):
                continue
            if type(number) is float and number != 0.0:
                object.__setattr__(value, name, pin(number, unit, wrap, current_trace().graph))
            elif isinstance(number, SymbolicArray) and is_float(number.code):
                short = cls.__qualname__.rpartition("<locals>.")[2]
                order = tuple(f.name for f in dataclasses.fields(value) if f.init)
                label = Declared(short, name, self.count, may_be_rate, order)
                zero = pin(0.0, unit, wrap, current_trace().graph, label)
                object.__setattr__(value, name, number + zero)

"""The arithmetics that a program is run in side by side: what its nodes mean in each of them.

float32 is what ``codegen(float_type=np.float32)`` computes (``graph/retype.py``): every float64
becomes float32, elementary functions are evaluated in float64 and rounded once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import DTYPES, F32, F64
from archimedes.graph.ops import BY_NAME, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run
from archimedes.graph.retype import retype
from archimedes.records import record


def _evaluate(region: Region, values: list[Any], run: Run) -> list[Any]:
    return region.evaluate(values, run)


@record
class Arithmetic:
    """What the nodes of a graph mean: ``functions`` by op code, constants, tables and regions.

    ``array`` converts arrays of float64 (scalars too), ``region`` the types inside a region;
    ``evaluate`` runs one. ``program`` is a graph that a backend runs for this arithmetic, None if
    there is none. ``eps`` is twice the largest relative error of a rounding.
    """

    name: str
    eps: float
    functions: Sequence[Callable[..., Any]]
    array: Callable[[Any], Any]
    region: Callable[[Region], Region]
    evaluate: Callable[[Region, list[Any], Run], list[Any]] = _evaluate
    program: Callable[[Graph], Graph] | None = None

    @property
    def digits(self) -> float:
        """Decimal digits of a number."""
        return -float(np.log10(self.eps / 2))

    def constant(self, value: Any, code: int) -> Any:
        """Return a constant of a dtype code."""
        scalar = DTYPES[code].type(value)
        return self.array(scalar) if code == F64 else scalar

    def table(self, table: np.ndarray) -> Any:
        """Return a constant table."""
        return self.array(table) if table.dtype == np.float64 else table


#: Operators on NumPy scalars are several times quicker than the ufuncs.
_QUICK = {name: getattr(operator, name) for name in ("add", "sub", "mul", "neg")}
_QUICK["div"] = operator.truediv


def _single(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(np.float32)[()]


def _double(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)[()]


def _narrow(dtype: int) -> int:
    return dtype | F32 if dtype & 3 == F64 else dtype


def _functions(**own: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the functions of all ops, some of which an arithmetic has of its own."""
    return tuple({**_QUICK, **own}.get(op.name, op.numpy) for op in TABLE)


_bits: Any = BY_NAME["bits"].numpy
_from_bits: Any = BY_NAME["from_bits"].numpy

SINGLE = Arithmetic(
    name="float32",
    eps=2.0**-23,
    functions=_functions(
        f64=_single,
        f32=_single,
        bits=lambda x: _bits(_double(x)),
        from_bits=lambda i: _single(_from_bits(i)),
    ),
    array=_single,
    region=lambda region: region.retype(lambda body: body, _narrow),
    program=retype,
)

DOUBLE = Arithmetic(
    name="float64",
    eps=2.0**-52,
    functions=_functions(),
    array=_double,
    region=lambda region: region,
    program=lambda graph: graph,
)

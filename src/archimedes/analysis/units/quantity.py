"""Numbers given in any unit: SI values that a check knows the unit of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.analysis.units.recording import is_checking, pin, remember
from archimedes.checks import is_traced
from archimedes.errors import UnitsError
from archimedes.physical_units import Unit, parse_unit
from archimedes.symbolic import current_trace, is_tracing, wrap

if TYPE_CHECKING:
    from archimedes.typing import ArrayLike

__all__ = ["declare", "quantity"]


def quantity(value: ArrayLike, unit: str) -> Any:
    """Return a number or an array in SI units, given in any unit.

    The result is a plain float or array. :func:`check_units` knows its unit: of one made inside the
    checked function through all that is computed of it, of one made outside (a module's constant,
    a field of a struct) where it is used as it is. What is computed of the latter outside is a
    plain number, whose unit is what its use needs.

    Parameters
    ----------
    value : float or array_like
        The number, or an array of any shape. Values of a function that is being recorded are
        converted too.
    unit : str
        Its unit, such as ``"ft"``, ``"lbf s"``, ``"deg/s"``. ``"degC"`` and ``"degF"`` alone are
        temperatures, converted to kelvin; in products they are differences.

    Returns
    -------
    float or array
        The value in the SI unit.

    Raises
    ------
    UnitsError
        The unit is not known.

    Examples
    --------
    >>> import archimedes as arc
    >>> arc.quantity(100.0, "ft"), arc.quantity(20.0, "degC")
    (30.48, 293.15)
    """
    known = parse_unit(unit)
    offset = known.offset
    if is_traced(value):
        return _convert_traced(value, known, offset)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise UnitsError(f"quantity: value must be a number or an array of numbers, got {value!r}")
    if array.ndim:
        result: Any = array * known.scale + offset if offset else array * known.scale
    else:
        result = float(array) * known.scale + offset if offset else float(array) * known.scale
    if is_checking() and is_tracing():
        return pin(result, known.si, wrap, current_trace().graph)
    remember(result, known.si)
    return result


def _convert_traced(value: Any, unit: Unit, offset: float) -> Any:
    if not is_checking():
        return value * unit.scale + offset if offset else value * unit.scale
    graph = current_trace().graph
    # Both the value and the result have units: a sum with a zero of the unit says the second.
    factor = pin(unit.scale, unit.si / unit, wrap, graph)
    return value * factor + pin(offset, unit.si, wrap, graph)


def declare(value: Any, unit: str) -> Any:
    """Return a value as it is; a check of units learns the unit of a traced one.

    For what comes out of tables and fits, whose numbers have no units in the source.

    Parameters
    ----------
    value : float or array
        In the SI unit of `unit`.
    unit : str
        Its unit.
    """
    if not is_checking() or not is_traced(value):
        return value
    return value + pin(0.0, parse_unit(unit), wrap, current_trace().graph)

"""How names, units and numbers are written for people: axes, tables and printed results.

One rule for everything that the package returns: ``print(result)`` is short, at most `LINES` lines
of `COLUMNS` characters, and ``print(result.report())`` is complete. Data stay in SI units; angles
are turned into degrees where a person reads them.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["COLUMNS", "LINES", "Readable", "axis_label", "brief", "for_reading", "text_table"]

#: What a printed result takes at most.
LINES, COLUMNS = 24, 100
#: Units of angles, and what a person reads instead.
DEGREES = {"rad": "deg", "rad/s": "deg/s", "rad/s^2": "deg/s^2"}
#: Angular velocities above this, in rad/s, are those of shafts and rotors and stay as they are.
SHAFT_SPEED = 100.0
#: Significant digits of a number in print.
DIGITS = 6

LONG_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?(?!\w)")


def axis_label(name: str, units: str = "") -> str:
    """Return what stands on an axis or above a column: the name, and the unit in parentheses.

    >>> axis_label("time", "s"), axis_label("runs")
    ('time (s)', 'runs')
    """
    return f"{name} ({units})" if units else name


def for_reading(values: Any, units: str) -> tuple[Any, str]:
    """Return values and their unit as a person reads them: angles in degrees.

    Angular velocities above 100 rad/s are those of shafts and rotors: they stay in rad/s.

    >>> for_reading(np.pi, "rad"), for_reading(2.0, "m")
    ((np.float64(180.0), 'deg'), (2.0, 'm'))
    """
    shown = DEGREES.get(units)
    if shown is None:
        return values, units
    if getattr(values, "holds_traced_values", False):
        return np.rad2deg(values), shown
    numbers = np.asarray(values, dtype=float)
    finite = np.abs(numbers[np.isfinite(numbers)])
    if units != "rad" and finite.size and finite.max() > SHAFT_SPEED:
        return values, units
    return np.rad2deg(numbers)[()], shown


def number(value: Any, digits: int = DIGITS) -> str:
    """Return a number with few significant digits; anything else as text.

    >>> number(1.0 / 3.0), number(1500000.0), number(7), number(-0.0)
    ('0.333333', '1.5e+06', '7', '0')
    """
    if isinstance(value, (float, np.floating)):
        return f"{value + 0.0:.{digits}g}"
    return str(value)


def brief(value: Any, width: int = 76) -> str:
    """Return any value in one line: few digits, shapes of large arrays, fields of large structs.

    >>> brief(np.array([1.0, 2.0 / 3.0]))
    '[1. 0.66667]'
    >>> brief({"a": np.arange(1000.0), "b": 1.0 / 3.0})
    "{'a': array([ 0., 1., ..., 998., 999.]), 'b': 0.333333}"
    >>> brief(np.zeros((40, 3)))
    'array (40, 3), 0 to 0'
    >>> brief(np.array([1.0, 4e-17]))
    '[1. 0.]'
    """
    if callable(value) and not isinstance(value, np.ndarray) and not field_names(value):
        return f"function {getattr(value, '__qualname__', type(value).__name__)}"
    if isinstance(value, (float, np.floating)):
        return number(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        value = without_noise(value)
    # "1.25": numbers of NumPy without their type.
    plain: Any = {"legacy": "1.25", "linewidth": 10_000}
    with np.printoptions(precision=5, threshold=12, edgeitems=2, **plain):
        lines = str(value) if isinstance(value, (str, np.ndarray)) else repr(value)
    text = LONG_NUMBER.sub(lambda found: shorten_number(found[0]), " ".join(lines.split()))
    if isinstance(value, np.ndarray) and (value.size > 12 or len(text) > width):
        return describe_array(value)
    if field_names(value) and (len(text) > width or "\n" in lines):
        text = f"{short_name(type(value))}({', '.join(field_names(value))})"
    return text if len(text) <= width else text[: width - 4].rstrip() + " ..."


def field_names(value: Any) -> list[str]:
    """Return the names of the fields of a dataclass or named tuple that are shown."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [f.name for f in dataclasses.fields(value) if f.repr]
    return list(getattr(value, "_fields", ()))


def short_name(cls: type) -> str:
    """Return the qualified name of a class, without the function it may be defined in."""
    return cls.__qualname__.rpartition("<locals>.")[2]


def shorten_number(text: str) -> str:
    """Return a number in print with at most `DIGITS` significant digits."""
    digits = text.split("e")[0].replace(".", "").lstrip("-0")
    return number(float(text)) if len(digits) > DIGITS else text


def describe_array(array: np.ndarray) -> str:
    """Return the shape of an array and the range of its values.

    >>> describe_array(np.array([[1.0, np.nan], [2.0, 3.0]]))
    'array (2, 2), 1 to 3, 1 nan'
    """
    text = f"array {array.shape}"
    if array.dtype.kind not in "iuf" or not array.size:
        return text if array.size else f"{text}, empty"
    known = array[~np.isnan(array)]
    if known.size:
        text += f", {number(known.min())} to {number(known.max())}"
    missing = array.size - known.size
    return f"{text}, {missing} nan" if missing else text


def without_noise(values: Any, scale: float | None = None) -> np.ndarray:
    """Return numbers with zero for what is only rounding beside the largest of them.

    >>> without_noise([2.0, -3e-16])
    array([2., 0.])
    """
    numbers = np.asarray(values, dtype=float)
    finite = np.abs(numbers[np.isfinite(numbers)])
    size = finite.max(initial=0.0) if scale is None else scale
    return np.where(np.abs(numbers) < 1e-12 * size, 0.0, numbers)


def digits_for(values: Any, spread: float, least: int = 5, most: int = 10) -> int:
    """Return how many significant digits show a spread of values with two digits of its own.

    >>> digits_for([1000.0], 0.01), digits_for([2.0], 0.5)
    (7, 5)
    """
    size = np.max(np.abs(values), initial=0.0, where=np.isfinite(values))
    if not (np.isfinite(spread) and spread > 0.0 and size > 0.0):
        return least
    return int(np.clip(np.ceil(np.log10(size / spread)) + 2, least, most))


def text_table(rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return rows of cells as aligned lines; the first `left` columns are flush left.

    >>> print(text_table([("name", "value"), ("mass", "1.5"), ("a", "-20")]))
    name  value
    mass    1.5
    a       -20
    """
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in table
    )


def html_table(caption: str, rows: Sequence[Sequence[str]], remark: str = "") -> str:
    """Return a table for notebooks, its first row the heading.

    >>> html_table("a < b", [["name"], ["x"]])
    '<table><caption>a &lt; b</caption><tr><th>name</th></tr><tr><td>x</td></tr></table>'
    """
    import html  # slow to import, and needed in notebooks only

    def line(tag: str, cells: Sequence[str]) -> str:
        inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    lines = [line("th", rows[0]), *(line("td", row) for row in rows[1:])]
    if remark:
        lines.append(f'<tr><td colspan="{len(rows[0])}">{html.escape(remark)}</td></tr>')
    return f"<table><caption>{html.escape(caption)}</caption>{''.join(lines)}</table>"


def named_lines(entries: Iterable[tuple[str, str]]) -> str:
    """Return a line ``name: text`` for each entry, aligned at the colon as SciPy's results are.

    >>> print(named_lines([("t", "0 to 1"), ("message", "done")]))
          t: 0 to 1
    message: done
    """
    table = list(entries)
    width = max((len(name) for name, _ in table), default=0)
    indent = "\n" + " " * (width + 2)
    return "\n".join(f"{name:>{width}}: {indent.join(text.splitlines())}" for name, text in table)


def summary_text(value: Any) -> str:
    """Return the text of a result in a few lines, one for each field."""
    return field_lines(value, brief, LINES)


def full_text(value: Any) -> str:
    """Return everything as text; ``print`` of the result itself is a summary."""
    return field_lines(value, in_full)


def field_lines(value: Any, write: Callable[[Any], str], most: int | None = None) -> str:
    """Return the name of a result, and a line for each of its fields, with units."""
    fields = getattr(value, "__dataclass_fields__", {})
    entries = []
    for name in field_names(value):
        units = fields[name].metadata.get("units", "") if name in fields else ""
        part, units = readable(getattr(value, name), units)
        text = wrap(part, COLUMNS - 20) if isinstance(part, str) else write(part)
        entries.append((name, f"{text} {units}".rstrip()))
    if most is not None and len(entries) > most - 1:
        entries = [*entries[: most - 2], ("...", f"{len(entries) - most + 2} more")]
    return f"{short_name(type(value))}\n{textwrap.indent(named_lines(entries), '  ')}"


def wrap(text: str, width: int = COLUMNS, most: int = 5) -> str:
    """Return a message in lines of a width; what a person is to do is not cut off."""
    return textwrap.fill(text, width, max_lines=most, placeholder=" ...")


def readable(value: Any, units: str) -> tuple[Any, str]:
    """Return a field for reading: numbers in units for people, anything else without a unit."""
    if isinstance(value, (float, int, np.number)) or (
        isinstance(value, np.ndarray) and value.dtype.kind in "iuf"
    ):
        return for_reading(value, units)
    return value, ""


def in_full(value: Any) -> str:
    """Return a value with all its numbers, in few digits."""
    if field_names(value):
        return full_text(value)
    if callable(value) or isinstance(value, (float, np.floating)):
        return brief(value)
    plain: Any = {"legacy": "1.25", "linewidth": COLUMNS - 20}
    with np.printoptions(precision=DIGITS, threshold=100_000, **plain):
        text = str(value)
    if isinstance(value, (np.ndarray, str)):
        return text
    return LONG_NUMBER.sub(lambda found: shorten_number(found[0]), text)


class Readable:
    """What results have in common in print: ``print(x)`` is short, ``x.report()`` complete.

    Both list the fields of the dataclass, unless the class does it otherwise.
    Subclasses are structs, or dataclasses with ``repr=False``.

    >>> @dataclasses.dataclass(repr=False)
    ... class Result(Readable):
    ...     x: np.ndarray
    ...     fun: float
    >>> Result(np.arange(100.0), 1.0 / 3.0)
    Result
        x: array (100,), 0 to 99
      fun: 0.333333
    """

    __repr__ = summary_text

    def report(self) -> str:
        """Return everything as text; ``print`` of the result itself is a summary."""
        return full_text(self)

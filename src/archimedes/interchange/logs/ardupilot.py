"""Logs of ArduPilot: dataflash files (.bin), which describe themselves.

A message is the bytes A3 95, its type, and a body whose format a message FMT gives: name, size,
format characters, labels. UNIT and MULT list units and multipliers, FMTU assigns them to fields.
Source: ArduPilot's developer documentation, "Logging" and "Adding a new log message". Values are
multiplied, so that units have no prefix; angles stay in degrees. Times are seconds since boot.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from archimedes.interchange.logs.topics import Topic, as_columns, scaled

__all__ = ["read_topics"]

HEAD = b"\xa3\x95"
#: Format characters: type, and what the number is multiplied by. None: text.
CHARACTERS: dict[str, tuple[str, float | None]] = {
    "b": ("<i1", 1.0),
    "B": ("<u1", 1.0),
    "h": ("<i2", 1.0),
    "H": ("<u2", 1.0),
    "i": ("<i4", 1.0),
    "I": ("<u4", 1.0),
    "q": ("<i8", 1.0),
    "Q": ("<u8", 1.0),
    "g": ("<f2", 1.0),
    "f": ("<f4", 1.0),
    "d": ("<f8", 1.0),
    "M": ("<u1", 1.0),
    "a": ("(32,)<i2", 1.0),
    "c": ("<i2", 1e-2),
    "C": ("<u2", 1e-2),
    "e": ("<i4", 1e-2),
    "E": ("<u4", 1e-2),
    "L": ("<i4", 1e-7),
    "n": ("S4", None),
    "N": ("S16", None),
    "Z": ("S64", None),
}
#: The message that describes messages: its type, and its format.
FMT_TYPE = 128
#: Fields with the time, and how many of its units are a second.
CLOCKS = {"TimeUS": 1e6, "TimeMS": 1e3}
#: Units as the package writes them.
UNITS = {"m/s/s": "m/s^2", "deg/s/s": "deg/s^2", "UNKNOWN": "", "instance": ""}


class Format(NamedTuple):
    """What a message FMT says."""

    name: str
    size: int
    characters: str
    labels: tuple[str, ...]

    @property
    def dtype(self) -> np.dtype:
        """The whole message, its head included."""
        fields = [(f"{k}", CHARACTERS[c][0]) for k, c in enumerate(self.characters)]
        return np.dtype([("head", "V3"), *fields])


FMT = Format("FMT", 89, "BBnNZ", ("Type", "Length", "Name", "Format", "Columns"))


def read_topics(path: Path, names: Collection[str] | None = None) -> dict[str, Topic]:
    """Return topics of a dataflash log; instances but the first are named ``IMU[1]``."""
    data = path.read_bytes()
    formats, offsets, damaged = _scan(data)
    if len(formats) < 2:
        raise ValueError(f"{path}: not a dataflash log of ArduPilot: no message FMT describes it")
    if damaged:
        warnings.warn(f"{path}: {damaged} bytes of the log are damaged and left out", stacklevel=4)
    tables = {}
    for kind, form in formats.items():
        wanted = (
            names is None
            or form.name in ("UNIT", "MULT", "FMTU")
            or any(name.partition("[")[0] == form.name for name in names)
        )
        if wanted and offsets[kind]:
            tables[kind] = _gather(data, offsets[kind], form)
    units, factors, instances = _units(formats, tables)
    topics = {}
    for kind, table in tables.items():
        form = formats[kind]
        columns, column_units = {}, {}
        for k, (label, character) in enumerate(zip(form.labels, form.characters)):
            own = CHARACTERS[character][1]
            if own is None:
                continue
            values = table[f"{k}"].astype(np.float64)
            values = scaled(values, factors.get((kind, k), 1.0) if own == 1.0 else own)
            for name, column in as_columns(label, values).items():
                columns[name] = column
                if unit := units.get((kind, k), ""):
                    column_units[name] = unit
        clock = next((key for key in CLOCKS if key in columns), None)
        if clock is None:
            continue  # it describes the log
        times = columns.pop(clock)
        column_units.pop(clock, None)
        if (kind, form.labels.index(clock)) not in factors:
            times = times / CLOCKS[clock]
        which = columns.get(form.labels[instances[kind]]) if kind in instances else None
        for instance in [0.0] if which is None else np.unique(which):
            rows = slice(None) if which is None else which == instance
            name = f"{form.name}[{int(instance)}]" if instance else form.name
            part = {key: values[rows] for key, values in columns.items()}
            topics[name] = Topic(name, times[rows], part, column_units)
    return topics


def _scan(data: bytes) -> tuple[dict[int, Format], dict[int, list[int]], int]:
    """Return formats by type, where messages of each type begin, and how many bytes are damaged."""
    formats: dict[int, Format] = {FMT_TYPE: FMT}
    sizes: dict[int, int] = {FMT_TYPE: FMT.size}
    offsets: dict[int, list[int]] = {FMT_TYPE: []}
    at, end, damaged = 0, len(data), 0
    while at + 3 <= end:
        kind = data[at + 2]
        size = sizes.get(kind, 0)
        if data[at : at + 2] != HEAD or not size or at + size > end:
            next_head = data.find(HEAD, at + 1)
            next_head = end if next_head < 0 else next_head
            damaged += next_head - at
            at = next_head
            continue
        if kind == FMT_TYPE:
            described, form = _format(data[at : at + size])
            if form is not None and described not in formats:
                formats[described], sizes[described], offsets[described] = form, form.size, []
        offsets[kind].append(at)
        at += size
    return formats, offsets, damaged + max(end - at, 0)


def _format(message: bytes) -> tuple[int, Format | None]:
    """Return the type that a message FMT describes, and its format; None where it is damaged."""
    kind, size = message[3], message[4]
    name, characters, labels = (
        message[a:b].split(b"\0")[0].decode("ascii", "replace")
        for a, b in ((5, 9), (9, 25), (25, 89))
    )
    form = Format(name, size, characters, tuple(labels.split(",")) if labels else ())
    known = all(c in CHARACTERS for c in characters) and len(form.labels) == len(characters)
    return kind, form if known and form.dtype.itemsize == size and name else None


def _gather(data: bytes, offsets: list[int], form: Format) -> np.ndarray:
    """Return messages as an array of structs."""
    rows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), form.size)
    return rows[np.asarray(offsets)].view(form.dtype)[:, 0]


def _units(
    formats: dict[int, Format], tables: dict[int, np.ndarray]
) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], float], dict[int, int]]:
    """Return unit and multiplier by type and field, and the field that tells instances apart."""
    by_name = {formats[kind].name: (formats[kind], table) for kind, table in tables.items()}

    def column(name: str, label: str) -> list:
        if name not in by_name or label not in by_name[name][0].labels:
            return []
        form, table = by_name[name]
        return table[f"{form.labels.index(label)}"].tolist()

    unit_of = {
        chr(key & 0xFF): text.decode("utf-8", "replace")
        for key, text in zip(column("UNIT", "Id"), column("UNIT", "Label"))
    }
    factor_of = {
        chr(key & 0xFF): float(value)
        for key, value in zip(column("MULT", "Id"), column("MULT", "Mult"))
    }
    units, factors, instances = {}, {}, {}
    rows = zip(column("FMTU", "FmtType"), column("FMTU", "UnitIds"), column("FMTU", "MultIds"))
    for kind, unit_ids, factor_ids in rows:
        for k, (u, f) in enumerate(zip(unit_ids.decode("latin-1"), factor_ids.decode("latin-1"))):
            if u == "#":
                instances[kind] = k
            elif unit_of.get(u):
                units[kind, k] = UNITS.get(unit_of[u], unit_of[u])
            factor = factor_of.get(f, 0.0)
            if np.isfinite(factor) and factor > 0.0:
                factors[kind, k] = factor
    instances = {k: at for k, at in instances.items() if k in formats and _numeric(formats[k], at)}
    return units, factors, instances


def _numeric(form: Format, k: int) -> bool:
    return k < len(form.characters) and form.characters[k] in "bBhHiIM"

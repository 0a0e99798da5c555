"""Telemetry as ground stations write it (.tlog): MAVLink packets, each with a time.

Eight bytes, the time of reception in microseconds since 1970 (big-endian), precede each packet.
Packets are decoded by pymavlink, in the dialect of ArduPilot, which contains the common one. Units
come from the definitions of the messages; prefixes are multiplied out, angles stay in degrees where
they are. Times are seconds since the first packet.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.interchange.logs.topics import Topic, as_columns, scaled
from archimedes.simulate.trajectory.exports import require

__all__ = ["read_topics"]

#: First bytes of packets of MAVLink 1 and 2, and how many bytes each has besides its payload.
SIZES = {0xFE: 8, 0xFD: 12}
SIGNED, SIGNATURE = 1, 13
#: Units of the definitions: as the package writes them, and what one is of those.
UNITS = {
    "degE7": ("deg", 1e-7),
    "degE5": ("deg", 1e-5),
    "cdeg": ("deg", 1e-2),
    "ddeg": ("deg", 1e-1),
    "cdeg/s": ("deg/s", 1e-2),
    "mrad/s": ("rad/s", 1e-3),
    "m/s/s": ("m/s^2", 1.0),
    "mG": ("m/s^2", 9.80665e-3),
    "dm/s": ("m/s", 1e-1),
    "cm/s": ("m/s", 1e-2),
    "mm/s": ("m/s", 1e-3),
    "dm": ("m", 1e-1),
    "cm": ("m", 1e-2),
    "mm": ("m", 1e-3),
    "us": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "ds": ("s", 1e-1),
    "cs": ("s", 1e-2),
    "mV": ("V", 1e-3),
    "cV": ("V", 1e-2),
    "mA": ("A", 1e-3),
    "cA": ("A", 1e-2),
    "hPa": ("Pa", 1e2),
    "gauss": ("T", 1e-4),
    "mgauss": ("T", 1e-7),
    "cdegC": ("degC", 1e-2),
    "c%": ("%", 1e-2),
    "d%": ("%", 1e-1),
}


def read_topics(path: Path, names: Collection[str] | None = None) -> dict[str, Topic]:
    """Return topics of a telemetry log, named by message: ``ATTITUDE``.

    Where several systems send one, it is ``ATTITUDE[1:1]``: system and component. Instances but the
    first (batteries, motors) have a number too: ``BATTERY_STATUS[1]``.
    """
    mavlink = require("pymavlink.dialects.v20.ardupilotmega", "logs", "reading .tlog files")
    chosen = None if names is None else {name.partition("[")[0] for name in names}
    found, damaged = _scan(path, mavlink, chosen)
    if damaged:
        warnings.warn(f"{path}: {damaged} bytes of the log are damaged and left out", stacklevel=4)
    start = min((times[0] for times, _ in found.values()), default=0)
    sources = defaultdict(set)
    for kind, source, _ in found:
        sources[kind].add(source)
    topics = {}
    for (kind, source, instance), (stamps, messages) in found.items():
        name = kind if len(sources[kind]) == 1 else f"{kind}[{source[0]}:{source[1]}]"
        name += f"[{instance}]" if instance else ""
        times = (np.array(stamps, dtype=np.int64) - start) / 1e6
        topics[name] = Topic(name, times, *_columns(messages))
    return topics


def _columns(messages: list[Any]) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the numbers of messages of one kind by field, and their units."""
    columns, units = {}, {}
    for field in messages[0].fieldnames:
        values = [getattr(message, field) for message in messages]
        if isinstance(values[0], (str, bytes)):
            continue
        unit = messages[0].fieldunits_by_name.get(field, "")
        unit, factor = UNITS.get(unit, (unit, 1.0))
        array = scaled(np.array(values, dtype=np.float64), factor)
        for name, column in as_columns(field, array).items():
            columns[name] = column
            if unit:
                units[name] = unit
    return columns, units


def _scan(path: Path, mavlink: Any, chosen: set[str] | None) -> tuple[dict[Any, Any], int]:
    """Return times and messages by name, source and instance, and how many bytes are damaged."""
    data, decoder = path.read_bytes(), mavlink.MAVLink(None)
    found: dict[Any, tuple[list[int], list[Any]]] = {}
    at, end, damaged, valid = 0, len(data), 0, 0
    while at + 8 < end:
        size = _size(data, at + 8)
        message = None
        if size and at + 8 + size <= end and _identity(data, at + 8) in mavlink.mavlink_map:
            try:
                message = decoder.decode(bytearray(data[at + 8 : at + 8 + size]))
            except mavlink.MAVError:
                message = None
        if message is None:
            at, damaged = at + 1, damaged + 1
            continue
        stamp = int.from_bytes(data[at : at + 8], "big")
        at, valid = at + 8 + size, valid + 1
        kind = message.get_type()
        if chosen is not None and kind not in chosen:
            continue
        source = (message.get_srcSystem(), message.get_srcComponent())
        label = message.instance_field
        instance = getattr(message, label) if label else 0
        instance = int(instance) if isinstance(instance, (int, float)) else 0
        times, messages = found.setdefault((kind, source, instance), ([], []))
        times.append(stamp)
        messages.append(message)
    if not valid:
        raise ValueError(f"{path}: not a telemetry log: no packet of MAVLink in it")
    return found, damaged + end - at


def _size(data: bytes, at: int) -> int:
    """Return how long the packet is that begins here, 0 if none does."""
    size = SIZES.get(data[at], 0)
    if not size or at + 3 > len(data):
        return 0
    signed = data[at] == 0xFD and data[at + 2] & SIGNED
    return size + data[at + 1] + (SIGNATURE if signed else 0)


def _identity(data: bytes, at: int) -> int:
    """Return the number of the message in a packet, for a quick no where none is."""
    if data[at] == 0xFE:
        return data[at + 5]
    return int.from_bytes(data[at + 7 : at + 10], "little")

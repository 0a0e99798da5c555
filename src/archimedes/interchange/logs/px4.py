"""Logs of PX4: ULog files, read by pyulog.

Format: https://docs.px4.io/main/en/dev_log/ulog_file_format.html. Times are seconds since boot. The
format has no units; those of PX4's messages are in the comments of its message files.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from pathlib import Path

import numpy as np

from archimedes.interchange.logs.topics import Topic
from archimedes.simulate.trajectory.exports import require

__all__ = ["read_topics"]

#: A message has at most this many bytes, by the two bytes that state its size.
MOST_BYTES = 65535
#: Fields of a message: type, number of elements, name.
FIELD = re.compile(r"(\w+)(?:\[(\d{1,6})\])? ([\w.]+)")
SIZES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4}
SIZES |= {"int64_t": 8, "uint64_t": 8, "float": 4, "double": 8, "bool": 1, "char": 1}


def read_topics(path: Path, names: Collection[str] | None = None) -> dict[str, Topic]:
    """Return topics of a ULog file; instances but the first are named ``sensor_accel[1]``."""
    pyulog = require("pyulog", "logs", "reading .ulg files")
    _check_formats(path)
    chosen = None if names is None else list({re.sub(r"\[\d+\]$", "", name) for name in names})
    with path.open("rb") as file:
        try:
            log = pyulog.ULog(file, chosen)
        except Exception as error:  # of any kind, from the bytes of a damaged file
            raise ValueError(f"{path}: not a ULog file, or damaged: {error!r}") from error
    if log.file_corruption:
        warnings.warn(f"{path}: parts of the log are damaged and left out", stacklevel=4)
    topics = {}
    for part in log.data_list:
        name = f"{part.name}[{part.multi_id}]" if part.multi_id else part.name
        if "timestamp" not in part.data:
            continue  # messages inside others
        times = part.data["timestamp"].astype(np.float64) / 1e6
        columns = {key: values for key, values in part.data.items() if key != "timestamp"}
        topics[name] = Topic(name, times, columns)
    return topics


def _check_formats(path: Path) -> None:
    """Raise where a file is no ULog file, or a message in it would take more than there can be.

    pyulog writes out arrays of messages inside messages, whatever their number.
    """
    formats: dict[str, list[tuple[str, int]]] = {}
    with path.open("rb") as file:
        if file.read(7) != b"ULog\x01\x12\x35":
            raise ValueError(f"{path}: not a ULog file: it does not begin with 'ULog'")
        file.seek(16)
        while len(head := file.read(3)) == 3:
            body = file.read(int.from_bytes(head[:2], "little"))
            if head[2:] == b"F":
                name, _, fields = body.decode("utf-8", "replace").partition(":")
                parts = [FIELD.fullmatch(text) for text in fields.split(";") if text]
                formats[name] = [(m[1], int(m[2] or 1)) for m in parts if m]
    sizes = dict(SIZES)

    def size(name: str, above: tuple[str, ...] = ()) -> int:
        if name in above or len(above) > 20:
            raise ValueError(f"{path}: damaged: the message {name} contains itself")
        if name not in sizes:
            fields = formats.get(name, [])
            sizes[name] = sum(count * size(kind, (*above, name)) for kind, count in fields)
        if sizes[name] > MOST_BYTES:
            raise ValueError(f"{path}: damaged: the message {name} has {sizes[name]} bytes")
        return sizes[name]

    for name in formats:
        size(name)

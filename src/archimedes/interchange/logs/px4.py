"""Logs of PX4: ULog files, read by pyulog.

Format: https://docs.px4.io/main/en/dev_log/ulog_file_format.html. Times are seconds since boot. The
format has no units; those of PX4's messages are in the comments of its message files.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.interchange.logs.topics import Topic
from archimedes.simulate.trajectory.exports import require

__all__ = ["read_topics"]

#: A message has at most this many bytes, by the two bytes that state its size.
MOST_BYTES = 65535
#: Messages inside messages go no deeper than this.
DEEPEST = 20
SIZES = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4}
SIZES |= {"int64_t": 8, "uint64_t": 8, "float": 4, "double": 8, "bool": 1, "char": 1}


def read_topics(path: Path, names: Collection[str] | None = None) -> dict[str, Topic]:
    """Return topics of a ULog file; instances but the first are named ``sensor_accel[1]``."""
    pyulog = require("pyulog", "logs", "reading .ulg files")
    _check_formats(path, _parse(pyulog, path, parse_header_only=True).message_formats)
    chosen = None if names is None else list({re.sub(r"\[\d+\]$", "", name) for name in names})
    log = _parse(pyulog, path, message_name_filter_list=chosen)
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


def _parse(pyulog: Any, path: Path, **options: Any) -> Any:
    """Read a file by pyulog."""
    with path.open("rb") as file:
        if file.read(7) != b"ULog\x01\x12\x35":
            raise ValueError(f"{path}: not a ULog file: it does not begin with 'ULog'")
        file.seek(0)
        try:
            return pyulog.ULog(file, **options)
        except Exception as error:  # of any kind, from the bytes of a damaged file
            raise ValueError(f"{path}: not a ULog file, or damaged: {error!r}") from error


def _check_formats(path: Path, formats: Mapping[str, Any]) -> None:
    """Raise where a message would take more than there can be.

    pyulog writes out arrays of messages inside messages, whatever their number.
    """
    sizes = dict(SIZES)

    def size(name: str, above: tuple[str, ...] = ()) -> int:
        if name in above or len(above) > DEEPEST:
            raise ValueError(f"{path}: damaged: the message {name} contains itself")
        if name not in sizes:
            fields = formats[name].fields if name in formats else ()
            sizes[name] = sum(
                max(count, 1) * size(kind, (*above, name)) for kind, count, _ in fields
            )
        if sizes[name] > MOST_BYTES:
            raise ValueError(f"{path}: damaged: the message {name} has {sizes[name]} bytes")
        return sizes[name]

    for name in formats:
        size(name)

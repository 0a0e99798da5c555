"""Bags of ROS 1 (``.bag``) and of ROS 2 (folders), read by rosbags, without ROS.

Times are those at which messages were recorded, in seconds since the first message of the bag.
Messages have no units: ROS uses SI units (REP 103).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from archimedes.interchange.logs.messages import Messages
from archimedes.interchange.logs.topics import Topic
from archimedes.simulate.trajectory.exports import require

__all__ = ["read_topics"]


def read_topics(path: Path, names: Collection[str] | None = None) -> dict[str, Topic]:
    """Return topics of a bag."""
    highlevel = require("rosbags.highlevel", "logs", "reading bags of ROS")
    typesys = require("rosbags.typesys", "logs", "reading bags of ROS")
    if path.is_dir() and not (path / "metadata.yaml").is_file():
        raise ValueError(f"{path}: not a bag of ROS 2: the folder has no metadata.yaml")
    # Bags older than definitions in the file have the common messages, which hardly change.
    store = typesys.get_typestore(typesys.Stores.LATEST)
    try:
        with highlevel.AnyReader([path], default_typestore=store) as reader:
            return topics_of(reader, names)
    except Exception as error:  # of any kind, from the bytes of a damaged file
        what = str(error) or type(error).__name__
        raise ValueError(f"{path}: not a bag of ROS, or damaged: {what}") from error


def topics_of(reader: Any, names: Collection[str] | None) -> dict[str, Topic]:
    """Return topics of an open bag."""
    chosen = [c for c in reader.connections if names is None or c.topic in names]
    collected = {connection.topic: Messages(connection.topic) for connection in chosen}
    start = reader.start_time if reader.message_count else 0
    for connection, time, data in reader.messages(connections=chosen) if chosen else ():
        message = reader.deserialize(data, connection.msgtype)
        collected[connection.topic].add((time - start) * 1e-9, message)
    return {name: messages.topic() for name, messages in collected.items()}

"""MCAP files: messages in JSON, and those of ROS 1 and ROS 2.

Times are those at which messages were logged, in seconds since the first message of the file. Units
are read from JSON schemas that have them (``unit`` of a property), as those of
``Trajectory.to_mcap``. Messages in other encodings (Protobuf, FlatBuffers) are left out with a
warning. A file that is cut off is read up to there. Format: https://mcap.dev/spec.
"""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from archimedes.interchange.logs.messages import DEEPEST, Messages
from archimedes.interchange.logs.topics import Topic
from archimedes.simulate.trajectory.exports import require

__all__ = ["read_topics"]

#: Bytes of the largest record, and of what is in a compressed one.
LARGEST = 2**28
MAGIC = b"\x89MCAP0\r\n"
ZSTD, LZ4 = "zstd", "lz4"


def read_topics(path: Path, names: Collection[str] | None = None) -> dict[str, Topic]:
    """Return topics of an MCAP file."""
    stream_reader = require("mcap.stream_reader", "logs", "reading .mcap files")
    with path.open("rb") as file:
        if file.read(8) != MAGIC:
            raise ValueError(f"{path}: not an MCAP file: it does not begin with MCAP's magic bytes")
    collected: dict[int, Messages] = {}
    decoders: dict[int, Callable[[bytes], Any]] = {}
    unread: dict[str, str] = {}
    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}
    start = None
    try:
        for record in records_of(stream_reader, path):
            kind = type(record).__name__
            if kind == "Schema":
                schemas[record.id] = record
            elif kind == "Channel":
                channels[record.id] = record
            elif kind == "Message":
                start = record.log_time if start is None else min(start, record.log_time)
                channel = channels[record.channel_id]
                if names is not None and channel.topic not in names:
                    continue
                if channel.id not in collected:
                    schema = schemas.get(channel.schema_id)
                    collected[channel.id] = Messages(channel.topic, units_of(schema))
                    decoders[channel.id] = decoder_of(channel, schema, unread)
                message = decoders[channel.id](record.data)
                collected[channel.id].add(record.log_time, message)
    except ImportError:
        raise
    except Exception as error:  # of any kind, from the bytes of a damaged file
        what = str(error) or type(error).__name__
        raise ValueError(f"{path}: not an MCAP file, or damaged: {what}") from error
    for topic, why in unread.items():
        warnings.warn(f"{path}: {topic} is left out: {why}", stacklevel=4)
    topics: dict[str, Topic] = {}
    for channel_id, messages in collected.items():
        messages.times = [(time - (start or 0)) * 1e-9 for time in messages.times]
        if messages.name not in unread:
            name = messages.name
            if name in topics:  # written by several, each on a channel of its own
                name = f"{name}#{channel_id}"
            messages.name = name
            topics[name] = messages.topic()
    return topics


def records_of(stream_reader: Any, path: Path) -> Iterator[Any]:
    """Yield the records of a file; chunks are taken apart once their sizes are known to be sane.

    What follows the data is an index, and not needed.
    """
    with path.open("rb") as file:
        reader = stream_reader.StreamReader(file, emit_chunks=True, record_size_limit=LARGEST)
        for record in whole_records(reader.records, file, path):
            kind = type(record).__name__
            if kind == "DataEnd":
                return
            if kind != "Chunk":
                yield record
                continue
            size = max(record.uncompressed_size, unpacked_size(record))
            if size > LARGEST:
                raise ValueError(f"a chunk of {size} bytes; at most {LARGEST}")
            yield from stream_reader.breakup_chunk(record, validate_crc=True)


def whole_records(records: Iterator[Any], file: BinaryIO, path: Path) -> Iterator[Any]:
    """Yield records, and warn where a file that holds messages ends inside of one."""
    ends = (struct.error, import_module("mcap.exceptions").EndOfFile)
    size, end, has_messages = path.stat().st_size, 0, False
    while True:
        try:
            record = next(records)
        except ends:
            if not has_messages or file.tell() < size:
                raise
            what = f"{path}: the file is cut off, and its last {size - end} bytes are left out"
            warnings.warn(what, stacklevel=6)
            return
        end = file.tell()
        has_messages = has_messages or type(record).__name__ in ("Chunk", "Message")
        yield record


def unpacked_size(chunk: Any) -> int:
    """Return the size that a compressed chunk says it has, whatever the record around it says."""
    if chunk.compression == ZSTD:
        import zstandard

        return max(0, zstandard.frame_content_size(chunk.data))
    if chunk.compression == LZ4:
        frame = import_module("lz4.frame")
        size = int(frame.get_frame_info(chunk.data)["content_size"])
        return size or len(frame.LZ4FrameDecompressor().decompress(chunk.data, LARGEST + 1))
    return len(chunk.data)


def decoder_of(channel: Any, schema: Any, unread: dict[str, str]) -> Callable[[bytes], Any]:
    """Return what makes a message of bytes; encodings that are not known are noted in `unread`."""
    encoding = channel.message_encoding
    if encoding == "json":
        return read_json
    if encoding in ("cdr", "ros1") and schema is not None:
        return ros_decoder(encoding, schema)
    unread[channel.topic] = f"its messages are in {encoding or 'an unnamed encoding'}"
    return lambda data: None


def read_json(data: bytes) -> Any:
    """Return a message in JSON, which is not nested beyond reason."""
    text = data.decode("utf-8")
    if max(text.count("["), text.count("{")) > DEEPEST and deepest(text) > DEEPEST:
        raise ValueError(f"a message is nested more than {DEEPEST} levels deep")
    return json.loads(text)


def deepest(text: str) -> int:
    """Return how many brackets are open at once, at most; those in texts count too."""
    depth = most = 0
    for c in text:
        depth += (c in "[{") - (c in "]}")
        most = max(most, depth)
    return most


def ros_decoder(encoding: str, schema: Any) -> Callable[[bytes], Any]:
    """Return what reads messages of ROS by the definition in the file."""
    typesys = require("rosbags.typesys", "logs", "reading messages of ROS")
    store = typesys.get_typestore(typesys.Stores.EMPTY)
    store.register(typesys.get_types_from_msg(schema.data.decode("utf-8"), ros_type(schema.name)))
    read = store.deserialize_cdr if encoding == "cdr" else store.deserialize_ros1
    return lambda data: read(data, ros_type(schema.name))


def ros_type(name: str) -> str:
    """Return the name of a type as ROS 2 has it: ``std_msgs/msg/Header``."""
    return name if "/msg/" in name else name.replace("/", "/msg/", 1)


def units_of(schema: Any) -> dict[str, str]:
    """Return the units that a JSON schema gives to the numbers of its messages."""
    if schema is None or schema.encoding != "jsonschema":
        return {}
    units: dict[str, str] = {}

    def look(node: Any, path: str, depth: int) -> None:
        if isinstance(node, Mapping) and depth < DEEPEST:
            if isinstance(unit := node.get("unit"), str):
                units[path] = unit
            below = node.get("properties")
            for key, part in below.items() if isinstance(below, Mapping) else ():
                look(part, f"{path}.{key}" if path else key, depth + 1)

    look(json.loads(schema.data.decode("utf-8")), "", 0)
    return units

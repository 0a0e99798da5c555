"""Logs written by hand in the published formats: ULog, dataflash, telemetry."""

from __future__ import annotations

import struct

# ---- ULog: https://docs.px4.io/main/en/dev_log/ulog_file_format.html -------------------------


def ulog_message(kind, body):
    return struct.pack("<HB", len(body), ord(kind)) + body


def ulog(formats, rows, start=0):
    """Return a ULog file.

    `formats` are texts ``name:type field;...``; `rows` are (name, instance, struct format, values)
    in the order of the file. A subscription is written where a topic appears first.
    """
    data = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", start) + ulog_message("B", bytes(40))
    for text in formats:
        data += ulog_message("F", text.encode())
    numbers = {}
    for name, instance, form, values in rows:
        if (name, instance) not in numbers:
            numbers[name, instance] = len(numbers)
            body = struct.pack("<BH", instance, numbers[name, instance]) + name.encode()
            data += ulog_message("A", body)
        body = struct.pack("<H", numbers[name, instance]) + struct.pack("<" + form, *values)
        data += ulog_message("D", body)
    return data


# ---- dataflash ---------------------------------------------------------------------------------

CHARACTERS = {
    **dict(zip("bBhHiIfdqQMg", "bBhHiIfdqQBe")),
    "n": "4s",
    "N": "16s",
    "Z": "64s",
    "c": "h",
    "C": "H",
    "e": "i",
    "E": "I",
    "L": "i",
    "a": "32h",
}


def dataflash_form(characters):
    return struct.Struct("<" + "".join(CHARACTERS[c] for c in characters))


class Dataflash:
    """A dataflash log under way."""

    def __init__(self):
        self.data, self.kinds = b"", {"FMT": (128, "BBnNZ")}
        self.describe("FMT", "BBnNZ", "Type,Length,Name,Format,Columns", 128)
        self.describe("UNIT", "QbZ", "TimeUS,Id,Label")
        self.describe("MULT", "Qbd", "TimeUS,Id,Mult")
        self.describe("FMTU", "QBNN", "TimeUS,FmtType,UnitIds,MultIds")
        for key, label in (("s", b"s"), ("E", b"rad/s"), ("d", b"deg"), ("o", b"m/s/s")):
            self.add("UNIT", 0, ord(key), label)
        for key, value in (("-", 0.0), ("?", 1.0), ("F", 1e-6), ("C", 1e-3), ("0", 1.0)):
            self.add("MULT", 0, ord(key), value)

    def describe(self, name, characters, labels, kind=None):
        kind = kind or len(self.kinds) + 1
        self.kinds[name] = kind, characters
        size = 3 + dataflash_form(characters).size
        self.add("FMT", kind, size, name.encode(), characters.encode(), labels.encode())
        return kind

    def add(self, name, *values):
        kind, characters = self.kinds[name]
        self.data += b"\xa3\x95" + bytes([kind]) + dataflash_form(characters).pack(*values)


# ---- telemetry ---------------------------------------------------------------------------------


def telemetry(rows):
    """Return a .tlog file of (time in us, packet)."""
    return b"".join(struct.pack(">Q", stamp) + packet for stamp, packet in rows)

"""ArduPilot's JSON interface: pulse widths in, the true motion out.

Source: libraries/SITL/examples/JSON/readme.md of ArduPilot. A packet is little-endian: magic
(uint16), frame rate in Hz (uint16), frame count (uint32), pulse widths in microseconds (uint16).
The answer is a line of JSON between line feeds. ArduPilot searches it for the names, so that values
follow their names without a space.
"""

from __future__ import annotations

import json
import struct
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from archimedes.interchange.autopilots.commands import CHANNELS
from archimedes.interchange.autopilots.links import AutopilotLost, Command, DatagramLink

__all__ = ["ArduPilotLink", "decode_servos", "encode_state"]

#: Packets by their first number: 16 or 32 channels.
PACKETS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
#: Frame rates that make sense, in Hz.
RATES = (10, 20000)
#: A count that is older by more than this is that of an autopilot that was restarted.
OLDER = 100


class Servos(NamedTuple):
    """A packet of pulse widths."""

    rate: int
    number: int
    pulses: tuple[int, ...]


def decode_servos(data: bytes) -> Servos | None:
    """Return a packet of pulse widths; None if the bytes are none.

    >>> decode_servos(struct.pack("<HHI16H", 18458, 400, 7, *[1000] * 16)).number
    7
    >>> decode_servos(b"something else") is None
    True
    """
    form = PACKETS.get(int.from_bytes(data[:2], "little"))
    if form is None or len(data) != form.size:
        return None
    _, rate, count, *pulses = form.unpack(data)
    if not RATES[0] <= rate <= RATES[1]:
        return None
    return Servos(rate, count, tuple(pulses))


def encode_state(t: float, readings: Any) -> bytes:
    """Return the answer to a packet: time in s, and what `Readings` hold."""
    state = {
        "timestamp": t,
        "imu": {"gyro": readings.rate.tolist(), "accel_body": readings.force.tolist()},
        "position": readings.pos.tolist(),
        "quaternion": readings.quat.tolist(),
        "velocity": readings.v_NED.tolist(),
        "airspeed": float(readings.airspeed),
    }
    return b"\n" + json.dumps(state, separators=(",", ":"), allow_nan=False).encode() + b"\n"


class ArduPilotLink:
    """The exchange with ArduPilot, which waits for an answer to each of its packets.

    Parameters
    ----------
    link : DatagramLink
        The socket.
    counts : Counter
        What happened: lost, repeated and old packets, garbage.
    timeout : float
        Silence in s after which the autopilot is lost.
    retry : float
        Silence in s after which the last answer is sent again.
    """

    pulses = True

    def __init__(
        self, link: DatagramLink, counts: Counter[str], timeout: float, retry: float
    ) -> None:
        self.link, self.counts, self.timeout, self.retry = link, counts, timeout, retry
        self.count: int | None = None
        self.answer = b""

    def connect(self, seconds: float) -> Command:
        """Wait for the first packet."""
        return self._receive(seconds)

    def exchange(self, t: float, readings: Any, _slow: Any, _fix: Any, wait: bool) -> Command:
        """Answer, and wait for the next packet (the autopilot waits too, in real time as well)."""
        self.answer = encode_state(t, readings)
        self.link.send(self.answer)
        return self._receive(self.timeout)

    def finish(self, t: float, readings: Any) -> None:
        """Send the last answer."""
        self.link.send(encode_state(t, readings))

    def _receive(self, seconds: float) -> Command:
        """Return the next new packet; packets that are none do not prolong the wait."""
        start, before = time.monotonic(), self.counts["garbage"]
        resend = start + self.retry
        while (now := time.monotonic()) < start + seconds:
            data = self.link.receive(max(min(resend, start + seconds) - now, 1e-4))
            if data is not None and (command := self._judge(data)) is not None:
                return command
            if time.monotonic() >= resend and self.answer:
                self.link.send(self.answer)
                self.counts["resent"] += 1
                resend = time.monotonic() + self.retry
            elif not self.answer:
                resend = time.monotonic() + self.retry
        garbage = self.counts["garbage"] - before
        other = (
            f", but {garbage} of no known form: ArduPilot's JSON interface sends 16 or 32 channels "
            f"at {RATES[0]} to {RATES[1]} Hz"
        )
        raise AutopilotLost(
            f"no packet of the autopilot for {seconds:g} s{other if garbage else ''}"
        )

    def _judge(self, data: bytes) -> Command | None:
        """Return the command in a packet if it is new."""
        servos = decode_servos(data)
        if servos is None:
            self.counts["garbage"] += 1
            return None
        fresh = self.count is None
        if self.link.changed:  # somebody else after a silence: accepted only as a new start
            if servos.number > OLDER:
                self.counts["strangers"] += 1
                return None
            fresh = True
        restarted = fresh and self.count is not None
        if not fresh:
            ahead = (servos.number - (self.count or 0)) % 2**32
            if ahead == 0:  # our answer was lost
                self.link.accept()
                self.counts["repeated"] += 1
                self.link.send(self.answer)
                return None
            if ahead < 2**31:
                self.counts["lost"] += ahead - 1
            elif 2**32 - ahead <= OLDER:
                self.counts["old"] += 1
                return None
            else:
                restarted = True
        self.link.accept()
        self.counts["restarts"] += restarted
        self.counts["received"] += 1
        self.count = servos.number
        channels = np.zeros(CHANNELS)
        channels[: len(servos.pulses)] = servos.pulses
        return Command(channels, None, 1.0 / servos.rate, restarted)

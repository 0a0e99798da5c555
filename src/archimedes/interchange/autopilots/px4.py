"""PX4's simulator interface: MAVLink, sensors out and controls in, by TCP or UDP.

Source: https://docs.px4.io/main/en/simulation/ ("Simulator MAVLink API", "Lockstep Simulation") and
the messages of https://mavlink.io/en/messages/common.html. By TCP the simulator listens, by UDP PX4
does. HIL_SENSOR moves the clock of PX4, which answers with HIL_ACTUATOR_CONTROLS of the same time
(less that of the first HIL_SENSOR). What belongs to one time is sent together, HIL_SENSOR last.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from archimedes.interchange.autopilots.commands import CHANNELS
from archimedes.interchange.autopilots.links import (
    AutopilotLost,
    Command,
    DatagramLink,
    StreamLink,
)
from archimedes.simulate.trajectory.exports import require

__all__ = ["Px4Link"]

#: Bits of HIL_SENSOR.fields_updated, by sensor.
INERTIAL, MAGNETIC, STATIC, IMPACT = 0x3F, 0x1C0, 0x1A00, 0x400
#: Bits of HIL_ACTUATOR_CONTROLS: mode and flags.
ARMED, LOCKSTEP = 128, 1
#: How often an autopilot is called that does not answer yet, in s.
CALL = 0.1
#: How long an answer is waited for before time goes on without, in s: PX4 may leave one out.
PATIENCE = 1.0
#: How long an autopilot may say nothing at all before its first controls, in s.
STARTING = 30.0
GRAVITY = 9.80665


def _whole(value: Any, bits: int, signed: bool = True) -> int:
    """Return the nearest whole number that fits into so many bits."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return int(min(max(round(float(value)), low), high))


def stamp(t: float) -> int:
    """Return the time in microseconds of a message; the first is not 0, which PX4 reads as none."""
    return round(1e6 * t) + 1


def pressure_altitude(pressure: float) -> float:
    """Return the altitude in m at which the standard atmosphere has a pressure in Pa.

    >>> round(pressure_altitude(101325.0)), round(pressure_altitude(89874.6))
    (0, 1000)
    """
    return 44330.77 * (1.0 - (max(pressure, 0.0) / 101325.0) ** 0.1902632)


class Px4Link:
    """The exchange with PX4.

    Parameters
    ----------
    link : StreamLink or DatagramLink
        The connection.
    counts : Counter
        What happened.
    timeout : float
        Silence in s after which the autopilot is lost.
    retry : float
        Silence in s after which the last sensors are sent again, by UDP.
    dt : float
        Time in s between two messages of sensors.
    """

    pulses = False

    def __init__(
        self,
        link: StreamLink | DatagramLink,
        counts: Counter[str],
        timeout: float,
        retry: float,
        dt: float,
    ) -> None:
        self.mavlink = require("pymavlink.dialects.v20.common", "logs", "the link to PX4")
        self.link, self.counts, self.timeout, self.retry = link, counts, timeout, retry
        self.dt = dt
        self.out = self.mavlink.MAVLink(None, srcSystem=1, srcComponent=200)
        self._new_parser()
        self.latest: Command | None = None
        self.lockstep = True
        self.time = -1
        self.source: tuple[int, int] | None = None

    def connect(self, seconds: float) -> Command:
        """Wait for PX4, and a little longer for controls; without them the motors are off."""
        end = time.monotonic() + seconds
        if isinstance(self.link, StreamLink) and not self.link.connect(seconds):
            raise AutopilotLost(f"nobody connected within {seconds:g} s")
        heard = False
        while not heard and (now := time.monotonic()) < end:
            if self.link.datagrams:
                self.link.send(self._pack([self._heartbeat()]))
            elif now > end - seconds + 10.0 * CALL:
                break  # connected: sensors make it talk
            heard = bool(self._poll(CALL))
        if self.link.datagrams and not heard:
            raise AutopilotLost(f"no message of the autopilot within {seconds:g} s")
        return self.latest or Command(np.zeros(CHANNELS), False, self.dt)

    def exchange(self, t: float, readings: Any, slow: Any, fix: Any, wait: bool) -> Command:
        """Send the sensors; return the answer, or without `wait` the latest controls.

        While PX4 starts it does not answer yet: time goes on at the pace of the clock.
        """
        started, before = self.latest is not None, self.time
        if wait and not self.lockstep:
            raise ValueError(
                "run: lockstep=True, but the autopilot does not run in lock step (the flags of its "
                "HIL_ACTUATOR_CONTROLS are 0): build it so, or give lockstep=False"
            )
        now = stamp(t - self.dt)
        data = self._sensors(now, readings, slow, fix)
        self.link.send(data)
        if not wait:
            for _ in range(1000):  # what has come since
                if self._poll(0.0) is None:
                    break
            if self.link.silent > self.timeout:
                raise AutopilotLost(f"no message of the autopilot for {self.timeout:g} s")
        else:
            start = time.monotonic()
            patience = min(self.timeout, PATIENCE) if started else self.dt
            resend = start + self.retry
            while self.time < now - 1 or self.time <= before:
                left = start + patience - time.monotonic()
                if left <= 0.0:
                    self.counts["unanswered"] += started
                    break
                if not self.link.datagrams:
                    self._poll(left)
                    continue
                self._poll(min(left, max(resend - time.monotonic(), 1e-4)))
                if time.monotonic() >= resend and self.time < now:
                    self.link.send(data)
                    self.counts["resent"] += 1
                    resend = time.monotonic() + self.retry
            limit = self.timeout if started else max(self.timeout, STARTING)
            if self.link.silent > limit:
                raise AutopilotLost(f"no message of the autopilot for {limit:g} s")
        return self.latest or Command(np.zeros(CHANNELS), False, self.dt)

    def finish(self, t: float, readings: Any) -> None:
        """Nothing to do at the end."""

    # ---- in ------------------------------------------------------------------------------------

    def _new_parser(self) -> None:
        self.parser = self.mavlink.MAVLink(None)
        self.parser.robust_parsing = True

    def _poll(self, seconds: float) -> bool | None:
        """Read once; return whether a valid message came, None where nothing came."""
        data = self.link.receive(seconds)
        if data is None:
            return None
        try:
            messages = self.parser.parse_buffer(data) or []
        except self.mavlink.MAVError:
            messages = []
            self.counts["garbage"] += 1
            self._new_parser()
        if self.link.datagrams and self.parser.buf_len():  # cut off: nothing will follow
            self.counts["garbage"] += 1
            self._new_parser()
        return sum(map(self._judge, messages)) > 0

    def _judge(self, message: Any) -> bool:
        """Take the controls in a message if they are new; return whether it is valid."""
        kind = message.get_type()
        if kind == "BAD_DATA" or kind.startswith("UNKNOWN"):
            self.counts["garbage"] += 1
            return False
        source = (message.get_srcSystem(), message.get_srcComponent())
        if self.source is None:
            self.source = source
        if source != self.source or self.link.changed:
            self.counts["strangers"] += 1
            return False
        self.link.accept()
        if kind != "HIL_ACTUATOR_CONTROLS":
            self.counts["other"] += 1
            return True
        if message.time_usec <= self.time:
            self.counts["repeated" if message.time_usec == self.time else "old"] += 1
            return True
        channels = np.zeros(CHANNELS)
        channels[:16] = message.controls
        self.counts["received"] += 1
        self.time = message.time_usec
        self.lockstep = bool(message.flags & LOCKSTEP)
        self.latest = Command(channels, bool(message.mode & ARMED), self.dt)
        return True

    # ---- out -----------------------------------------------------------------------------------

    def _pack(self, messages: list[Any]) -> bytes:
        data = b""
        for message in messages:
            data += message.pack(self.out)
            self.out.seq = (self.out.seq + 1) % 256
        return data

    def _heartbeat(self) -> Any:
        m = self.mavlink
        return m.MAVLink_heartbeat_message(
            m.MAV_TYPE_GENERIC, m.MAV_AUTOPILOT_INVALID, 0, 0, m.MAV_STATE_ACTIVE, 3
        )

    def _sensors(self, now: int, r: Any, slow: Any, fix: Any) -> bytes:
        """Return the messages of one time."""
        m, messages = self.mavlink, []
        if (now - 1) % 1_000_000 < 1e6 * self.dt:
            messages.append(self._heartbeat())
        place = [_whole(np.rad2deg(r.lat) * 1e7, 32), _whole(np.rad2deg(r.lon) * 1e7, 32)]
        if fix is not None:
            v = [_whole(100.0 * part, 16) for part in fix.v_NED]
            course = np.rad2deg(np.arctan2(fix.v_NED[1], fix.v_NED[0])) % 360.0
            messages.append(
                m.MAVLink_hil_gps_message(
                    time_usec=now,
                    fix_type=3,
                    lat=_whole(np.rad2deg(fix.lat) * 1e7, 32),
                    lon=_whole(np.rad2deg(fix.lon) * 1e7, 32),
                    alt=_whole(1e3 * fix.alt, 32),
                    eph=90,
                    epv=150,
                    vel=_whole(100.0 * np.hypot(*fix.v_NED[:2]), 16, signed=False),
                    vn=v[0],
                    ve=v[1],
                    vd=v[2],
                    cog=_whole(100.0 * course, 16, signed=False) % 36000,
                    satellites_visible=12,
                )
            )
        sources, B, static, impact, temperature = INERTIAL, np.zeros(3), 0.0, 0.0, 0.0
        if slow is not None:
            B, air = slow
            sources |= MAGNETIC | STATIC | IMPACT
            static, impact = air.static_pressure, air.impact_pressure
            temperature = air.temperature - 273.15
            speed = _whole(100.0 * r.airspeed, 16, signed=False)
            messages.append(
                m.MAVLink_hil_state_quaternion_message(
                    now,
                    r.quat.tolist(),
                    *r.w_B.tolist(),
                    *place,
                    _whole(1e3 * r.alt, 32),
                    *(_whole(100.0 * part, 16) for part in r.v_NED),
                    speed,
                    speed,
                    *(_whole(1e3 / GRAVITY * part, 16) for part in r.force),
                )
            )
        messages.append(
            m.MAVLink_hil_sensor_message(
                now,
                *r.force.tolist(),
                *r.rate.tolist(),
                *(1e4 * B).tolist(),
                float(static) / 100.0,
                float(impact) / 100.0,
                pressure_altitude(float(static)),
                float(temperature),
                sources,
            )
        )
        return self._pack(messages)

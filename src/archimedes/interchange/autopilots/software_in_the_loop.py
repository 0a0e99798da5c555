"""The loop: the vehicle moves, its sensors are sent, the autopilot answers."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from archimedes import tree
from archimedes.checks import as_finite, check_callable, check_choice, check_positive, check_whole
from archimedes.interchange.autopilots.ardupilot import ArduPilotLink
from archimedes.interchange.autopilots.commands import CHANNELS, commands_for
from archimedes.interchange.autopilots.links import AutopilotLost, Command, DatagramLink, StreamLink
from archimedes.interchange.autopilots.plant import Plant, Sensors
from archimedes.interchange.autopilots.px4 import Px4Link
from archimedes.simulate import Trajectory
from archimedes.spatial import RigidBody
from archimedes.vehicles import FlightState
from archimedes.vehicles.parts.actuators import check_part
from archimedes.vehicles.sensors import AirData, Gnss, Imu, Magnetometer, TriadErrors

__all__ = ["SoftwareInTheLoop"]

#: Home unless given: Zurich, where PX4's simulations start, at sea level.
HOME = (math.radians(47.397742), math.radians(8.545594), 0.0)
#: The magnetic field there in T, north, east and down (IGRF-14, beginning of 2026).
FIELD = (2.154e-5, 0.133e-5, 4.328e-5)
#: Ports unless given, by autopilot and transport. By UDP it is that of PX4.
PORTS = {("px4", "tcp"): 4560, ("px4", "udp"): 14560, ("ardupilot", "udp"): 9002}
#: Silence in s after which something is sent again.
RETRY = 0.02
#: The largest number that the messages can hold.
LARGEST = 3e38
#: How the loop ended: finished, autopilot lost, state not finite.
FINISHED, LOST, NON_FINITE = 0, -1, -2


class SoftwareInTheLoop:
    """A vehicle of ours, flown by PX4 or ArduPilot in another process.

    The simulator listens at 127.0.0.1. Start the autopilot with
    ``make px4_sitl none_iris`` (PX4, by TCP) or ``sim_vehicle.py -v ArduCopter --model
    JSON:127.0.0.1`` (ArduPilot, by UDP), before or after `run`.

    Parameters
    ----------
    vehicle : Multirotor, F16 or another
        The vehicle, with ``dynamics``, ``forces``, ``mass`` and ``world``.
    x0 : FlightState or state of the vehicle, optional
        Where it starts. By default at home: position zero, at rest, level, heading north.
    autopilot : {"px4", "ardupilot"}, optional
        The protocol: MAVLink's HIL messages (needs the extra ``logs``), the default, or ArduPilot's
        JSON interface.
    transport : {"tcp", "udp"}, optional
        By default TCP for PX4. ArduPilot has UDP only.
    host : str, optional
        Address to listen at, 127.0.0.1 by default: nobody else on the network can connect.
    port : int, optional
        Port to listen at: 4560 for PX4, 9002 for ArduPilot; 0 for one that is free. By UDP it is
        the port at which PX4 listens, 14560.
    commands : callable, optional
        Input of the vehicle as a function of the channels (32,), as the autopilot sends them. By
        default `RotorCommands` for quadrotors X and `SurfaceCommands` for an `F16`.
    home : (float, float, float), optional
        Latitude in rad, longitude in rad and altitude in m of position zero. By default Zurich,
        47.397742 and 8.545594 degrees, 0 m; in a `RotatingEarth` where the vehicle starts.
    magnetic_field : array (3,), optional
        Magnetic field at home in T: north, east, down. Needed by PX4 where `home` is given.
    imu : Imu, optional
        Accelerometers and gyroscopes. By default with noise for PX4, which takes sensors without
        any for broken, and perfect for ArduPilot, which adds noise itself.
    magnetometer : Magnetometer, optional
        Magnetometer (PX4).
    air_data : AirData, optional
        Static and impact pressure (PX4).
    gnss : Gnss, optional
        Satellite navigation (PX4).
    rate : float, optional
        Exchanges per second with PX4, 250 by default. ArduPilot sets its own (SIM_RATE_HZ).
    slow_rate : float, optional
        Readings per second of magnetometer and air data, 50 by default.
    gnss_rate : float, optional
        Readings per second of satellite navigation, 10 by default.
    max_step : float, optional
        Longest step of the integration (Runge-Kutta of order 4) in s, 0.001 by default.
    seed : int, optional
        Seed of the errors of the sensors, 0 by default.
    hold : bool, optional
        Whether the vehicle stays as it starts until the autopilot is armed and opens the throttle.
        True by default.

    Examples
    --------
    >>> import archimedes as arc
    >>> drone = arc.vehicles.load("multirotor", world=arc.vehicles.FlatEarth())
    >>> loop = arc.interchange.SoftwareInTheLoop(drone, autopilot="ardupilot")
    >>> traj = loop.run(60.0)  # doctest: +SKIP
    """

    def __init__(
        self,
        vehicle: Any,
        x0: Any = None,
        *,
        autopilot: str = "px4",
        transport: str | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
        commands: Callable[..., Any] | None = None,
        home: tuple[float, float, float] | None = None,
        magnetic_field: Any = None,
        imu: Imu | None = None,
        magnetometer: Magnetometer | None = None,
        air_data: AirData | None = None,
        gnss: Gnss | None = None,
        rate: float = 250.0,
        slow_rate: float = 50.0,
        gnss_rate: float = 10.0,
        max_step: float = 1e-3,
        seed: int = 0,
        hold: bool = True,
    ) -> None:
        name = "SoftwareInTheLoop"
        check_part(vehicle, f"{name}: vehicle", ("dynamics", "forces", "mass", "world"))
        check_choice(autopilot, f"{name}: autopilot", ("px4", "ardupilot"))
        transport = transport or ("tcp" if autopilot == "px4" else "udp")
        remedy = "ArduPilot's JSON interface has UDP only" if autopilot == "ardupilot" else ""
        known = [way for kind, way in PORTS if kind == autopilot]
        check_choice(transport, f"{name}: transport", known, remedy)
        for value, label in ((rate, "rate"), (slow_rate, "slow_rate"), (gnss_rate, "gnss_rate")):
            check_positive(value, f"{name}: {label}", "Hz")
        check_positive(max_step, f"{name}: max_step", "s")
        for value, label in ((slow_rate, "slow_rate"), (gnss_rate, "gnss_rate")):
            if value > rate:
                raise ValueError(f"{name}: {label}={value} must be at most rate={rate}")
        self.vehicle, self.autopilot = vehicle, autopilot
        self.transport, self.host = transport, host
        self.asked_port = (
            PORTS[autopilot, transport] if port is None else check_whole(port, "port", 0)
        )
        level = FlightState(0.0, 0.0, 0.0, np.zeros(3), np.zeros(3), np.zeros(3))
        start = level if x0 is None else x0
        self.x0 = vehicle.state(start) if isinstance(start, FlightState) else start
        if not hasattr(self.x0, "motion"):
            raise TypeError(
                f"{name}: x0 must be a FlightState, or a state of the vehicle as "
                f"vehicle.state(...) returns it, got {type(x0).__name__}"
            )
        if home is None and not _flat(vehicle):
            at = vehicle.world.flight(0.0, self.x0.motion)
            home = (float(at.lat), float(at.lon), float(at.alt))
        given_home = home is not None
        home = HOME if home is None else tuple(as_finite(home, f"{name}: home").tolist())
        if len(home) != 3 or abs(home[0]) > 0.5 * math.pi or abs(home[1]) > 2.0 * math.pi:
            raise ValueError(
                f"{name}: home={home} must be latitude in rad, longitude in rad and altitude in m; "
                "of degrees np.deg2rad makes radians"
            )
        if magnetic_field is None and given_home and autopilot == "px4":
            raise ValueError(
                f"{name}: PX4 needs magnetic_field=(north, east, down) in T at home={home}; "
                "environment.MagneticField or the World Magnetic Model gives it"
            )
        magnetic_field = FIELD if magnetic_field is None else magnetic_field
        field_NED = as_finite(magnetic_field, f"{name}: magnetic_field")
        if field_NED.shape != (3,) or not 1e-5 < np.linalg.norm(field_NED) < 1e-4:
            raise ValueError(
                f"{name}: magnetic_field={magnetic_field} must be north, east and down in T; the "
                "Earth's is 2e-5 to 7e-5 T (1 T is 1e4 gauss, 1e9 nT)"
            )
        sensors = _sensors(autopilot, imu, magnetometer, air_data, gnss, field_NED)
        if commands is not None:
            check_callable(commands, f"{name}: commands", "(channels)")
        commands = commands or commands_for(vehicle, pulses=autopilot == "ardupilot")
        self.commands = commands
        self.plant = Plant(vehicle, commands, sensors, home, seed)
        self.rate, self.max_step, self.hold = float(rate), float(max_step), hold
        self.every = (round(rate / slow_rate), round(rate / gnss_rate))
        self.counts: Counter[str] = Counter()
        self._link: Any = None

    @property
    def port(self) -> int:
        """The port for the autopilot; where 0 was asked for, it is known once `open` was called."""
        if self._link is None or (self.autopilot, self.transport) == ("px4", "udp"):
            return self.asked_port
        return int(self._link.port)

    def open(self) -> Self:
        """Begin to listen, which `run` does otherwise; connections wait."""
        if self._link is None:
            self.counts = Counter()
            if self.transport == "tcp":
                self._link = StreamLink(self.host, self.asked_port, self.counts)
            elif self.autopilot == "px4":
                peer = (self.host, self.asked_port)
                self._link = DatagramLink(self.host, 0, self.counts, peer)
            else:
                self._link = DatagramLink(self.host, self.asked_port, self.counts)
        return self

    def close(self) -> None:
        """End the connection. `run` does at its end."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        duration: float,
        *,
        lockstep: bool = True,
        speed: float | None = None,
        wait: float = 60.0,
        timeout: float = 10.0,
    ) -> Trajectory:
        """Fly, and return the trajectory.

        Parameters
        ----------
        duration : float
            Simulated time in s.
        lockstep : bool, optional
            Whether each step waits for the autopilot, so that nothing depends on the speed of the
            computer. True by default. Otherwise PX4 gets its sensors by the clock, and its latest
            controls hold.
        speed : float, optional
            Simulated seconds per second of the clock: at most, in lock step. By default as fast as
            it goes in lock step, and 1 otherwise.
        wait : float, optional
            How long to wait for the autopilot to connect, in s.
        timeout : float, optional
            Silence in s after which the autopilot is lost.

        Returns
        -------
        Trajectory
            The states of the vehicle, its inputs as ``u`` (held until the next sample) and
            `Readings` as ``y``. ``status`` is 0 at the end, -1 where the autopilot was lost and -2
            where the state became infinite, as ``message`` says; ``stats`` counts messages that
            were received, lost, repeated, old, garbage, from strangers or not finite, and has the
            time at which the vehicle was released.
        """
        check_positive(duration, "run: duration", "s")
        for value, label in ((wait, "wait"), (timeout, "timeout")):
            check_positive(value, f"run: {label}", "s")
        if speed is not None:
            check_positive(speed, "run: speed")
        self.open()
        try:
            return self._run(duration, lockstep, speed, wait, timeout)
        finally:
            self.close()

    def _run(
        self, duration: float, lockstep: bool, speed: float | None, wait: float, timeout: float
    ) -> Trajectory:
        dt = 1.0 / self.rate
        protocol: Any
        if self.autopilot == "px4":
            protocol = Px4Link(self._link, self.counts, timeout, RETRY, dt)
        else:
            protocol = ArduPilotLink(self._link, self.counts, timeout, RETRY)
        pace = speed or (None if lockstep else 1.0)
        if pace is not None:
            _Flight(self, Command(np.zeros(CHANNELS))).warm_up()
        try:
            command = protocol.connect(wait)
        except AutopilotLost as error:
            to = f"{self.host}, port {self.port} ({self.transport.upper()})"
            raise TimeoutError(
                f"run: no autopilot at {to}: {error}. Start it, or wait longer with wait="
            ) from error
        flight = _Flight(self, command)
        begin = time.monotonic()
        status, message = FINISHED, "the end of the time was reached"
        try:
            while flight.t < duration - 1e-9:
                if command.restarted:
                    flight = _Flight(self, command)
                    begin = time.monotonic()
                slow, fix = flight.advance(command)
                if not flight.finite:
                    status = NON_FINITE
                    message = f"a state or reading became nan or infinite at t = {flight.t:.9g} s"
                    break
                if pace is not None:
                    late = time.monotonic() - (begin + flight.t / pace)
                    if late < 0.0:
                        time.sleep(-late)
                    else:
                        self.counts["late"] += late > flight.dt
                if flight.t >= duration - 1e-9:
                    protocol.finish(flight.t, flight.readings)
                    break
                command = protocol.exchange(flight.t, flight.readings, slow, fix, lockstep)
        except AutopilotLost as error:
            status, message = LOST, f"{error}; the flight ends at t = {flight.t:.9g} s"
        return flight.trajectory(status, message)


class _Flight:
    """The state of the loop, and what is recorded."""

    def __init__(self, loop: SoftwareInTheLoop, command: Command) -> None:
        self.plant, self.hold, self.commands = loop.plant, loop.hold, loop.commands
        self.max_step, self.every, self.counts = loop.max_step, loop.every, loop.counts
        self.used: dict[bytes, bool] = {}  # whether channels that are nan together matter
        self.dt = command.dt or 1.0 / loop.rate
        self.with_slow = loop.autopilot == "px4"
        self.t, self.x, self.k = 0.0, loop.x0, 0
        self.since = (0.0, 0)  # time and number of the exchange at which dt changed
        self.free, self.released = not self.hold, math.inf
        self.drift, self.magnetic_drift, self.error = self.plant.initial()
        self.leaves: list[list[Any]] = []
        self.readings: Any = None
        self._sense(command.channels)
        self._record(command.channels)

    def advance(self, command: Command) -> tuple[Any, Any]:
        """Move by one exchange; return the readings of slower sensors where they are due."""
        if command.dt and command.dt != self.dt:
            self.dt, self.since = command.dt, (self.t, self.k)
        channels = self._without_nan(command.channels)
        idle = getattr(self.commands, "idle", None)
        if not self.free and command.armed is not False:
            self.free = idle is None or not idle(channels)
        if self.free:
            self.released = min(self.released, self.t)
            parts = max(1, math.ceil(self.dt / self.max_step - 1e-9))
            self.x = self.plant.step(self.t, self.x, channels, self.dt, parts)
        self.k += 1
        self.t = self.since[0] + (self.k - self.since[1]) * self.dt
        self._sense(channels)
        slow = fix = None
        if self.with_slow and self.k % self.every[0] == 0:
            span = self.every[0] * self.dt
            self.magnetic_drift, *slow = self.plant.slow(
                self.t, self.x, self.readings, self.magnetic_drift, self.k, span
            )
        if self.with_slow and self.k % self.every[1] == 0:
            span = self.every[1] * self.dt
            self.error, fix = self.plant.fix(self.readings, self.error, self.k, span)
        self._record(channels)
        return slow, fix

    def warm_up(self) -> None:
        """Compile what will run, so that the clock need not wait for it."""
        self.free = True
        for _ in range(100):
            self.advance(Command(np.zeros(CHANNELS), True))

    def _without_nan(self, channels: np.ndarray) -> np.ndarray:
        """Return channels with 0 for nan, which PX4 sends for motors that are off; count it."""
        bad = ~np.isfinite(channels)
        if not bad.any():
            return channels
        if (key := bad.tobytes()) not in self.used:
            u = tree.leaves(self.commands(np.where(bad, np.nan, 0.0)))
            self.used[key] = not all(np.all(np.isfinite(leaf)) for leaf in u)
        self.counts["not_finite"] += self.used[key]
        return np.where(bad, 0.0, channels)

    def _sense(self, channels: np.ndarray) -> None:
        self.drift, self.readings = self.plant.inertial(
            self.t, self.x, channels, self.drift, self.k, self.dt, self.free
        )

    def _record(self, channels: np.ndarray) -> None:
        self.leaves.append([self.t, *tree.leaves((self.x, self.readings)), channels])

    @property
    def finite(self) -> bool:
        """Whether states and readings are, as numbers of single precision too."""
        leaves = tree.leaves((self.x, self.readings))
        return all(np.all(np.abs(leaf) < LARGEST) for leaf in leaves)

    def trajectory(self, status: int, message: str) -> Trajectory:
        """Return what was recorded."""
        columns = [np.array(column) for column in zip(*self.leaves)]
        # Recorded with the state that it leads to, shown with the state that it acts on.
        columns[-1] = np.concatenate([columns[-1][1:], columns[-1][-1:]])
        shape = tree.structure((self.x, self.readings))
        x, y = tree.unflatten(shape, columns[1:-1])
        inputs = [tree.leaves(self.commands(row)) for row in columns[-1]]
        u = tree.unflatten(
            tree.structure(self.commands(np.zeros(CHANNELS))),
            [np.array(column, dtype=float) for column in zip(*inputs)],
        )
        stats = {"channels": columns[-1], "released": self.released, **self.counts}
        stats["exchanges"] = self.k
        return Trajectory(
            columns[0], x, u=u, y=y, status=status, message=message, stats=stats, hold="zoh"
        )


def _flat(vehicle: Any) -> bool:
    return getattr(vehicle.world, "State", None) is RigidBody.State


def _sensors(
    autopilot: str,
    imu: Imu | None,
    magnetometer: Magnetometer | None,
    air_data: AirData | None,
    gnss: Gnss | None,
    field_NED: np.ndarray,
) -> Sensors:
    """Return the sensors, where they are not given those of a small autopilot board."""
    noisy = Imu(TriadErrors(noise=2e-3), TriadErrors(noise=1.5e-4))  # m/s^2 and rad/s per root Hz
    return Sensors(
        imu=imu or (noisy if autopilot == "px4" else Imu()),
        magnetometer=magnetometer or Magnetometer(TriadErrors(noise=4e-8)),
        air_data=air_data or AirData(pressure_noise=3.0),
        gnss=gnss or Gnss(wander=np.array([0.5, 0.5, 1.0]), noise=np.array([0.2, 0.2, 0.4])),
        field_NED=field_NED,
    )

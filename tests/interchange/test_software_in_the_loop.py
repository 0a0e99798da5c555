"""Software in the loop: scripted autopilots in other processes, and packets made by hand."""

from __future__ import annotations

import json
import math
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import ConstantWind, StandardAtmosphere1976
from archimedes.errors import StructError
from archimedes.interchange import RotorCommands, SoftwareInTheLoop, SurfaceCommands
from archimedes.interchange.autopilots.ardupilot import decode_servos
from archimedes.vehicles import F16, FlatEarth, FlightState, RotatingEarth, load, ring
from archimedes.vehicles.sensors import AirData, Gnss, Imu, Magnetometer
from tests.optional_packages import import_or_skip

HERE = Path(__file__).parent
GOAL = (1.0, -0.5, -2.0)
LOCAL = "127.0.0.1"


@pytest.fixture(scope="module")
def drone():
    return load("multirotor", world=FlatEarth())


@pytest.fixture(scope="module")
def mavlink():
    return import_or_skip("pymavlink.dialects.v20.common")


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((LOCAL, 0))
        return sock.getsockname()[1]


def hover(drone, kind, duration, share=0.0, seed=1):
    """Return the trajectory of a flight by a scripted autopilot, through a lossy network or not."""
    loop = SoftwareInTheLoop(drone, **options(kind)).open()
    port = loop.port
    programs = []
    try:
        if share:
            between, target = free_port(), port
            if kind == "px4-udp":  # the simulator calls, so that the proxy has its port
                between, target = port, free_port()
            words = [between, target, seed, share]
            proxy = start("lossy_proxy.py", *words, stdout=subprocess.PIPE, text=True)
            programs.append(proxy)
            assert proxy.stdout.readline() == "ready\n"
            port = target if kind == "px4-udp" else between
        programs.append(start("scripted_autopilot.py", kind, port, ",".join(map(str, GOAL))))
        return loop.run(duration, wait=20.0, timeout=10.0)
    finally:
        loop.close()
        for program in programs:
            program.terminate()
            program.wait()
            if program.stdout:
                program.stdout.close()


def options(kind):
    autopilot, _, transport = kind.partition("-")
    if autopilot == "ardupilot":
        return {"autopilot": autopilot, "port": 0}
    return {"transport": transport, "port": 0 if transport == "tcp" else free_port()}


def start(program, *words, **more):
    return subprocess.Popen([sys.executable, str(HERE / program), *map(str, words)], **more)


def check_hover(traj, duration):
    """After 10 s the vehicle is within 5 cm of the goal, level within a degree; never far away."""
    assert traj.success, traj.message
    assert traj.t[-1] == pytest.approx(duration)
    pos, late = traj.x.motion.pos, traj.t > 10.0
    assert np.all(pos[traj.t < 0.1] == 0.0)  # held until it is armed
    assert np.all(np.abs(pos) < np.abs(GOAL) + 0.1)
    assert np.all(np.abs(pos[late] - GOAL) < 0.05)
    rpy = traj.x.motion.att.as_euler("xyz").array
    assert np.all(np.abs(rpy[late]) < np.deg2rad(1.0))


@pytest.mark.parametrize("kind", ["ardupilot", "px4-tcp", "px4-udp"])
@pytest.mark.long_cases("px4-udp")
def test_a_scripted_autopilot_takes_off(drone, kind, request):
    if kind != "ardupilot":
        request.getfixturevalue("mavlink")
    traj = hover(drone, kind, 0.8)
    check_hover(traj, 0.8)
    assert traj.x.motion.pos[-1] @ GOAL > 0.1
    assert traj.stats["received"] == len(traj) - 1


@pytest.mark.parametrize("kind", ["ardupilot", "px4-udp"])
@pytest.mark.long_cases("ardupilot")
def test_what_the_network_loses_changes_no_bit(drone, kind, request):
    if kind != "ardupilot":
        request.getfixturevalue("mavlink")
    clean, lossy = hover(drone, kind, 0.4), hover(drone, kind, 0.4, share=0.05, seed=3)
    assert lossy.success and lossy.stats["repeated"] + lossy.stats["resent"] > 0
    for part in ("x", "u", "y"):
        for a, b in zip(*(arc.tree.leaves(getattr(traj, part)) for traj in (clean, lossy))):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ardupilot", "px4-udp"])
def test_a_minute_of_hover_with_lost_and_reordered_packets(drone, kind, mavlink):
    traj = hover(drone, kind, 60.0, share=0.01)
    check_hover(traj, 60.0)
    assert traj.stats["resent"] > 50


# ---- by hand: ArduPilot ------------------------------------------------------------------------


def servos(count, pulses, rate=400, magic=18458):
    return struct.pack(f"<HHI{len(pulses)}H", magic, rate, count, *pulses)


HALF = [1500] * 4 + [0] * 12


class Exchange:
    """A loop in a thread, and a socket that plays the autopilot."""

    def __init__(self, loop, duration, **run):
        self.loop = loop.open()
        self.port = loop.port
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(5.0)
        self.result = None
        self.thread = threading.Thread(target=self._run, args=(duration, run))
        self.thread.start()

    def _run(self, duration, run):
        try:
            self.result = self.loop.run(duration, **run)
        except Exception as error:
            self.result = error

    def send(self, data, sock=None):
        (sock or self.socket).sendto(data, (LOCAL, self.port))

    def ask(self, data):
        self.send(data)
        return json.loads(self.socket.recv(65535))

    def end(self):
        self.thread.join(20.0)
        assert not self.thread.is_alive()
        self.socket.close()
        return self.result


def ardupilot(drone, **more):
    return SoftwareInTheLoop(drone, autopilot="ardupilot", port=0, **more)


def test_pulses_move_the_vehicle_as_the_solver_does(drone):
    """Pulses that change, without hold: the solver's answer, at a rate that needs three steps."""
    loop = Exchange(ardupilot(drone, hold=False), 0.05)
    pulses = [1550 + 20 * (k % 7) for k in range(20)]
    states = [loop.ask(servos(k, [pulse] * 4 + [0] * 12)) for k, pulse in enumerate(pulses)]
    traj = loop.end()
    speeds = np.array([*pulses, pulses[-1]]) - 1000.0
    x0 = drone.state(FlightState(0.0, 0.0, 0.0, np.zeros(3), np.zeros(3), np.zeros(3)))
    truth = arc.solve_ode(
        lambda t, x, u: drone.dynamics(t, x, drone.Input(u)),
        (0.0, 0.05),
        x0,
        inputs=arc.InputSeries(0.0025 * np.arange(21), speeds),
        t_eval=traj.t,
        rtol=1e-12,
        atol=1e-15,
    )
    assert traj.t[-1] == pytest.approx(0.05) and len(traj) == 21
    np.testing.assert_allclose(traj.x.motion.pos, truth.x.motion.pos, atol=1e-11)
    np.testing.assert_allclose(traj.u.speeds, np.tile(speeds[:, None], 4))
    assert traj.hold == "zoh" and traj.stats["released"] == 0.0
    for k, state in enumerate(states, start=1):
        assert state["timestamp"] == traj.t[k]
        np.testing.assert_allclose(state["position"], truth.x.motion.pos[k], atol=1e-11)
        # Free fall less lift: 4 k w^2 / m upwards.
        lift = -1e-5 * np.sum(truth.x.speeds[k] ** 2) / 1.2
        np.testing.assert_allclose(state["imu"]["accel_body"], [0.0, 0.0, lift], atol=1e-3)
        np.testing.assert_allclose(state["quaternion"], [1.0, 0.0, 0.0, 0.0], atol=1e-15)


def test_lost_repeated_old_and_foreign_packets(drone):
    loop = Exchange(ardupilot(drone), 7 / 400)
    first = loop.ask(servos(5, HALF))
    assert first["timestamp"] == 1 / 400
    assert loop.ask(servos(5, HALF)) == first  # our answer was lost: the same again
    assert loop.ask(servos(9, HALF))["timestamp"] == 2 / 400  # three were lost on the way
    loop.send(servos(7, HALF))  # old
    loop.send(b"garbage")
    loop.send(b"")
    loop.send(servos(10, HALF)[:-1])
    loop.send(servos(10, HALF) + b"x")
    loop.send(servos(10, HALF, rate=0))
    loop.send(servos(10, HALF, magic=18459))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        loop.send(servos(10, [2000] * 16), stranger)
        stranger.setblocking(False)
        assert loop.ask(servos(10, HALF))["timestamp"] == 3 / 400
        with pytest.raises(BlockingIOError):
            stranger.recv(65535)
    # 32 channels, and others rates: the time goes on from where it was.
    loop.ask(servos(11, [1500] * 4 + [0] * 28, magic=29569))
    for k in range(12, 15):
        loop.ask(servos(k, HALF))
    traj = loop.end()
    assert traj.success and np.all(traj.u.speeds[1:] == 500.0)
    counts = {k: v for k, v in traj.stats.items() if k not in ("channels", "released")}
    expected = {"received": 7, "lost": 3, "repeated": 1, "old": 1, "garbage": 6, "strangers": 1}
    assert counts == expected | {"restarts": 0, "exchanges": 7}


def test_another_frame_rate_goes_on_from_there(drone):
    loop = Exchange(ardupilot(drone), 0.0175)
    times = [
        loop.ask(servos(k, HALF, rate=rate))["timestamp"] for k, rate in enumerate((400, 400, 200))
    ]
    np.testing.assert_allclose(times, [0.0025, 0.005, 0.01])
    assert loop.ask(servos(3, HALF, rate=200))["timestamp"] == pytest.approx(0.015)
    assert loop.ask(servos(4, HALF, rate=400))["timestamp"] == pytest.approx(0.0175)
    assert loop.end().success


def test_a_restarted_autopilot_starts_again(drone):
    loop = Exchange(ardupilot(drone), 3 / 400)
    loop.ask(servos(100_000, HALF))
    loop.ask(servos(100_001, HALF))
    assert [loop.ask(servos(k, HALF))["timestamp"] for k in range(3)] == [1 / 400, 2 / 400, 3 / 400]
    traj = loop.end()
    assert traj.stats["restarts"] == 1 and len(traj) == 4 and traj.t[0] == 0.0


@pytest.mark.long
def test_a_restarted_autopilot_may_have_another_port_after_a_silence(drone):
    loop = Exchange(ardupilot(drone), 2 / 400, timeout=10.0)
    loop.ask(servos(7, HALF))
    loop.socket.close()
    time.sleep(1.1)
    loop.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    loop.socket.settimeout(5.0)
    loop.send(servos(500, HALF))  # in the middle of something else: not ours
    assert loop.ask(servos(0, HALF))["timestamp"] == 1 / 400
    loop.ask(servos(1, HALF))
    traj = loop.end()
    assert traj.success and (traj.stats["restarts"], traj.stats["strangers"]) == (1, 1)


def test_a_lost_autopilot_ends_the_flight(drone):
    loop = Exchange(ardupilot(drone), 10.0, timeout=0.2)
    loop.ask(servos(0, HALF))
    loop.ask(servos(1, HALF))
    stop = time.monotonic() + 0.4
    while time.monotonic() < stop:  # garbage does not count as life
        loop.send(b"garbage")
        time.sleep(0.01)
    traj = loop.end()
    assert (traj.status, traj.success, len(traj)) == (-1, False, 3)
    garbage = r", but \d+ of no known form: .* 16 or 32 channels at 10 to 20000 Hz"
    end = "; the flight ends at t = 0.005 s"
    assert re.fullmatch(f"no packet of the autopilot for 0.2 s{garbage}{end}", traj.message)


def test_nobody_there(drone):
    with pytest.raises(TimeoutError, match=r"no autopilot at 127\.0\.0\.1, port \d+ \(UDP\)"):
        ardupilot(drone).run(1.0, wait=0.05)


def test_no_pulses_hold_the_vehicle(drone):
    """Pulses of 1000 us, or none, leave it where it starts; sensors feel the support."""
    loop = Exchange(ardupilot(drone), 3 / 400)
    for k, pulses in enumerate([[0] * 16, [1000] * 16, [1100] * 16]):
        state = loop.ask(servos(k, pulses))
        if k < 2:
            assert state["position"] == [0.0, 0.0, 0.0]
            np.testing.assert_allclose(state["imu"]["accel_body"], [0.0, 0.0, -9.80665])
    traj = loop.end()
    assert np.all(traj.x.motion.pos[:3] == 0.0) and traj.x.motion.pos[3, 2] > 0.0
    assert traj.stats["released"] == 2 / 400


@pytest.mark.long
def test_real_time(drone):
    loop = Exchange(ardupilot(drone), 0.1, speed=0.5)
    begin = time.monotonic()
    for k in range(40):
        loop.ask(servos(k, HALF))
    assert time.monotonic() - begin >= 0.19
    assert loop.end().success


@pytest.mark.long
def test_an_aeroplane_by_pulses():
    """Ailerons right roll right, elevator up pitches up, rudder right yaws right."""
    plane = F16(world=FlatEarth())
    level = FlightState(
        0.0, 0.0, 3000.0, np.array([150.0, 0, 0]), np.array([0, 0.05, 0]), np.zeros(3)
    )
    loop = Exchange(ardupilot(plane, x0=level, max_step=0.005), 0.2)
    for k in range(40):
        state = loop.ask(servos(k, [1600, 1600, 1300, 1600] + [0] * 12, rate=200))
    traj = loop.end()
    assert traj.success and state["imu"]["gyro"][0] > 0.05 and state["imu"]["gyro"][2] > 0.005
    neutral = F16.Input(0.3)
    x0 = plane.state(level)
    free = arc.solve_ode(lambda t, x: plane.dynamics(t, x, neutral), (0.0, 0.2), x0)
    assert state["imu"]["gyro"][1] > free.x.motion.w_B[-1, 1] + 0.02
    np.testing.assert_allclose(traj.u.throttle[1:], 0.3)
    np.testing.assert_allclose(traj.u.elevator[1:], -0.2 * np.deg2rad(25.0))
    # Positions are relative to home, at which the altitude is zero.
    assert state["position"][2] == pytest.approx(-3000.0, abs=1.0)
    assert 149.0 < state["airspeed"] < 151.0


def test_decode_servos_takes_nothing_else():
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 3, 39, 40, 41, 71, 72, 73, 60000):
        assert decode_servos(rng.bytes(size)) is None
    assert decode_servos(servos(2**32 - 1, [65535] * 32, magic=29569)).pulses == (65535,) * 32


# ---- by hand: PX4 ------------------------------------------------------------------------------


class Px4:
    """Plays PX4 over TCP, in another thread than the loop."""

    def __init__(self, mavlink, loop, duration, hello=True, **run):
        self.m, self.exchange = mavlink, Exchange(loop, duration, **run)
        self.exchange.socket.close()
        self.exchange.socket = self.socket = socket.create_connection((LOCAL, loop.port))
        self.socket.settimeout(5.0)
        self.out, self.parser = mavlink.MAVLink(None, 1, 1), mavlink.MAVLink(None)
        if hello:
            self.send(self.controls(0, [0.0] * 16, mode=0))

    def controls(self, now, values, mode=128, flags=1):
        message = self.m.MAVLink_hil_actuator_controls_message(now, values, mode, flags)
        return message.pack(self.out)

    def send(self, data):
        self.socket.sendall(data)

    def sensors(self):
        """Return the messages of the next time by name."""
        found = {}
        while "HIL_SENSOR" not in found:
            data = self.socket.recv(65535)
            if not data:
                return None
            found |= {one.get_type(): one for one in self.parser.parse_buffer(data) or []}
        return found

    def fly(self, values):
        """Answer until the end; return all messages by time."""
        rows = []
        while (messages := self.sensors()) is not None:
            rows.append(messages)
            try:
                self.send(self.controls(messages["HIL_SENSOR"].time_usec, values))
            except OSError:
                break
        return rows


HOME = (math.radians(-35.0), math.radians(149.0), 500.0)
FIELD = np.array([2.4e-5, 0.5e-5, -5.2e-5])
EXACT = {
    "imu": Imu(),
    "magnetometer": Magnetometer(),
    "air_data": AirData(pressure_noise=0.0, temperature_noise=0.0),
    "gnss": Gnss(wander=np.zeros(3), noise=np.zeros(3), velocity_noise=np.zeros(3)),
}


def test_what_px4_is_sent(mavlink, drone):
    """Perfect sensors, heading east with 8 m/s to the north: fields in their units."""
    pymap3d = import_or_skip("pymap3d")
    v, rpy = np.array([8.0, 0.0, 0.0]), np.array([0.0, 0.0, np.pi / 2])
    x0 = drone.state(FlightState(0.0, 0.0, 100.0, v, rpy, np.zeros(3)))
    x0 = x0.replace(motion=x0.motion.replace(pos=np.array([300.0, -200.0, -100.0])))
    loop = SoftwareInTheLoop(drone, x0, port=0, home=HOME, magnetic_field=FIELD, **EXACT)
    px4 = Px4(mavlink, loop, 0.104)
    rows = px4.fly([math.nan] + [0.0] * 15)
    traj = px4.exchange.end()
    assert traj.success and traj.stats["not_finite"] == 25
    assert [row["HIL_SENSOR"].time_usec for row in rows] == [1 + 4000 * k for k in range(25)]
    assert sum("HIL_GPS" in row for row in rows) == 1
    assert sum("HIL_STATE_QUATERNION" in row for row in rows) == 5
    sensor = rows[4]["HIL_SENSOR"]
    assert sensor.fields_updated == 0x1FFF and rows[5]["HIL_SENSOR"].fields_updated == 0x3F
    # Held: the support pushes up. North is to the left of a vehicle that heads east.
    np.testing.assert_allclose([sensor.xacc, sensor.yacc, sensor.zacc], [0, 0, -9.80665], atol=1e-6)
    felt = np.array([FIELD[1], -FIELD[0], FIELD[2]]) * 1e4
    np.testing.assert_allclose([sensor.xmag, sensor.ymag, sensor.zmag], felt, rtol=1e-6)
    air = StandardAtmosphere1976()(600.0)
    assert sensor.abs_pressure == pytest.approx(float(air.pressure) / 100.0, rel=1e-6)
    assert sensor.diff_pressure == pytest.approx(0.5 * float(air.density) * 64.0 / 100.0, rel=1e-3)
    assert sensor.temperature == pytest.approx(15.0 - 0.0065 * 600.0, abs=0.01)
    assert sensor.pressure_alt == pytest.approx(600.0, abs=0.2)
    gps = next(row["HIL_GPS"] for row in rows if "HIL_GPS" in row)
    lat, lon, alt = pymap3d.ned2geodetic(300.0, -200.0, -100.0, -35.0, 149.0, 500.0)
    assert gps.lat == pytest.approx(1e7 * lat, abs=10) and gps.lon == pytest.approx(
        1e7 * lon, abs=10
    )
    assert gps.alt == pytest.approx(1e3 * alt, abs=15) and gps.fix_type == 3
    assert (gps.vn, gps.ve, gps.vd, gps.vel, gps.cog) == (800, 0, 0, 800, 0)
    state = rows[4]["HIL_STATE_QUATERNION"]
    np.testing.assert_allclose(state.attitude_quaternion, [0.5**0.5, 0, 0, 0.5**0.5], atol=1e-6)
    assert (state.vx, state.vy, state.zacc, state.true_airspeed) == (800, 0, -1000, 800)


def test_px4_without_lock_step_is_refused(mavlink, drone):
    px4 = Px4(mavlink, SoftwareInTheLoop(drone, port=0), 1.0, hello=False)
    px4.send(px4.controls(0, [0.0] * 16, flags=0))
    assert "give lockstep=False" in str(px4.exchange.end())


def test_px4_while_it_starts(mavlink, drone):
    """Before its first controls time goes on at the pace of the clock."""
    px4 = Px4(mavlink, SoftwareInTheLoop(drone, port=0), 0.1, hello=False)
    heartbeat = mavlink.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3).pack(px4.out)
    px4.send(heartbeat)
    times = [px4.sensors()["HIL_SENSOR"].time_usec for _ in range(5)]
    assert times == sorted(times) and times[-1] >= 16001
    px4.fly([0.5] * 4 + [0.0] * 12)
    assert px4.exchange.end().success


@pytest.mark.long
def test_px4_may_leave_out_an_answer_but_not_all(mavlink, drone):
    """After a second time goes on without; after the time-out the autopilot is lost."""
    px4 = Px4(mavlink, SoftwareInTheLoop(drone, port=0), 1.0, timeout=1.5)
    assert px4.sensors()["HIL_SENSOR"].time_usec == 1
    assert px4.sensors()["HIL_SENSOR"].time_usec == 4001  # the first was not answered
    px4.send(px4.controls(1, [0.9] * 16))  # late
    px4.send(px4.controls(4001, [0.5] * 16))
    assert px4.sensors()["HIL_SENSOR"].time_usec == 8001
    traj = px4.exchange.end()
    assert traj.status == -1 and "no message of the autopilot for 1.5 s" in traj.message
    # Where the machine is slow, the silence is found before the third second is over.
    assert traj.stats["unanswered"] in (2, 3) and np.all(traj.u.speeds[3:] == 500.0)


def test_px4_garbage_strangers_and_old_controls(mavlink, drone):
    px4 = Px4(mavlink, SoftwareInTheLoop(drone, port=0), 3 / 250)
    px4.sensors()
    px4.send(b"nonsense" + px4.controls(1, [0.5] * 16))
    px4.sensors()
    foreign = mavlink.MAVLink(None, 7, 1)
    broken = bytearray(px4.controls(4001, [0.9] * 16))
    broken[20] ^= 0xFF
    message = mavlink.MAVLink_hil_actuator_controls_message(4001, [0.9] * 16, 128, 1)
    px4.send(message.pack(foreign) + bytes(broken) + px4.controls(1, [0.9] * 16))
    px4.send(px4.controls(4001, [0.5] * 16))
    traj = px4.exchange.end()
    assert traj.success and np.all(traj.u.speeds[2:] == 500.0)
    counts = traj.stats
    assert (counts["strangers"], counts["repeated"], counts["received"]) == (1, 1, 3)
    assert counts["garbage"] >= 2


def test_px4_hangs_up(mavlink, drone):
    px4 = Px4(mavlink, SoftwareInTheLoop(drone, port=0), 1.0)
    px4.sensors()
    px4.socket.close()
    traj = px4.exchange.end()
    assert (traj.status == -1 and "clos" in traj.message) or "broke" in traj.message


def test_px4_by_the_clock(mavlink, drone):
    """Without lock step nothing waits: the latest controls hold."""
    px4 = Px4(mavlink, SoftwareInTheLoop(drone, port=0), 0.1, lockstep=False)
    px4.send(px4.controls(1, [0.6] * 16))
    begin, times = time.monotonic(), []
    while (messages := px4.sensors()) is not None:
        times.append(messages["HIL_SENSOR"].time_usec)
    traj = px4.exchange.end()
    assert traj.success and times[-1] == 92001 and time.monotonic() - begin > 0.05
    assert np.all(traj.u.speeds[-1] == pytest.approx(600.0))


def test_a_state_that_diverges_ends_the_flight(mavlink, drone):
    """Numbers too large for the messages, or nan: the status says so."""
    for autopilot in ("px4", "ardupilot"):
        x0 = drone.state(FlightState(0.0, 0.0, 0.0, np.full(3, 1e200), np.zeros(3), np.zeros(3)))
        loop = SoftwareInTheLoop(drone, x0, autopilot=autopilot, port=0, hold=False)
        if autopilot == "px4":
            traj = Px4(mavlink, loop, 1.0).exchange.end()
        else:
            exchange = Exchange(loop, 1.0)
            exchange.send(servos(0, HALF))
            traj = exchange.end()
        assert traj.status == -2 and "a state or reading became nan or infinite" in traj.message


# ---- refusals and defaults ---------------------------------------------------------------------


def test_port_in_use(drone):
    with ardupilot(drone) as first:
        assert first.port > 0
        second = SoftwareInTheLoop(drone, autopilot="ardupilot", port=first.port)
        with pytest.raises(OSError, match=f"port {first.port} on 127.0.0.1 is in use"):
            second.run(1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"autopilot": "betaflight"}, "autopilot='betaflight' is not one of 'px4', 'ardupilot'"),
        ({"autopilot": "ardupilot", "transport": "tcp"}, "JSON interface has UDP only"),
        ({"rate": 0.0}, "rate"),
        ({"gnss_rate": 500.0}, "gnss_rate=500.0 must be at most rate=250.0"),
        ({"home": (-0.6, 2.6, 500.0)}, "PX4 needs magnetic_field="),
        ({"max_step": -1.0}, "max_step"),
        ({"home": (47.4, 8.5, 400.0)}, "must be latitude in rad, .*np.deg2rad"),
        ({"home": (0.8, 0.1)}, "must be latitude in rad"),
        ({"magnetic_field": (0.2, 0.0, 0.4)}, "must be north, east and down in T; the Earth's is"),
        ({"magnetic_field": (2e-5, 4e-5)}, "must be north, east and down in T"),
    ],
)
def test_wrong_options(drone, change, message):
    with pytest.raises(ValueError, match=message):
        SoftwareInTheLoop(drone, **change)


def test_wrong_duration_and_port(drone):
    with pytest.raises(TypeError, match="x0 must be a FlightState, or a state of the vehicle"):
        SoftwareInTheLoop(drone, {"pos": np.zeros(3)})
    with pytest.raises(TypeError, match=r"commands must be a function \(channels\), got int"):
        ardupilot(drone, commands=3)
    with pytest.raises(ValueError, match="duration"):
        ardupilot(drone).run(0.0)
    with pytest.raises(ValueError, match="port=70000 must be between 0 and 65535"):
        SoftwareInTheLoop(drone, autopilot="ardupilot", port=70000).run(1.0)


def test_vehicles_without_a_usual_order(drone):
    hexa = drone.replace(rotors=ring(6, 0.3))
    with pytest.raises(ValueError, match=r"6 rotors have no usual order: give commands=Rotor"):
        SoftwareInTheLoop(hexa)
    mirrored = drone.replace(rotors=drone.rotors.replace(spins=-drone.rotors.spins))
    with pytest.raises(ValueError, match="not those of a quadrotor X, front right and back left"):
        SoftwareInTheLoop(mirrored)
    SoftwareInTheLoop(hexa, commands=RotorCommands(1000.0, tuple(range(6))))
    with pytest.raises(StructError, match="Rocket lacks mass"):
        SoftwareInTheLoop(load("rocket"))


def test_commands():
    half = np.full(32, 0.25)
    assert np.all(RotorCommands(100.0, (0, 1), "thrust")(half).speeds == 50.0)
    pulses = RotorCommands(100.0, (0, 1, 2), pulses=True)
    np.testing.assert_allclose(pulses(np.array([900.0, 1500.0, 2200.0])).speeds, [0, 50, 100])
    assert pulses.idle(np.array([0.0, 1000.0, 900.0])) and not pulses.idle(np.array([0, 0, 1001.0]))
    neutral = SurfaceCommands(pulses=True)(np.zeros(32))
    assert (neutral.throttle, neutral.aileron, neutral.rudder) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="curve='power'"):
        RotorCommands(1.0, (0,), "power")
    with pytest.raises(ValueError, match="must be channels"):
        RotorCommands(1.0, (32,))


def test_default_magnetic_field_is_that_of_the_default_home():
    ppigrf = import_or_skip("ppigrf")
    from datetime import datetime

    from archimedes.interchange.autopilots.software_in_the_loop import FIELD, HOME

    lat, lon = np.rad2deg(HOME[:2])
    east, north, up = (
        float(np.squeeze(part)) * 1e-9 for part in ppigrf.igrf(lon, lat, 0.0, datetime(2026, 1, 1))
    )
    np.testing.assert_allclose(FIELD, [north, east, -up], atol=5e-9)


@pytest.mark.long
def test_a_rotating_earth_has_its_home_where_the_vehicle_starts():
    drone = load("multirotor", world=RotatingEarth(wind=ConstantWind(np.zeros(3))))
    start = FlightState(0.8, 0.2, 50.0, np.array([0.0, 3.0, 0.0]), np.zeros(3), np.zeros(3))
    loop = Exchange(ardupilot(drone, x0=start, hold=False), 0.1)
    for k in range(40):
        state = loop.ask(servos(k, [1543] * 4 + [0] * 12))
    loop.end()
    np.testing.assert_allclose(state["position"], [0.0, 0.3, 0.0], atol=0.01)
    np.testing.assert_allclose(state["velocity"], [0.0, 3.0, 0.0], atol=0.2)

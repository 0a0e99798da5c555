"""An autopilot in a few lines, run as a program of its own: hovers a quadrotor X.

    python scripted_autopilot.py px4-tcp PORT | px4-udp PORT | ardupilot PORT

It imports nothing of the package. The controller works on the true motion; its mixer is written
down from the physics: more lift on the left rolls right, more in front pitches up, and more from
the rotors that spin counter-clockwise yaws clockwise.
"""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import sys
import time

MASS, GRAVITY, LIFT = 1.2, 9.80665, 10.0  # kg, m/s^2, N of one rotor at full command
INERTIA, ARM, TORQUE = (0.012, 0.012, 0.022), 0.23 / math.sqrt(2.0), 0.015
#: Front (1) or back, right (1) or left, counter-clockwise from above (1) or not: motors 1 to 4.
MOTORS = ((1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1))
IDLE_AT_FIRST = 0.1  # s until the motors start


def angles(q):
    w, x, y, z = q
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(max(-1.0, min(1.0, 2 * (w * y - z * x))))
    return roll, pitch, math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def hover(pos, vel, q, rate, goal):
    """Return four commands from 0 to 1, of which the speed of a rotor is proportional."""
    a = [max(-3.0, min(3.0, 1.0 * (g - p) - 1.8 * v)) for g, p, v in zip(goal, pos, vel)]
    roll, pitch, yaw = angles(q)
    ahead = a[0] * math.cos(yaw) + a[1] * math.sin(yaw)
    right = -a[0] * math.sin(yaw) + a[1] * math.cos(yaw)
    errors = right / GRAVITY - roll, -ahead / GRAVITY - pitch, -yaw
    gains = (60.0, 60.0, 8.0), (14.0, 14.0, 5.0)
    M = [J * (k * e - d * w) for J, k, d, e, w in zip(INERTIA, *gains, errors, rate)]
    thrust = MASS * (GRAVITY - a[2])
    share = []
    for front, side, ccw in MOTORS:
        lift = thrust - side * M[0] / ARM + front * M[1] / ARM + ccw * M[2] / TORQUE
        share.append(math.sqrt(max(0.0, min(1.0, lift / 4.0 / LIFT))))
    return share


def fly_ardupilot(port, goal, rate=250):
    """Send pulse widths; again where no answer comes, as ArduPilot does."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    count, share, last, resent = 0, [0.0] * 4, -1.0, 0
    quiet = time.monotonic()
    while True:
        pulses = [round(1000 + 1000 * u) for u in share] + [0] * 12
        packet = struct.pack("<HHI16H", 18458, rate, count, *pulses)
        sock.sendto(packet, ("127.0.0.1", port))
        while True:
            sock.settimeout(0.02)
            try:
                lines = sock.recv(65535)
            except (TimeoutError, ConnectionError):
                if time.monotonic() - quiet > 3.0:
                    return
                sock.sendto(packet, ("127.0.0.1", port))
                resent += 1
                continue
            assert lines.startswith(b"\n{") and lines.endswith(b"}\n") and b" " not in lines
            state = json.loads(lines)
            if state["timestamp"] > last:
                break
        quiet, last = time.monotonic(), state["timestamp"]
        count += 1
        if last > IDLE_AT_FIRST:
            imu = state["imu"]
            share = hover(
                state["position"], state["velocity"], state["quaternion"], imu["gyro"], goal
            )


def fly_px4(port, goal, stream):
    """Answer each HIL_SENSOR, the same one again with the same controls."""
    os.environ["MAVLINK20"] = "1"
    from pymavlink.dialects.v20 import common

    out = common.MAVLink(None, srcSystem=1, srcComponent=1)
    state = None

    def controls(now, share, armed):
        values = [*share, *[math.nan] * 4, *[0.0] * 8]
        message = common.MAVLink_hil_actuator_controls_message(now, values, 128 * armed, 1)
        return message.pack(out)

    if stream:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        end = time.monotonic() + 20.0
        while sock.connect_ex(("127.0.0.1", port)):
            if time.monotonic() > end:
                return
            time.sleep(0.02)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = None
    else:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", port))
        peer = "unknown"

    def send(data):
        if stream:
            sock.sendall(data)
        else:
            sock.sendto(data, peer)

    if stream:
        send(controls(0, [0.0] * 4, False))
    last, answer, parser = 0, b"", common.MAVLink(None)
    parser.robust_parsing = True
    sock.settimeout(20.0)
    while True:
        try:
            data, sender = sock.recvfrom(65535)
        except (TimeoutError, ConnectionError):
            return
        if not data:
            return
        if peer == "unknown":
            peer = sender
            sock.settimeout(3.0)
            send(controls(0, [0.0] * 4, False))
        for message in parser.parse_buffer(data) or []:
            kind = message.get_type()
            if kind == "HIL_STATE_QUATERNION" and message.time_usec > last:
                state = message
            if kind != "HIL_SENSOR":
                continue
            now = message.time_usec
            if now > last:
                last, share = now, [0.0] * 4
                if state is not None and now > 1e6 * IDLE_AT_FIRST:
                    home = 47.397742, 8.545594
                    pos = (
                        (state.lat * 1e-7 - home[0]) * 111178.0,
                        (state.lon * 1e-7 - home[1]) * 75496.0,
                        -1e-3 * state.alt,
                    )
                    vel = [0.01 * v for v in (state.vx, state.vy, state.vz)]
                    rate = message.xgyro, message.ygyro, message.zgyro
                    share = hover(pos, vel, state.attitude_quaternion, rate, goal)
                answer = controls(now, share, True)
            if now == last:
                send(answer)


if __name__ == "__main__":
    kind, port = sys.argv[1], int(sys.argv[2])
    goal = tuple(map(float, sys.argv[3].split(",")))
    if kind == "ardupilot":
        fly_ardupilot(port, goal)
    else:
        fly_px4(port, goal, kind == "px4-tcp")

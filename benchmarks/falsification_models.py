"""Models of the falsification competition (ARCH-COMP), as plain NumPy.

Each is a function of its arguments that returns times and signals, for `arc.falsify`. Equations,
tables and gains are those of the published models; the code is our own.

- Automatic transmission: Hoxha, Abbas and Fainekos, Benchmarks for temporal logic requirements for
  automotive systems, ARCH 2014, from MathWorks' example "Modeling an automatic transmission
  controller"; tables as in github.com/ismailbennani/zlscheck (examples/sut/at).
- Ground collision avoidance of an F-16: Heidlauf, Collins, Bolender and Bak, Verification
  challenges in F-16 ground collision avoidance and other automated maneuvers, ARCH 2018. The
  aircraft is that of Stevens and Lewis, `archimedes.vehicles.F16`; autopilot and gains as published
  there.
- Chasing cars: Hu, Lygeros and Sastry, Towards a theory of stochastic hybrid systems, HSCC 2000,
  with the constants of the competition.
- Magnetic levitation with a neural network: the plant of Hagan, Demuth and De Jesus, An
  introduction to the use of neural networks in control systems, 2002. The weights of the published
  controller could not be found as text: the network here has its form (NARMA-L2, nine neurons in
  each of two layers) and was trained on the plant by
  `python -m benchmarks.falsification_network`. It is not the published one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import requirements as req
from archimedes.vehicles import F16, FlatEarth, FlightState

# ---- automatic transmission ------------------------------------------------------------------

THROTTLE = np.array([0.0, 20, 30, 40, 50, 60, 70, 80, 90, 100])
ENGINE_RPM = np.arange(800.0, 4801.0, 400.0)
#: Engine torque in lb ft, by throttle in percent and engine speed in rpm.
ENGINE_TORQUE = np.array(
    [
        [-40, -44, -49, -53, -57, -61, -65, -70, -74, -78, -82],
        [215, 117, 85, 66, 44, 29, 10, -2, -13, -22, -32],
        [245, 208, 178, 148, 122, 104, 85, 66, 48, 33, 18],
        [264, 260, 241, 219, 193, 167, 152, 133, 119, 96, 85],
        [264, 279, 282, 275, 260, 238, 223, 208, 189, 171, 152],
        [267, 290, 293, 297, 290, 275, 260, 256, 234, 212, 193],
        [267, 297, 305, 305, 305, 301, 293, 282, 267, 249, 226],
        [267, 301, 308, 312, 319, 323, 319, 316, 297, 279, 253],
        [267, 301, 312, 319, 327, 327, 327, 327, 312, 293, 267],
        [267, 301, 312, 319, 327, 334, 334, 334, 319, 305, 275],
    ],
    dtype=float,
)
GEARS = np.arange(1.0, 5.0)
#: Speeds in mph at which gears are changed, by throttle and gear.
UP_THROTTLE = np.array([0.0, 25, 35, 50, 90, 100])
UP = np.array([[10, 10, 15, 23, 40, 40], [30, 30, 30, 41, 70, 70], [50, 50, 50, 60, 100, 100]])
UP = np.concatenate([UP, np.full((1, 6), 1e6)]).T  # there is no fifth gear
DOWN_THROTTLE = np.array([0.0, 5, 40, 50, 90, 100])
DOWN = np.array(
    [[0.0] * 6, [5, 5, 5, 5, 30, 30], [20, 20, 25, 30, 50, 50], [35, 35, 40, 50, 80, 80]]
).T
RATIO = np.r_[np.arange(9) / 10, np.arange(81, 91) / 100, 0.92, 0.94]
#: Capacity factor and torque ratio of the converter, by the ratio of its speeds.
CAPACITY = np.array(
    [
        *(137.4652089938063, 137.06501915685197, 135.86444964598905, 135.6643547275119),
        *(137.56525645304487, 140.3665853117251, 145.2689108144154, 152.87251771654735),
        *(162.97731109964374, 164.2779280697452, 166.17882979527823, 167.97968406157264),
        *(170.08068070558275, 172.78196210502438, 175.3831960452274, 179.58518933324765),
        *(183.58708770279083, 189.8900776348212, 197.69377945543027, 215.90241703685155),
        244.51599037908485,
    ]
)
TORQUE_RATIO = np.array(
    [
        *(2.232, 2.075, 1.975, 1.846, 1.72, 1.564, 1.409, 1.254, 1.096, 1.08, 1.061),
        *(1.043, 1.028, 1.012, 1.002, 1.002, 1.001, 0.998, 0.999, 1.001, 1.002),
    ]
)
GEAR_RATIO = np.array([2.393, 1.450, 1.000, 0.677])
ENGINE_INERTIA, VEHICLE_INERTIA, FINAL_DRIVE = 0.0219914882835559, 12.09414785731247, 3.23
MPH = 2.0 * np.pi * 60.0 / 5280.0  # of the wheel's rpm, with a radius of 1 ft
SHIFT_DELAY, AT_STEP = 0.2, 0.01

_torque = arc.interpolant([THROTTLE, ENGINE_RPM], ENGINE_TORQUE, outside="extrapolate")
_up = arc.interpolant([UP_THROTTLE, GEARS], UP, outside="extrapolate")
_down = arc.interpolant([DOWN_THROTTLE, GEARS], DOWN, outside="extrapolate")
_capacity = arc.interpolant(RATIO, CAPACITY, outside="extrapolate")
_torque_ratio = arc.interpolant(RATIO, TORQUE_RATIO, outside="extrapolate")
_gear_ratio = arc.interpolant(GEARS, GEAR_RATIO)


def transmission(duration: float, keep: int = 1) -> Any:
    """Return a model of throttle (0 to 100 %) and brake (0 to 325 lb ft), every 0.01 s by Euler.

    The shift logic waits 0.2 s beyond a threshold before it changes the gear, as in the published
    traces (0.08 s in MathWorks' example), and the engine starts one step late, as there.
    """
    times = np.arange(round(duration / AT_STEP) + 1) * AT_STEP

    def step(carry: Any, now: Any) -> Any:
        rpm, wheel, gear, mode, since = carry
        t, throttle, brake = now
        speed = MPH * wheel
        ratio = _gear_ratio(gear)
        slip = FINAL_DRIVE * wheel * ratio / rpm
        impeller = (rpm / _capacity(slip)) ** 2
        drive = FINAL_DRIVE * impeller * _torque_ratio(slip) * ratio
        load = np.where(speed >= 0.0, 1.0, -1.0) * (brake + 40.0 + 0.02 * speed**2)
        up, down = _up(throttle, gear), _down(throttle, gear)
        # mode: 0 steady, -1 about to shift down, 1 about to shift up
        waited = t > since + SHIFT_DELAY
        begins = np.where(speed < down, -1.0, np.where(speed > up, 1.0, 0.0))
        gives_up = np.where(mode < 0.0, speed > down, speed < up)
        steady = mode == 0.0
        shifts = np.logical_not(steady | gives_up) & waited
        new_gear = np.clip(gear + np.where(shifts, mode, 0.0), 1.0, 4.0)
        new_mode = np.where(steady, begins, np.where(gives_up | waited, 0.0, mode))
        new_since = np.where(steady, t, since)
        dt = np.where(t > 0.0, AT_STEP, 0.0)  # the engine starts a step later
        new_rpm = rpm + dt / ENGINE_INERTIA * (_torque(throttle, rpm) - impeller)
        new_wheel = wheel + AT_STEP / VEHICLE_INERTIA * (drive - load)
        new = (np.clip(new_rpm, 600.0, 6000.0), new_wheel, new_gear, new_mode, new_since)
        return new, (rpm, speed, gear)

    def model(p: Any) -> Any:
        start = (1000.0, 0.0, 1.0, 0.0, 0.0)
        _, (rpm, speed, gear) = arc.scan(
            step, start, (times, p["throttle"](times), p["brake"](times))
        )
        signals = {"rpm": rpm, "speed": speed, "gear": gear}
        return {"t": times[::keep], **{name: v[::keep] for name, v in signals.items()}}

    return model


def transmission_ranges(duration: float, piece: float = 5.0) -> dict[str, Any]:
    """Return the inputs of the competition: constant for 5 s each (instance 2)."""
    span = (0.0, duration)
    pieces = round(duration / piece)
    return {
        "throttle": req.PiecewiseInput(0.0, 100.0, pieces, t_span=span),
        "brake": req.PiecewiseInput(0.0, 325.0, pieces, t_span=span),
    }


def transmission_requirements() -> dict[str, tuple[Any, float]]:
    """Return the requirements AT1 to AT6c with the length of the simulation."""
    speed, rpm, gear = map(req.signal, ("speed", "rpm", "gear"))
    found: dict[str, tuple[Any, float]] = {
        "AT1": (req.always(speed < 120, between=(0, 20)), 20.0),
        "AT2": (req.always(rpm < 4750, between=(0, 10)), 10.0),
    }
    for k in range(1, 5):
        there = req.near(gear, k)
        enters = ~there & req.eventually(there, between=(0.001, 0.1))
        stays = req.eventually(req.always(there, between=(0, 2.5)), between=(0.001, 0.1))
        found[f"AT5{k}"] = (req.always(enters >> stays, between=(0, 30)), 35.0)
    slow = req.always(rpm < 3000, between=(0, 30))
    for name, limit, until in (("AT6a", 35, 4), ("AT6b", 50, 8), ("AT6c", 65, 20)):
        found[name] = (slow >> req.always(speed < limit, between=(0, until)), 30.0)
    return found


# ---- ground collision avoidance of an F-16 ---------------------------------------------------

FOOT = 0.3048
#: Gains from alpha, q and the integral of Nz to the elevator, in degrees.
LONGITUDINAL = np.array([-156.8801506723475, -31.037008068526642, -38.72983346216317])
#: Gains from beta, p, r and the integrals of ps and Ny + r to aileron and rudder, in degrees.
LATERAL = np.array(
    [
        [37.84483, -25.40956, -6.82876, -332.88343, -17.15997],
        [-23.91233, 5.69968, -21.63431, 64.49490, -88.36203],
    ]
)
ALPHA_TRIM, SPEED_TRIM = 0.03887505597600522, 502.0
THROTTLE_TRIM, ELEVATOR_TRIM = 0.13946204864060271, -0.7495784725828754
STANDBY, ROLL, PULL, DONE = 0.0, 1.0, 2.0, 3.0
F16_STEP = 0.02


def nearest(angle: Any, period: float) -> Any:
    """Return an angle less the nearest multiple of a period."""
    return angle - period * np.round(angle / period)


def ground_avoidance(
    altitude: float, *, delay: float = 2.0, duration: float = 15.0, plane: Any = None
) -> Any:
    """Return a model of roll, pitch and yaw (rad) at the start, 540 ft/s at an altitude in ft.

    After a delay the autopilot rolls the wings level, pulls 5 g until the nose is up, and holds.
    """
    plane = plane or F16(xcg=0.35, world=FlatEarth())
    steps = round(duration / F16_STEP)

    def closed_loop(t: Any, state: Any, mode: Any) -> Any:
        x, integrals = state["aircraft"], state["integrals"]
        around = plane.world.surroundings(t, x.motion)
        alpha, beta = around.angles
        p, q, r = (x.motion.w_B[k] for k in range(3))
        phi, theta, _ = (x.motion.att.as_euler("xyz").array[k] for k in range(3))
        speed = around.airspeed / FOOT
        level = nearest(phi, 2.0 * np.pi)
        # What the autopilot asks for: load factor Nz, roll rate ps, throttle.
        hold = -2.0 * nearest(theta - alpha, np.pi) - 0.6 * p
        nz_wanted = np.where(mode == PULL, 5.0, np.where(mode == DONE, hold, 0.0))
        gain = np.where(mode == ROLL, 4.0, np.where(mode == DONE, 1.0, 0.0))
        ps_wanted = -gain * level - 0.3 * gain * p
        throttle = -0.25 * (speed - SPEED_TRIM) + THROTTLE_TRIM
        elevator = -LONGITUDINAL @ np.stack([alpha - ALPHA_TRIM, q, integrals[0]]) + ELEVATOR_TRIM
        sides = -LATERAL @ np.stack([beta, p, r, integrals[1], integrals[2]])
        u = F16.Input(
            np.clip(throttle, 0.0, 1.0),
            np.deg2rad(np.clip(elevator, -25.0, 25.0)),
            np.deg2rad(np.clip(sides[0], -21.5, 21.5)),
            np.deg2rad(np.clip(sides[1], -30.0, 30.0)),
        )
        rates = plane.dynamics(t, x, u)
        force, _ = plane.forces(t, x, u)
        turning = rates.motion.w_B
        ahead = 15.0 * FOOT  # the accelerometers are in front of the centre of mass
        g = 32.17 * FOOT
        nz = -(force[2] / plane.mass - ahead * turning[1]) / g - 1.0
        ny = (force[1] / plane.mass + ahead * turning[2]) / g
        ps = p * np.cos(alpha - ALPHA_TRIM) + r * np.sin(alpha - ALPHA_TRIM)
        errors = np.stack([nz - nz_wanted, ps - ps_wanted, ny + r])
        return {"aircraft": rates, "integrals": errors}

    advance = arc.discretize(closed_loop, dt=F16_STEP, method="rk4")

    def decide(t: Any, x: Any, mode: Any) -> Any:
        alpha, _ = plane.world.surroundings(t, x.motion).angles
        phi, theta, _ = (x.motion.att.as_euler("xyz").array[k] for k in range(3))
        calm = np.abs(x.motion.w_B[0]) < np.deg2rad(1.0)
        level = calm & (np.abs(nearest(phi, 2.0 * np.pi)) < np.deg2rad(5.0))
        nose_up = nearest(theta - alpha, 2.0 * np.pi) > 0.0
        on_side = calm & (np.abs(nearest(phi, np.pi)) < np.deg2rad(5.0))
        begin = np.where(nose_up, DONE, np.where(on_side, PULL, ROLL))
        after_standby = np.where(t > delay, begin, STANDBY)
        after_roll = np.where(level, PULL, ROLL)
        after_pull = np.where(nose_up, DONE, PULL)
        later = np.where(mode == ROLL, after_roll, np.where(mode == PULL, after_pull, DONE))
        return np.where(mode == STANDBY, after_standby, later)

    times = np.arange(steps + 1) * F16_STEP

    def step(carry: Any, t: Any) -> Any:
        state, mode = carry
        mode = decide(t, state["aircraft"], mode)
        motion = state["aircraft"].motion
        shown = {
            "alt": -motion.pos[2] / FOOT,
            "roll": motion.att.as_euler("xyz").array[0],
            "pitch": motion.att.as_euler("xyz").array[1],
            "speed": np.sqrt(np.sum(motion.v_B**2)) / FOOT,
            "mode": mode,
        }
        return (advance(t, state, mode), mode), shown

    def model(p: Any) -> Any:
        rpy = np.stack([p["roll"], p["pitch"], p["yaw"]])
        alpha, speed = np.deg2rad(2.1215), 540.0 * FOOT
        v_B = speed * np.array([np.cos(alpha), 0.0, np.sin(alpha)])
        v_NED = arc.spatial.EulerAngles(rpy, "xyz").rotate(v_B, inverse=True)
        flight = FlightState(0.0, 0.0, altitude * FOOT, v_NED, rpy, np.zeros(3))
        state = {"aircraft": plane.state(flight, power=9.0), "integrals": np.zeros(3)}
        _, shown = arc.scan(step, (state, STANDBY), times)
        return {"t": times, **shown}

    return model


def ground_avoidance_ranges() -> dict[str, Any]:
    """Return the attitudes of the competition."""
    uniform = arc.simulate.Uniform
    return {
        "roll": uniform(np.pi / 4 - np.pi / 20, np.pi / 4 + np.pi / 30),
        "pitch": uniform(-0.4 * np.pi, -0.35 * np.pi),
        "yaw": uniform(-np.pi / 4 - np.pi / 8, -np.pi / 4 + np.pi / 8),
    }


# ---- chasing cars ----------------------------------------------------------------------------

CC_STEP = 0.01


def chasing_cars(duration: float = 100.0, keep: int = 10) -> Any:
    """Return a model of throttle and brake (0 to 1) of the first of five cars."""
    times = np.arange(round(duration / CC_STEP) + 1) * CC_STEP

    def step(carry: Any, now: Any) -> Any:
        y, v, mode = carry  # mode of cars 2 to 5: 0 chasing, 1 keeping, 2 braking
        throttle, brake = now
        gap = y[1:] - y[:-1]
        leader = -throttle - brake * v[0]
        others = np.where(mode == 0.0, 1.0, np.where(mode == 1.0, 0.0, -v[1:]))
        moves = np.where(mode == 1.0, v[1:], -v[1:])
        keeps = np.where(gap >= 15.0, 0.0, np.where(gap <= 5.0, 2.0, 1.0))
        chases = np.where(gap <= 10.0, 1.0, 0.0)
        brakes = np.where(gap >= 20.0, 0.0, 2.0)
        new_mode = np.where(mode == 0.0, chases, np.where(mode == 1.0, keeps, brakes))
        new_y = y + CC_STEP * np.concatenate([v[:1], moves])
        new_v = v + CC_STEP * np.concatenate([np.reshape(leader, (1,)), others])
        return (new_y, new_v, new_mode), y

    def model(p: Any) -> Any:
        start = (np.arange(5.0) * 10.0, np.zeros(5), np.zeros(4))
        _, y = arc.scan(step, start, (p["throttle"](times), p["brake"](times)))
        y = y[::keep]
        return {"t": times[::keep], **{f"y{k + 1}": y[:, k] for k in range(5)}}

    return model


def chasing_cars_ranges(duration: float = 100.0) -> dict[str, Any]:
    """Return the inputs of the competition: constant for 5 s each."""
    pieces = round(duration / 5.0)
    signal = req.PiecewiseInput(0.0, 1.0, pieces, t_span=(0.0, duration))
    return {"throttle": signal, "brake": signal}


def chasing_cars_requirements() -> dict[str, Any]:
    """Return the requirements CC1 to CC5."""
    y1, y2, y4, y5 = (req.signal(f"y{k}") for k in (1, 2, 4, 5))
    far, near = y5 - y4, y2 - y1
    always, eventually = req.always, req.eventually
    return {
        "CC1": always(far <= 40, between=(0, 100)),
        "CC2": always(eventually(far >= 15, between=(0, 30)), between=(0, 70)),
        "CC3": always(
            always(near <= 20, between=(0, 20)) | eventually(far >= 40, between=(0, 20)),
            between=(0, 80),
        ),
        "CC4": always(
            eventually(always(far >= 8, between=(0, 5)), between=(0, 30)), between=(0, 65)
        ),
        "CC5": always(
            eventually(
                always(near >= 9, between=(0, 5)) >> always(far >= 9, between=(5, 20)),
                between=(0, 8),
            ),
            between=(0, 72),
        ),
    }


# ---- magnetic levitation with a neural network -------------------------------------------------

NN_STEP, NN_SAMPLE = 0.001, 0.01
#: The controller predicts so many samples ahead, and closes this part of the error until then.
AHEAD, PART = 5, 0.15
WEIGHTS = Path(__file__).with_name("falsification_network.json")


def magnet(y: Any, v: Any, current: Any) -> Any:
    """Return the acceleration of the magnet: 3 kg, field 15, friction 12, as published."""
    return -9.8 + 15.0 / 3.0 * current * np.abs(current) / y - 12.0 / 3.0 * v


def advance_magnet(y: Any, v: Any, current: Any, dt: float) -> tuple[Any, Any]:
    """Return position and velocity after a step of the midpoint rule."""
    y_half, v_half = y + 0.5 * dt * v, v + 0.5 * dt * magnet(y, v, current)
    return y + dt * v_half, v + dt * magnet(y_half, v_half, current)


def network(weights: Any, past: Any) -> tuple[Any, Any]:
    """Return f and g of ``y(k + AHEAD) = f(past) + g(past) u``, with y and u scaled to -1 to 1."""
    f = weights["f_out"] @ np.tanh(weights["f_in"] @ past + weights["f_bias"]) + weights["f_end"]
    g = weights["g_out"] @ np.tanh(weights["g_in"] @ past + weights["g_bias"]) + weights["g_end"]
    return f, g


def load_weights() -> dict[str, Any]:
    """Return the trained weights."""
    return {k: np.array(v) for k, v in json.loads(WEIGHTS.read_text("utf-8")).items()}


def scale_position(y: Any) -> Any:
    """Return a position of 0 to 4.5 as -1 to 1."""
    return y / 2.25 - 1.0


def scale_current(i: Any) -> Any:
    """Return a current of -1 to 4 as -1 to 1."""
    return (i + 1.0) / 2.5 - 1.0


def levitation(weights: Any = None, duration: float = 40.0, keep: int = 10) -> Any:
    """Return a model of the reference position (1 to 3) of a magnet under its network."""
    weights = load_weights() if weights is None else weights
    inner = round(NN_SAMPLE / NN_STEP)
    times = np.arange(round(duration / NN_SAMPLE) + 1) * NN_SAMPLE

    def step(carry: Any, reference: Any) -> Any:
        y, v, y_before, i, i_before = carry
        past = np.stack(
            [scale_position(y), scale_position(y_before), scale_current(i), scale_current(i_before)]
        )
        f, g = network(weights, past)
        target = scale_position(y) + PART * (scale_position(reference) - scale_position(y))
        wanted = (target - f) / g
        current = np.clip(2.5 * (wanted + 1.0) - 1.0, 0.0, 4.0)
        new_y, new_v = y, v
        for _ in range(inner):
            new_y, new_v = advance_magnet(new_y, new_v, current, NN_STEP)
        stopped = new_y < 0.05  # the magnet rests on its support
        new_y = np.where(stopped, 0.05, new_y)
        new_v = np.where(stopped, np.maximum(new_v, 0.0), new_v)
        return (new_y, new_v, y, current, i), y

    def model(p: Any) -> Any:
        reference = p["ref"](times)
        start = (0.5, 0.0, 0.5, 0.99, 0.99)
        _, position = arc.scan(step, start, reference)
        return {"t": times[::keep], "pos": position[::keep], "ref": reference[::keep]}

    return model


def levitation_requirement(beta: float) -> Any:
    """Return the requirement NN: an error is gone within 2 s, for at least 1 s."""
    pos, ref = req.signal("pos"), req.signal("ref")
    small = abs(pos - ref) <= 0.005 + beta * abs(ref)
    settles = req.eventually(req.always(small, between=(0, 1)), between=(0, 2))
    return req.always(~small >> settles, between=(1, 37))


def levitation_ranges(duration: float = 40.0) -> dict[str, Any]:
    """Return the reference of the competition: three constant pieces (instance 2)."""
    return {"ref": req.PiecewiseInput(1.0, 3.0, 3, t_span=(0.0, duration))}

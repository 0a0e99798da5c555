"""Models whose results are bounded: a function, nominal arguments, and ranges around them.

``MODELS`` maps names to functions that return ``(function, args, ranges)``; ranges go by paths in
the arguments, as ``f.bounds(ranges, *args)`` takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import control, environment, observers, spatial, vehicles
from archimedes import multibody as mb
from archimedes.vehicles import FlatEarth, FlightState
from tests.fuzz.programs import generate
from tests.fuzz.runner import load

Model = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
MODELS: dict[str, Callable[[], Model]] = {}


def model(function: Callable[[], Model]) -> Callable[[], Model]:
    """Register a model under the name of the function that makes it."""
    MODELS[function.__name__] = function
    return function


def around(value: Any, half: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of a value and so much to either side."""
    value = np.asarray(value, dtype=float)
    return value - half, value + half


# ---- vehicles -----------------------------------------------------------------------------------


def level_flight(alt: float, speed: float) -> FlightState:
    """Return a state of straight flight to the north."""
    rpy, zero = np.array([0.0, 0.05, 0.0]), np.zeros(3)
    return FlightState(0.6, -1.3, alt, np.array([speed, 0.0, 0.0]), rpy, zero)


def around_motion(x: Any, path: str, *halves: float) -> dict[str, Any]:
    """Return ranges of attitude, velocity and rates of a rigid body."""
    att, v, w = halves
    motion = x.motion if path.endswith("motion") else x
    velocity = "v_B" if hasattr(motion, "v_B") else "v_E"
    return {
        f"{path}.att.array": around(motion.att.array, att),
        f"{path}.{velocity}": around(getattr(motion, velocity), v),
        f"{path}.w_B": around(motion.w_B, w),
    }


@model
def f16() -> Model:
    plane = vehicles.load("f16", world=FlatEarth())
    x = plane.state(level_flight(3000.0, 170.0), power=10.0)
    u = vehicles.F16.Input(throttle=0.15, elevator=-0.03)
    ranges = around_motion(x, "x.motion", 0.03, 8.0, 0.05)
    return plane.dynamics, (0.0, x, u), ranges | {"u.elevator": (-0.08, 0.02)}


@model
def f16_engine() -> Model:
    engine = vehicles.load("f16").engine

    def rate(power: Any, throttle: Any) -> Any:
        return engine.power_rate(power, throttle), engine.commanded(throttle)

    return rate, (40.0, 0.5), {"power": (20.0, 70.0), "throttle": (0.3, 0.9)}


@model
def multirotor() -> Model:
    drone = vehicles.load("multirotor", world=FlatEarth())
    x = drone.state(FlightState(0.0, 0.0, 10.0, np.array([3.0, 0, 0]), np.zeros(3), np.zeros(3)))
    u = vehicles.Multirotor.Input(speeds=np.full(np.shape(x.speeds), 600.0))
    ranges = around_motion(x, "x.motion", 0.1, 2.0, 0.5)
    return drone.dynamics, (0.0, x, u), ranges | {"x.speeds": around(u.speeds, 60.0)}


@model
def geometric_controller() -> Model:
    drone = vehicles.load("multirotor", world=FlatEarth())
    x = drone.state(FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3)))
    controller = vehicles.GeometricController()

    def command(x: Any, p: Any, v: Any, a: Any) -> Any:
        return controller.command(drone, x, p, v, a, 0.0)

    args = (x, np.array([0.5, 0.2, -10.0]), np.zeros(3), np.zeros(3))
    ranges = around_motion(x, "x.motion", 0.05, 0.5, 0.2) | {"p": around(args[1], 0.5)}
    return command, args, ranges


@model
def car() -> Model:
    car = vehicles.load("car")
    x = car.state(
        FlightState(0.0, 0.0, car.height, np.array([25.0, 0, 0]), np.zeros(3), np.zeros(3))
    )
    u = vehicles.Car.Input(steer=0.02, drive=250.0)
    ranges = {"u.steer": (-0.03, 0.05), "x.v_B": around(x.v_B, [3.0, 0.5, 0.05])}
    return car.dynamics, (0.0, x, u), ranges | {"x.w_B": around(x.w_B, [0.02, 0.02, 0.2])}


@model
def rocket() -> Model:
    rocket = vehicles.load("rocket")
    pad = FlightState(
        0.5, -1.4, 12000.0, np.array([200.0, 100.0, -300.0]), np.array([0.0, 1.2, 1.5]), np.zeros(3)
    )
    x = rocket.state(pad)
    u = vehicles.OrbitGuidance().command(rocket, 30.0, x)
    return rocket.dynamics, (30.0, x, u), {"x.motion.w_B": around(np.zeros(3), 0.05)}


@model
def satellite() -> Model:
    satellite = vehicles.load("satellite")
    x = vehicles.Satellite.State(
        pos=np.array([6.9e6, 0.0, 0.0]),
        vel=np.array([0.0, 2754.0, 7084.0]),
        att=spatial.Quaternion.identity(),
        w_B=np.array([0.1, -0.08, 0.12]),
        h=np.zeros(3),
    )
    ranges = {"x.w_B": around(x.w_B, 0.05), "x.pos": around(x.pos, 5e4), "x.h": around(x.h, 0.01)}
    ranges |= {"x.att.array": around(x.att.array, 0.1), "x.vel": around(x.vel, 20.0)}
    return satellite.dynamics, (0.0, x, satellite.idle()), ranges


# ---- controllers --------------------------------------------------------------------------------


@model
def pid() -> Model:
    block = control.PID(2.0, 0.5, 0.1, dt=0.02, lower=-5.0, upper=5.0)
    ranges = {"state.integral": (-1.0, 1.0), "input": (-2.0, 2.0)}
    return block.step, (block.start(), 0.1), ranges


@model
def pid_closed_loop() -> Model:
    def run(x: Any, goal: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            p, v, i = c
            e = goal - p
            u = np.clip(4.0 * e - 2.0 * v + i, -3.0, 3.0)
            return (p + 0.05 * v, v + 0.05 * (u - 0.3 * v), i + 0.05 * e), None

        return arc.scan(step, (x, 0.0 * x, 0.0 * x), length=40)[0]

    return run, (0.0, 0.5), {"x": (-0.2, 0.2), "goal": (0.3, 0.7)}


@model
def lead_lag() -> Model:
    block = control.LeadLag(0.5, 0.1, 0.01, gain=2.0)
    return block.step, (block.start(), 0.3), {"input": (-1.0, 1.0)}


@model
def limiter() -> Model:
    block = control.Limiter(lower=-1.0, upper=1.0, rate=5.0, dt=0.01)
    return block.step, (0.2, 0.5), {"state": (-1.0, 1.0), "input": (-2.0, 2.0)}


@model
def iir_filter() -> Model:
    block = control.IIRFilter([0.2, 0.3, 0.2], [1.0, -0.5, 0.2])
    start = block.start()

    def run(state: Any, u: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return block.step(c, x)

        return arc.scan(step, state, u)[1]

    return run, (start, np.zeros(24)), {"u": (np.full(24, -1.0), np.full(24, 1.0))}


@model
def mixer() -> Model:
    block = control.Mixer.of(
        [[1, 1, 1, 1], [1, -1, -1, 1], [1, 1, -1, -1], [1, -1, 1, -1.0]], lower=0.0, upper=2.0
    )
    wrench = np.array([3.0, 0.2, -0.1, 0.05])
    return lambda w: block.step(None, w)[1], (wrench,), {"w": around(wrench, 0.5)}


@model
def lqr() -> Model:
    K = control.lqr(
        np.array([[0.0, 1.0], [2.0, -0.1]]), np.array([[0.0], [1.0]]), np.eye(2), np.eye(1)
    )
    K = K[0] if isinstance(K, tuple) else K

    def loop(x: Any) -> Any:
        u = np.clip(-K @ x, -4.0, 4.0)
        return np.stack([x[1], 2.0 * np.sin(x[0]) - 0.1 * x[1] + u[0]])

    return loop, (np.zeros(2),), {"x": ([-1.0, -1.0], [1.0, 1.0])}


@model
def neural_network() -> Model:
    rng = np.random.default_rng(3)
    W1, W2, W3 = (rng.normal(size=s) / np.sqrt(s[1]) for s in ((16, 6), (16, 16), (2, 16)))

    def policy(x: Any) -> Any:
        return W3 @ np.tanh(W2 @ np.tanh(W1 @ x))

    return policy, (np.zeros(6),), {"x": (np.full(6, -0.3), np.full(6, 0.3))}


@model
def gain_schedule() -> Model:
    def design(v: float) -> Any:
        return np.array([[1.0 / v, 0.3], [0.1, 2.0 / v]])

    gains = control.schedule_gains(design, np.linspace(10.0, 50.0, 9))

    def run(v: Any, x: Any) -> Any:
        return gains.at(v) @ x

    return run, (20.0, np.ones(2)), {"v": (15.0, 40.0), "x": ([-1.0, 0.0], [1.0, 2.0])}


# ---- filters ------------------------------------------------------------------------------------


@model
def kalman_filter() -> Model:
    kf = observers.KalmanFilter(
        np.array([[1.0, 0.1], [0.0, 1.0]]),
        np.array([[1.0, 0.0]]),
        0.01 * np.eye(2),
        0.1 * np.eye(1),
    )
    P = np.array([[0.5, 0.1], [0.1, 0.4]])

    def step(x: Any, y: Any) -> Any:
        return kf.step(0.0, x, y, P)

    return step, (np.zeros(2), np.zeros(1)), {"x": ([-1.0, -1.0], [1.0, 1.0]), "y": ([-2.0], [2.0])}


def pendulum(t: Any, x: Any) -> Any:
    """Return the state of a pendulum 20 ms later."""
    return np.stack([x[0] + 0.02 * x[1], x[1] - 0.02 * 9.81 * np.sin(x[0])])


@model
def extended_kalman_filter() -> Model:
    ekf = observers.ExtendedKalmanFilter(
        pendulum, lambda t, x: np.stack([np.sin(x[0])]), 1e-3 * np.eye(2), 1e-2 * np.eye(1)
    )
    P = np.array([[0.1, 0.0], [0.0, 0.2]])

    def step(x: Any, y: Any) -> Any:
        return ekf.step(0.0, x, y, P)

    return (
        step,
        (np.array([0.3, 0.0]), np.zeros(1)),
        {"x": ([0.0, -1.0], [0.6, 1.0]), "y": ([0.0], [0.5])},
    )


@model
def unscented_kalman_filter() -> Model:
    ukf = observers.UnscentedKalmanFilter(
        pendulum, lambda t, x: np.stack([np.sin(x[0])]), 1e-3 * np.eye(2), 1e-2 * np.eye(1)
    )
    P = np.array([[0.1, 0.0], [0.0, 0.2]])

    def step(x: Any, y: Any) -> Any:
        return ukf.step(0.0, x, y, P)

    return (
        step,
        (np.array([0.3, 0.0]), np.zeros(1)),
        {"x": ([0.2, -0.3], [0.4, 0.3]), "y": ([0.2], [0.4])},
    )


@model
def complementary_filter_in_float32() -> Model:
    def run(angle: Any, rates: Any, measured: Any) -> Any:
        def step(c: Any, z: Any) -> Any:
            w, m = z
            return np.float32(0.98) * (c + np.float32(0.01) * w) + np.float32(0.02) * m, c

        return arc.scan(step, angle, (rates, measured))[0]

    many = np.zeros(30, dtype=np.float32)
    ranges = {
        "angle": (-0.1, 0.1),
        "rates": (many - 1, many + 1),
        "measured": (many - 0.2, many + 0.2),
    }
    return run, (np.float32(0.0), many, many), ranges


@model
def alpha_beta_filter() -> Model:
    def run(x: Any, v: Any, z: Any) -> Any:
        def step(c: Any, m: Any) -> Any:
            p = c[0] + 0.1 * c[1]
            r = m - p
            return (p + 0.5 * r, c[1] + 1.0 * r), r

        return arc.scan(step, (x, v), z)

    return (
        run,
        (0.0, 0.0, np.zeros(20)),
        {"x": (-1.0, 1.0), "z": (np.full(20, -1.0), np.full(20, 1.0))},
    )


# ---- Earth and air ------------------------------------------------------------------------------


@model
def standard_atmosphere() -> Model:
    return environment.StandardAtmosphere1976().__call__, (5000.0,), {"alt": (2000.0, 15000.0)}


@model
def smooth_atmosphere() -> Model:
    return environment.SmoothAtmosphere().__call__, (5000.0,), {"alt": (2000.0, 9000.0)}


@model
def exponential_atmosphere() -> Model:
    return environment.ExponentialAtmosphere().__call__, (5000.0,), {"alt": (0.0, 20000.0)}


ORBIT = np.array([4.2e6, 3.1e6, 4.4e6])


@model
def point_mass_gravity() -> Model:
    return environment.PointMassGravity().__call__, (ORBIT,), {"p_E": around(ORBIT, 2e5)}


@model
def j2_gravity() -> Model:
    return environment.J2Gravity().__call__, (ORBIT,), {"p_E": around(ORBIT, 1e5)}


@model
def normal_gravity() -> Model:
    return environment.NormalGravity().__call__, (ORBIT,), {"p_E": around(ORBIT, 1e4)}


@model
def magnetic_dipole() -> Model:
    return environment.MagneticDipole().__call__, (ORBIT,), {"p_E": around(ORBIT, 1e5)}


@model
def gravity_gradient() -> Model:
    J = np.diag([10.0, 12.0, 8.0])

    def torque(p: Any) -> Any:
        return environment.gravity_gradient_torque(environment.WGS84.mu, p, J)

    return torque, (ORBIT,), {"p": around(ORBIT, 2e5)}


@model
def geodetic_to_ecef() -> Model:
    def place(lat: Any, lon: Any, alt: Any) -> Any:
        return environment.geodetic_to_ecef(lat, lon, alt)

    return place, (0.6, 0.2, 1e3), {"lat": (0.4, 0.8), "lon": (-0.2, 0.6), "alt": (0.0, 2e4)}


@model
def ecef_to_geodetic() -> Model:
    p = np.array([4.1e6, 0.6e6, 4.85e6])
    return lambda p_E: environment.ecef_to_geodetic(p_E), (p,), {"p_E": around(p, 1e4)}


@model
def air_path_angles() -> Model:
    v = np.array([60.0, 2.0, 5.0])
    return environment.air_path_angles, (v,), {"v_B": around(v, [10.0, 5.0, 5.0])}


@model
def earth_rotation() -> Model:
    v = np.array([7e6, 1e5, 2e6])

    def turn(p: Any, t: Any) -> Any:
        return environment.earth_attitude(7.292115e-5 * t).rotate(p)

    return turn, (v, 600.0), {"p": around(v, 1e5), "t": (0.0, 1200.0)}


# ---- attitudes and rigid bodies -----------------------------------------------------------------


@model
def quaternion_kinematics() -> Model:
    q = np.array([0.9, 0.1, -0.3, 0.2])
    ranges = {"q": around(q, 0.05), "w": (np.full(3, -0.5), np.full(3, 0.5))}
    return lambda q, w: spatial.quaternion_kinematics(q, w), (q, np.zeros(3)), ranges


@model
def euler_kinematics() -> Model:
    ranges = {"rpy": ([-0.5] * 3, [0.5] * 3), "w": ([-1.0] * 3, [1.0] * 3)}
    return lambda rpy, w: spatial.euler_kinematics(rpy) @ w, (np.zeros(3), np.zeros(3)), ranges


@model
def euler_to_quaternion() -> Model:
    ranges = {"rpy": ([-0.6] * 3, [0.6] * 3)}
    return lambda rpy: spatial.euler_to_quaternion(rpy, "xyz"), (np.zeros(3),), ranges


@model
def quaternion_to_euler() -> Model:
    q = np.array([0.95, 0.1, 0.2, -0.15])
    return lambda q: spatial.quaternion_to_euler(q, "xyz"), (q,), {"q": around(q, 0.03)}


@model
def body_axes_from_euler() -> Model:
    v = np.array([20.0, 1.0, -3.0])

    def rotate(rpy: Any, v: Any) -> Any:
        return spatial.EulerAngles(rpy, "xyz").rotate(v)

    return rotate, (np.zeros(3), v), {"rpy": ([-0.4] * 3, [0.4] * 3), "v": around(v, 2.0)}


@model
def rotation_vector() -> Model:
    r = np.array([0.4, -0.2, 0.7])
    return spatial.rotvec_to_dcm, (r,), {next(iter(_names(spatial.rotvec_to_dcm))): around(r, 0.2)}


def _names(function: Any) -> list[str]:
    return list(arc.compile(function).arg_names)


@model
def slerp() -> Model:
    a, b = np.array([1.0, 0, 0, 0]), np.array([0.8, 0.4, 0.4, 0.2])

    def between(s: Any, b: Any) -> Any:
        return spatial.slerp(spatial.Quaternion(a), spatial.Quaternion(b), s).array

    return between, (0.5, b), {"s": (0.2, 0.8), "b": around(b, 0.02)}


@model
def rigid_body() -> Model:
    J = np.array([[2.0, 0.1, 0.0], [0.1, 3.0, 0.2], [0.0, 0.2, 4.0]])
    x = spatial.RigidBody.State(
        pos=np.zeros(3),
        att=spatial.Quaternion([0.9, 0.1, 0.3, 0.2]),
        v_B=np.array([10.0, 0, 1.0]),
        w_B=np.zeros(3),
    )
    u = spatial.RigidBody.Input(F_B=np.ones(3), M_B=np.zeros(3), m=5.0, J_B=J)
    ranges = {"x.v_B": around(x.v_B, 2.0), "x.w_B": around(x.w_B, 0.5), "u.F_B": around(u.F_B, 3.0)}
    ranges |= {"u.m": (4.0, 6.0), "x.att.array": around(x.att.array, 0.05)}
    return lambda t, x, u: spatial.RigidBody.dynamics(t, x, u), (0.0, x, u), ranges


# ---- robots -------------------------------------------------------------------------------------


def arm(joints: int) -> Any:
    """Return an arm whose joints turn about z and y by turns."""
    b = mb.Builder("arm")
    parent = "world"
    for k in range(joints):
        rod = 2.0 * 0.4**2 / 12.0
        b.add_body(f"link{k}", mass=2.0, com=[0, 0, 0.2], inertia=[rod, rod, 0.1 * rod])
        axis = [0, 0, 1] if k % 2 == 0 else [0, 1, 0]
        b.attach(f"link{k}", parent, joint=f"j{k}", axis=axis, position=[0, 0, 0.4 if k else 0.1])
        parent = f"link{k}"
    b.add_frame("hand", parent, position=[0.0, 0.0, 0.4])
    return b.build()


POSE = np.array([0.3, 0.6, -0.2, 0.8, 0.1, 0.5])


@model
def aba_of_three_joints() -> Model:
    robot, q = arm(3), POSE[:3]
    ranges = {"q": around(q, 0.2), "v": ([-0.5] * 3, [0.5] * 3), "tau": ([-2.0] * 3, [2.0] * 3)}
    return lambda q, v, tau: mb.aba(robot, q, v, tau), (q, np.zeros(3), np.zeros(3)), ranges


@model
def aba_of_six_joints() -> Model:
    robot, q = arm(6), POSE
    ranges = {"q": around(q, 0.05), "v": ([-0.2] * 6, [0.2] * 6)}
    return lambda q, v, tau: mb.aba(robot, q, v, tau), (q, np.zeros(6), np.zeros(6)), ranges


@model
def rnea_of_six_joints() -> Model:
    robot, q = arm(6), POSE
    ranges = {"q": around(q, 0.1), "v": ([-0.5] * 6, [0.5] * 6), "a": ([-1.0] * 6, [1.0] * 6)}
    return lambda q, v, a: mb.rnea(robot, q, v, a), (q, np.zeros(6), np.zeros(6)), ranges


@model
def mass_matrix() -> Model:
    robot = arm(4)
    return lambda q: mb.crba(robot, q), (POSE[:4],), {"q": around(POSE[:4], 0.2)}


@model
def hand_of_arm() -> Model:
    robot = arm(6)
    return lambda q: mb.frame_pose(robot, q, "hand").t, (POSE,), {"q": around(POSE, 0.15)}


@model
def jacobian_of_arm() -> Model:
    robot = arm(4)
    return (
        lambda q: mb.frame_jacobian(robot, q, "hand", "aligned"),
        (POSE[:4],),
        {"q": around(POSE[:4], 0.2)},
    )


# ---- small models -------------------------------------------------------------------------------


@model
def lorenz_step() -> Model:
    def f(x: Any) -> Any:
        return np.stack(
            [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]]
        )

    def rk4(x: Any) -> Any:
        h = 0.01
        k1 = f(x)
        k2 = f(x + h / 2 * k1)
        k3 = f(x + h / 2 * k2)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(x + h * k3))

    x = np.array([1.0, 1.5, 20.0])
    return rk4, (x,), {"x": around(x, 2.0)}


@model
def pendulum_for_a_second() -> Model:
    def run(x: Any) -> Any:
        return arc.scan(lambda c, _: (pendulum(0.0, c), None), x, length=50)[0]

    return run, (np.zeros(2),), {"x": ([0.2, -0.2], [0.5, 0.2])}


@model
def drag_with_mach_table() -> Model:
    mach = [0.0, 0.6, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0, 3.0]
    table = arc.interpolant([mach], [0.02, 0.02, 0.024, 0.032, 0.045, 0.048, 0.043, 0.033, 0.028])

    def drag(v: Any, rho: Any) -> Any:
        return 0.5 * rho * v**2 * 12.0 * table(v / 300.0)

    return drag, (200.0, 0.6), {"v": (150.0, 450.0), "rho": (0.4, 0.9)}


@model
def two_dimensional_table() -> Model:
    a, b = np.linspace(-10.0, 45.0, 12), np.linspace(-30.0, 30.0, 7)
    data = np.outer(np.sin(np.deg2rad(a)), np.cos(np.deg2rad(b)))
    table = arc.interpolant([a, b], data)
    return lambda a, b: table(a, b), (5.0, 2.0), {"a": (-4.0, 20.0), "b": (-12.0, 14.0)}


@model
def linear_system() -> Model:
    A = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 1.5], [0.2, 1.0, 3.0]])

    def solve(k: Any, b: Any) -> Any:
        return np.linalg.solve(A + np.diag(k), b)

    return (
        solve,
        (np.zeros(3), np.ones(3)),
        {"k": ([-0.5] * 3, [0.5] * 3), "b": ([0.0] * 3, [2.0] * 3)},
    )


def _random(seed: int) -> Callable[[], Model]:
    def make() -> Model:
        program = generate(seed)
        function = load(program.source, arc)
        ranges = {}
        for name, value in program.inputs.items():
            if value.dtype.kind == "f":
                finite = np.where(np.isfinite(value), value, 1.0).astype(float)
                ranges[name] = around(finite, 0.1)
        args = [
            np.nan_to_num(v, posinf=1.0, neginf=1.0) if v.dtype.kind == "f" else v
            for v in program.inputs.values()
        ]
        return function, tuple(args), ranges

    return make


for _seed in (11, 23, 37, 52, 64, 78):
    MODELS[f"random_program_{_seed}"] = _random(_seed)

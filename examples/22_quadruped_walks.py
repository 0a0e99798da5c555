"""A quadruped trots for 10 s, in steps of contact and in MuJoCo, under one compiled controller.

Feet on the ground share the force that carries the trunk (a quadratic program with friction); the
others swing so that the next stance is centred below the hip (Raibert, Legged Robots That Balance,
1986). MuJoCo, if it is installed, reads the robot from the file that is written here.
"""

import importlib.util
import tempfile

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes import optimize
from archimedes.spatial import Quaternion

STEP, SECONDS, SPEED, FRICTION, RADIUS = 2e-3, 10.0, 0.5, 0.7, 0.02  # s, s, m/s, -, m (of feet)
PERIOD, STANCE, LIFT = 0.4, 0.55, 0.06  # s; part of it that a foot is down; m, height of a swing
TIMES = STEP * np.arange(round(SECONDS / STEP))
OFFSETS = np.array([0.0, 0.5, 0.5, 0.0])  # when feet are put down, in periods: diagonals together
LEGS = {"fl": (0.2, 0.15), "fr": (0.2, -0.15), "hl": (-0.2, 0.15), "hr": (-0.2, -0.15)}


def quadruped():
    """Return a trunk with four legs of three joints: a hip that rolls and pitches, and a knee."""
    b = mb.Builder("quadruped")
    b.add_body("trunk", mass=10.0, inertia=[0.08, 0.3, 0.35])
    b.add_shape("world", "plane", [0.0, 0.0], "collision")
    for leg, (x, y) in LEGS.items():
        parent, place = "trunk", [x, y, 0]
        for part, axis in (("hip", [1, 0, 0]), ("thigh", [0, 1, 0]), ("shin", [0, 1, 0])):
            name, com = f"{leg}_{part}", [0, 0, 0.0 if part == "hip" else -0.1]
            b.add_body(name, mass=0.5, com=com, inertia=[3e-3, 3e-3, 5e-4])
            b.attach(name, parent, joint=name, axis=axis, position=place, armature=0.01)
            parent, place = name, [0, 0, 0.0 if part == "hip" else -0.25]
        b.add_frame(f"{leg}_foot", f"{leg}_shin", position=[0, 0, -0.25])
        b.add_shape(f"{leg}_shin", "sphere", [RADIUS], "collision", position=[0, 0, -0.25])
    return b.build(base="floating")


def trot(robot, hips, feet, height):
    """Return the controller: a function of the state and the time, for the torques (12,)."""
    pace, half = 1.0 / (PERIOD * (1.0 - STANCE)), 0.5 * PERIOD * STANCE
    sides = [[1, 0, -FRICTION], [-1, 0, -FRICTION], [0, 1, -FRICTION], [0, -1, -FRICTION]]
    cones, W = np.kron(np.eye(4), sides), np.diag([1.0, 1.0, 2.0, 20.0, 20.0, 10.0])
    flat, up, wanted = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [SPEED, 0.0, 0.0]])

    def controller(x, t):
        phase = ((t / PERIOD + OFFSETS) % 1.0)[:, None]
        R = Quaternion(x.q[3:7]).as_matrix().T
        v = R @ x.v[:3]
        p, h = (np.stack([mb.frame_pose(robot, x.q, k).t for k in names]) for names in (feet, hips))
        J = np.stack([mb.frame_jacobian(robot, x.q, foot, "aligned")[:3] for foot in feet])
        # The acceleration that the trunk should have, and the forces of the ground that it takes.
        off = np.stack([SPEED * t, 0.0 * t, height + 0.0 * t]) - x.q[:3]
        a = np.array([10.0, 20.0, 150.0]) * off + np.array([10.0, 10.0, 20.0]) * (wanted - v)
        a = np.concatenate([R.T @ a, -400.0 * x.q[3] * x.q[4:7] - 20.0 * x.v[3:6]])
        needed = mb.rnea(robot, x.q, x.v, np.concatenate([a, np.zeros(12)]))
        A = np.where(phase[:, None] < STANCE, J[:, :, :6], 0.0).reshape(12, 6)
        P, q = A @ W @ A.T + 1e-3 * np.eye(12), -A @ W @ needed[:6]
        push = optimize.solve_qp(P, q, cones, high=0.0).x.reshape(4, 3)
        # Where feet swing to, around their hips; springs and dampers take them there.
        s = np.clip((phase - STANCE) / (1.0 - STANCE), 0.0, 1.0)
        forth, rate = s - np.sin(2 * np.pi * s) / (2 * np.pi), 1.0 - np.cos(2 * np.pi * s)
        ahead = half * v + 0.1 * (v - wanted)
        goal = flat * (h + (2.0 * forth - 1.0) * ahead) + up * (RADIUS + 0.5 * LIFT * rate)
        climb = up * LIFT * np.pi * np.sin(2 * np.pi * s)
        speed = flat * v + pace * (2.0 * rate * flat * ahead + climb)
        swing = 600.0 * (goal - p) + 30.0 * (speed - J @ x.v)
        force = np.where(phase < STANCE, -push, swing)
        return (needed + force.reshape(12) @ J.reshape(12, -1))[6:]

    return controller


def walk(robot, feet, controller, x):
    """Return the configurations (n, nq) of a walk in steps of contact."""
    contacts, ground = [mb.sphere(foot, RADIUS) for foot in feet], mb.Ground(friction=FRICTION)

    def one(x, t):
        u = np.concatenate([np.zeros(6), controller(x, t)])
        return mb.contact_step(robot, x, STEP, contacts, ground, u), x.q

    return arc.compile(lambda x, times: arc.scan(one, x, times)[1])(x, TIMES)


def walk_in_mujoco(robot, controller, x):
    """Return the configurations (n, nq) of a walk of the saved model, simulated by MuJoCo."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        mb.save(robot, folder + "/robot.xml")
        model = mujoco.MjModel.from_xml_path(folder + "/robot.xml")
    model.opt.timestep, model.geom_friction[:, 0] = STEP, FRICTION
    data, torques, places = mujoco.MjData(model), arc.compile(controller), []
    data.qpos = x.q
    for t in TIMES:
        places.append(data.qpos.copy())
        q, v = places[-1], data.qvel.copy()
        v[:3] = Quaternion(q[3:7]).rotate(v[:3])  # which MuJoCo has in axes of the world
        data.qfrc_applied[6:] = torques(mb.State(q, v), t)
        mujoco.mj_step(model, data)
    return np.array(places)


def report(name, q):
    """Print how far and how upright it walked, and check that it did not fall."""
    height, tilt = q[:, 2], np.degrees(np.arccos(1.0 - 2.0 * (q[:, 4] ** 2 + q[:, 5] ** 2)))
    print(f"{name}: {q[-1, 0]:.2f} m in {SECONDS:.0f} s, aside by {np.abs(q[:, 1]).max():.3f} m,")
    print(f"  height {height.min():.3f} to {height.max():.3f} m, tilt up to {tilt.max():.1f} deg")
    assert q[-1, 0] > 0.9 * SPEED * SECONDS and height.min() > 0.9 * q[0, 2] and tilt.max() < 10.0


robot, feet = quadruped(), [f"{leg}_foot" for leg in LEGS]
x0 = mb.rest_state(robot, [0, 0, RADIUS + 0.5 * np.cos(0.57), 1, 0, 0, 0] + 4 * [0, 0.57, -1.14])
controller = trot(robot, [f"{leg}_thigh" for leg in LEGS], feet, x0.q[2])
report("steps of contact", walk(robot, feet, controller, x0))
if importlib.util.find_spec("mujoco"):
    report("MuJoCo", walk_in_mujoco(robot, controller, x0))

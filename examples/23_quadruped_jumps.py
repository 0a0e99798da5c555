"""A quadruped jumps ahead: planned for a schedule of contacts, flown in `contact_step` and MuJoCo.

Iterative LQR plans forces within friction cones for one rigid body in the vertical plane, whole-
body control makes torques of the plan (Di Carlo et al., IROS 2018, for the MIT Cheetah 3).
"""

import importlib.util
from pathlib import Path

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes import optimize
from archimedes.spatial import Quaternion

STEP, FRICTION, RADIUS, G, MASS, INERTIA = 4e-3, 0.7, 0.02, 9.81, 16.0, 0.5  # s, -, m, SI units
PUSH, FLY, END, AHEAD, LIFT = 0.4, 0.3, 1.3, 0.4, 0.08  # s: end of push, flight, end; m, m
T = STEP * np.arange(round(END / STEP))
DOWN, PART = (T < PUSH) | (T >= PUSH + FLY), np.clip((T - PUSH) / FLY, 0.0, 1.0)  # of flight
FILE = Path(__file__).with_name("quadruped.xml")


def plan_jump(height, hips, feet):
    """Return the motion (n, 6) of the mass centre: x, z and pitch, and their rates.

    Of both pairs of legs, x and z: hips (2, 2), relative to it, and where feet (n, 2, 2) stand.
    """
    start, weights = np.array([0.0, height, 0, 0, 0, 0]), np.array([250.0] * 3 + [25.0] * 3)

    def force(u, down):  # u (2, 2): normal forces of both pairs, and those along x as part of cones
        fz = np.where(down, u[:, 0], 0.0)
        return 0.8 * FRICTION * u[:, 1] * fz, fz

    def step(x, u, now, goal):
        (fx, fz), (rx, rz) = force(u, now[1]), now[0].T - x[:2, None]
        sums = np.stack([np.sum(fx), np.sum(fz) - MASS * G, np.sum(rz * fx - rx * fz)])
        v = x[3:] + STEP * sums / np.array([MASS, MASS, INERTIA])
        return np.concatenate([x[:3] + STEP * v, v])

    def cost(x, u, now, goal):
        legs = np.sqrt(np.sum((x[:2] + hips - now[0]) ** 2, axis=1))
        long = np.where(now[1], np.maximum(legs - 0.47, 0.0), 0.0)  # m
        effort = 1e-6 * np.sum(force(u, now[1])[1] ** 2) + 1e-4 * np.sum(u[:, 1] ** 2)
        return effort + 1e2 * (long @ long) + x[2] ** 2 + 0.01 * x[5] ** 2

    # The guess: impulses that lift it off for so long, and catch it.
    lift = 0.5 * MASS * G * (1.0 + 0.5 * FLY / np.where(T < PUSH, PUSH, END - PUSH - FLY))
    plan = lift[:, None, None] * np.array([[1.0, 0.0], [1.0, 0.0]])
    for part in np.linspace(0.0, 1.0, 5):  # each jump starts from the control law of a shorter one
        plan = optimize.ilqr(
            *(step, start, plan, cost, lambda x, goal: weights @ (x - goal) ** 2),
            data=(feet[0] + part * (feet - feet[0]), DOWN),
            args=(start + part * AHEAD * np.eye(6)[0],),
            control_bounds=([[0.0, -1.0]] * 2, [[300.0, 1.0]] * 2),
        )
        assert plan.success, plan.message
    return plan.x[:-1]


def jump(robot, feet, x0, wanted):
    """Return the configurations (n, nq) of a jump in steps of contact, and one in MuJoCo."""
    contacts, ground = [mb.sphere(foot, RADIUS) for foot in feet], mb.Ground(friction=FRICTION)

    def controller(x, now):
        com, rate, places, speeds, down = now
        goal = [np.stack([v[0], 0.0 * v[0], v[1]]) for v in (com[:2], com[3:], rate[3:])]
        turn = {"frequency": 15.0, "weights": [0, 0, 0, 1, 1, 1]}
        tasks = [
            mb.center_of_mass_task(robot, x, *goal, frequency=15.0),
            mb.frame_task(robot, x, "trunk", mb.pose(np.zeros(3), np.eye(3)), **turn),
            mb.posture_task(robot, x, x0.q, weights=1e-3),
        ]
        for foot, place, v in zip(feet, places, speeds):
            tasks.append(mb.frame_task(robot, x, foot, place, v, frequency=25.0))
        stand = {"touching": np.zeros(4, dtype=bool) | down, "contact_damping": 20.0}
        found = mb.whole_body_control(robot, x, tasks, contacts, ground, **stand)
        return found.torque, found.success

    def step(x, now):
        u, success = controller(x, now)
        return mb.contact_step(robot, x, STEP, contacts, ground, u), (x.q, success)

    path, solved = arc.compile(lambda x, wanted: arc.scan(step, x, wanted)[1])(x0, wanted)
    assert solved.all()
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(FILE))
    data, torques, other = mujoco.MjData(model), arc.compile(controller), []
    model.opt.timestep, data.qpos = STEP, x0.q
    for now in zip(*wanted):
        other.append(data.qpos.copy())
        v = data.qvel.copy()
        v[:3] = Quaternion(other[-1][3:7]).rotate(v[:3])  # which MuJoCo has in axes of the world
        data.qfrc_applied, _ = torques(mb.State(other[-1], v), now)
        mujoco.mj_step(model, data)
    return {"steps of contact": path, "MuJoCo": np.array(other)}


if importlib.util.find_spec("mujoco"):
    robot = mb.load(FILE)
    feet = [f"{leg}_foot" for leg in ("fl", "fr", "hl", "hr")]
    x0 = mb.rest_state(
        robot, [0, 0, RADIUS + 0.5 * np.cos(0.57), 1, 0, 0, 0] + 4 * [0, 0.57, -1.14]
    )
    way = [AHEAD * PART**2 * (3 - 2 * PART), 0 * PART, LIFT * np.sin(np.pi * PART) ** 2]
    places = [mb.frame_pose(robot, x0.q, foot).t for foot in feet] + np.stack(way, axis=1)[:, None]
    above = x0.q[2] - (height := mb.center_of_mass(robot, x0.q)[2])
    plan = plan_jump(height, np.array([[0.2, above], [-0.2, above]]), places[:, ::2, ::2])
    wanted = plan, np.gradient(plan, STEP, axis=0), places, np.gradient(places, STEP, axis=0), DOWN
    for name, q in jump(robot, feet, x0, wanted).items():
        print(f"{name}: {q[-1, 0]:.2f} m ahead, {q[:, 2].max() - q[0, 2]:.2f} m up")
        assert abs(q[-1, 0] - AHEAD) < 0.05 and abs(q[-1, 2] - q[0, 2]) < 0.05
        assert np.abs(q[:, 4:7]).max() < 0.1 and q[:, 2].min() > 0.2
else:
    print('MJCF files need MuJoCo: pip install "archimedes-dynamics[robots]"')

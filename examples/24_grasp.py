"""Three fingers grip a flask, lift it and hold it; then they let go a little, and it slips or not.

If each finger presses with a force F, friction carries up to 3 mu F. That must be at least
m (g + a) for a flask of the mass m that is lifted with the acceleration a.
"""

import numpy as np

import archimedes as arc
from archimedes import multibody as mb

STEP, SECONDS, G, MASS, FRICTION = 2e-3, 1.2, 9.81, 0.4, 0.5  # s, s, m/s^2, kg, -
RADIUS, LENGTH, TIP, OPEN = 0.03, 0.12, 0.008, 0.01  # m: flask, its straight part, tips, gap
LIFT, START, RISE, LOOSEN = 0.15, 0.3, 0.5, 1.0  # m; s: start and length of the lift, and then
NAMES, ANGLES = ("first", "second", "third"), np.radians([90.0, 210.0, 330.0])
HEIGHT = RADIUS + LENGTH / 2  # m, of the middle of the flask that stands


def scene():
    """Return a palm that moves up and down with three fingers around it, and a flask below."""
    b = mb.Builder("gripper")
    b.add_body("palm", mass=1.0, inertia=[1e-3] * 3)
    b.attach("palm", joint="lift", kind="prismatic", axis=[0, 0, 1], position=[0, 0, HEIGHT])
    for name, angle in zip(NAMES, ANGLES):
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        b.add_body(name, mass=0.1, inertia=[1e-4] * 3)
        place = (RADIUS + TIP + OPEN) * way
        b.attach(name, "palm", joint=name, kind="prismatic", axis=-way, position=place, damping=2.0)
    b.add_body("flask", mass=MASS, inertia=[8e-4, 8e-4, 2e-4])
    b.attach("flask", joint="free", kind="free", position=[0, 0, HEIGHT])
    return b.build()


def grasp(robot, motion, loose):
    """Return heights (n, 2) of palm and flask over the places where they start, and its tilt (n,).

    The palm follows a motion (times, heights, speeds, accelerations). From LOOSEN on fingers press
    with ``loose`` (k,) times the force that friction needs; each is a case of its own.
    """
    flask, load = mb.capsule("flask", RADIUS, LENGTH), np.sum(robot.masses)
    pairs = [mb.Pair(mb.sphere(name, TIP), flask, friction=FRICTION) for name in NAMES]

    def one(x, now):
        (t, z, v, a), loose = now
        margin = np.where(t < LOOSEN, 1.02, loose)
        grip = margin * MASS * (G + a) / (len(NAMES) * FRICTION)
        lift = load * (G + a) + 4e3 * (z - x.q[0]) + 2e2 * (v - x.v[0])
        u = np.concatenate([np.stack([lift, grip, grip, grip]), np.zeros(6)])
        new = mb.contact_step(robot, x, STEP, [flask], mb.Ground(), u, pairs=pairs)
        return new, (x.q[[0, 6]], 2.0 * np.sqrt(x.q[8] ** 2 + x.q[9] ** 2))

    def case(loose):
        steps = (motion, loose + 0.0 * motion[0])
        return arc.scan(one, mb.rest_state(robot), steps)[1]

    return arc.vmap(case)(loose)


T = STEP * np.arange(round(SECONDS / STEP))
S = np.clip((T - START) / RISE, 0.0, 1.0)  # part of the lift
LIFTED = LIFT * (S - np.sin(2 * np.pi * S) / (2 * np.pi))
SPEED = LIFT / RISE * (1.0 - np.cos(2 * np.pi * S))
motion = T, LIFTED, SPEED, LIFT / RISE**2 * 2 * np.pi * np.sin(2 * np.pi * S)
loose = np.array([1.02, 1.001, 0.999, 0.95, 0.8])
heights, tilt = grasp(scene(), motion, loose)
palm, flask = heights[:, :, 0], heights[:, :, 1]
lifted = (T >= START) & (T < LOOSEN)
slip = np.abs((palm - flask)[:, lifted] - (palm - flask)[:, lifted][:, :1]).max()
print(
    f"lifted by {flask[0, -1]:.3f} m with 1.02 of the force that friction needs: {slip:.1e} m slip"
)
assert abs(flask[0, -1] - LIFT) < 2e-3 and slip < 1e-9 and tilt[:, T < LOOSEN].max() < 1e-6
for part, path in zip(loose, flask):
    fallen = path[lifted][-1] - path[-1]
    wanted = 0.5 * max(1.0 - part, 0.0) * G * (T[-1] - LOOSEN) ** 2  # it falls with (1 - part) g
    print(f"then with {part:.3f}: {1e3 * fallen:7.3f} mm lower, {1e3 * wanted:7.3f} mm by friction")
    assert abs(fallen - wanted) < 0.03 * wanted + 1e-6

"""An arm follows a circle with its hand: inverse kinematics, then computed torque against errors.

The controller's model has links 10 % too light and knows nothing of friction; the arm has both.
"""

import numpy as np

import archimedes as arc
from archimedes import multibody as mb


def arm(heavier=1.0, friction=0.0):
    """Return an arm of three joints: it turns about z, its shoulder and elbow about y."""
    b = mb.Builder("arm")
    for name, parent, axis, height, mass in (
        ("column", "world", [0, 0, 1], 0.3, 4.0),
        ("upper", "column", [0, 1, 0], 0.2, 3.0),
        ("lower", "upper", [0, 1, 0], 0.5, 2.0),
    ):
        rod = mass * 0.5**2 / 12.0
        b.add_body(name, mass=heavier * mass, com=[0, 0, 0.25], inertia=[rod, rod, 0.1 * rod])
        b.attach(
            name, parent, joint=name, axis=axis, position=[0, 0, height], lower=-2.8, upper=2.8,
            friction=friction, damping=2.0 * friction, armature=0.05,
        )  # fmt: skip
    b.add_frame("hand", "lower", position=[0.0, 0.0, 0.5])
    return b.build()


known = arm(heavier=0.9)
real = arm(friction=0.5)
PERIOD, RADIUS, CENTER = 2.0, 0.15, np.array([0.45, 0.0, 0.75])


def wanted(t):
    """Return where the hand should be at a time."""
    angle = 2.0 * np.pi * t / PERIOD
    return CENTER + RADIUS * np.stack([0.0 * t, np.cos(angle), np.sin(angle)])


# Joint angles along the circle: one search for all points, mapped.
times = np.linspace(0.0, PERIOD, 65)
place_only = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def reach(place):
    """Return the search for the angles that put the hand at a place."""
    target = mb.pose(place, np.eye(3))
    return mb.inverse_kinematics(known, "hand", target, [0.0, 0.5, 1.2], weights=place_only)


found = arc.vmap(reach)(np.stack([wanted(t) for t in times]))
assert np.all(found.success), "the whole circle is within reach"
path = [arc.interpolant([times], found.q[:, k], method="cubic") for k in range(3)]


def angles(t):
    """Return the wanted angles at a time, round and round."""
    s = np.mod(t, PERIOD)
    return np.stack([curve(s) for curve in path])


speeds = arc.jac(angles)
accelerations = arc.jac(speeds)


def torque(t, x, gain):
    """Return the torques that the known arm needs, plus those that correct errors."""
    error, slip = angles(t) - x.q, speeds(t) - x.v
    a = accelerations(t) + gain**2 * error + 2.0 * gain * slip
    return mb.rnea(known, x.q, x.v, a)


def run(gain):
    """Return the largest distance from the circle in the second round, in mm."""
    start = mb.State(angles(0.0), speeds(0.0))
    rates = lambda t, x: mb.dynamics(real, t, x, torque(t, x, gain))  # noqa: E731
    outputs = np.linspace(PERIOD, 2.0 * PERIOD, 41)
    solution = arc.solve_ode(rates, (0.0, 2.0 * PERIOD), start, t_eval=outputs, rtol=1e-6)
    hand = mb.frame_pose(real, solution.x.q, "hand").t
    off = hand - np.stack([wanted(t) for t in outputs])
    return 1e3 * float(np.sqrt((off**2).sum(axis=1)).max())


print(real)
soft, stiff = run(10.0), run(40.0)
print(f"largest distance from the circle: {soft:.1f} mm at 10 rad/s, {stiff:.2f} mm at 40 rad/s")
assert stiff < 5.0 < soft

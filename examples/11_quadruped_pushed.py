"""A quadruped stands on its feet, is pushed, and stands again: contact in steps with friction."""

import numpy as np

import archimedes as arc
from archimedes import multibody as mb

STEP, SECONDS, PUSH = 2e-3, 1.5, 60.0  # s, s, N
THIGH, SHIN, HEIGHT = 0.25, 0.25, 0.42  # m


def quadruped():
    """Return a trunk with four legs, each of a hip that rolls and pitches, and a knee."""
    b = mb.Builder("quadruped")
    b.add_body("trunk", mass=10.0, inertia=[0.08, 0.3, 0.35])
    for leg, x, y in (
        ("fl", 0.2, 0.15),
        ("fr", 0.2, -0.15),
        ("hl", -0.2, 0.15),
        ("hr", -0.2, -0.15),
    ):
        for part, parent, axis, place, length in (
            ("hip", "trunk", [1, 0, 0], [x, y, 0], 0.0),
            ("thigh", f"{leg}_hip", [0, 1, 0], [0, 0, 0], THIGH),
            ("shin", f"{leg}_thigh", [0, 1, 0], [0, 0, -THIGH], SHIN),
        ):
            name = f"{leg}_{part}"
            mass = 0.6 if length else 0.3
            rod = mass * (length**2 / 12.0 + 1e-3)
            b.add_body(name, mass=mass, com=[0, 0, -length / 2], inertia=[rod, rod, 0.3 * rod])
            b.attach(
                name, parent, joint=name, axis=axis, position=place, damping=0.1, armature=0.01
            )
        b.add_frame(f"{leg}_foot", f"{leg}_shin", position=[0, 0, -SHIN])
    return b.build(base="floating")


robot, ground = quadruped(), mb.Ground(friction=0.7)
FEET = [f"{leg}_foot" for leg in ("fl", "fr", "hl", "hr")]
contacts = [mb.sphere(foot, 0.0) for foot in FEET]

# Standing: thighs and shins bent so that the feet are below the hips.
bend = np.arccos(HEIGHT / (THIGH + SHIN))
stand = mb.neutral(robot)
stand[2] = HEIGHT
stand[7:] = np.tile([0.0, bend, -2.0 * bend], 4)
for foot in FEET:
    assert abs(mb.frame_pose(robot, stand, foot).t[2]) < 1e-12

# Torques that hold it: the weight shared by the feet, through their Jacobians.
jacobian = sum(mb.frame_jacobian(robot, stand, foot, "aligned")[2] for foot in FEET)
weight = float(np.sum(robot.masses)) * 9.81
hold = (mb.gravity_torque(robot, stand) - jacobian * weight / 4)[6:]


def control(x):
    """Return torques of springs and dampers at the joints around those that hold."""
    torque = hold + 80.0 * (stand[7:] - x.q[7:]) - 3.0 * x.v[6:]
    return np.concatenate([np.zeros(6), torque])


def move(x, push):
    """Return the state after a step, with a push sideways on the trunk."""
    R = mb.frame_pose(robot, x.q, "trunk").r.as_matrix()
    force = np.concatenate([R.T @ np.stack([0.0 * push, push, 0.0 * push]), np.zeros(3)])
    return mb.contact_step(robot, x, STEP, contacts, ground, control(x), {"trunk": force})


def scene(pushes):
    """Return the trunk's place at all steps, and the last state."""

    def one(x, push):
        x = move(x, push)
        return x, x.q[:7]

    return arc.scan(one, mb.rest_state(robot, stand), pushes)


times = STEP * np.arange(round(SECONDS / STEP))
pushes = np.where((times > 0.3) & (times < 0.4), PUSH, 0.0)
end, places = arc.compile(scene)(pushes)
height, aside = places[:, 2], places[:, 1]
print(f"{robot!r}: standing at {height[100]:.3f} m")
print(f"pushed by {PUSH:.0f} N for 0.1 s: aside by up to {1e3 * np.abs(aside).max():.0f} mm")
print(f"at the end {height[-1]:.3f} m high, moving at {np.abs(end.v).max():.4f} (m/s, rad/s)")
assert abs(height[100] - HEIGHT) < 0.01 and abs(height[-1] - HEIGHT) < 0.02
assert np.abs(aside).max() > 0.003 and np.abs(end.v).max() < 0.05

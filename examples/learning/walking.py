"""What a quadruped is to learn: to trot as it is told, so fast ahead and turning so fast.

Rewards for what is wanted and costs of what is not, as in N. Rudin et al., Learning to Walk in
Minutes Using Massively Parallel Deep Reinforcement Learning, CoRL 2021; and a clock, by which feet
swing (J. Siekmann et al., Sim-to-Real Learning of All Common Bipedal Gaits via Periodic Reward
Composition, ICRA 2021). Everything is NumPy and describes one robot.
"""

import numpy as np

import archimedes as arc
from archimedes import multibody as mb

RADIUS, BEND = 0.02, 0.6  # m, of feet; rad, of hips that stand
LEGS = {"fl": (0.2, 0.15), "fr": (0.2, -0.15), "hl": (-0.2, 0.15), "hr": (-0.2, -0.15)}
STIFFNESS, DAMPING, REACH = 60.0, 2.0, 0.6  # N m/rad, N m s/rad, rad: how joints follow angles
STEP, STEPS = 4e-3, 5  # s, a step of contact; of these for an action
HELD = STEP * STEPS  # s, that an action is held
PERIOD, STANCE, LIFT = 0.4, 0.55, 0.08  # s; part of it that a foot is down; m, height of a swing
OFFSETS = np.array([0.0, 0.5, 0.5, 0.0])  # when feet are put down, in periods: diagonals together
SLOWEST, FASTEST = np.array([-0.3, -1.0]), np.array([0.9, 1.0])  # m/s ahead, rad/s to the left
FRICTION = np.float64(0.7)
STANDING, HEIGHT = np.tile([0.0, BEND, -2.0 * BEND], 4), RADIUS + 0.5 * np.cos(BEND)


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


robot = quadruped()
contacts = [mb.sphere(f"{leg}_foot", RADIUS) for leg in LEGS]


def standing(command, friction=FRICTION):
    """Return the state of a robot that stands, with what it is told (m/s, rad/s)."""
    q = np.concatenate([[0.0, 0.0, HEIGHT, 1.0, 0.0, 0.0, 0.0], STANDING])
    x, zero = mb.State(q, np.zeros(18)), np.float64(0.0)
    return {"x": x, "aim": STANDING, "phase": zero, "command": command, "friction": friction}


def initial(key):
    """Return a state in which an episode begins: about upright, at any time of the clock."""
    noise = arc.random.uniform(key, (34,), -1.0, 1.0)
    state = standing(0.5 * (SLOWEST + FASTEST) + 0.5 * (FASTEST - SLOWEST) * noise[:2])
    q = np.concatenate([state["x"].q[:7], STANDING + 0.1 * noise[4:16]])
    x = mb.State(q, np.concatenate([0.5 * noise[16:19], 0.3 * noise[19:]]))
    return {**state, "x": x, "phase": 0.5 + 0.5 * noise[2], "friction": 0.7 + 0.3 * noise[3]}


def vertical(x):
    """Return the world's vertical in axes of the trunk."""
    w, a, b, c = x.q[3:7]
    return np.stack([2.0 * (a * c - w * b), 2.0 * (b * c + w * a), 1.0 - 2.0 * (a**2 + b**2)])


def observe(state):
    """Return what the policy sees: no position, no heading, and no friction."""
    x, angle = state["x"], 2.0 * np.pi * state["phase"]
    clock = np.stack([np.sin(angle), np.cos(angle)])
    joints = x.q[7:] - STANDING, x.v[6:], state["aim"] - STANDING
    return np.concatenate([x.v[:6], vertical(x), clock, state["command"], *joints])


def feet_of(state):
    """Return where the feet are (4, 3)."""
    return np.stack([mb.frame_pose(robot, state["x"].q, f"{leg}_foot").t for leg in LEGS])


def torques(x, aim):
    """Return what springs and dampers at the joints do."""
    return STIFFNESS * (aim - x.q[7:]) - DAMPING * x.v[6:]


def dynamics(state, aim):
    """Return the state after the time of an action."""
    ground = mb.Ground(friction=state["friction"])

    def one(_, x):
        u = np.concatenate([np.zeros(6), torques(x, aim)])
        return mb.contact_step(robot, x, STEP, contacts, ground, u)

    phase = (state["phase"] + HELD / PERIOD) % 1.0
    return {**state, "x": arc.fori_loop(0, STEPS, one, state["x"]), "aim": aim, "phase": phase}


def reward(before, aim, state):
    """Return what a step is worth, 2.5 at best."""
    x, v, up = state["x"], state["x"].v, vertical(state["x"])
    forward, turn = state["command"]
    gain = np.exp(-10.0 * ((v[0] - forward) ** 2 + v[1] ** 2)) + np.exp(-4.0 * (v[5] - turn) ** 2)
    # Feet follow the clock: they swing by turns, and stay where they stand.
    feet, were = feet_of(state), feet_of(before)
    swing = np.clip(((state["phase"] + OFFSETS) % 1.0 - STANCE) / (1.0 - STANCE), 0.0, 1.0)
    high = RADIUS + LIFT * np.sin(np.pi * swing) ** 2
    gain = gain + 0.5 * np.exp(-300.0 * np.sum((feet[:, 2] - high) ** 2))
    slip = np.where(swing[:, None] == 0.0, (feet - were)[:, :2] / HELD, 0.0)
    cost = 2.0 * np.sum(up[:2] ** 2) + 5.0 * (x.q[2] - HEIGHT) ** 2 + 0.5 * v[2] ** 2
    cost = cost + 0.02 * np.sum(v[3:5] ** 2) + 0.1 * np.sum(slip**2)
    cost = cost + 2e-4 * np.sum(torques(x, aim) ** 2) + 0.05 * np.sum((aim - before["aim"]) ** 2)
    return gain - cost - 0.2 * np.sum(x.q[7::3] ** 2)


task = arc.Environment(
    dynamics,
    initial,
    action=(STANDING - REACH, STANDING + REACH),
    reward=reward,
    observe=observe,
    observation_limits=(-50.0, 50.0),
    terminated=lambda s: (s["x"].q[2] < 0.6 * HEIGHT) | (vertical(s["x"])[2] < 0.7),
    max_steps=500,
    name="Trot",
)


def act(policy, seen):
    """Return the action of a policy, whose arrays are a normalization and three layers."""
    z = np.clip((seen - policy["mean"]) * policy["scale"], -5.0, 5.0)
    for k in range(2):
        z = policy[f"W{k}"] @ z + policy[f"b{k}"]
        z = np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0)))
    return policy["W2"] @ z + policy["b2"]


def controller(policy):
    """Return a function of the state, for the angles that joints shall follow until the next."""
    return lambda state: task.action.command(act(policy, task.observation(state)))

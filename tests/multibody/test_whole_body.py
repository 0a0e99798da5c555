"""Whole-body control: closed forms, and programs written by hand with matrices of Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import nnls

import archimedes as arc
from archimedes import multibody as mb
from archimedes.optimize import Status
from archimedes.spatial import EulerAngles, RotationMatrix
from tests.optional_packages import import_or_skip

from .random_trees import random_state, random_tree

G, FRICTION = 9.81, 0.6


def slider(**joint):
    """Return a mass of 2 kg that slides along x."""
    b = mb.Builder()
    b.add_body("mass", mass=2.0, inertia=[0.1, 0.1, 0.1])
    b.attach("mass", joint="rail", kind="prismatic", axis=[1, 0, 0], **joint)
    return b.build()


def at(q, v=0.0):
    return mb.State(np.atleast_1d(q) * 1.0, np.atleast_1d(v) * 1.0)


# ---- tasks --------------------------------------------------------------------------------------


def along(model, q, v, a, t):
    """Return a configuration on a path that starts with a velocity and an acceleration."""
    return mb.integrate(model, q, v * t + 0.5 * a * t * t)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_and_bias_are_accelerations(seed):
    """Second differences along a path, of positions of a frame and of the centre of mass."""
    model = random_tree(seed, size=6)
    q, v, a = (np.asarray(x) for x in random_state(model, seed))
    frame, x, h = model.body_names[-1], mb.State(q, v), 1e-3
    for task, position in (
        (mb.frame_task(model, x, frame, np.zeros(3)), lambda q: mb.frame_pose(model, q, frame).t),
        (
            mb.center_of_mass_task(model, x, np.zeros(3)),
            lambda q: mb.center_of_mass(model, q),
        ),
    ):
        # Two steps, so that the error of the differences is of fourth order.
        p = [position(along(model, q, v, a, k * h)) for k in (-2, -1, 0, 1, 2)]
        second = (-p[0] + 16 * p[1] - 30 * p[2] + 16 * p[3] - p[4]) / (12 * h * h)
        scale = 1.0 + np.abs(task.bias).max()
        np.testing.assert_allclose(task.jacobian @ a + task.bias, second, atol=1e-7 * scale)


def test_a_turn_about_the_shortest_way():
    """The error of attitude is the axis times the angle, in axes of the world."""
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    model = b.build(base="floating")
    start = RotationMatrix.from_matrix(EulerAngles([0.3, -0.2, 0.5], "xyz").as_matrix())
    q = mb.neutral(model)
    q[3:7] = np.asarray(start.as_quat())
    axis, angle = np.array([2.0, -1.0, 2.0]) / 3.0, 0.7
    K = np.cross(np.eye(3), axis)
    turn = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K  # Rodrigues
    goal = mb.pose([0.0, 0.0, 0.1], turn @ start.as_matrix().T)
    task = mb.frame_task(
        model, mb.State(q, np.zeros(6)), "ball", goal, frequency=2.0, acceleration=np.ones(6)
    )
    wanted = 1.0 + 4.0 * np.concatenate([[0.0, 0.0, 0.1], angle * axis])
    np.testing.assert_allclose(task.acceleration, wanted, atol=1e-12)


@pytest.mark.long
def test_errors_vanish_like_those_of_an_oscillator():
    """Critically damped: (1 + f t) exp(-f t)."""
    model = slider()

    def rates(t, x):
        task = mb.frame_task(model, x, "mass", np.zeros(3), frequency=5.0, weights=[1, 0, 0])
        found = mb.whole_body_control(model, x, [task], acceleration_weight=0.0)
        return mb.dynamics(model, t, x, found.torque)

    path = arc.solve_ode(rates, (0.0, 0.5), at(0.3), rtol=1e-9)
    f_t = 5.0 * path.t
    np.testing.assert_allclose(path.x.q[:, 0], 0.3 * (1 + f_t) * np.exp(-f_t), atol=1e-7)


# ---- one joint, in closed form ------------------------------------------------------------------


def pushed(x, goal, **options):
    """Return what the slider does that would be somewhere else."""
    model = options.pop("model", slider())
    task = mb.posture_task(model, x, [goal])
    return mb.whole_body_control(model, x, [task], acceleration_weight=0.0, **options)


def test_torque_limits():
    found = pushed(at(0.0), 1.0, torque_limits=30.0)
    np.testing.assert_allclose(found.torque, 30.0, rtol=1e-8)
    np.testing.assert_allclose(found.acceleration, 15.0, rtol=1e-8)
    np.testing.assert_allclose(pushed(at(0.0), 1.0).torque, 200.0, rtol=1e-8)
    of_model = pushed(at(0.0), 1.0, model=slider(effort_limit=10.0))
    np.testing.assert_allclose(of_model.torque, 10.0, rtol=1e-8)


def test_barriers_of_a_joint():
    """Where the barrier of a limit acts its condition holds as an equation."""
    model = slider(lower=-1.0, upper=0.5, speed_limit=2.0)
    found = pushed(at(0.45, 0.8), 9.0, model=model, barrier_frequency=10.0)
    np.testing.assert_allclose(found.acceleration, 100 * 0.05 - 20 * 0.8, rtol=1e-8)
    found = pushed(at(-0.5, -1.9), -90.0, model=model, barrier_frequency=10.0)
    np.testing.assert_allclose(found.acceleration, 10 * (1.9 - 2.0), rtol=1e-7)
    free = pushed(at(0.45, 0.8), 9.0, model=model, barrier_frequency=10.0, limits=False)
    np.testing.assert_allclose(free.acceleration, 100 * (9.0 - 0.45) - 20 * 0.8, rtol=1e-8)


def test_limits_that_contradict_each_other():
    """The joint is at its limit, fast, and too weak to stop: no solution, and it says so."""
    model = slider(lower=-1.0, upper=0.5)
    found = pushed(at(0.5, 5.0), 0.0, model=model, torque_limits=1.0)
    assert not found.success and found.status == Status.INFEASIBLE
    assert np.abs(found.torque) <= 1.0
    assert "constraints" in found.message


def test_an_obstacle():
    """A mass in a plane passes a ball: moving across, it comes to be farther away."""
    b = mb.Builder()
    for name, parent, axis in (("x", "world", [1, 0, 0]), ("y", "x", [0, 1, 0])):
        b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1])
        b.attach(name, parent, joint=name, kind="prismatic", axis=axis)
    model, k = b.build(), 4.0
    x = mb.State(np.array([-0.6, 0.0]), np.array([1.0, 0.7]))
    avoid = [(mb.sphere("y", 0.1), mb.sphere("world", 0.2))]
    task = mb.posture_task(model, x, [5.0, 0.0])
    found = mb.whole_body_control(
        model, x, [task], avoid=avoid, clearance=0.05, barrier_frequency=k, acceleration_weight=0.0
    )
    # d = |p| - 0.3, so that d. = -v_x and d.. = -a_x + v_y^2 / |p|.
    wanted = 0.7**2 / 0.6 + 2 * k * -1.0 + k**2 * (0.3 - 0.05)
    np.testing.assert_allclose(found.acceleration[0], wanted, rtol=1e-6)
    without = mb.whole_body_control(model, x, [task], acceleration_weight=0.0)
    assert without.acceleration[0] > 500.0
    # Followed for a while it stays clear.

    def rates(t, x):
        task = mb.posture_task(model, x, [5.0, 0.0])
        found = mb.whole_body_control(
            model, x, [task], avoid=avoid, clearance=0.05, barrier_frequency=k
        )
        return mb.dynamics(model, t, x, found.torque)

    path = arc.solve_ode(rates, (0.0, 1.0), x, rtol=1e-6)
    apart = np.linalg.norm(path.x.q, axis=1) - 0.3
    assert apart.min() > 0.05 and path.x.q[-1, 0] > -0.5


# ---- contact, in closed form --------------------------------------------------------------------


def crate(mass=2.0):
    """Return a box of mass that carries a slider of 1 kg, and its corners."""
    b = mb.Builder()
    b.add_body("box", mass=mass, inertia=[0.1, 0.1, 0.1])
    b.add_body("load", mass=1.0, inertia=[0.01, 0.01, 0.01])
    b.attach("load", "box", joint="rail", kind="prismatic", axis=[1, 0, 0])
    corners = [[x, y, -0.1] for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
    return b.build(base="floating"), [mb.Contacts("box", corners)]


@pytest.mark.parametrize("sides", [4, pytest.param(16, marks=pytest.mark.long)])
def test_friction_limits_what_a_load_can_do(sides):
    """A crate does not slide: the load accelerates by at most mu cos(pi / n) (M + m) g / m."""
    model, contacts = crate()
    x = mb.rest_state(model, [0, 0, 0.1, 1, 0, 0, 0, 0.0])
    task = mb.posture_task(model, x, [*x.q[:7], 1.0])
    found = mb.whole_body_control(model, x, [task], contacts, mb.Ground(friction=0.5), sides=sides)
    most = 0.5 * np.cos(np.pi / sides) * 3.0 * G
    assert found.success
    np.testing.assert_allclose(found.acceleration, [0] * 6 + [most], atol=1e-5 * most)
    np.testing.assert_allclose(found.force.sum(axis=0), [most, 0.0, 3.0 * G], atol=1e-4)
    sizes = np.linalg.norm(found.force[:, :2], axis=1)
    assert (sizes <= 0.5 * found.force[:, 2] + 1e-6).all()


def test_forces_at_rest_carry_the_weight():
    """Of a load aside the smallest forces in the sense of least squares, by hand."""
    model, contacts = crate()
    x = mb.rest_state(model, [0, 0, 0.1, 1, 0, 0, 0, 0.3])
    task = mb.posture_task(model, x, x.q)
    found = mb.whole_body_control(model, x, [task], contacts)
    places = np.array([[a, b] for a in (-0.5, 0.5) for b in (-0.5, 0.5)])
    balance = np.array([np.ones(4), places[:, 0], places[:, 1]])
    wanted = np.linalg.lstsq(balance, np.array([3.0 * G, 0.3 * G, 0.0]), rcond=None)[0]
    np.testing.assert_allclose(found.force[:, 2], wanted, atol=1e-5)
    np.testing.assert_allclose(found.force[:, :2], 0.0, atol=1e-4)
    np.testing.assert_allclose(found.torque, 0.0, atol=1e-4)
    # With weaker feet in front the load, 0.1 m above the ground, has to accelerate forwards.
    most = mb.whole_body_control(model, x, [task], contacts, force_limits=8.5)
    np.testing.assert_allclose(most.force[2:, 2], 8.5, atol=1e-5)
    np.testing.assert_allclose(most.force.sum(axis=0)[2], 3.0 * G, atol=1e-5)
    behind = 3.0 * G - 2 * 8.5
    push = (0.3 * G - 0.5 * (2 * 8.5 - behind)) / 0.1
    np.testing.assert_allclose(most.acceleration[6], push, atol=1e-4)
    too_weak = mb.whole_body_control(model, x, [task], contacts, force_limits=5.0)
    assert too_weak.status == Status.INFEASIBLE


@pytest.mark.long
def test_a_rolling_ball_keeps_its_speed():
    """The point below the centre stands: a = r alpha; its own acceleration to the centre aside."""
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.4, 0.4, 0.4])
    model = b.build(base="floating")
    x = mb.State(np.array([0, 0, 0.2, 1.0, 0, 0, 0]), np.array([0.6, 0, 0, 0, 3.0, 0]))
    found = mb.whole_body_control(model, x, [], [mb.sphere("ball", 0.2)])
    # In axes of the ball, which turn: the acceleration of a constant velocity is -w x v.
    np.testing.assert_allclose(found.acceleration, [0, 0, 1.8, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(found.force, [[0.0, 0.0, G]], atol=1e-5)


def test_feet_in_the_air_have_no_force():
    model, contacts = crate()
    x = mb.rest_state(model, [0, 0, 0.1, 1, 0, 0, 0, 0.0])
    points = [mb.Contacts("box", [place]) for place in contacts[0].centers]
    task = mb.posture_task(model, x, x.q)
    found = mb.whole_body_control(model, x, [task], points, touching=[1, 1, 1, 0])
    assert found.success
    np.testing.assert_allclose(found.force[3], 0.0, atol=1e-9)
    # Symmetry: two feet along a diagonal carry everything.
    np.testing.assert_allclose(found.force[:3, 2], [0.0, 1.5 * G, 1.5 * G], atol=1e-3)
    none = mb.whole_body_control(model, x, [], points, touching=np.zeros(4))
    np.testing.assert_allclose(none.acceleration[:3], [0.0, 0.0, -G], atol=1e-6)


# ---- robots, with matrices of Pinocchio ---------------------------------------------------------


def test_computed_torque():
    """A fixed arm whose only task is its posture: inverse dynamics of the wish."""
    model = random_tree(3, kinds=("revolute", "prismatic"), size=5)
    q, v, _ = random_state(model, 3)
    x, goal = mb.State(q, v), random_state(model, 4)[0]
    task = mb.posture_task(model, x, goal, frequency=7.0)
    found = mb.whole_body_control(model, x, [task], acceleration_weight=0.0, limits=False)
    wanted = mb.rnea(model, q, v, 49.0 * (goal - q) - 14.0 * v)
    np.testing.assert_allclose(found.torque, wanted, rtol=1e-7, atol=1e-7 * np.abs(wanted).max())


LEGS = ("FL", "FR", "RL", "RR")
WEIGHTS = 1e-3, 1e-4  # of accelerations and forces: large, so that they count in comparisons


class Quadruped:
    """The Go1, its controller, and the same program by hand."""

    def __init__(self):
        import_or_skip("pinocchio")
        from .robots import Peer

        self.peer = Peer("go1")
        self.model = self.peer.model
        self.feet = [mb.sphere(f"{leg}_foot", 0.02) for leg in LEGS]
        q = mb.neutral(self.model)
        q[7:] = np.tile([0.0, 0.8, -1.6], 4)
        q[2] = 0.02 - mb.frame_pose(self.model, q, "FL_foot").t[2]
        self.stand = q
        self.compiled = arc.compile(self.control)

    def control(self, x, touching):
        model = self.model
        upright = mb.pose(self.stand[:3], np.eye(3))
        tasks = [
            mb.frame_task(model, x, "trunk", upright, weights=[1, 1, 2, 3, 3, 3]),
            mb.posture_task(model, x, self.stand, weights=0.01),
        ]
        return mb.whole_body_control(
            model, x, tasks, self.feet, mb.Ground(friction=FRICTION), touching=touching,
            torque_limits=np.r_[np.zeros(6), np.full(12, 12.0)], limits=False,
            acceleration_weight=WEIGHTS[0], force_weight=WEIGHTS[1],
        )  # fmt: skip

    def state(self, seed, size=0.05):
        rng = np.random.default_rng(seed)
        q = mb.integrate(self.model, self.stand, size * rng.normal(size=18))
        return mb.State(q, 4 * size * rng.normal(size=18))

    def program(self, x, touching):
        """Return H, g of the cost, equations A z = b and inequalities C z <= d, z = (a, forces).

        Forces are in axes of the world, and only of feet that touch.
        """
        pin, peer, data = self.peer.pin, self.peer.peer, self.peer.data
        q, v = self.peer.q_of(x.q), x.v
        M = pin.crba(peer, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.nonLinearEffects(peer, data, q, v)
        pin.forwardKinematics(peer, data, q, v, np.zeros(18))
        pin.computeJointJacobians(peer, data, q)
        pin.updateFramePlacements(peer, data)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

        def rows(name):
            frame = peer.getFrameId(name)
            J = pin.getFrameJacobian(peer, data, frame, axes)
            bias = pin.getFrameClassicalAcceleration(peer, data, frame, axes).vector
            return J, bias, data.oMf[frame]

        J, bias, trunk = rows("trunk")
        turn = pin.log3(trunk.rotation.T)
        error = np.concatenate([self.stand[:3] - trunk.translation, turn])
        wish = 100.0 * error - 20.0 * J @ v
        w = np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0])
        H = J.T @ (w[:, None] * J) + WEIGHTS[0] * np.eye(18)
        g = -J.T @ (w * (wish - bias))
        H[6:, 6:] += 0.01 * np.eye(12)
        g[6:] -= 0.01 * (100.0 * (self.stand - x.q)[7:] - 20.0 * v[6:])
        feet, still = [], []
        for leg, on in zip(LEGS, touching, strict=True):
            J, bias, _ = rows(f"{leg}_foot")
            down = np.array([0.0, 0.0, -0.02])
            if on:
                feet.append(J[:3] - np.cross(np.eye(3), down) @ J[3:])
                still.append(-bias[:3] - np.cross(bias[3:], down))
        n = 3 * len(feet)
        J = np.concatenate(feet)
        big = np.zeros((18 + n, 18 + n))
        big[:18, :18], big[18:, 18:] = H, WEIGHTS[1] * np.eye(n)
        motion = np.concatenate([M, -J.T], axis=1)
        A = np.concatenate([motion[:6], np.concatenate([J, np.zeros((n, n))], axis=1)])
        b = np.concatenate([-h[:6], *still])
        pyramid = np.array([[s, 0, -1] for s in (-1, 1)] + [[0, s, -1] for s in (-1, 1)]) * 1.0
        pyramid[:, 2] *= FRICTION * np.sqrt(0.5)
        push = np.concatenate([pyramid, [[0.0, 0.0, -1.0]]])
        C = np.zeros((5 * len(feet), 18 + n))
        C[:, 18:] = np.kron(np.eye(len(feet)), push)
        C = np.concatenate([C, motion[6:], -motion[6:]])
        d = np.concatenate([np.zeros(5 * len(feet)), 12.0 - h[6:], 12.0 + h[6:]])
        return big, np.concatenate([g, np.zeros(n)]), A, b, C, d, (M, h, J)


@pytest.fixture(scope="module")
def go1():
    return Quadruped()


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "touching"), [(0, (1, 1, 1, 1)), (1, (1, 0, 1, 1)), (2, (0, 1, 1, 0))]
)
def test_conditions_of_an_optimum(go1, seed, touching):
    """Limits hold, and the slope is a positive sum of those that are reached (nonnegative fit)."""
    x = go1.state(seed)
    found = go1.compiled(x, np.array(touching))
    assert found.success
    H, g, A, b, C, d, (M, h, J) = go1.program(x, touching)
    force = found.force[np.array(touching) == 1]
    z = np.concatenate([found.acceleration, force.ravel()])
    np.testing.assert_allclose(A @ z, b, atol=1e-5)
    slack = d - C @ z
    assert slack.min() > -1e-5
    active = C[slack < 1e-4]
    normals = np.concatenate([A, -A, active])
    slope = H @ z + g
    _, rest = nnls(normals.T, -slope)
    assert rest < 1e-4 * np.abs(slope).max()
    # Many limits are reached: the test is one of inequalities.
    assert len(active) > 0
    torque = M @ found.acceleration + h - J.T @ force.ravel()
    np.testing.assert_allclose(found.torque, torque, atol=1e-5)


@pytest.mark.long
def test_a_program_by_hand(go1):
    """The solution of the program by SciPy's nonnegative least squares."""
    for seed, touching in ((3, (1, 1, 1, 1)), (4, (1, 0, 0, 1))):
        x = go1.state(seed)
        found = go1.compiled(x, np.array(touching))
        H, g, A, b, C, d, _ = go1.program(x, touching)
        force = found.force[np.array(touching) == 1]
        z = np.concatenate([found.acceleration, force.ravel()])
        by_hand = least_squares_within(H, g, A, b, C, d)
        np.testing.assert_allclose(z, by_hand, atol=1e-5 * np.abs(by_hand).max())


def least_squares_within(H, g, A, b, C, d):
    """Return the minimum of a quadratic program (Lawson and Hanson 1974, chapter 23: LDP)."""
    start, N = np.linalg.lstsq(A, b, rcond=None)[0], null_space(A)
    L = np.linalg.cholesky(N.T @ H @ N)
    center = -np.linalg.solve(L, N.T @ (H @ start + g))
    # Of z = start + N L^-T (center + u) the smallest u with rows u >= limits.
    reach = np.linalg.solve(L, N.T @ C.T).T
    rows, limits = -reach, C @ start + reach @ center - d
    E, last = np.vstack([rows.T, limits]), np.r_[np.zeros(len(L)), 1.0]
    rest = E @ nnls(E, last)[0] - last
    u = -rest[:-1] / rest[-1]
    return start + N @ np.linalg.solve(L.T, center + u)


@pytest.mark.long
def test_many_states_at_once():
    model, contacts = crate()
    rng = np.random.default_rng(0)
    q = np.array([0, 0, 0.1, 1, 0, 0, 0, 0.0]) + 0.3 * np.outer(np.arange(4), np.eye(8)[7])
    every = mb.State(q, 0.1 * rng.normal(size=(4, 7)))

    def control(x):
        task = mb.posture_task(model, x, np.r_[q[0, :7], 0.5])
        return mb.whole_body_control(model, x, [task], contacts)

    many = arc.vmap(control)(every)
    assert many.success.all() and many.force.shape == (4, 4, 3)
    for k in range(4):
        one = control(mb.State(q[k], every.v[k]))
        np.testing.assert_allclose(many.force[k], one.force, atol=1e-7)


@pytest.mark.long
def test_a_guess_saves_iterations():
    model, contacts = crate()
    first = mb.rest_state(model, [0, 0, 0.1, 1, 0, 0, 0, 0.3])
    then = mb.State(first.q, np.r_[np.zeros(6), 0.01])

    def control(x, guess=None):
        task = mb.posture_task(model, x, first.q)
        return mb.whole_body_control(model, x, [task], contacts, guess=guess)

    cold, warm = control(then), control(then, control(first))
    assert warm.success and warm.program.iterations < cold.program.iterations
    np.testing.assert_allclose(warm.force, cold.force, atol=1e-3)


# ---- wrong uses ---------------------------------------------------------------------------------


def test_refusals():
    model, contacts = crate()
    x = mb.rest_state(model)
    task = mb.posture_task(model, x, x.q)
    for message, error, call in (
        ("each of tasks must be a Task", TypeError, lambda: ([x],)),
        ("each of contacts must be a Contacts", TypeError, lambda: ([task], ["box"])),
        ("contacts: a box on 'box'", ValueError, lambda: ([task], [mb.box("box", [1, 1, 1])])),
        (r"a task has rows \(3, 2\), not", ValueError, lambda: ([planar_task()],)),
    ):
        with pytest.raises(error, match=message):
            mb.whole_body_control(model, x, *call())
    for message, options in (
        ("touching must have shape", {"touching": [1, 1]}),
        ("torque_limits must not be negative", {"torque_limits": -1.0}),
        ("force_limits must have shape", {"force_limits": [1.0, 1.0]}),
        ("sides must be 3 or more", {"sides": 2}),
        ("barrier_frequency must be positive", {"barrier_frequency": 0.0}),
    ):
        with pytest.raises(ValueError, match=message):
            mb.whole_body_control(model, x, [task], contacts, **options)
    with pytest.raises(TypeError, match="guess must be a ControlResult"):
        mb.whole_body_control(model, x, [task], guess=1.0)
    with pytest.raises(TypeError, match="x must be a State"):
        mb.frame_task(model, x.q, "box", np.zeros(3))
    with pytest.raises(ValueError, match=r"target, a position or a pose, must have shape \(3,\)"):
        mb.frame_task(model, x, "box", np.zeros(6))
    with pytest.raises(ValueError, match="frequency must not be negative"):
        mb.posture_task(model, x, x.q, frequency=-1.0)


def planar_task():
    return mb.Task(np.zeros((3, 2)), np.zeros(3), np.zeros(3))

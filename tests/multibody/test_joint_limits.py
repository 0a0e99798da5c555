"""Joints stay within their limits: stops in continuous time, exact ones in steps, dry friction."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .mujoco_peer import mujoco

PENDULUM = """
<mujoco><compiler angle="degree"/><option timestep="1e-3" integrator="RK4"/><worldbody>
 <body name="upper" pos="0 0 2"><joint name="j" axis="0 1 0" range="-45 45" limited="true"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1" contype="0" conaffinity="0"/>
  <body name="lower" pos="0 0 -.5"><joint name="k" axis="0 1 0" range="-45 45" limited="true"/>
   <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1" contype="0" conaffinity="0"/>
  </body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """A double pendulum limited to 45 degrees, here and in MuJoCo."""
    file = tmp_path_factory.mktemp("limits") / "pendulum.xml"
    file.write_text(PENDULUM)
    return mb.load(file), mujoco.MjModel.from_xml_path(str(file))


def slider(**values):
    b = mb.Builder("slider")
    b.add_body("block", mass=2.0, inertia=[0.1, 0.1, 0.1])
    b.attach("block", joint="rail", kind="prismatic", axis=[1, 0, 0], **values)
    return b.build(gravity=[0, 0, 0])


def energy(model, x):
    return mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)


def test_a_double_pendulum_stays_where_that_of_mujoco_stays(pendulum):
    """Without stops it turns over and over; theirs goes 3 deg beyond 45, as ours does."""
    model, m = pendulum
    d, x0 = mujoco.MjData(m), mb.State(np.array([0.3, 0.2]), np.array([6.0, -9.0]))
    d.qpos[:], d.qvel[:], theirs = x0.q, x0.v, 0.0
    for _ in range(2000):
        mujoco.mj_step(m, d)
        theirs = np.maximum(theirs, np.abs(d.qpos))
    at = np.linspace(0.0, 2.0, 1001)
    ours, free = (
        np.abs(arc.solve_ode(lambda t, x, on=on: mb.dynamics(model, t, x, limits=on),
                             (0.0, 2.0), x0, t_eval=at).x.q).max(axis=0)
        for on in (True, False)
    )  # fmt: skip
    theirs, ours, free = np.rad2deg(theirs), np.rad2deg(ours), np.rad2deg(free)
    assert np.all(theirs > 46.5) and np.all(np.abs(ours - theirs) < 1.5), (ours, theirs)
    assert free.max() > 75.0


def test_energy_never_grows(pendulum):
    """That of the motion and of the stops' springs, whose potential is the integral of the force.

    Over a step of 1e-5 s trapezoidal work of the springs is exact to 1e-9 J.
    """
    model, _ = pendulum
    x0 = mb.State(np.array([0.3, 0.2]), np.array([6.0, -9.0]))
    at = np.linspace(0.0, 1.0, 20001)
    x = arc.solve_ode(
        lambda t, x: mb.dynamics(model, t, x), (0.0, 1.0), x0, t_eval=at, rtol=1e-10, atol=1e-12
    ).x
    moving = mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)
    springs = mb.limit_torque(model, x.q, 0.0 * x.v)
    power = np.sum(springs * x.v, axis=1)
    stored = -np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(at))])
    assert np.diff(moving + stored).max() < 1e-7
    assert moving[-1] < moving[0] - 1.0  # the dampers took some


def test_a_stop_is_the_spring_that_is_stated():
    """An oscillator of the stated frequency and damping ratio, from 1 mm on; half of it before."""
    model = slider(lower=-0.1, upper=0.2, limit_frequency=30.0, limit_damping=0.5)
    for q, v, wanted in (
        (0.2, 1.0, 0.0),  # at the limit
        (0.15, 9.0, 0.0),
        (0.25, 0.0, -2.0 * 900.0 * (0.05 - 0.0005)),
        (-0.15, 0.0, 2.0 * 900.0 * (0.05 - 0.0005)),
        (0.25, 0.3, -2.0 * 900.0 * (0.05 - 0.0005) - 2.0 * 0.5 * 2.0 * 30.0 * 0.3),
        (0.25, -9.0, 0.0),  # it does not pull
        (0.2005, 0.0, -2.0 * 900.0 * 0.5 * 0.0005**2 / 0.001),
    ):
        found = mb.limit_torque(model, np.array([q]), np.array([v]))
        np.testing.assert_allclose(found, [wanted], rtol=1e-12, atol=1e-12)
    batch = mb.limit_torque(model, np.array([[0.25], [0.0]]), np.zeros((2, 1)))
    np.testing.assert_allclose(batch[:, 0], [-2.0 * 900.0 * 0.0495, 0.0], rtol=1e-12)
    stiff = arc.jac(lambda q: mb.limit_torque(model, q, np.zeros(1)))
    np.testing.assert_allclose(stiff(np.array([0.25])), [[-1800.0]], rtol=1e-12)
    np.testing.assert_allclose(stiff(np.array([0.1])), [[0.0]])


def test_the_solver_parameters_of_a_file_are_those_of_its_stops(tmp_path):
    """A joint on its stop, of one inertia: what MuJoCo does without other forces."""
    file = tmp_path / "stop.xml"
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="s" type="slide"
     axis="1 0 0" range="-.1 .1" solreflimit="{}" margin="{}"/><geom size=".1" mass="3"
     contype="0"/></body></worldbody></mujoco>"""
    for solref, margin in (("0.05 0.7", 0), ("-400 -30", 0), ("0.05 0.7", 0.02)):
        file.write_text(text.format(solref, margin))
        model, m = mb.load(file), mujoco.MjModel.from_xml_path(str(file))
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:] = 0.16, 0.4
        mujoco.mj_forward(m, d)
        # Ours begins softly, over 1 mm; impedance is at its largest there
        k = model.limit_frequency[0] ** 2
        ours = mb.dynamics(model, 0.0, mb.State(np.array([0.16]), np.array([0.4]))).v
        np.testing.assert_allclose(ours - 0.5e-3 * k, d.qacc, rtol=1e-9)


def test_ball_joints_have_limits_too(tmp_path):
    file = tmp_path / "ball.xml"
    file.write_text("""<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
     <body><joint name="b" type="ball" range="0 0.5" limited="true"/>
     <geom type="box" size=".1 .1 .1" mass="3" contype="0"/></body></worldbody></mujoco>""")
    model, m = mb.load(file), mujoco.MjModel.from_xml_path(str(file))
    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    for angle in (0.2, 0.7, 2.5):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        q = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
        for sign in (1.0, -1.0):  # of the quaternion
            d.qpos[:], d.qvel[:] = sign * q, 0.0
            mujoco.mj_forward(m, d)
            ours = mb.dynamics(model, 0.0, mb.State(sign * q, np.zeros(3))).v
            soft = 0.5e-3 * 2500.0 * axis * (angle > 0.5)
            np.testing.assert_allclose(ours - soft, d.qacc, rtol=1e-9, atol=1e-9)
    step = arc.compile(lambda x: mb.contact_step(model, x, 2e-3))
    x = mb.State(np.array([1.0, 0, 0, 0]), np.array([1.0, 2.0, -1.0]))
    for _ in range(400):
        x = step(x)
        assert 2.0 * np.arccos(min(abs(x.q[0]), 1.0)) < 0.5 + 1e-5
    assert mb.limit_torque(model, mb.neutral(model), np.ones(3)).tolist() == [0.0] * 3


# ---- soft constraints ----------------------------------------------------------------------------

SOFT = """<mujoco><option timestep="{}" integrator="RK4" tolerance="0" iterations="200"/>
 <worldbody><site name="o" pos=".3 0 2"/><body pos="0 0 2"><joint name="j" axis="0 1 0"
 range="-45 45" damping=".05" frictionloss=".3" solreflimit=".03 .8"/>
 <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass="1" contype="0"/>
 <body pos="0 0 -.5"><joint name="k" type="ball" range="0 50"/><geom type="box" size=".1 .2 .3"
 pos="0 .05 -.5" mass="1" contype="0"/><site name="tip" pos="0 0 -.5"/></body></body></worldbody>
 <tendon><spatial name="t" stiffness="5" springlength=".3" range="0 1.2" frictionloss=".4">
 <site site="o"/><site site="tip"/></spatial></tendon>
 <actuator><position joint="j" kp="8" kv=".3"/><motor tendon="t" gear="2"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def soft(tmp_path_factory):
    """A hinge, a ball and a tendon with limits and dry friction, with actuators."""
    file = tmp_path_factory.mktemp("soft") / "soft.xml"
    file.write_text(SOFT.format(1e-3))
    return mb.load(file), mujoco.MjModel.from_xml_path(str(file))


def test_soft_dynamics_are_those_of_mujoco(soft):
    """Accelerations at random states, many of them beyond limits."""
    model, m = soft
    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    q0 = mb.neutral(model)
    for _ in range(12):
        q, v = mb.integrate(model, q0, rng.normal(size=4)), 2.0 * rng.normal(size=4)
        u = rng.normal(size=2)
        d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
        mujoco.mj_forward(m, d)
        ours = mb.soft_dynamics(model, 0.0, mb.State(q, v), u, actuators=model.actuators).v
        np.testing.assert_allclose(ours, d.qacc, atol=1e-9 * np.abs(d.qacc).max())
    slope = arc.jac(lambda v: mb.soft_dynamics(model, 0.0, mb.State(q, v), u,
                                               actuators=model.actuators).v)(v)  # fmt: skip
    assert np.isfinite(slope).all()
    with pytest.raises(ValueError, match="impedance must be in"):
        mb.soft_dynamics(model, 0.0, mb.State(q, v), impedance=[1.0, 0.95, 0.001, 0.5, 2.0])


@pytest.mark.long
def test_motion_over_a_second_is_that_of_mujoco(soft):
    """Limits, friction and actuators: within what halving MuJoCo's step changes."""
    model, _ = soft
    v0, u = np.array([3.0, 1.0, -4.0, 2.0]), np.array([0.4, -0.5])
    theirs = []
    for h in (1e-3, 5e-4, 1e-4):
        m = mujoco.MjModel.from_xml_string(SOFT.format(h))
        d = mujoco.MjData(m)
        d.qvel[:], d.ctrl[:] = v0, u
        for _ in range(round(1.0 / h)):
            mujoco.mj_step(m, d)
        theirs.append(np.array(d.qpos))
    x0 = mb.State(mb.neutral(model), v0)
    ours = arc.solve_ode(
        lambda t, x: mb.soft_dynamics(model, t, x, u, actuators=model.actuators),
        (0.0, 1.0), x0, t_eval=[0.0, 1.0], rtol=1e-8, atol=1e-10,
    ).x.q[-1]  # fmt: skip
    halving = np.abs(theirs[0] - theirs[1]).max()
    assert np.abs(ours - theirs[2]).max() < halving


# ---- steps ---------------------------------------------------------------------------------------


def test_a_step_goes_to_the_limit_and_not_beyond(pendulum):
    """It loses energy where it hits a stop, and gains none."""
    model, _ = pendulum
    step = arc.compile(lambda x: mb.contact_step(model, x, 1e-3))
    x, reached = mb.State(np.array([0.3, 0.2]), np.array([6.0, -9.0])), 0.0
    start = energy(model, x)
    for _ in range(2000):
        x = step(x)
        reached = np.maximum(reached, np.abs(x.q))
    np.testing.assert_allclose(np.rad2deg(reached), 45.0, rtol=1e-12)
    assert energy(model, x) < start - 1.0
    free = mb.contact_step(model, mb.State(np.array([0.78, 0.0]), np.array([9.0, 0.0])), 1e-2,
                           [mb.sphere("lower", 0.01)], mb.Ground(), limits=False)  # fmt: skip
    assert free.q[0] > 0.85


def test_dry_friction_holds_and_slides():
    """Closed forms: held below 3 N, then (F - 3) / m; a stop, and away from it at once."""
    model = slider(friction=3.0, lower=-1.0, upper=0.2)
    step = arc.compile(lambda x, u: mb.contact_step(model, x, 1e-3, u=u))
    x = mb.State(np.zeros(1), np.zeros(1))
    for force, count, q, v in (
        (2.99, 100, 0.0, 0.0),
        (5.0, 300, 0.5e-6 * 300 * 301, 0.3),
        (0.0, 200, 0.04515 + 0.03 - 0.00015, 0.0),
        (-3.0, 50, 0.075, 0.0),
        (5.0, 2000, 0.2, 0.0),
        (-3.1, 500, 0.2 - 0.025e-6 * 500 * 501, -0.025),
    ):
        for _ in range(count):
            x = step(x, np.array([force]))
        np.testing.assert_allclose((x.q[0], x.v[0]), (q, v), atol=1e-12)
    slope = arc.jac(lambda F, v: step(mb.State(np.zeros(1), v), F).v, argnums=(0, 1))
    for F, v, by_F, by_v in (
        (1.0, 0.0, 0.0, 0.0),
        (6.0, 0.0, 0.0005, 1.0),
        (0.0, 1.0, 0.0005, 1.0),
    ):
        found = slope(np.array([F]), np.array([v]))
        np.testing.assert_allclose(np.ravel(found), [by_F, by_v], atol=1e-12)


def test_stops_and_contacts_are_one_system():
    """A leg with its knee at its stop stands on the ground as a rigid one, and carries its weight.

    Energy falls in every step until it stands; the ground and the knee hold.
    """
    b = mb.Builder("leg")
    b.add_body("trunk", mass=5.0, inertia=[0.1, 0.1, 0.1])
    b.attach("trunk", joint="rail", kind="prismatic", axis=[0, 0, 1], upper=2.0)
    b.add_body("shank", mass=1.0, com=[0, 0, -0.2], inertia=[0.01, 0.01, 0.001])
    b.attach("shank", "trunk", joint="knee", axis=[0, 1, 0], lower=0.3, upper=1.0, friction=0.1)
    b.add_frame("foot", "shank", position=[0, 0, -0.4])
    leg, ground = b.build(), mb.Ground(friction=0.8)
    step = arc.compile(lambda x: mb.contact_step(leg, x, 1e-3, [mb.sphere("foot", 0.02)], ground))
    x = mb.State(np.array([0.6, 0.3 + 1e-9]), np.array([0.0, 0.0]))
    before = energy(leg, x)
    for _ in range(800):
        x = step(x)
        after = energy(leg, x)
        assert after < before + 1e-12
        before = after
        assert 0.3 - 1e-4 < x.q[1] < 1.0 + 1e-4
    assert abs(mb.frame_pose(leg, x.q, "foot").t[2] - 0.02) < 1e-4
    gradient = arc.jac(lambda v: step(mb.State(x.q, v)).v)(x.v)
    assert np.isfinite(gradient).all()


@pytest.mark.long
def test_a_ball_a_hinge_a_rope_and_the_ground_are_one_system():
    """A leg on a ball joint is thrown about: no limit is left, no energy comes from anywhere."""
    b = mb.Builder("leg")
    b.add_body("thigh", mass=1.0, inertia=[0.1, 0.1, 0.05], com=[0, 0, -0.2])
    b.attach("thigh", joint="hip", kind="spherical", angle_limit=0.6, friction=0.05)
    b.add_body("shank", mass=0.5, inertia=[0.01, 0.01, 0.01], com=[0, 0, -0.1])
    where = {"axis": [0, 1, 0], "position": [0, 0, -0.4]}
    b.attach("shank", "thigh", joint="knee", lower=-1.0, upper=1.0, **where)
    b.add_frame("tip", "shank", position=[0, 0, -0.3])
    b.add_frame("top", "world", position=[0.2, 0, 0.1])
    b.add_tendon("rope", path=["top", "tip"], upper=0.87, friction=0.2)
    leg, ground = b.build(), mb.Ground(point=[0, 0, -0.66], friction=0.4)
    step = arc.compile(lambda x: mb.contact_step(leg, x, 1e-3, [mb.sphere("tip", 0.02)], ground))
    x = mb.State(
        np.array([np.cos(0.15), 0, np.sin(0.15), 0, -0.9]), np.array([3.0, 4.0, 1.0, -6.0])
    )
    before, most = energy(leg, x), np.zeros(3)
    for _ in range(600):
        x = step(x)
        after = energy(leg, x)
        assert after < before + 1e-4  # of 15 J: the step is of first order
        before = after
        reached = 2.0 * np.arccos(abs(x.q[0])), abs(x.q[4]), mb.tendon_length(leg, x.q)[0]
        most = np.maximum(most, reached)
        assert mb.frame_pose(leg, x.q, "tip").t[2] > -0.64 - 1e-4
    np.testing.assert_array_less(most, [0.6 + 1e-3, 1.0 + 1e-9, 0.87 + 1e-3])
    assert most[0] > 0.599 and most[2] > 0.869


@pytest.mark.long
def test_gradients_of_steps_are_those_of_differences(pendulum):
    """At a stop, off it, with contact and friction: central differences."""
    model = pendulum[0].replace(friction=np.array([0.5, 0.0]))
    shapes, ground = [mb.sphere("lower", 0.4)], mb.Ground(friction=0.5)

    @arc.compile
    def step(y):
        x = mb.contact_step(model, mb.State(y[:2], y[2:]), 1e-3, shapes, ground)
        return np.concatenate([x.q, x.v])

    limit = np.pi / 4
    for y in (
        [0.1, 0.2, 1.0, -1.0],
        [limit - 1e-4, 0.2, 1.0, -1.0],
        [limit - 1e-4, -limit + 2e-4, 1.0, -3.0],
        [limit + 1e-3, 0.2, 0.0, -1.0],
    ):
        y, h = np.array(y), 1e-7
        known = np.stack([(step(y + h * e) - step(y - h * e)) / (2 * h) for e in np.eye(4)], axis=1)
        np.testing.assert_allclose(arc.jac(step)(y), known, atol=2e-5 * np.abs(known).max())


# ---- odd limits ----------------------------------------------------------------------------------


def test_a_range_of_nothing_holds_the_joint():
    model = slider(lower=0.1, upper=0.1, friction=0.0)
    step = arc.compile(lambda x, u: mb.contact_step(model, x, 1e-3, u=u))
    x = mb.State(np.array([0.1]), np.array([3.0]))
    for force in (100.0, -100.0, 0.0):
        x = step(x, np.array([force]))
        np.testing.assert_allclose((x.q[0], x.v[0]), (0.1, 0.0), atol=1e-12)
    held = arc.solve_ode(lambda t, x: mb.dynamics(model, t, x), (0.0, 1.0), x.replace(v=np.ones(1)))
    assert abs(held.x.q[-1, 0] - 0.1) < 1e-3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solref", ["-100 -1", "-100 1", "0.02 -1", "0.02 0"])
def test_references_of_mixed_signs_are_mujocos_default(tmp_path, solref):
    file = tmp_path / "arm.xml"
    file.write_text(f"""<mujoco><compiler angle="radian"/><worldbody><body><joint name="j"
     axis="0 1 0" limited="true" range="-1 1" solreflimit="{solref}"/>
     <geom size=".1" pos="0 0 -.5" mass="1" contype="0"/></body></worldbody></mujoco>""")
    m = mujoco.MjModel.from_xml_path(str(file))
    d, q, v = mujoco.MjData(m), np.array([1.002]), np.array([0.1])
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(m, d)
    ours = mb.soft_dynamics(mb.load(file), 0.0, mb.State(q, v)).v
    np.testing.assert_allclose(ours, d.qacc, rtol=1e-9)


def test_a_joint_beyond_its_limit_comes_back_without_speed():
    model = slider(lower=-1.0, upper=0.2)
    x, step = (
        mb.State(np.array([0.3]), np.zeros(1)),
        arc.compile(lambda x: mb.contact_step(model, x, 1e-3)),
    )
    for k in range(1, 20):
        x = step(x)
        np.testing.assert_allclose((x.q[0], x.v[0]), (0.2 + 0.1 * 0.8**k, 0.0), atol=1e-12)


def test_without_limits_nothing_is_recorded():
    """The programs with and without limits=True are the same, of a model that has none."""
    free = slider()
    texts = [
        arc.compile(lambda x, on=on: mb.dynamics(free, 0.0, x, limits=on)).graph(
            mb.rest_state(free)
        )
        for on in (True, False)
    ]
    assert str(texts[0]) == str(texts[1])


def test_limits_of_a_model_that_is_an_argument(pendulum):
    model, _ = pendulum
    q, v = np.array([1.0, -0.9]), np.array([1.0, 2.0])
    known = mb.limit_torque(model, q, v)
    found = arc.compile(lambda m: mb.limit_torque(m, q, v))(model)
    np.testing.assert_allclose(found, known, rtol=1e-12)
    by_limit = arc.jac(lambda x: mb.limit_torque(model.replace(upper=x), q, v))(model.upper)
    assert by_limit[0, 0] > 0.0 and by_limit[1, 1] == 0.0


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("revolute", {"lower": 1.0, "upper": -1.0}, "lower"),
        ("revolute", {"upper": np.nan}, "joint 'j': upper must be a number"),
        ("revolute", {"angle_limit": 1.0}, "angle_limit is for spherical joints; a revolute joint"),
        ("spherical", {"upper": 1.0}, "a spherical joint has no limits"),
        ("revolute", {"limit_frequency": -1.0}, "joint 'j': limit_frequency must"),
    ],
)
def test_impossible_limits_are_refused(kind, values, message):
    b = mb.Builder()
    b.add_body("bob", mass=1.0, inertia=[1, 1, 1])
    with pytest.raises(ValueError, match=message):
        b.attach("bob", joint="j", kind=kind, **values)


def test_limits_is_a_switch(pendulum):
    x = mb.rest_state(pendulum[0])
    for f in (
        lambda: mb.dynamics(pendulum[0], 0.0, x, limits="none"),
        lambda: mb.contact_step(pendulum[0], x, 1e-3, limits=1),
    ):
        with pytest.raises(TypeError, match="limits must be a bool"):
            f()

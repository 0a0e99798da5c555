"""What actuators act on and tendons through space: MuJoCo's numbers on the same file."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.parts.joints import KINDS
from archimedes.multibody.systems.dynamics import activate

from .mujoco_peer import mujoco

EVERYTHING = """
<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<worldbody>
 <site name="hook" pos=".3 .1 1.2"/><site name="ceil" pos="-.2 0 1.5"/>
 <body name="a" pos="0 0 1" gravcomp=".6"><joint name="j" axis="0 1 0" range="-2 2"
   actuatorfrcrange="-3 3"/><geom name="ga" type="capsule" size=".05 .2" pos="0 0 -.2" mass="1"/>
  <geom name="roll" type="cylinder" size=".07 .1" pos="0 0 -.4" quat=".7 .7 0 0.1" contype="0"
   conaffinity="0" mass=".1"/>
  <site name="s1" pos=".1 .02 -.1" quat="1 .2 .3 .1"/><site name="side" pos=".15 0 -.42"/><site
   name="in" pos=".01 0 -.4"/>
  <body name="b" pos="0 0 -.4"><joint name="k" type="ball"/><geom type="box" size=".1 .05 .2"
   pos="0 .03 -.2" mass=".7"/>
   <geom name="knob" type="sphere" size=".06" pos="0 0 -.3" mass=".1"/>
   <site name="s2" pos=".12 .03 -.2" quat="1 .1 -.3 .2"/><site name="s3" pos="-.1 .1 -.35"/>
   <body name="c" pos="0 0 -.5"><joint name="l" type="slide" axis="0 0 1"/><geom size=".05"
   mass=".5"/><site name="s4" pos=".05 .2 -.1"/><site name="s5" pos="-.09 -.1 .2"/></body>
  </body></body>
 <body name="f" pos="1 0 .5" gravcomp="1.2"><freejoint name="free"/><geom type="box"
   size=".1 .2 .05" mass="1" pos=".1 0 0"/><site name="rotor" pos=".1 .2 .05"
   quat="1 .1 0 .2"/><site name="pin" pos="0 .05 .1"/></body>
</worldbody>
<tendon>
 <spatial name="t0" stiffness="40" damping="2" springlength=".1 .3"><site site="hook"/><site
   site="s1"/><site site="s2"/><pulley divisor="2"/><site site="s3"/><site site="s4"/><pulley
   divisor="3"/><site site="s4"/><site site="hook"/></spatial>
 <spatial name="t1" stiffness="11"><site site="s1"/><geom geom="roll"/><site site="s2"/></spatial>
 <spatial name="t2" damping="1"><site site="s1"/><geom geom="roll" sidesite="side"/><site
   site="s2"/><geom geom="knob"/><site site="s5"/></spatial>
 <spatial name="t3"><site site="ceil"/><geom geom="knob"/><site site="s4"/></spatial>
 <fixed name="t4" stiffness="3" springlength="0"><joint joint="j" coef=".3"/><joint joint="l"
   coef="-1"/></fixed>
</tendon>
<actuator>
 <motor name="m0" site="rotor" gear="0 0 1 0 0 .02" ctrlrange="0 5"/>
 <position name="m1" site="s2" refsite="hook" gear="1 .2 0 .3 0 .1" kp="20" kv="1"/>
 <motor name="m2" joint="k" gear="1 2 3"/>
 <motor name="m3" jointinparent="k" gear="1 2 3" />
 <position name="m4" joint="k" gear="0 1 0.5" kp="4" forcerange="-.8 .8"/>
 <motor name="m5" joint="free" gear="1 2 3 4 5 6"/>
 <motor name="m6" jointinparent="free" gear="1 2 3 4 5 6"/>
 <position name="m7" tendon="t1" kp="9" gear="2"/>
 <muscle name="m8" tendon="t0" lengthrange=".2 1.6" force="30"/>
 <muscle name="m9" joint="l" lengthrange="-.4 .4" force="20" gear="-1.5" timeconst=".02 .05"
   tausmooth=".1"/>
 <intvelocity name="m10" joint="j" kp="5" kv="1" actrange="-.3 .3" gear="2"/>
 <general name="m11" cranksite="pin" slidersite="hook" cranklength="1.9" gear="2" gainprm="3"
   biastype="affine" biasprm="1 2 .3"/>
 <damper name="m12" joint="l" kv="3" ctrlrange="0 1"/>
 <cylinder name="m13" joint="l" timeconst=".1" area=".2" bias="1 2 3"/>
 <velocity name="m14" site="s4" kv="2" gear="0 1 0 0 0 0"/>
 <motor name="m15" tendon="t4" gear="3"/>
 <dcmotor name="m16" joint="j" motorconst=".2" resistance="1.5" gear="4"/>
 <position name="m17" site="s4" refsite="s1" gear="1 2 3 .1 .2 .3" kp="2"/>
 <general name="m18" joint="l" dyntype="filterexact" dynprm="0.1" gear="-2"/>
</actuator>
<keyframe><key name="home" qpos=".1 1 0 0 0 .05 1 2 3 .6 .8 0 0"
   qvel=".1 .2 .3 .4 .5 1 2 3 .1 .2 .3" act="0.1 0.2 0.3 0.4 0.5"
   ctrl="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"/></keyframe>
</mujoco>
"""


def turned(model, q):
    """Return T with v_MuJoCo = T v: linear velocities of free joints are in axes of the world."""
    T = np.eye(model.nv)
    for link in model.links:
        if link.kind is KINDS["free"]:
            R = link.kind.pose(link.screw, q[link.q : link.q + 7].tolist()).R
            T[link.v : link.v + 3, link.v : link.v + 3] = R
    return T


def loaded(folder, text, name="robot.xml"):
    file = folder / name
    file.write_text(text)
    m = mujoco.MjModel.from_xml_path(str(file))
    return mb.load(file), m, mujoco.MjData(m)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A robot with all transmissions, tendons and kinds of actuators, here and in MuJoCo."""
    return loaded(tmp_path_factory.mktemp("transmissions"), EVERYTHING)


def dense(rows, d, m, what):
    """Return a sparse matrix of MuJoCo's data; where its pattern is depends on the version."""
    out = np.zeros((rows, m.nv))
    own = {"moment": (d.actuator_moment, "moment"), "ten_J": (d.ten_J, "ten_J")}[what]
    pattern = [getattr(d, f"{own[1]}_{k}", getattr(m, f"{own[1]}_{k}", None))
               for k in ("rownnz", "rowadr", "colind")]  # fmt: skip
    mujoco.mju_sparse2dense(out, own[0].ravel(), *pattern)
    return out


def random_case(model, m, rng):
    q, v = mb.random_configuration(model, rng), rng.normal(size=model.nv)
    act = rng.uniform(-0.3, 0.3, size=m.na)
    return q, v, 2.0 * rng.normal(size=m.nu), act


@pytest.mark.parametrize("count", [3, pytest.param(60, marks=pytest.mark.long)])
def test_everything_is_mujocos(everything, count):
    """Lengths, moment arms, passive forces, forces of each actuator, activations."""
    model, m, d = everything
    assert len(model.actuators) == m.nu == 19
    free = model.replace(effort_limits=np.full(model.nv, np.inf))
    rng, near = np.random.default_rng(0), {"rtol": 1e-11, "atol": 1e-11}
    for _ in range(count):
        q, v, u, act = random_case(model, m, rng)
        T = turned(model, q)
        d.qpos[:], d.qvel[:], d.ctrl[:], d.act[:] = q, T @ v, u, act
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(mb.tendon_length(model, q), d.ten_length, **near)
        arms = mb.tendon_jacobian(model, q)
        np.testing.assert_allclose(arms, dense(m.ntendon, d, m, "ten_J") @ T, **near)
        np.testing.assert_allclose(arms @ v, d.ten_velocity, **near)
        np.testing.assert_allclose(mb.passive_torque(model, q, v), T.T @ d.qfrc_passive, **near)
        acting, rates = activate(model.actuators, act, u)
        np.testing.assert_allclose(rates, d.act_dot, **near)
        moments = dense(m.nu, d, m, "moment") @ T
        for k, actuator in enumerate(model.actuators):
            ours = mb.actuator_torque(free, [actuator], q, v, acting[k : k + 1])
            np.testing.assert_allclose(ours, moments[k] * d.actuator_force[k], **near)
        ours = mb.actuator_torque(model, model.actuators, q, v, acting)
        np.testing.assert_allclose(ours, T.T @ d.qfrc_actuator, **near)


def test_all_in_one_compiled_batch(everything):
    """Leading axes, and a compiled map, give the numbers of one state after the other."""
    model, m, _ = everything
    rng = np.random.default_rng(1)
    q, v, u, _ = (np.stack(x) for x in zip(*(random_case(model, m, rng) for _ in range(3))))
    each = [mb.tendon_jacobian(model, x) for x in q]
    np.testing.assert_allclose(mb.tendon_jacobian(model, q), each, rtol=1e-13, atol=1e-14)
    one = [mb.passive_torque(model, *x) for x in zip(q, v)]
    np.testing.assert_allclose(mb.passive_torque(model, q, v), one, rtol=1e-12, atol=1e-13)
    some = [a for a in model.actuators if not hasattr(a, "activation_rate")]
    u = u[:, : len(some)]
    torques = [mb.actuator_torque(model, some, *x) for x in zip(q, v, u)]
    found = mb.actuator_torque(model, some, q, v, u)
    np.testing.assert_allclose(found, torques, rtol=1e-12, atol=1e-12)


def test_moment_arms_are_slopes_of_lengths(everything):
    """Of tendons: exact derivatives along the tangent space, also around what they wrap."""
    model, m, _ = everything
    rng = np.random.default_rng(2)
    slope = arc.jac(lambda e, q: mb.tendon_length(model, mb.integrate(model, q, e)))
    for _ in range(4):
        q, *_ = random_case(model, m, rng)
        by_q = slope(np.zeros(model.nv), q)
        np.testing.assert_allclose(mb.tendon_jacobian(model, q), by_q, atol=1e-9)


def test_the_keyframe_is_the_state_of_the_file(everything):
    model, m, d = everything
    home = model.keyframes["home"]
    mujoco.mj_resetDataKeyframe(m, d, 0)
    np.testing.assert_allclose(home.q, d.qpos)
    np.testing.assert_allclose(turned(model, home.q) @ home.v, d.qvel, atol=1e-15)
    np.testing.assert_array_equal(home.activations, d.act)
    np.testing.assert_array_equal(home.commands, d.ctrl)
    x = mb.DrivenState(home.q, home.v, home.activations)
    rates = mb.dynamics(model, 0.0, x, home.commands, actuators=model.actuators, limits=False)
    mujoco.mj_forward(m, d)
    # free bodies: their velocity is in their own axes
    w, R = home.v[-3:], turned(model, home.q)[-6:-3, -6:-3]
    ours = np.concatenate([rates.v[:-6], R @ (rates.v[-6:-3] + np.cross(w, home.v[-6:-3]))])
    np.testing.assert_allclose(ours, d.qacc_smooth[:-3], rtol=1e-9)


def test_a_saved_robot_is_the_same(everything, tmp_path):
    """All parts are written as MJCF and read again."""
    model, m, _ = everything
    report = mb.save(model, tmp_path / "again.xml")
    assert not report.ignored, report.report()
    again = mb.load(tmp_path / "again.xml")
    q, v, u, act = random_case(model, m, np.random.default_rng(3))
    for f in (mb.tendon_length, mb.tendon_jacobian):
        np.testing.assert_array_equal(f(again, q), f(model, q))
    np.testing.assert_array_equal(mb.passive_torque(again, q, v), mb.passive_torque(model, q, v))
    acting, rates = activate(model.actuators, act, u)
    np.testing.assert_array_equal(activate(again.actuators, act, u)[1], rates)
    torques = (mb.actuator_torque(x, x.actuators, q, v, acting) for x in (model, again))
    np.testing.assert_array_equal(*torques)
    home, same = model.keyframes["home"], again.keyframes["home"]
    for name in ("q", "v", "activations", "commands"):
        np.testing.assert_allclose(getattr(same, name), getattr(home, name), atol=1e-15)


# ---- wrapping ------------------------------------------------------------------------------------

WRAPPING = """<mujoco><worldbody><geom name="w" type="{}" size=".1 .3" contype="0"
 conaffinity="0"/><site name="side" pos="{}"/><site name="p" pos=".5 0.02 0"/>
 <body name="a"><freejoint/><geom size=".01" mass="1" contype="0"/><site name="s"/></body>
 </worldbody><tendon><spatial name="t"><site site="p"/><geom geom="w"{}/><site site="s"/></spatial>
 </tendon></mujoco>"""


@pytest.mark.parametrize("shape", ["cylinder", "sphere"])
@pytest.mark.parametrize("side", ["none", "0 .3 0", "0 -.3 0", ".2 .3 .5", ".02 .03 0"])
def test_ways_around_are_mujocos(tmp_path, shape, side):
    """All cases: clear, around either side, far around, by the inside; ends inside the shape."""
    by = "" if side == "none" else ' sidesite="side"'
    place = "0 0 1" if side == "none" else side
    model, m, d = loaded(tmp_path, WRAPPING.format(shape, place, by))
    rng, touched = np.random.default_rng(1), 0
    inside = side == ".02 .03 0"
    for _ in range(80):
        q = mb.random_configuration(model, rng)
        q[:3] *= 0.8
        d.qpos[:] = q
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_tendon(m, d)
        near = 1e-9 if inside else 1e-12  # MuJoCo stops Newton's method there at 1e-6
        np.testing.assert_allclose(mb.tendon_length(model, q), d.ten_length, atol=near)
        touched += int(d.ten_wrapnum[0] == 4)
    assert touched > (0 if inside else 2)


@pytest.mark.parametrize("shape", ["cylinder", "sphere"])
@pytest.mark.parametrize("side", ["0.01 0.2 1", "-1 0.1 0.2", ".3 .1 -.4"])
def test_ways_by_a_side_along_the_tendon_are_mujocos(tmp_path, shape, side):
    """A side that is nearly in line with the tendon decides by what is behind the shape."""
    text = WRAPPING.replace('size=".1 .3"', 'size=".3 .3"').replace(".5 0.02 0", "-1 .1 .2")
    model, m, d = loaded(tmp_path, text.format(shape, side, ' sidesite="side"'))
    rng, ways = np.random.default_rng(2), []
    for _ in range(80):
        q = mb.random_configuration(model, rng)
        q[:3] = [1.0, 0.1, -0.2] + 0.4 * rng.normal(size=3)
        d.qpos[:] = q
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(mb.tendon_length(model, q), d.ten_length, atol=1e-12)
        ways.append(d.ten_wrapnum[0])
    assert ways.count(4) > 40


def rope(path, **values):
    """Return a mass on a rail along x, with hooks on the world and a drum of radius 0.3."""
    b = mb.Builder("rope")
    b.add_body("block", mass=2.0, inertia=[0.1, 0.1, 0.1])
    b.attach("block", joint="rail", kind="prismatic", axis=[1, 0, 0])
    b.add_frame("eye", "block")
    places = {"left": [-1, 0, 0], "up": [0, 1, 0], "same": [0, 0, 0], "drum": [0, -0.2, 0]}
    for name, place in {**places, "low": [0, -1.0, 0]}.items():
        b.add_frame(name, "world", position=place)
    b.add_tendon("t", path=path, **values)
    return b.build(gravity=[0, 0, 0])


def test_closed_forms_of_lengths():
    """Pythagoras, pulleys, and the way around a circle: tangents and an arc."""
    x = np.array([0.8])
    for path, length, arm in (
        (["left", "eye"], 1.8, 1.0),
        (["up", "eye"], np.hypot(1.0, 0.8), 0.8 / np.hypot(1.0, 0.8)),
        ([mb.Pulley(2.0), "up", "eye", mb.Pulley(4.0), "eye", "left"],
         np.hypot(1.0, 0.8) / 2 + 1.8 / 4, 0.4 / np.hypot(1.0, 0.8) + 0.25),
        (["left", "up", "left"], 2 * np.sqrt(2), 0.0),
    ):  # fmt: skip
        model = rope(path)
        np.testing.assert_allclose(mb.tendon_length(model, x), [length], rtol=1e-14)
        np.testing.assert_allclose(mb.tendon_jacobian(model, x), [[arm]], rtol=1e-14, atol=1e-15)
    # Around a circle of radius 0.3 about (0, -0.2) from (-1, 0) to (0.8, 0), over its top (0, 0.1)
    a, b, r = np.array([-1.0, 0.2]), np.array([0.8, 0.2]), 0.3
    na, nb = np.linalg.norm(a), np.linalg.norm(b)
    apart = np.arccos(a @ b / (na * nb))
    arc_angle = apart - np.arccos(r / na) - np.arccos(r / nb)
    length = np.sqrt(na**2 - r**2) + np.sqrt(nb**2 - r**2) + r * arc_angle
    for shape in ("cylinder", "sphere"):
        model = rope(["left", mb.Wrap("drum", 0.3, shape), "eye"])
        np.testing.assert_allclose(mb.tendon_length(model, x), [length], rtol=1e-14)
        h = 1e-6
        slope = (mb.tendon_length(model, x + h) - mb.tendon_length(model, x - h)) / (2 * h)
        np.testing.assert_allclose(mb.tendon_jacobian(model, x)[0], slope, atol=1e-9)


def test_a_spring_of_a_tendon_keeps_its_energy():
    """Springs along a path that wraps: 1/2 k s^2 and the kinetic energy stay what they are."""
    model = rope(["left", mb.Wrap("drum", 0.3), "eye"], stiffness=50.0, rest=1.8)
    x0 = mb.State(np.array([0.9]), np.zeros(1))

    def total(x):
        stretched = mb.tendon_length(model, x.q)[0] - 1.8
        return mb.kinetic_energy(model, x.q, x.v) + 25.0 * stretched**2

    end = arc.solve_ode(
        lambda t, x: mb.dynamics(model, t, x), (0.0, 2.0), x0, t_eval=[0.0, 2.0], rtol=1e-10,
        atol=1e-12,
    ).x  # fmt: skip
    now = mb.State(end.q[-1], end.v[-1])
    np.testing.assert_allclose(total(now), total(x0), rtol=1e-7)


def test_limits_and_friction_of_tendons(tmp_path):
    """A rope that is taut at 1.5 m: stopped softly in time, exactly in steps; friction holds it."""
    model = rope(["left", "eye"], upper=1.5, friction=1.0)
    assert np.all(mb.limit_torque(model, np.array([0.4]), np.ones(1)) == 0.0)
    k = 2.0 * 2500.0
    found = mb.limit_torque(model, np.array([0.6]), np.zeros(1))
    np.testing.assert_allclose(found, [-k * (0.1 - 0.0005)], rtol=1e-12)
    step = arc.compile(lambda x, u: mb.contact_step(model, x, 1e-3, u=u))
    x = mb.State(np.array([0.4]), np.zeros(1))
    for force, count, q, v in (
        (0.99, 50, 0.4, 0.0), (3.0, 100, 0.4 + 0.5e-6 * 100 * 101, 0.1), (9.0, 900, 0.5, 0.0),
    ):  # fmt: skip
        for _ in range(count):
            x = step(x, np.array([force]))
        np.testing.assert_allclose((x.q[0], x.v[0]), (q, v), atol=1e-12)
    file = loaded(
        tmp_path,
        """<mujoco><worldbody><body><joint name="s" type="slide"/><geom
     size=".1"/></body></worldbody><tendon><fixed name="t" range="-.1 .2" limited="true"
     frictionloss="3" margin=".01"><joint joint="s" coef="2"/></fixed></tendon></mujoco>""",
    )[0]
    np.testing.assert_allclose(file.tendons.lower, [-0.09])
    np.testing.assert_allclose([file.tendons.upper, file.tendons.friction], [[0.19], [3.0]])


def test_nasty_paths_give_numbers():
    """Sites on each other, ends inside the drum, a drum of nothing: finite, with derivatives."""
    zero = np.zeros(1)
    for path in (
        ["same", "eye"],
        ["eye", "block"],
        ["up", mb.Wrap("same", 0.3), "eye"],
        ["up", mb.Wrap("same", 0.3, "sphere", side="low"), "eye"],
        ["up", mb.Wrap("drum", 0.0), "eye"],
        ["up", mb.Wrap("drum", 0.1, "sphere"), "low", "eye"],
        ["up", mb.Wrap("drum", 0.1, inside=True), "low", "eye"],
        ["same", mb.Wrap("same", 0.1, "sphere"), "eye"],
    ):
        model = rope(path, stiffness=1.0, damping=1.0)
        arms = mb.tendon_jacobian(model, zero)
        assert np.isfinite(arms).all() and np.isfinite(mb.tendon_length(model, zero)).all()
        slope = arc.jac(lambda q, model=model: mb.passive_torque(model, q, np.ones(1)))(zero)
        assert np.isfinite(slope).all(), path
    straight = rope(["same", "eye"])
    assert mb.tendon_length(straight, zero) == 0.0
    assert np.all(mb.tendon_jacobian(straight, zero) == 0.0)


# ---- equality ------------------------------------------------------------------------------------

EQUAL = """<mujoco><worldbody><site name="o" pos="0 0 1"/><body name="a"><joint name="j"
 axis="0 1 0" ref=".1"/><geom size=".1" pos=".2 0 0" mass="1"/><site name="p" pos=".3 0 .1"/>
 <body name="b" pos=".4 0 0"><joint name="k" axis="0 1 0"/><geom size=".1" pos=".2 0 0" mass="1"/>
 <site name="r" pos=".2 .1 0"/></body></body></worldbody><tendon><spatial name="t"><site site="o"/>
 <site site="p"/></spatial><spatial name="s"><site site="o"/><site site="r"/></spatial></tendon>
 <equality>{}</equality></mujoco>"""


@pytest.mark.parametrize(
    "equality",
    [
        '<joint joint1="j" joint2="k" polycoef=".1 .5 -.3 .2 .4"/>',
        '<tendon tendon1="t" tendon2="s" polycoef=".05 .7 .2 0 .1"/>',
        '<tendon tendon1="t" polycoef=".05 0 0 0 0"/>',
    ],
)
def test_polynomials_of_joints_and_tendons_hold(tmp_path, equality):
    """Violation and its rate are MuJoCo's; dynamics keep what holds at the start."""
    model, m, d = loaded(tmp_path, EQUAL.format(equality))
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = rng.normal(size=2), rng.normal(size=2)
        d.qpos[:], d.qvel[:] = q, v
        mujoco.mj_forward(m, d)
        error = mb.constraint_error(model, model.closures, q)
        np.testing.assert_allclose(error, d.efc_pos[: d.ne], atol=1e-12)
        rate = mb.constraint_jacobian(model, model.closures, q) @ v
        np.testing.assert_allclose(rate, d.efc_vel[: d.ne], atol=1e-12)
    q = mb.project_configuration(model, model.closures, np.array([0.3, 0.2]), steps=20)
    v = mb.project_velocity(model, model.closures, q, np.array([0.5, -1.0]))
    assert np.abs(mb.constraint_error(model, model.closures, q)).max() < 1e-12
    end = arc.solve_ode(
        lambda t, x: mb.constrained_dynamics(model, model.closures, t, x, frequency=0.0),
        (0.0, 0.2), mb.State(q, v), t_eval=[0.0, 0.2], rtol=1e-10, atol=1e-12,
    ).x  # fmt: skip
    assert np.abs(mb.constraint_error(model, model.closures, end.q[-1])).max() < 1e-8


# ---- drones, muscles, changes to builders --------------------------------------------------------


def drone():
    b = mb.Builder("drone")
    b.add_body("hull", mass=1.3, inertia=[0.01, 0.012, 0.02])
    for k, (x, y, turn) in enumerate(((1, 1, 1), (1, -1, -1), (-1, -1, 1), (-1, 1, -1))):
        b.add_frame(f"rotor{k}", "hull", position=[0.2 * x, 0.15 * y, 0.03])
        b.add_transmission(f"thrust{k}", frame=f"rotor{k}", gear=[0, 0, 1, 0, 0, 0.02 * turn])
        b.actuators.append(mb.Drive((f"thrust{k}",), [1.0], command_range=[0.0, 8.0]))
    return b


def test_a_drone_hovers_by_its_sites():
    """Weight is carried by four equal thrusts; torques are lever times thrust."""
    model = drone().build(base="floating")
    x, u = mb.rest_state(model), np.full(4, 1.3 * 9.81 / 4)
    rates = mb.dynamics(model, 0.0, x, u, actuators=model.actuators)
    np.testing.assert_allclose(rates.v, np.zeros(6), atol=1e-14)
    found = mb.actuator_torque(model, model.actuators, x.q, x.v, np.array([1.0, 2.0, 3.0, 99.0]))
    lever = [0.15 * (1 - 2 - 3 + 8), -0.2 * (1 + 2 - 3 - 8), 0.02 * (1 - 2 + 3 - 8)]
    np.testing.assert_allclose(found, [0, 0, 14.0, *lever], atol=1e-14)


def test_changes_to_builders_keep_what_they_can():
    b = mb.Builder("carrier")
    b.add_body("deck", mass=9.0, inertia=[1.0, 1.0, 1.0])
    b.merge(drone(), "deck", prefix="left_")
    assert b.transmissions["left_thrust2"].on == "left_rotor2"
    model = b.build(base="floating")
    found = mb.actuator_torque(model, model.actuators, mb.neutral(model), np.zeros(6), np.ones(4))
    np.testing.assert_allclose(found[:3], [0.0, 0.0, 4.0], atol=1e-15)
    b.remove("left_hull")
    assert not b.transmissions and not b.actuators
    arm = mb.Builder("arm")
    arm.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    arm.attach("bob", joint="ball", kind="spherical")
    arm.add_transmission("twist", joint="ball", gear=[0, 0, 0, 0, 0, 1])
    arm.actuators.append(mb.Motor("twist"))
    arm.add_body("hand", mass=1.0, inertia=[0.1, 0.1, 0.1])
    arm.attach("hand", "bob", joint="wrist")
    arm.lock({"ball": [1.0, 0, 0, 0]})
    assert not arm.actuators and not arm.transmissions and "ball" in arm.report.ignored[0]


def test_muscles_are_smooth_and_pull_only():
    """Their curve at its knots; closed form of the activation where command and time are given."""
    muscle = mb.Muscle("t", peak=100.0, length_range=[0.75, 1.05])  # lengths as of the optimum
    for length, active in ((0.5, 0.0), (0.75, 0.5), (1.0, 1.0), (1.3, 0.5), (1.6, 0.0), (2.0, 0.0)):
        np.testing.assert_allclose(muscle.active_force(length), active, atol=1e-15)
    for speed, factor in ((-2.0, 0.0), (-1.0, 0.0), (-0.5, 0.25), (0.0, 1.0), (0.2, 1.2), (9, 1.2)):
        np.testing.assert_allclose(muscle.speed_factor(speed), factor, atol=1e-15)
    for length, passive in ((0.9, 0.0), (1.0, 0.0), (1.3, 0.65), (1.6, 1.95)):
        np.testing.assert_allclose(muscle.passive_force(length), passive, atol=1e-15)
    np.testing.assert_allclose(muscle.activation_rate(0.2, 2.0), 0.8 / (0.01 * 0.8))
    np.testing.assert_allclose(muscle.activation_rate(0.2, -1.0), -0.2 / (0.04 / 0.8))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gear": [0, 0, 1]}, r"gear, force and torque, must have shape \(6,\)"),
        ({"frame": "nowhere"}, "frame 'nowhere' is not there"),
        ({"frame": None}, "give one of frame, joint and crank"),
        ({"gear": [0, 0, np.nan, 0, 0, 0]}, "gear must be finite"),
        ({"frame": None, "crank": "hull"}, "a crank needs the frame of its slider"),
    ],
)
def test_impossible_transmissions_are_refused(values, message):
    b = drone()
    with pytest.raises(ValueError, match=message):
        b.add_transmission("x", **{"frame": "rotor0", "gear": [0, 0, 1, 0, 0, 0], **values})
    with pytest.raises(ValueError, match="there is one, or a joint, of that name already"):
        b.add_transmission("thrust0", frame="rotor0")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (["up"], "goes from a frame to a frame"),
        (["up", mb.Wrap("drum", 0.1)], "goes from a frame to a frame"),
        (["up", mb.Wrap("drum", 0.1), mb.Wrap("drum", 0.1), "eye"], "between two Wrap"),
        (["up", "nowhere"], "path 'nowhere' is not there"),
        ([], "give a path"),
    ],
)
def test_impossible_paths_are_refused(path, message):
    with pytest.raises(ValueError, match=message):
        rope(path)
    with pytest.raises(ValueError, match="Pulley divisor"):
        mb.Pulley(0.0)
    with pytest.raises(ValueError, match="radius"):
        mb.Wrap("drum", -0.1)
    with pytest.raises(ValueError, match="lower"):
        rope(["up", "eye"], lower=2.0, upper=1.0)


def test_a_gear_of_zero_does_nothing():
    b = drone()
    b.add_transmission("idle", frame="rotor0", gear=np.zeros(6))
    model = b.build(base="floating")
    found = mb.actuator_torque(model, [mb.Motor("idle")], mb.neutral(model), np.zeros(6), [9.0])
    np.testing.assert_array_equal(found, np.zeros(6))

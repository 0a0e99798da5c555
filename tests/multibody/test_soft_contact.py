"""Contact in `soft_dynamics` against MuJoCo: accelerations, motions; derivatives; the solver."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact.collision import touches
from archimedes.multibody.contact.soft_forces import Springs, force_at, soft_forces

from .mujoco_peer import mujoco, transport, world_axes

BODY = """<mujoco><option cone="{cone}" impratio="{impratio}" tolerance="0" iterations="200"/>
 <default><geom friction=".7 .03 .02" condim="{condim}"/></default><worldbody>
 <geom type="plane" size="5 5 .1"/><body name="b"><freejoint/><geom {geom} mass="2"/></body>
 </worldbody></mujoco>"""
GEOMS = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".1 .2"',
    "box": 'type="box" size=".1 .2 .3" pos=".02 .01 0"',
    "cylinder": 'type="cylinder" size=".1 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .2 .15"',
}
MATERIAL = {"friction": (0.7, 3), "torsional": (0.03, 4), "rolling": (0.02, 6)}

#: Four legs with limits, dry friction and servos; two knees are held together by a connect.
ROBOT = """<mujoco><option cone="{cone}" timestep="{step}" impratio="2" tolerance="0"
  iterations="200" integrator="RK4"/>
 <default><geom contype="0" conaffinity="0" friction=".6" solref=".015 .8" margin=".002"
  solimp=".8 .97 .005 .4 3"/><joint axis="0 1 0" damping=".1" range="-40 40"/></default>
 <worldbody><geom type="plane" size="5 5 .1" conaffinity="1" margin="0"/>
 <body name="trunk"><freejoint/><geom type="box" size=".2 .1 .05" mass="4"/>{legs}</body>
 </worldbody><equality>{equality}</equality><actuator>{servos}</actuator></mujoco>"""
LEG = """<body name="{n}thigh" pos="{x} {y} 0"><joint name="{n}hip" frictionloss=".2"/>
 <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".4"/>
 <body name="{n}shank" pos="0 0 -.2"><joint name="{n}knee" limited="true"/>
 <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".015" mass=".2"/>
 <geom name="{n}foot" type="sphere" size=".03" pos="0 0 -.2" mass=".1" contype="1"/>
 <site name="{n}mid" pos="0 {inner} -.1"/></body></body>"""
CONNECT = '<connect site1="FLmid" site2="FRmid" solref=".02 1"/>'
PLACES = {"FL": (0.2, 0.1), "FR": (0.2, -0.1), "RL": (-0.2, 0.1), "RR": (-0.2, -0.1)}
SOFT = mb.Softness(frequency=1 / (0.015 * 0.8), damping=0.8, impedance=(0.8, 0.97, 0.005, 0.4, 3.0))
GROUND = mb.Ground(friction=0.6, softness=SOFT, margin=0.002)


def robot_text(cone, step=1e-3, equality=CONNECT):
    legs = "".join(LEG.format(n=n, x=x, y=y, inner=-y) for n, (x, y) in PLACES.items())
    servos = "".join(
        f'<position joint="{n}{j}" kp="20" kv=".5"/>' for n in PLACES for j in ("hip", "knee")
    )
    return ROBOT.format(cone=cone, step=step, legs=legs, equality=equality, servos=servos)


def load_both(text, folder):
    file = folder / "robot.xml"
    file.write_text(text)
    return mb.load(file), mujoco.MjModel.from_xml_path(str(file))


def lowered(model, q, shapes, ground, depth):
    """Return a configuration whose lowest shape is so deep in the ground."""
    q = q + np.eye(model.nq)[2] * (0.0 - q[2])
    lowest = min(float(touch.gap) for touch in touches(model, q, shapes, ground, ()))
    return q - np.eye(model.nq)[2] * (lowest + depth)


def difference(model, m, q, v, **given):
    """Return by how much accelerations differ, relative to the largest; and MuJoCo's contacts."""
    d, T = mujoco.MjData(m), world_axes(model, q)
    d.qpos[:], d.qvel[:] = q, T @ v
    mujoco.mj_forward(m, d)
    theirs = T.T @ (d.qacc - transport(model, q, v))
    ours = mb.soft_dynamics(model, 0.0, mb.State(q, v), **given).v
    return np.abs(ours - theirs).max() / np.abs(theirs).max(), d


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("kind", GEOMS)
def test_a_body_on_the_ground_accelerates_as_in_mujoco(kind, cone, tmp_path):
    """With 1, 3, 4 and 6 numbers a contact; that of MuJoCo is at the same place."""
    rng = np.random.default_rng(0)
    for condim, impratio in ((1, 1.0), (3, 1.0), (3, 5.0), (4, 1.0), (6, 3.0)):
        text = BODY.format(cone=cone, impratio=impratio, condim=condim, geom=GEOMS[kind])
        model, m = load_both(text, tmp_path)
        ground = mb.Ground(**{key: mu * (condim >= n) for key, (mu, n) in MATERIAL.items()})
        shapes = mb.contact_shapes(model)
        for k in range(4):
            q = mb.random_configuration(model, rng)
            if k < 2:  # nearly upright: several points touch
                q[3:] = [1.0, *2e-3 * rng.normal(size=3)]
                q[3:] /= np.linalg.norm(q[3:])
            q = lowered(model, q, shapes, ground, 3e-3 * rng.uniform())
            v = rng.normal(size=6) * (1.0 if k % 2 else 0.05)
            acting = {"contacts": shapes, "ground": ground, "cone": cone, "impratio": impratio}
            off, d = difference(model, m, q, v, **acting)
            assert d.ncon and off < 1e-9, (condim, k, off)


@pytest.fixture(scope="module", params=["elliptic", "pyramidal"])
def robot(request, tmp_path_factory):
    """A quadruped here and there, and what acts here."""
    model, m = load_both(robot_text(request.param), tmp_path_factory.mktemp(request.param))
    feet = [mb.sphere(f"{n}shank", 0.03, [0, 0, -0.2]) for n in PLACES]
    acting = {"contacts": feet, "ground": GROUND, "cone": request.param, "impratio": 2.0}
    acting |= {"closures": model.closures, "actuators": model.actuators}
    return model, m, acting


def test_limits_friction_closures_and_contact_are_one_problem(robot):
    """Feet that stick and slide, knees at their stops, two shanks held together."""
    model, m, acting = robot
    rng, kinds = np.random.default_rng(1), set()
    for k in range(10):
        q = mb.integrate(model, model.rest, 0.0 * model.rest[1:])
        q[7:] += (0.05 if k % 2 else 0.8) * rng.normal(size=8)
        q[3:7] = [1.0, *(0.02 if k % 2 else 0.2) * rng.normal(size=3)]
        q[3:7] /= np.linalg.norm(q[3:7])
        q = lowered(model, q, acting["contacts"], GROUND, 4e-3)
        v = (0.02 if k < 5 else 1.0) * rng.normal(size=model.nv)
        off, d = difference(model, m, q, v, **acting)
        assert d.ncon and off < 1e-10, (k, off)
        kinds |= {*d.efc_type.tolist()}
    contact = 7 if acting["cone"] == "elliptic" else 6
    assert kinds == {0, 1, 3, contact}  # equality, friction loss, limits, contact


def test_pairs_touch_as_in_mujoco(tmp_path):
    """A ball between a crate below and a rod beside it, all of which move."""
    text = """<mujoco><option cone="elliptic" tolerance="0" iterations="200"/><worldbody>
     <body name="crate"><freejoint/><geom type="box" size=".2 .2 .1" mass="3"/></body>
     <body name="ball"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
     <body name="rod"><freejoint/><geom type="capsule" size=".05 .2" mass="1"/></body>
     </worldbody></mujoco>"""
    model, m = load_both(text, tmp_path)
    rng = np.random.default_rng(2)
    crate, ball = mb.box("crate", [0.4, 0.4, 0.2]), mb.sphere("ball", 0.1)
    rod = mb.capsule("rod", 0.05, 0.4)
    pairs = [mb.Pair(ball, crate, friction=1.0), mb.Pair(ball, rod, friction=1.0)]
    for _ in range(4):
        q = mb.neutral(model)
        q[9], q[14], q[16] = 0.198, 0.147, 0.385
        q[:3] += 1e-4 * rng.normal(size=3)
        off, d = difference(model, m, q, 0.3 * rng.normal(size=18), pairs=pairs, cone="elliptic")
        assert d.ncon == 2 and off < 1e-10


def random_geom(rng):
    """Return attributes of a sphere, a capsule or a box."""
    a, b, c = rng.uniform(0.03, 0.1, size=3)
    turn = "euler='{:g} {:g} {:g}'".format(*rng.uniform(0.0, 180.0, size=3))
    place = "pos='{:g} {:g} {:g}'".format(*0.05 * rng.normal(size=3))
    sizes = {"sphere": f"{a}", "capsule": f"{a} {b}", "box": f"{a} {b} {c}"}
    kind = rng.choice(list(sizes))
    return f"type='{kind}' size='{sizes[kind]}' {turn} {place}"


def random_tree(rng, depth):
    """Return a body with a limited joint and dry friction, and what it carries."""
    inner = "".join(random_tree(rng, depth - 1) for _ in range(rng.integers(0, 3) * (depth > 0)))
    ranges = {"hinge": "-30 30", "slide": "-.1 .1", "ball": "0 40"}
    kind, dry = rng.choice(list(ranges)), rng.choice([0.0, 0.3])
    place, axis = ("{:g} {:g} {:g}".format(*0.3 * rng.normal(size=3)) for _ in range(2))
    return (
        f"<body pos='{place}'><joint type='{kind}' axis='{axis}' range='{ranges[kind]}'"
        f" frictionloss='{dry}'/><geom {random_geom(rng)} mass='{rng.uniform(0.1, 2.0)}'/>"
        f"{inner}</body>"
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_random_robots_accelerate_as_in_mujoco(seed, tmp_path):
    """Trees with limits and dry friction, pressed into the ground, with all kinds of cones."""
    rng, cone = np.random.default_rng(seed), ["elliptic", "pyramidal"][seed % 2]
    condim, impratio = int(rng.choice([1, 3, 4, 6])), float(rng.choice([1.0, 3.0]))
    text = f"""<mujoco><option cone="{cone}" impratio="{impratio}" tolerance="0" iterations="300"/>
     <default><geom friction=".7 .03 .02" condim="{condim}" contype="1" conaffinity="0"/></default>
     <worldbody><geom type="plane" size="5 5 .1" contype="0" conaffinity="1"/><body><freejoint/>
     <geom {random_geom(rng)} mass="2"/>{random_tree(rng, 2)}{random_tree(rng, 1)}</body>
     </worldbody></mujoco>"""
    model, m = load_both(text, tmp_path)
    ground = mb.Ground(**{key: mu * (condim >= n) for key, (mu, n) in MATERIAL.items()})
    shapes = mb.contact_shapes(model)
    acting = {"contacts": shapes, "ground": ground, "cone": cone, "impratio": impratio}
    for k in range(3):
        q = mb.random_configuration(model, rng)
        q = lowered(model, q, shapes, ground, 0.03 * rng.uniform())
        v = (0.1 if k else 2.0) * rng.normal(size=model.nv)
        off, d = difference(model, m, q, v, **acting)
        assert d.ncon and off < 1e-10


@pytest.mark.parametrize(("cone", "within"), [("elliptic", 1e-9), ("pyramidal", 1e-6)])
def test_a_wheel_whose_centre_stands_still(cone, within, tmp_path):
    """No force moves its centre: its rows are as hard as numbers allow, in MuJoCo 1e15."""
    text = """<mujoco><option cone="{}" tolerance="0" iterations="200"/><worldbody>
     <geom type="plane" size="5 5 .1"/><body name="wheel" pos="0 0 .095"><joint axis="0 1 0"/>
     <geom type="sphere" size=".1" mass="1"/></body><body name="ball"><freejoint/>
     <geom type="sphere" size=".12" mass="2"/></body></worldbody></mujoco>"""
    model, m = load_both(text.format(cone), tmp_path)
    wheel, ball = mb.sphere("wheel", 0.1), mb.sphere("ball", 0.12)
    acting = {"contacts": [wheel, ball], "pairs": [mb.Pair(wheel, ball, friction=1.0)]}
    acting |= {"ground": mb.Ground(friction=1.0), "cone": cone}
    q, rng = np.array([0.3, 0.21, 0.01, 0.118, 1.0, 0.0, 0.0, 0.0]), np.random.default_rng(3)
    for _ in range(3):
        off, d = difference(model, m, q, rng.normal(size=7), **acting)
        assert d.ncon == 3 and off < within


@pytest.mark.long
def test_a_motion_over_a_second_is_that_of_mujoco(robot):
    """The quadruped falls on its feet and stands: within what halving MuJoCo's step changes."""
    model, _, acting = robot
    q = np.array(model.rest)
    q[7:] = np.tile([0.3, -0.6], 4)
    q = lowered(model, q, acting["contacts"], GROUND, -0.01)
    v, u = np.zeros(model.nv), np.tile([0.4, -0.8], 4)
    v[:3] = [0.4, 0.2, 0.0]
    theirs = []
    for h in (1e-3, 5e-4, 5e-5):
        m = mujoco.MjModel.from_xml_string(robot_text(acting["cone"], h))
        d = mujoco.MjData(m)
        d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
        for _ in range(round(1.0 / h)):
            mujoco.mj_step(m, d)
        theirs.append(np.array(d.qpos))
    ours = arc.solve_ode(
        lambda t, x: mb.soft_dynamics(model, t, x, u, **acting),
        (0.0, 1.0), mb.State(q, v), t_eval=[0.0, 1.0], rtol=1e-8, atol=1e-10,
    ).x.q[-1]  # fmt: skip
    halving = np.abs(theirs[0] - theirs[1]).max()
    assert np.abs(ours - theirs[2]).max() < max(halving, 1e-6), halving


def check_derivatives(rates, size, friction):
    """Compare derivatives with differences: of a step from zero (size,), and in the friction."""
    fast, zero = arc.compile(rates), np.zeros(size)
    slope, by_friction = arc.jac(rates, argnums=(0, 1))(zero, friction)
    for k in range(size):
        e = 1e-7 * np.eye(size)[k]
        central = (fast(e, friction) - fast(-e, friction)) / 2e-7
        np.testing.assert_allclose(slope[:, k], central, atol=1e-6 * np.abs(slope).max())
    central = (fast(zero, friction + 1e-7) - fast(zero, friction - 1e-7)) / 2e-7
    np.testing.assert_allclose(by_friction, central, atol=1e-5 * np.abs(central).max())
    assert np.abs(by_friction).max() > 0.1


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_derivatives_of_a_ball_that_slides_and_spins(cone):
    b = mb.Builder()
    b.add_body("ball", mass=3.0, com=[0.01, 0.0, 0.02], inertia=[0.1, 0.1, 0.1])
    ball, shapes = b.build(base="floating"), [mb.sphere("ball", 0.1)]
    q, v = np.array([0.0, 0.0, 0.098, 1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.4, -0.1, 1, 2, 3.0])

    def rates(e, mu):
        x = mb.State(mb.integrate(ball, q, e[:6]), v + e[6:])
        ground = mb.Ground(friction=mu, torsional=0.01, rolling=0.02)
        return mb.soft_dynamics(ball, 0.0, x, contacts=shapes, ground=ground, cone=cone).v

    check_derivatives(rates, 12, 0.5)


@pytest.mark.long
def test_derivatives_of_a_robot(robot):
    """At a state away from where a foot opens or begins to slide; some of them slide."""
    model, _, acting = robot
    rng = np.random.default_rng(4)
    q = np.array(model.rest)
    q[7:] = np.tile([0.3, -0.75], 4) + 0.01 * rng.normal(size=8)
    q = lowered(model, q, acting["contacts"], GROUND, 4e-3)
    v = 0.3 * rng.normal(size=model.nv)
    v[1] += 2.0  # to the side, where legs do not give

    def rates(e, mu):
        x = mb.State(mb.integrate(model, q, e[: model.nv]), v + e[model.nv :])
        ground = GROUND.replace(friction=mu)
        return mb.soft_dynamics(model, 0.0, x, np.zeros(8), **(acting | {"ground": ground})).v

    check_derivatives(rates, 2 * model.nv, 0.6)


@pytest.mark.parametrize(("n", "m", "size"), [(3, 0, 3), (5, 0, 3), (0, 4, 3), (4, 3, 6)])
def test_forces_solve_the_equation(n, m, size):
    """Random problems, also with more rows than motions: ``l = f(G l + b)``."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        J = rng.normal(size=(n + m * size, 4))
        b = 3.0 * rng.normal(size=len(J))
        mu = rng.uniform(0.05, 2.0, size=(m, size - 1))
        own = 10 ** rng.uniform(0, 4, m)[:, None] * (mu / mu[:, :1]) ** 2
        own = np.concatenate([own[:, :1], own], axis=1).ravel()
        stiffness = np.concatenate([10 ** rng.uniform(0, 4, n), own])
        least = np.where(rng.uniform(size=n) < 0.5, 0.0, -1.0)
        most = np.where(least < 0.0, 1.0, np.inf)
        springs = Springs(stiffness, least, most, mu[:, 0], mu)
        found = soft_forces(J, J.T, b, springs)
        answer = force_at(J @ J.T @ found + b, springs)
        np.testing.assert_allclose(found, answer, atol=1e-9 * max(1.0, np.abs(found).max()))


def test_what_is_wrong_is_said():
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    ball, shapes = b.build(base="floating"), [mb.sphere("ball", 0.1)]
    x = mb.rest_state(ball)
    with pytest.raises(ValueError, match="cone='round' is not one of"):
        mb.soft_dynamics(ball, 0.0, x, contacts=shapes, ground=mb.Ground(), cone="round")
    with pytest.raises(ValueError, match="contacts need a ground"):
        mb.soft_dynamics(ball, 0.0, x, contacts=shapes)
    with pytest.raises(ValueError, match="impratio"):
        mb.soft_dynamics(ball, 0.0, x, contacts=shapes, ground=mb.Ground(), impratio=0.0)
    with pytest.raises(ValueError, match="Ground margin"):
        mb.Ground(margin=-1.0)
    with pytest.raises(TypeError, match="Ground softness"):
        mb.Ground(softness=0.02)


@pytest.mark.parametrize(("cone", "friction"), [("elliptic", 0.7), ("pyramidal", 0.0)])
def test_a_ball_rests_where_its_weight_and_its_softness_say(cone, friction):
    """Closed form: with a constant impedance d a ball of any mass sinks in by (1 - d) g / f^2.

    The row is ``l / m + (1 - d) / d l / m - g = f^2 r / d``, and at rest l is the weight m g.
    """
    b = mb.Builder()
    b.add_body("ball", mass=3.0, inertia=[0.1, 0.1, 0.1])
    ball, d, f = b.build(base="floating"), 0.8, 40.0
    depth = (1.0 - d) * float(-ball.gravity[2]) / f**2
    x = mb.rest_state(ball, [0.0, 0.0, 0.1 - depth, 1.0, 0.0, 0.0, 0.0])
    soft = mb.Softness(frequency=f, impedance=(d, d, 0.001, 0.5, 2.0))
    ground, shapes = mb.Ground(softness=soft, friction=friction), [mb.sphere("ball", 0.1)]
    rates = mb.soft_dynamics(ball, 0.0, x, contacts=shapes, ground=ground, cone=cone)
    np.testing.assert_allclose(rates.v, 0.0, atol=1e-9)

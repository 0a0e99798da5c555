"""What `contact_step` says of a step: forces against weights, slopes and momentum; its residual."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact import contact_dynamics, impulses

STEP, G = 2e-3, 9.81
NUMBERS = ("success", "residual", "force", "moment", "point", "normal", "gap", "torque")


def ball(mass=2.0, radius=0.1):
    """Return a ball, its shape and its state at rest on a horizontal plane."""
    b = mb.Builder("ball")
    b.add_body("ball", mass=mass, inertia=[0.4 * mass * radius**2] * 3)
    model = b.build(base="floating")
    return model, mb.sphere("ball", radius), mb.rest_state(model, [0, 0, radius, 1, 0, 0, 0])


def crate(mass=3.0, side=0.4):
    """Return a cube, its shape and its state at rest on a horizontal plane."""
    b = mb.Builder("crate")
    b.add_body("crate", mass=mass, inertia=[mass * side**2 / 6] * 3)
    model = b.build(base="floating")
    return model, mb.box("crate", [side] * 3), mb.rest_state(model, [0, 0, side / 2, 1, 0, 0, 0])


def pendulum(**joint):
    """Return a pendulum whose mass of 2 kg is 0.5 m beside its joint where q is zero."""
    b = mb.Builder("pendulum")
    b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge", axis=[0, 1, 0], **joint)
    return b.build()


@pytest.mark.parametrize("many", [0, 10**9], ids=["loops", "written out"])
def test_every_crate_of_a_stack_carries_those_above_it(monkeypatch, many):
    """Forces between crates are the weights above, along the world's z axis, on the first shape."""
    monkeypatch.setattr(contact_dynamics, "MANY", many)
    b = mb.Builder("stack")
    masses, side = np.array([5.0, 1.0, 2.0, 0.5]), 0.2
    for k, mass in enumerate(masses):
        b.add_body(f"b{k}", mass=mass, inertia=[mass * side**2 / 6] * 3)
        b.attach(f"b{k}", joint=f"b{k}", kind="free")
    model = b.build()
    q = mb.neutral(model).reshape(-1, 7)
    q[:, 2] = side * (np.arange(len(masses)) + 0.5)
    cubes = [mb.box(f"b{k}", [side] * 3) for k in range(len(masses))]
    pairs = [mb.Pair(low, high) for low, high in itertools.pairwise(cubes)]

    def step(x):
        ground = mb.Ground()
        return mb.contact_step(model, x, STEP, cubes[:1], ground, pairs=pairs, full_output=True)

    after, contact = arc.compile(step)(mb.rest_state(model, q.ravel()))
    assert contact.success and contact.residual < 1e-9
    assert np.abs(after.v).max() < 1e-9
    total = {}
    for frames, force in zip(contact.frames, contact.force, strict=True):
        total[frames] = total.get(frames, 0.0) + force
    assert list(total) == [("b0", None), ("b0", "b1"), ("b1", "b2"), ("b2", "b3")]
    above = G * np.cumsum(masses[::-1])[::-1]
    signs = np.array([1.0, -1.0, -1.0, -1.0])
    assert np.allclose(np.stack([*total.values()])[:, 2], signs * above, rtol=1e-9)
    assert np.abs(np.stack([*total.values()])[:, :2]).max() < 1e-9 * above[0]
    assert np.abs(contact.gap).max() < 1e-12 and np.abs(contact.point[:4, 2]).max() < 1e-12


@pytest.mark.parametrize("friction", [0.2, 0.8])
def test_force_of_a_slope(friction):
    """On a slope of 30 degrees the normal force is the weight's part, friction holds or slides."""
    model, shape, x = crate()
    angle, weight = np.deg2rad(30.0), 3.0 * G
    model = model.replace(gravity=[G * np.sin(angle), 0.0, -G * np.cos(angle)])
    x = mb.State(x.q, x.v)
    for _ in range(5):
        x, contact = mb.contact_step(
            model, x, STEP, [shape], mb.Ground(friction=friction), full_output=True
        )
    force = contact.force.sum(axis=0)
    held = min(weight * np.sin(angle), friction * weight * np.cos(angle))
    assert contact.success
    assert np.allclose(force, [-held, 0.0, weight * np.cos(angle)], atol=1e-7)


def test_force_of_an_impact_is_its_momentum():
    """Of a ball that falls and bounces, force times step is what gravity leaves of the momentum."""
    model, shape, x = ball()
    x = mb.State(x.q + np.array([0, 0, 1e-3, 0, 0, 0, 0]), np.array([0.0, 0, -3.0, 0, 0, 0]))
    after, contact = mb.contact_step(
        model, x, STEP, [shape], mb.Ground(friction=0.0), restitution=0.7, full_output=True
    )
    assert after.v[2] > 2.0
    assert contact.success
    assert contact.force[0, 2] * STEP == pytest.approx(2.0 * (after.v[2] + 3.0 + STEP * G))
    assert contact.gap[0] == pytest.approx(1e-3)
    assert np.allclose(contact.normal, [[0, 0, 1]])


def test_moments_of_spinning_and_rolling():
    """A ball that spins is braked by torsional friction, one that rolls by rolling friction."""
    model, shape, x = ball()
    ground = mb.Ground(friction=0.8, torsional=0.01, rolling=2e-3)
    for spin, v, moment in (
        ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0, 0.0, -0.01]),
        ([0.0, 5.0, 0.0], [0.5, 0.0, 0.0], [0.0, -2e-3, 0.0]),
    ):
        moving = mb.State(x.q, np.concatenate([v, spin]))
        _, contact = mb.contact_step(model, moving, STEP, [shape], ground, full_output=True)
        assert contact.success
        assert np.allclose(contact.moment, [2.0 * G * np.array(moment)], atol=1e-9)


def test_torque_of_a_stop_and_of_dry_friction():
    """A stop, or friction, holds the weight at its lever; arrays of no contacts are empty."""
    for model in (pendulum(lower=-1.0, upper=0.0), pendulum(friction=20.0)):
        x = mb.State(np.zeros(1), np.zeros(1))
        after, result = mb.contact_step(model, x, STEP, full_output=True)
        assert result.success and np.abs(after.v).max() < 1e-12
        assert result.torque == pytest.approx([-2.0 * G * 0.5])
        assert result.force.shape == result.moment.shape == result.point.shape == (0, 3)
        assert result.gap.shape == (0,) and result.frames == ()
    _, slides = mb.contact_step(pendulum(friction=3.0), x, STEP, full_output=True)
    assert slides.torque == pytest.approx([-3.0])
    _, free = mb.contact_step(pendulum(lower=-1.0, upper=1.0), x, STEP, full_output=True)
    assert free.success and free.residual == 0.0 and free.torque == pytest.approx([0.0])


def test_contact_and_stop_together():
    """A pendulum whose mass is on the ground, and that presses against a stop, is held by both."""
    model = pendulum(lower=-1.0, upper=0.0)
    x = mb.State(np.zeros(1), np.zeros(1))
    ground = mb.Ground(point=[0.0, 0.0, -0.1], friction=0.0)
    ball = mb.sphere("bob", 0.1, [0.5, 0.0, 0.0])
    _, result = mb.contact_step(model, x, STEP, [ball], ground, [4.0], full_output=True)
    assert result.success
    held = 0.5 * result.force[0, 2] - result.torque[0]
    assert held == pytest.approx(2.0 * G * 0.5 + 4.0)  # however the two share it


def test_same_state_and_same_bits():
    """The state is the one without full_output; interpreter, native code and batches are equal."""
    model, shape, x = crate()
    rng = np.random.default_rng(0)
    q = x.q + np.concatenate([0.01 * rng.normal(size=(20, 3)), np.zeros((20, 4))], axis=1)
    v = rng.normal(size=(20, 6))

    def step(q, v, full_output=True):
        ground = mb.Ground(friction=0.5, torsional=0.01)
        x = mb.State(q, v)
        return mb.contact_step(model, x, STEP, [shape], ground, full_output=full_output)

    states, results = arc.vmap(step)(q, v)
    ways = [arc.compile(step, backend=backend) for backend in ("interpreter", "llvm")]
    alone = arc.compile(lambda q, v: step(q, v, full_output=False))
    for k in range(20):
        for way in ways:
            after, result = way(q[k], v[k])
            for name in ("q", "v"):
                assert np.array_equal(getattr(states, name)[k], getattr(after, name))
            for name in NUMBERS:
                assert np.array_equal(getattr(results, name)[k], getattr(result, name)), name
        assert np.array_equal(states.v[k], alone(q[k], v[k]).v)
        after, result = step(q[k], v[k])  # NumPy adds in another order
        # What the corners do of a spin that all of them brake is not determined.
        assert np.allclose(states.v[k], after.v, rtol=1e-9, atol=1e-6)
        assert np.allclose(results.force[k].sum(axis=0), result.force.sum(axis=0), atol=1e-4)
    assert results.frames == (("crate", None),) * results.gap.shape[1]


def test_what_is_not_solved_says_so():
    """The residual is the speed by which the law is off: of known impulses by hand, nan of nan."""
    mobility, b, mu = 2.0 * np.eye(3), np.array([-1.0, 0.0, 0.0]), np.array([0.5])
    off = [
        impulses.Solved(mobility, b, mu, np.array([push, 0.0, 0.0])).speed_off()
        for push in (0.5, 0.6, 0.0)
    ]
    assert off == pytest.approx([0.0, 0.2, 1.0])
    model, shape, x = ball()
    x = mb.State(x.q, np.array([0.0, 0, np.nan, 0, 0, 0]))
    step = arc.compile(
        lambda x: mb.contact_step(model, x, STEP, [shape], mb.Ground(), full_output=True)
    )
    _, contact = step(x)
    assert not contact.success and np.isnan(contact.residual)


def test_the_residual_of_stops_is_in_the_same_unit_with_and_without_contacts():
    """Known by hand: a pendulum of 2 kg that runs into its stop at 3 rad/s, without its impulse."""
    model = pendulum(lower=-1.0, upper=0.0)
    speed = {}
    for shapes in ([], [mb.sphere("bob", 0.1, [0.5, 0.0, 0.0])]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(impulses, "row_impulses", lambda G, b, rows: 0.0 * b)
            patch.setattr(impulses, "mixed_impulses", lambda G, b, mu, rows: 0.0 * b)
            x, ground = mb.State(np.zeros(1), np.array([3.0])), mb.Ground(point=[0, 0, -9.0])
            _, result = mb.contact_step(model, x, STEP, shapes, ground, full_output=True)
        assert not result.success
        speed[len(shapes)] = float(result.residual)
    rate = 3.0 + STEP * 2.0 * G * 0.5 / 0.6  # inertia 0.1 + 2 * 0.25
    assert list(speed.values()) == pytest.approx([rate * np.sqrt(0.6 / 2.0)] * 2, rel=1e-3)


def test_derivatives_of_forces():
    """The force of a ball that is pressed down changes with the press, and not with its place."""
    model, shape, x = ball()

    def force(press, place):
        u = np.stack([0.0, 0.0, -press, 0.0, 0.0, 0.0])
        q = x.q + np.concatenate([np.stack([place, 0.0]), np.zeros(5)])
        _, contact = mb.contact_step(
            model, mb.State(q, x.v), STEP, [shape], mb.Ground(), u, full_output=True
        )
        return contact.force[0]

    assert np.allclose(arc.jac(force, argnums=0)(5.0, 0.3), [0.0, 0.0, 1.0], atol=1e-9)
    assert np.allclose(arc.jac(force, argnums=1)(5.0, 0.3), 0.0, atol=1e-9)


def test_full_output_is_a_bool():
    """A number in its place is refused, and so is NumPy's bool, by its full name."""
    model, shape, x = ball()
    for value, said in ((1, "int"), (np.True_, r"numpy\.bool")):
        with pytest.raises(TypeError, match=rf"full_output must be a bool, got {said}; .* Contact"):
            mb.contact_step(model, x, STEP, [shape], mb.Ground(), full_output=value)

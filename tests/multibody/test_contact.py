"""Contact with the ground: sliding, sticking, bouncing, and energy that never grows.

Rolling and more closed forms: `closed_forms`.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from ..long_parameters import long_after

MU, G = 0.5, 9.81


def body(mass=2.0, inertia=(0.1, 0.1, 0.1)):
    b = mb.Builder()
    b.add_body("body", mass=mass, inertia=[*inertia])
    return b.build(base="floating")


def incline(angle, **values):
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    return mb.Ground(normal=normal, friction=MU, **values)


def lying_on(model, angle, height):
    """Return the state at rest with the body turned along an incline, `height` above it."""
    q = mb.neutral(model)
    q[:3] = height * np.array([np.sin(angle), 0.0, np.cos(angle)])
    q[3:7] = [np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0]
    return mb.rest_state(model, q)


def run(model, x, seconds, step, contacts, ground, **values):
    move = lambda k, x: mb.contact_step(model, x, step, contacts, ground, **values)
    return arc.compile(lambda x: arc.fori_loop(0, round(seconds / step), move, x))(x)


def energy(model, x):
    return mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)


@pytest.mark.long_cases("0.01")
@pytest.mark.parametrize("beyond", [-1e-2, 1e-2, *long_after(0, [-1e-4, 1e-4])])
def test_a_block_slides_exactly_beyond_the_angle_of_friction(beyond):
    angle = np.arctan(MU) + beyond
    model = body()
    x = lying_on(model, angle, 0.1)
    shape, seconds = [mb.box("body", [0.6, 0.6, 0.2])], 0.05
    end = run(model, x, seconds, 5e-3, shape, incline(angle))
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    expected = G * (np.sin(angle) - MU * np.cos(angle)) * seconds if beyond > 0 else 0.0
    speed = mb.frame_twist(model, end.q, end.v, "body", "aligned")[:3] @ down
    assert speed == pytest.approx(expected, rel=1e-6, abs=1e-11)


def test_endless_friction_holds():
    """It was nan where a contact is open; a block stays on a slope of 60 deg, another lands."""
    model, angle = body(), np.deg2rad(60.0)
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    ground, block = mb.Ground(normal=normal, friction=np.inf), [mb.box("body", [0.4, 0.4, 0.2])]
    x = run(model, lying_on(model, angle, 0.1), 0.2, 1e-3, block, ground)
    assert np.abs(x.v).max() < 1e-6
    x = run(model, lying_on(model, 0.3, 0.5), 1.0, 1e-3, block, mb.Ground(friction=np.inf))
    assert np.abs(x.v).max() < 1e-6 and x.q[2] == pytest.approx(0.1, abs=1e-5)


def test_a_ball_comes_back_by_the_restitution():
    model = body()
    q = mb.neutral(model)
    q[2] = 0.1
    x = mb.State(q, np.array([0.0, 0.0, -2.0, 0.0, 0.0, 0.0]))
    values = {"restitution": 0.6}
    after = mb.contact_step(model, x, 1e-4, [mb.sphere("body", 0.1)], mb.Ground(), **values)
    # at the end of the step, through which it has slowed down
    assert after.v[2] == pytest.approx(1.2 - 1e-4 * G, rel=1e-12)


@pytest.mark.long
def test_energy_never_grows_in_steps():
    model = body(1.0, [0.02, 0.03, 0.04])
    q = np.array([0, 0, 0.5, 0.9, 0.3, 0.2, 0.1])
    x = mb.State(q, np.array([1.0, 0.5, -1.0, 2.0, 3.0, -1.0]))
    shape, ground = [mb.box("body", [0.3, 0.2, 0.1])], mb.Ground(friction=0.6)
    one = arc.compile(lambda x: mb.contact_step(model, x, 2e-3, shape, ground, recovery=0.0))
    before = energy(model, x)
    impact = False
    for _ in range(400):
        x = one(x)
        now = energy(model, x)
        # semi-implicit Euler itself: a step of free fall gains m g^2 h^2 / 2 at most
        assert now <= before + 1e-3
        impact = impact or now < before - 0.1
        before = now
    assert impact


def test_compliant_contact_loses_energy_and_rests():
    model = body()
    q = mb.neutral(model)
    q[2] = 0.3
    ball, ground = [mb.sphere("body", 0.1)], mb.Ground(stiffness=1e5, dissipation=1.0)

    def rates(t, x):
        return mb.dynamics(model, t, x, forces=mb.contact_forces(model, x.q, x.v, ball, ground))

    solution = arc.solve_ode(rates, (0.0, 1.0), mb.rest_state(model, q), rtol=1e-9, atol=1e-10)
    d = np.maximum(0.1 - np.asarray(solution.x.q)[:, 2], 0.0)
    stored = 0.4 * 1e5 * d**2.5
    total = energy(model, solution.x) + stored
    assert np.diff(total).max() < 1e-5
    assert total[-1] < total[0] - 0.5


def test_compliant_friction_carries_up_to_the_cone():
    """Held below the angle of friction but for a creep of the slip speed; sliding beyond."""
    model = body()
    for angle, moves in ((0.9 * np.arctan(MU), False), (1.1 * np.arctan(MU), True)):
        ground = incline(angle)
        # four feet, so deep that they carry the weight
        feet = [mb.Contacts("body", [[x, y, 0.0] for x in (-1, 1) for y in (-1, 1)])]
        load = 2.0 * G * np.cos(angle) / 4
        depth = (load / 1e6) ** (2 / 3)
        x = lying_on(model, angle, -depth)
        forces = mb.contact_forces(model, x.q, np.zeros(6), feet, ground)
        a = mb.aba(model, x.q, np.zeros(6), np.zeros(6), forces=forces)
        assert a[2] == pytest.approx(0.0, abs=1e-9)  # carried
        sliding = np.array([1.0, 0, 0, 0, 0, 0])
        forces = mb.contact_forces(model, x.q, sliding, feet, ground)
        slowed = mb.aba(model, x.q, sliding, np.zeros(6), forces=forces)[0]
        assert slowed == pytest.approx(G * (np.sin(angle) - MU * np.cos(angle)), abs=1e-4)
        assert (slowed > 0) == moves


def test_gradients_of_compliant_contact():
    model = body()
    ball, ground = [mb.sphere("body", 0.1)], mb.Ground()
    q = mb.neutral(model)
    q[2] = 0.0995
    v = np.array([0.3, -0.2, -0.1, 0.5, 0.1, 0.2])

    def force(height, v):
        at = np.concatenate([q[:2], np.stack([height]), q[3:]])
        return mb.contact_forces(model, at, v, ball, ground)["body"]

    J, Jv = arc.jac(force, argnums=(0, 1))(np.float64(0.0995), v)
    e = 1e-7
    near = (force(0.0995 + e, v) - force(0.0995 - e, v)) / (2 * e)
    np.testing.assert_allclose(J, near, rtol=1e-5, atol=1e-3)
    columns = [(force(0.0995, v + e * d) - force(0.0995, v - e * d)) / (2 * e) for d in np.eye(6)]
    np.testing.assert_allclose(Jv, np.stack(columns, axis=1), rtol=1e-5, atol=1e-3)


def test_terrain():
    """A slope written as a height is the half-space of that slope."""
    angle = 0.25
    slope = mb.Ground(height=lambda x, y: -np.tan(angle) * x + 0.0 * y, friction=MU)
    place = np.array([0.3, -0.2, 0.4])
    d, n = slope.gap(place)
    plane = incline(angle)
    expected, normal = plane.gap(place)
    assert float(d) == pytest.approx(float(expected), abs=1e-12)
    np.testing.assert_allclose(n, normal, atol=1e-12)


def test_shapes_of_a_model():
    """What a file says of collisions, as contacts where it says."""
    b = mb.Builder()
    b.add_body("body", mass=1.0, inertia=[0.1, 0.1, 0.1])
    R = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # z becomes x
    b.add_shape("body", "cylinder", [0.1, 0.6], "collision", rotation=R, position=[0, 0, 0.5])
    b.add_shape("body", "capsule", [0.1, 0.4], "collision", rotation=R)
    b.add_shape("body", "box", [1, 2, 3], "collision", position=[0, 0, 1])
    b.add_shape("body", "sphere", [9.0])  # only to look at
    model = b.build(base="floating")
    cylinder, rod, crate = mb.contact_shapes(model)
    assert cylinder.kind == "cylinder"
    np.testing.assert_array_equal(cylinder.size, [0.2, 0.2, 0.6])
    np.testing.assert_array_equal(cylinder.position, [0.0, 0.0, 0.5])
    assert cylinder.centers[:, 0].max() == pytest.approx(0.3)
    np.testing.assert_allclose(rod.centers, [[-0.2, 0, 0], [0.2, 0, 0]], atol=1e-15)
    assert (rod.radius, crate.kind) == (0.1, "box")
    assert crate.centers[:, 2].min() == -0.5
    b.add_shape("body", "mesh", [1, 1, 1], "collision")
    with pytest.raises(ValueError, match="the mesh of 'body' was not found: nothing can touch it"):
        mb.contact_shapes(b.build(base="floating"))
    with pytest.raises(ValueError, match="no frame 'nobody'"):
        mb.contact_shapes(model, "nobody")


def bouncing(q, v):
    model = body(1.0)
    x = mb.State(q, v)
    x = mb.contact_step(model, x, 1e-3, [mb.sphere("body", 0.1)], mb.Ground(), restitution=0.5)
    return x.q, x.v


STATE = np.array([0, 0, 0.1001, 1, 0, 0, 0]), np.array([1.0, 0, -1, 0, 0, 0.3])


def test_the_same_bits_everywhere():
    recorded = arc.compile(bouncing, backend="interpreter")(*STATE)
    for a, b in zip(recorded, arc.compile(bouncing, backend="llvm")(*STATE)):
        assert np.array_equal(a, b)
    # Plain NumPy takes products of matrices from BLAS, whose order of terms differs by CPU.
    for a, b in zip(recorded, bouncing(*STATE)):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-16)
    many = np.random.default_rng(0).normal(size=(20, 6))
    _, v = arc.vmap(bouncing)(np.stack([STATE[0]] * 20), many)
    one = arc.compile(bouncing, backend="llvm")
    for k in range(20):
        assert np.array_equal(one(STATE[0], many[k])[1], v[k])


@pytest.mark.long
def test_as_c():
    made = arc.codegen(bouncing, STATE, verify=True)
    assert "malloc" not in "".join(str(text) for text in made.files.values())


def test_refusals():
    model = body()
    with pytest.raises(ValueError, match="Ground normal must not be zero"):
        mb.Ground(normal=[0, 0, 0])
    with pytest.raises(ValueError, match=r"Contacts centers must be \(n, 3\)"):
        mb.Contacts("body", np.zeros(3))
    with pytest.raises(ValueError, match="no frame 'nothing'"):
        mb.contact_forces(
            model, mb.neutral(model), np.zeros(6), [mb.sphere("nothing", 1)], mb.Ground()
        )

"""Many free bodies in contact: weights, momentum, the same steps as written out, short programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact import contact_dynamics, impulses
from archimedes.multibody.contact.impulses_of_many import Meetings, MobilitiesOfMany
from tests.blocks.code_size import code_size

STEP, SIDE, G = 2e-3, 0.2, 9.81


def loose(masses, gravity=G, **values):
    """Return a model of free bodies with the inertia of solid cubes."""
    b = mb.Builder()
    for k, mass in enumerate(masses):
        b.add_body(f"b{k}", mass=mass, inertia=[mass * SIDE**2 / 6] * 3, **values)
        b.attach(f"b{k}", joint=f"b{k}", kind="free")
    return b.build().replace(gravity=[0.0, 0.0, -gravity])


def stack(n, masses=None):
    """Return a model of n cubes on each other, its configuration, shapes and neighbours."""
    model = loose(np.ones(n) if masses is None else masses)
    q = mb.neutral(model).reshape(n, 7)
    q[:, 2] = SIDE * (np.arange(n) + 0.5)
    cubes = [mb.box(f"b{k}", [SIDE] * 3) for k in range(n)]
    pairs = [mb.Pair(a, b, friction=0.5) for a, b in itertools.pairwise(cubes)]
    return model, q.ravel(), cubes, pairs


def row(n):
    """Return a model of n balls that touch each other in a row, its configuration and pairs."""
    model = loose(np.ones(n), gravity=0.0)
    q = mb.neutral(model).reshape(n, 7)
    q[:, 0] = SIDE * np.arange(n)
    balls = [mb.sphere(f"b{k}", SIDE / 2) for k in range(n)]
    return model, q.ravel(), [mb.Pair(a, b, friction=0.0) for a, b in itertools.pairwise(balls)]


def pile(kinds, seed=0):
    """Return a model of bodies that fall on each other, its state, shapes and all pairs."""
    rng = np.random.default_rng(seed)
    model = loose(rng.uniform(0.5, 2.0, size=len(kinds)), com=[0.01, -0.02, 0.015])
    makers = {
        "sphere": lambda name: mb.sphere(name, rng.uniform(0.08, 0.12)),
        "capsule": lambda name: mb.capsule(name, rng.uniform(0.05, 0.08), 0.2),
        "box": lambda name: mb.box(name, rng.uniform(0.15, 0.25, size=3)),
    }
    shapes = [makers[kind](f"b{k}") for k, kind in enumerate(kinds)]
    q = mb.neutral(model).reshape(-1, 7)
    q[:, :2] = 0.05 * rng.normal(size=(len(kinds), 2))
    q[:, 2] = 0.12 + 0.2 * np.arange(len(kinds))
    q[:, 3:] += 0.2 * rng.normal(size=(len(kinds), 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    return model, mb.State(q.ravel(), 0.3 * rng.normal(size=model.nv)), shapes


def both_ways(monkeypatch, step):
    """Return a step recorded as loops over bodies, and the same written out."""
    programs = []
    for many in (0, 10**9):
        with monkeypatch.context() as context:
            context.setattr(contact_dynamics, "MANY", many)
            context.setattr(contact_dynamics, "PER_KIND", 0)
            program = arc.compile(lambda *x: step(*x))
            programs.append((program, many))

    def calls(which):
        program, many = programs[which]

        def call(*x):
            with monkeypatch.context() as context:
                context.setattr(contact_dynamics, "MANY", many)
                context.setattr(contact_dynamics, "PER_KIND", 0)
                return program(*x)

        return call

    return calls(0), calls(1)


@pytest.mark.parametrize("n", [20, pytest.param(50, marks=pytest.mark.long)])
def test_each_contact_of_a_stack_carries_the_weight_above(n):
    """Four corners of each cube carry what is above, whatever the masses of the cubes."""
    masses = np.random.default_rng(0).uniform(0.5, 2.0, size=n)
    corners = SIDE / 2 * np.array([[x, y] for x in (-1, 1) for y in (-1, 1)])
    Y = np.zeros((n, 12, 12))
    for k, (x, y) in itertools.product(range(n), corners):
        at = 3 * corners.tolist().index([x, y])
        for side, (z, sign) in enumerate(((-SIDE / 2, 1.0), (SIDE / 2, -1.0))):
            if k - side < 0:
                continue  # the ground, which does not move
            mass = masses[k - side]
            turns = np.cross([x, y, z], np.roll(np.eye(3), 1, axis=0)) / np.sqrt(SIDE**2 / 6)
            rows = np.concatenate([np.roll(np.eye(3), 1, axis=0), turns], axis=1)
            Y[k, at : at + 3, 6 * side : 6 * side + 6] = sign * rows / np.sqrt(mass)
    below = np.array([n, *range(n - 1)])
    mobilities = MobilitiesOfMany(Meetings(np.arange(n), below, n), Y, np.ones(n), 3)
    falling = np.zeros((n, 6))
    falling[:, 2] = -STEP * G * np.sqrt(masses)
    ends = np.concatenate([falling, np.concatenate([np.zeros((1, 6)), falling[:-1]])], axis=1)
    b = np.einsum("pij,pj->pi", Y, ends).ravel()
    pushes = impulses.cone_impulses(mobilities, b, np.full(4 * n, 0.5)).reshape(n, 4, 3)
    above = np.cumsum(masses[::-1])[::-1]
    np.testing.assert_allclose(pushes[:, :, 0].sum(axis=1), STEP * G * above, rtol=1e-9)
    np.testing.assert_allclose(pushes[:, :, 1:].sum(axis=1), 0.0, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("pairs_of", ["neighbours", "all"])
@pytest.mark.parametrize("n", [20, 50])
def test_a_stack_rests(n, pairs_of):
    """Whatever the masses; naming all pairs changes nothing."""
    model, q, cubes, pairs = stack(n, np.random.default_rng(1).uniform(0.5, 2.0, size=n))
    ground = cubes[:1]
    if pairs_of == "all":
        pairs, ground = mb.every_pair(cubes, friction=0.5), cubes

    def step(k, x):
        return mb.contact_step(model, x, STEP, ground, mb.Ground(), pairs=pairs)

    x = arc.compile(lambda x: arc.fori_loop(0, 50, step, x))(mb.rest_state(model, q))
    assert np.abs(x.v).max() < 1e-10
    assert np.abs(x.q - q).max() < 1e-10


def test_a_row_of_balls():
    """The last ball of twelve flies off with the first one's speed; the others stay."""
    model, q, pairs = row(12)
    q[0] -= 1e-3
    v = np.zeros((12, 6))
    v[0, 0] = 1.0

    def step(k, x):
        return mb.contact_step(model, x, STEP, pairs=pairs, restitution=1.0)

    x = arc.compile(lambda x: arc.fori_loop(0, 5, step, x))(mb.State(q, v.ravel()))
    after = np.zeros((12, 6))
    after[-1, 0] = 1.0
    # contacts at rest part at up to 1 um/s
    np.testing.assert_allclose(x.v.reshape(12, 6), after, atol=1e-6)


def test_a_cloud_keeps_its_momentum():
    """Balls that collide in empty space, with friction; energy does not grow."""
    rng = np.random.default_rng(3)
    n = 12
    model = loose(rng.uniform(0.5, 2.0, size=n), gravity=0.0)
    balls = [mb.sphere(f"b{k}", 0.1) for k in range(n)]
    pairs = mb.every_pair(balls, friction=0.3)
    q = mb.neutral(model).reshape(n, 7)
    q[:, :3] = 0.25 * np.stack(np.meshgrid([0, 1, 2], [0, 1], [0, 1]), axis=-1).reshape(-1, 3)
    v = np.concatenate([rng.normal(size=(n, 3)) - 8 * (q[:, :3] - 0.25), np.zeros((n, 3))], axis=1)
    x = mb.State(q.ravel(), v.ravel())
    run = arc.compile(
        lambda x: mb.contact_step(model, x, STEP, pairs=pairs, restitution=0.8), backend="llvm"
    )
    momentum, energy = mb.centroidal_momentum(model, x.q, x.v)[:3], np.inf
    for _ in range(60):
        x = run(x)
        now = mb.kinetic_energy(model, x.q, x.v)
        assert now < energy + 1e-12
        energy = now
    assert energy < 0.8 * mb.kinetic_energy(model, q.ravel(), v.ravel())  # some have met
    np.testing.assert_allclose(mb.centroidal_momentum(model, x.q, x.v)[:3], momentum, atol=1e-12)


PILES = [
    (("sphere",) * 3, {"slopes": False}),
    pytest.param(("sphere",) * 3, {}, marks=pytest.mark.long),
    pytest.param(("box",) * 3, {}, marks=pytest.mark.long),
    pytest.param(("box", "capsule", "sphere"), {"restitution": 0.4}, marks=pytest.mark.long),
    pytest.param(("sphere", "capsule", "box"), {"torsional": 0.01}, marks=pytest.mark.long),
    pytest.param(("capsule", "box"), {"torsional": 0.01, "rolling": 0.005}, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("kinds", "options"), PILES)
def test_steps_are_those_written_out(monkeypatch, kinds, options):
    """While bodies fall on each other; derivatives too, in all numbers, in the long cases."""
    model, x, shapes = pile(kinds)
    friction = {**options}
    bounce, slopes_too = friction.pop("restitution", 0.0), friction.pop("slopes", True)
    pairs = mb.every_pair(shapes, friction=0.5, **friction)

    def step(q, v, mu):
        ground = mb.Ground(friction=mu)
        end = mb.contact_step(
            model, mb.State(q, v), STEP, shapes, ground, pairs=pairs, restitution=bounce
        )
        return np.concatenate([end.q, end.v])

    loops, written = both_ways(monkeypatch, step)
    slopes = both_ways(monkeypatch, arc.jac(step, argnums=(0, 1, 2)))
    at, touched = (x.q, x.v, 0.6), False
    for k in range(80):
        after = written(*at)
        np.testing.assert_allclose(loops(*at), after, atol=1e-9)
        touched = touched or np.abs(after[model.nq :] - at[1]).max() > 3 * STEP * G
        if slopes_too and k in (40, 55, 70):
            for found, wanted in zip(*(slope(*at) for slope in slopes), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)
        at = after[: model.nq], after[model.nq :], 0.6
    assert touched


@pytest.mark.long
def test_all_backends_and_batches_give_the_same_bits():
    model, x, shapes = pile(("sphere",) * 4)
    pairs = mb.every_pair(shapes, friction=0.5)

    def step(x):
        return mb.contact_step(model, x, STEP, shapes, mb.Ground(), pairs=pairs)

    native = arc.compile(step, backend="llvm")
    states = [x]
    for _ in range(60):
        states.append(native(states[-1]))
    for x in states[20::20]:
        wanted = native(x)
        for other in (step, arc.compile(step, backend="interpreter")):
            found = other(x)
            np.testing.assert_array_equal(found.v, wanted.v)
            np.testing.assert_array_equal(found.q, wanted.q)
    batch = mb.State(*(np.stack(x) for x in zip(*((s.q, s.v) for s in states), strict=True)))
    after = arc.vmap(step)(batch)
    np.testing.assert_array_equal(after.v, np.stack([native(s).v for s in states]))


def test_what_acts_on_bodies_is_taken():
    """Torques and forces accelerate six balls as ``f / m`` and ``M / I`` say."""
    model, q, pairs = row(6)
    masses = np.ones(6)
    push, turn = np.array([0.0, 2.0, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 0, 0.3])
    u, force = np.zeros((6, 6)), {"b1": push, "b2": turn}
    u[4, 5] = 0.2
    q = q.reshape(6, 7) + np.pad(np.arange(6.0)[:, None], ((0, 0), (0, 6)))  # far apart
    x = mb.contact_step(
        model, mb.rest_state(model, q.ravel()), STEP, u=u.ravel(), forces=force, pairs=pairs
    )
    wanted = np.zeros((6, 6))
    moment = SIDE**2 / 6 * masses
    wanted[1, 1], wanted[2, 5] = STEP * 2.0, STEP * 0.3 / moment[2]
    wanted[4, 5] = STEP * 0.2 / moment[4]
    np.testing.assert_allclose(x.v.reshape(6, 6), wanted, atol=1e-12)


def test_far_bodies_are_left_out_and_fast_ones_are_not():
    """A ball at 300 m/s comes to another from half a metre away within the step."""
    model, q, pairs = row(6)
    q = q.reshape(6, 7)
    q[:, 0] = 2.0 * np.arange(6)
    q[0, 0] = 2.0 - SIDE - 0.5
    for speed, wanted in ((300.0, 150.0), (100.0, 0.0)):
        v = np.zeros((6, 6))
        v[0, 0] = speed
        x = mb.contact_step(model, mb.State(q.ravel(), v.ravel()), STEP, pairs=pairs)
        # without a bounce both go on together
        np.testing.assert_allclose(x.v[6], wanted, atol=1e-9)


@pytest.mark.parametrize("pairs_of", ["neighbours", "all"])
def test_programs_do_not_grow_with_bodies(pairs_of):
    """But for putting their configurations and velocities into arrays, number by number."""

    def size(n):
        model, q, cubes, pairs = stack(n)
        if pairs_of == "all":
            pairs = mb.every_pair(cubes, friction=0.5)

        def step(q, v):
            x = mb.State(q, v)
            end = mb.contact_step(model, x, STEP, cubes, mb.Ground(), pairs=pairs)
            return end.q, end.v

        recording = arc.compile(step, loops_from=2).recording(q, np.zeros(model.nv))
        return code_size(recording.blocks)

    small, large = size(12), size(24)
    assert large < 1.1 * small


def test_few_contacts_stay_as_they_are():
    """Two cubes on the ground are no loop; five are, unless they have damping."""
    model, _, cubes, pairs = stack(5)
    ground = mb.Ground()
    asked = contact_dynamics.free_meetings
    assert asked(model, cubes[:1], ground, pairs[:1], ()) is None
    assert len(asked(model, cubes[:1], ground, pairs, ())) == 5
    assert asked(model.replace(damping=model.damping + 0.1), cubes, ground, pairs, ()) is None


def test_restitution_of_each_point():
    model, q, pairs = row(6)
    with pytest.raises(ValueError, match=r"restitution.*\(5,\)"):
        x = mb.rest_state(model, q)
        mb.contact_step(model, x, STEP, pairs=pairs, restitution=np.zeros(4))
    q = q.reshape(6, 7)
    q[:, 0] = [0.0, SIDE, 1.0, 1.0 + SIDE, 2.0, 3.0]  # two pairs touch
    v = np.zeros((6, 6))
    v[[0, 2], 0] = 1.0
    bounce = np.array([1.0, 0.0, 0.5, 0.0, 0.0])
    x = mb.contact_step(
        model, mb.State(q.ravel(), v.ravel()), STEP, pairs=pairs, restitution=bounce
    )
    # equal masses: (1 - e) / 2 and (1 + e) / 2 of the speed
    np.testing.assert_allclose(x.v.reshape(6, 6)[:4, 0], [0.0, 1.0, 0.25, 0.75], atol=1e-12)


@pytest.mark.long
def test_obstacles_terrain_and_many_points(monkeypatch):
    """Shapes of the world, a half-space, hills, and bodies with seven points: as written out."""
    model, x, shapes = pile(("sphere", "box", "capsule"))
    rng = np.random.default_rng(4)
    shapes.append(mb.Contacts("b1", 0.1 * rng.normal(size=(7, 3)), radius=0.02))
    wall = mb.half_space("world", normal=[1.0, 0.0, 0.2], point=[-0.1, 0.0, 0.0])
    table = mb.box("world", [0.3, 0.3, 0.1])
    pairs = [mb.Pair(shape, wall) for shape in shapes]
    pairs += [mb.Pair(table, shape) for shape in shapes[:3]] + mb.every_pair(shapes[:3])
    ground = mb.Ground(height=lambda x, y: 0.05 * np.sin(3.0 * x) * np.cos(2.0 * y))

    def step(q, v):
        end = mb.contact_step(model, mb.State(q, v), STEP, shapes, ground, pairs=pairs)
        return end.q, end.v

    loops, written = both_ways(monkeypatch, step)
    at = x.q, x.v
    for _ in range(80):
        after = written(*at)
        for found, wanted in zip(loops(*at), after, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-9)
        at = after
    assert np.abs(at[1] - x.v).max() > 0.5


@pytest.mark.long
def test_c_code_has_the_same_bits():
    model, q, pairs = row(5)
    q = q + np.tile([0.0, 0.0, SIDE / 2 + 1e-5, 0.0, 0.0, 0.0, 0.0], 5)
    balls = [pair.first for pair in pairs]
    heavy = model.replace(gravity=[0.0, 0.0, -G])

    def step(q, v):
        end = mb.contact_step(heavy, mb.State(q, v), STEP, balls, mb.Ground(), pairs=pairs)
        return end.q, end.v

    found = arc.codegen(step, (q, np.zeros(model.nv))).verify()
    assert "same bits" in str(found)

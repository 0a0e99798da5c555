"""Height fields: distances against MuJoCo, planes and closed forms; motions, derivatives, files."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.contact.collision import touches
from archimedes.multibody.contact.terrain import field_places

from .mujoco_peer import mujoco, transport, world_axes

TEXT = """<mujoco><option cone="elliptic" tolerance="0" iterations="200" ccd_tolerance="1e-12"/>
 <asset><hfield name="h" nrow="{rows}" ncol="{columns}" size="1.5 2 .25 .5" elevation="{heights}"/>
 </asset><worldbody><geom type="hfield" hfield="h" margin="{margin}" pos="{place}" euler="{turn}"/>
 <body name="b"><freejoint/><geom {geom} mass="2"/></body></worldbody></mujoco>"""


def rough(geom, folder, seed=0, rows=9, columns=7, place="0 0 0", turn="0 0 0", margin=0.05):
    """Return a rough field, and the model of a body above it, here and there."""
    rng, file = np.random.default_rng(seed), folder / "rough.xml"
    heights = rng.uniform(size=(rows, columns))
    heights.ravel()[:2] = 0.0, 1.0  # which MuJoCo scales to
    text = " ".join(map(repr, heights.ravel().tolist()))
    values = {"rows": rows, "columns": columns, "heights": text, "geom": geom}
    file.write_text(TEXT.format(**values, place=place, turn=turn, margin=margin))
    m, model = mujoco.MjModel.from_xml_path(str(file)), mb.load(file)
    [shape] = [s for s in mb.contact_shapes(model) if s.kind == "heightfield"]
    return shape, model, m


def ramp(slope=0.3, along=0.1):
    """Return a field that is a plane, ``z = slope x + along y``, and its normal."""
    x, y = np.linspace(-2.0, 2.0, 9), np.linspace(-1.5, 1.5, 7)
    n = np.array([-slope, -along, 1.0])
    field = mb.HeightField(slope * x[None, :] + along * y[:, None], (4.0, 3.0))
    return field, n / np.linalg.norm(n)


def ball(radius=0.15, mass=2.0):
    b = mb.Builder()
    b.add_body("b", mass=mass, inertia=[0.4 * mass * radius**2] * 3)
    return b.build(base="floating"), [mb.sphere("b", radius)]


# ---- distances -----------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.05, 0.15, 0.6])
def test_spheres_are_as_far_from_the_field_as_in_mujoco(radius, tmp_path):
    """Every place found here is a contact there, and the nearest is the nearest there.

    There a sphere has one contact with each triangle, also where its own is nearer beside it.
    """
    shape, _, m = rough(f'size="{radius}"', tmp_path)
    field, d = shape.heights, mujoco.MjData(m)
    rng, several = np.random.default_rng(1), 0
    for _ in range(60):
        p = np.array([rng.uniform(-1.2, 1.2), rng.uniform(-1.7, 1.7), 0.0])
        p[2] = field(p[0], p[1]) + radius * rng.uniform(0.2, 1.2)
        ours = [(g, n) for g, n, share in field_places(field, p, radius) if share and g < 0.05]
        d.qpos[:3] = p
        mujoco.mj_forward(m, d)
        theirs = [(c.dist, c.frame[:3]) for c in d.contact]
        assert bool(ours) == bool(theirs)
        if ours and len(theirs) < 50:  # more are left out there
            assert abs(ours[0][0] - min(gap for gap, _ in theirs)) < 1e-12
            for gap, n in ours:
                assert min(abs(gap - g) + np.abs(n - t).max() for g, t in theirs) < 1e-9
            several += len(ours) > 1
    assert several >= 2


def test_on_a_plane_all_shapes_touch_as_on_a_half_space():
    """Gaps, normals and points; each sphere once, and above and below the surface."""
    field, n = ramp()
    b = mb.Builder()
    b.add_body("b", mass=1.0, inertia=[0.1, 0.1, 0.1])
    model, rng = b.build(base="floating"), np.random.default_rng(2)
    shapes = [
        mb.sphere("b", 0.1),
        mb.Contacts("b", [[0.1, 0.0, 0.0], [-0.1, 0.2, 0.0]]),
        mb.box("b", [0.2, 0.3, 0.4]),
        mb.capsule("b", 0.1, 0.3),
        mb.cylinder("b", 0.1, 0.3),
        mb.ellipsoid("b", [0.1, 0.2, 0.15]),
        mb.hull("b", rng.normal(size=(12, 3)) * 0.1),
    ]
    plane, terrain = mb.half_space("world", n), mb.height_field("world", field)
    for shape in shapes:
        for height in (-0.05, 0.1, 0.3):
            q = mb.random_configuration(model, rng)
            q[:3] = 0.3 * rng.normal(size=3)
            q[2] += height
            on_plane = touches(model, q, [], None, [mb.Pair(shape, plane)])
            on_field = touches(model, q, [], None, [mb.Pair(shape, terrain)])
            on_ground = touches(model, q, [shape], mb.Ground(height=field), [])
            found = [touch for touch in on_field if touch.share > 0.0]
            assert len(on_field) == len(on_ground) >= len(on_plane)
            apart = [mb.distance(model, q, shape, mb.Ground(height=field)).distance]
            apart.append(mb.distance(model, q, terrain, shape).distance)
            np.testing.assert_allclose(apart, min(float(t.gap) for t in on_plane), atol=1e-12)
            nearest = [min(float(t.gap) for t in each) for each in (on_plane, on_field, on_ground)]
            np.testing.assert_allclose(nearest[1:], nearest[0], atol=1e-12)
            for touch in found:
                np.testing.assert_allclose(touch.normal, n, atol=1e-12)
            for touch in on_plane:
                away = [np.abs(touch.point - other.point).max() for other in found]
                assert min(away) < 1e-12


def test_a_capsule_lies_across_a_ridge(tmp_path):
    """It touches the edge between its ends: closed form; and at random as deep as in MuJoCo."""
    x = np.linspace(-2.0, 2.0, 5)
    ridge = mb.HeightField(np.repeat(-np.abs(x)[None, :], 5, axis=0), (4.0, 4.0))
    b = mb.Builder()
    b.add_body("b", mass=1.0, inertia=[0.1, 0.1, 0.1])
    model, tilt = b.build(base="floating"), 0.3
    rod = mb.capsule("b", 0.1, 2.0, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], [0.35, 0.0, 0.0])
    q = np.array([0.0, 0.3, 0.12 / np.cos(tilt), np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0])
    found = touches(model, q, [], None, [mb.Pair(rod, mb.height_field("world", ridge))])
    touch = min(found, key=lambda touch: touch.gap)
    np.testing.assert_allclose(touch.gap, 0.02, atol=1e-9)
    np.testing.assert_allclose(touch.normal, [np.sin(tilt), 0.0, np.cos(tilt)], atol=1e-6)

    shape, model, m = rough('type="capsule" size=".1 .3"', tmp_path, seed=3)
    d, rng, off = mujoco.MjData(m), np.random.default_rng(4), []
    for _ in range(60):
        q = mb.random_configuration(model, rng)
        q[:3] = rng.uniform(-0.8, 0.8), rng.uniform(-1.2, 1.2), rng.uniform(0.2, 0.45)
        d.qpos[:] = q
        mujoco.mj_forward(m, d)
        ours = touches(model, q, [], None, [mb.Pair(mb.capsule("b", 0.1, 0.6), shape)])
        gap = min(float(touch.gap) for touch in ours)
        if d.ncon and gap > -0.1:  # its axis is above the surface
            off.append(abs(gap - min(c.dist for c in d.contact)))
    assert len(off) > 8 and np.median(off) < 1e-9 and max(off) < 2e-3, off


def test_beyond_its_edges_there_is_nothing():
    field, _ = ramp()
    inside = field_places(field, np.array([1.99, 0.0, 1.0]), 0.1)
    outside = field_places(field, np.array([2.01, 0.0, 0.0]), 0.1)
    assert inside[0][2] == 1.0 and not any(share for _, _, share in outside)
    assert min(gap for gap, _, _ in outside) > 100.0
    np.testing.assert_allclose(field(9.0, 0.0), 0.6)  # as the height of a Ground it goes on


@pytest.mark.parametrize("height", [0.5, 50.0, 2e3, 1e6])
def test_high_above_a_field(height):
    """A sphere as large as the field is nearest to a vertex; a large sphere on a large plane."""
    (model, shapes), rng = ball(), np.random.default_rng(0)
    field = mb.HeightField(0.3 * rng.normal(size=(5, 5)), (2.0, 2.0))
    frame, ground = shapes[0].frame, mb.Ground(height=field)
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 5), np.linspace(-1.0, 1.0, 5))
    q = np.array([0.1, 0.2, height + 3.0, 1.0, 0.0, 0.0, 0.0])
    vertices = np.stack([x, y, field.heights], axis=-1).reshape(-1, 3)
    nearest = np.sqrt(np.sum((vertices - q[:3]) ** 2, axis=1)).min()
    found = mb.distance(model, q, mb.sphere(frame, 3.0), ground)
    np.testing.assert_allclose(found.distance, nearest - 3.0, rtol=1e-9)
    plane = mb.Ground(height=mb.HeightField(np.zeros((3, 3)), (10.0 * height, 10.0 * height)))
    found = mb.distance(model, q, mb.sphere(frame, height), plane)
    np.testing.assert_allclose(found.distance, 3.0, rtol=1e-9)


def test_the_field_of_a_ground_goes_on_level():
    """A ball rolls over the edge at 1 m/s, and boxes, capsules and balls rest beyond it."""
    field, (model, shapes) = mb.HeightField(np.full((3, 3), 0.2), (2.0, 2.0)), ball()
    ground = mb.Ground(height=field, friction=0.5)
    step = arc.compile(lambda x: mb.contact_step(model, x, 2e-3, shapes, ground))
    radius = float(shapes[0].radius)
    q = np.array([0.9, 0.3, 0.2 + radius, 1.0, 0.0, 0.0, 0.0])
    x = mb.State(q, np.array([1.0, 0, 0, 0, 1.0 / radius, 0]))
    for _ in range(200):
        x = step(x)
    np.testing.assert_allclose(x.q[:3], [1.3, 0.3, 0.2 + radius], atol=1e-9)
    frame, q = shapes[0].frame, np.array([4.0, -7.0, 0.5, 1.0, 0.0, 0.0, 0.0])
    for shape in (mb.box(frame, [0.2] * 3), mb.capsule(frame, 0.1, 0.0), mb.sphere(frame, 0.1)):
        found = mb.distance(model, q, shape, ground)
        np.testing.assert_allclose([found.distance, *found.normal], [0.2, 0, 0, 1], atol=1e-12)


# ---- motions -------------------------------------------------------------------------------------


def test_a_ball_rolls_down_a_slope_over_all_triangles():
    """Closed form 5/7 g sin; over the edges between triangles as on a plane, to rounding."""
    field, n = ramp(0.3, 0.0)
    model, shapes = ball()
    down = np.arctan(0.3)
    start = np.array([1.5, 0.1, 0.45]) + 0.15 * n
    paths = []
    for ground in (mb.Ground(height=field), mb.Ground(normal=n)):
        step = arc.compile(lambda x, g=ground: mb.contact_step(model, x, 2e-3, shapes, g))
        x = mb.rest_state(model, [*start, 1.0, 0.0, 0.0, 0.0])
        for _ in range(400):
            x = step(x)
        paths.append(x)
    np.testing.assert_allclose(paths[0].q, paths[1].q, atol=1e-9)
    g = float(-model.gravity[2])
    way = -5.0 / 7.0 * g * np.sin(down) * np.cos(down) * 0.5 * 0.8 * 0.802
    np.testing.assert_allclose(paths[0].q[0] - start[0], way, rtol=1e-6)


def test_a_ball_comes_to_rest_in_a_pit():
    """On four faces of an upside-down pyramid: closed form for where; energy never grows."""
    heights = np.ones((3, 3))
    heights[1, 1] = 0.0
    pit = mb.HeightField(heights, (4.0, 4.0))
    model, shapes = ball(0.3)
    # The cells cut into triangles from (-, -) to (+, +): faces z = max(x, y), and so on, by cell.
    x = mb.rest_state(model, [0.1, -0.2, 1.0, 1.0, 0.0, 0.0, 0.0])
    ground = mb.Ground(height=pit, friction=0.5)
    step = arc.compile(lambda x: mb.contact_step(model, x, 1e-3, shapes, ground))
    before = np.inf
    for _ in range(1500):
        x = step(x)
        energy = mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)
        assert energy < before + 1e-9
        before = energy
    assert np.abs(x.v).max() < 1e-6
    gaps = [touch.gap for touch in touches(model, x.q, shapes, ground, []) if touch.share > 0.0]
    assert sum(abs(gap) < 1e-6 for gap in gaps) >= 2


def test_soft_contact_on_a_field_is_that_of_mujoco(tmp_path):
    """Where MuJoCo finds one contact too; the field is moved and turned."""
    shape, model, m = rough('size=".03"', tmp_path, 5, place="1 -2 .5", turn="10 5 30", margin=0.0)
    d, rng, compared = mujoco.MjData(m), np.random.default_rng(6), 0
    pair = mb.Pair(mb.sphere("b", 0.03), shape, friction=1.0)
    for _ in range(60):
        local = np.array([rng.uniform(-1.2, 1.2), rng.uniform(-1.7, 1.7), 0.0])
        local[2] = shape.heights(local[0], local[1]) + 0.03
        gap, n, _ = field_places(shape.heights, local, 0.03)[0]
        local = local - (gap + 2e-3) * n
        q = np.array([*(shape.position + shape.rotation @ local), 1.0, 0.0, 0.0, 0.0])
        v = rng.normal(size=6)
        d.qpos[:], d.qvel[:] = q, world_axes(model, q) @ v
        mujoco.mj_forward(m, d)
        if d.ncon != 1:
            continue
        T = world_axes(model, q)
        theirs = T.T @ (d.qacc - transport(model, q, v))
        ours = mb.soft_dynamics(model, 0.0, mb.State(q, v), pairs=[pair], cone="elliptic").v
        np.testing.assert_allclose(ours, theirs, atol=1e-9 * np.abs(theirs).max())
        compared += 1
    assert compared > 10


# ---- programs ------------------------------------------------------------------------------------


def test_derivatives_of_gaps():
    """Against differences, above faces, edges and vertices, and in a compiled function."""
    rng = np.random.default_rng(7)
    field = mb.HeightField(rng.uniform(0.0, 0.3, size=(6, 6)), (2.0, 2.0))

    def gap(p):
        return field_places(field, p, 0.2)[0][0]

    slope = arc.grad(gap)
    for _ in range(20):
        p = np.append(rng.uniform(-0.8, 0.8, size=2), 0.5)
        central = [(gap(p + e) - gap(p - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(slope(p), central, atol=1e-7)
        np.testing.assert_allclose(np.linalg.norm(slope(p)), 1.0, rtol=1e-12)
    height = arc.grad(lambda x, y: field(x, y), argnums=(0, 1))(0.21, 0.13)
    central = [(field(0.21 + h, 0.13 + k) - field(0.21 - h, 0.13 - k)) / 2e-6
               for h, k in ((1e-6, 0.0), (0.0, 1e-6))]  # fmt: skip
    np.testing.assert_allclose(height, central, atol=1e-7)


def test_the_program_does_not_grow_with_the_grid():
    """That of a hundred thousand heights has as many lines as that of a hundred."""
    sizes = []
    for n in (10, 320):
        field = mb.HeightField(np.zeros((n, n)), (0.2 * (n - 1), 0.2 * (n - 1)))
        listing = arc.compile(lambda p, f=field: field_places(f, p, 0.15)[0][0])
        listing(np.zeros(3))
        sizes.append(len(str(listing).splitlines()))
    assert sizes[0] == sizes[1]


# ---- files and errors ----------------------------------------------------------------------------


def test_files_have_height_fields(tmp_path):
    """MJCF files bring them, and `save` writes them to seven digits; the viewer shows them."""
    shape, model, m = rough('size=".1"', tmp_path, place="1 -2 .5", turn="10 5 30")
    assert not mb.read(tmp_path / "rough.xml").report.ignored
    heights = np.array(shape.heights.heights)
    np.testing.assert_allclose(heights.ravel(), 0.25 * m.hfield_data, rtol=1e-15)
    moved = mb.HeightField(heights - 0.3, shape.heights.size)
    b = mb.Builder()
    b.add_body("b", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.add_shape("world", "heightfield", moved.size, "collision", surface=moved, position=[1, 2, 3])
    report = mb.save(b.build(base="floating"), tmp_path / "again.xml")
    assert any("seven digits" in line for line in report.approximated)
    [again] = mb.contact_shapes(mb.load(tmp_path / "again.xml"))
    np.testing.assert_allclose(again.heights.heights + again.position[2], moved.heights + 3.0,
                               atol=1e-7)  # fmt: skip
    np.testing.assert_allclose(again.position[:2], [1.0, 2.0])
    assert len(arc.view(model, title="rough").save(tmp_path / "page.html").read_text()) > 1000


def test_what_is_wrong_is_said():
    field, _ = ramp()
    terrain = mb.height_field("world", field)
    for heights, size, error in (
        ([1.0, 2.0], (1.0, 1.0), "must be .rows, columns. of at least 2"),
        ([[0.0, np.nan], [0.0, 0.0]], (1.0, 1.0), "heights must be finite"),
        ([[0.0, 0.0], [0.0, 0.0]], (1.0, 0.0), "HeightField size must be positive"),
    ):
        with pytest.raises(ValueError, match=error):
            mb.HeightField(heights, size)
    with pytest.raises(ValueError, match="touches no half-space and no height field"):
        mb.Pair(terrain, mb.half_space("other"))
    assert mb.every_pair([terrain, mb.half_space("other")]) == []
    with pytest.raises(TypeError, match="height_field heights"):
        mb.height_field("world", np.zeros((3, 3)))
    b = mb.Builder()
    with pytest.raises(ValueError, match="has a HeightField as surface="):
        b.add_shape("world", "heightfield", [1.0, 1.0])
    with pytest.raises(ValueError, match=r"give surface\.size"):
        b.add_shape("world", "heightfield", [1.0, 1.0], surface=field)
    with pytest.raises(ValueError, match="must be a number: the cells"):
        arc.compile(lambda r: field_places(field, np.zeros(3), r)[0][0])(0.1)
    model, _ = ball()
    with pytest.raises(ValueError, match="half-space does not touch a Ground"):
        touches(model, mb.neutral(model), [mb.half_space("b")], mb.Ground(height=field), [])
    assert field == ramp()[0] and hash(field) == hash(ramp()[0]) and field != ramp(0.2)[0]


def test_many_balls_of_different_sizes_move_as_each_by_itself():
    rng, count = np.random.default_rng(0), 5
    field = mb.HeightField(0.1 * rng.normal(size=(12, 12)), [6.0, 6.0])
    ground, b = mb.Ground(height=field, friction=0.5), mb.Builder()
    for k in range(count):
        b.add_body(f"b{k}", mass=1.0 + k, inertia=[0.1] * 3)
        b.attach(f"b{k}", joint=f"j{k}", kind="free")
    balls = [mb.sphere(f"b{k}", 0.1 + 0.01 * k) for k in range(count)]
    at = [[*rng.uniform(-2, 2, 2), 0.2, 1, 0, 0, 0] for _ in range(count)]
    x = mb.State(np.concatenate(at), 0.1 * rng.normal(size=6 * count))
    together = mb.contact_step(b.build(), x, 2e-3, balls, ground)
    for k in range(count):
        b = mb.Builder()
        b.add_body(f"b{k}", mass=1.0 + k, inertia=[0.1] * 3)
        alone = mb.State(x.q[7 * k : 7 * k + 7], x.v[6 * k : 6 * k + 6])
        alone = mb.contact_step(b.build(base="floating"), alone, 2e-3, [balls[k]], ground)
        np.testing.assert_allclose(together.v[6 * k : 6 * k + 6], alone.v, atol=1e-12)

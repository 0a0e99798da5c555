"""Scenes: checks, meshes, and what becomes of a trajectory."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos.t_handle import handle_meshes
from archimedes.environment import WGS84, geodetic_to_ecef, ned
from archimedes.optimize import OptimalControl
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody
from archimedes.vehicles import (
    FlatEarth,
    FlightCase,
    FlightState,
    Projectile,
    RotatingEarth,
    fly,
    load,
)
from archimedes.vehicles.car.car_scene import car_meshes
from archimedes.vehicles.f16.f16_scene import fighter, fighter_surfaces
from archimedes.vehicles.multirotor.multirotor_scene import multirotor_meshes
from archimedes.vehicles.rocket.rocket_scene import rocket_nose, rocket_stage
from archimedes.vehicles.satellite.satellite_scene import satellite_meshes
from archimedes.viewer import Body, Chart, Ghosts, Mesh, Scene, box, panel, revolve, sphere, view
from archimedes.viewer.actors import placing_of
from archimedes.viewer.html import corner_normals
from archimedes.viewer.meshes import capsule, cylinder, moved
from tests.viewer.scenes import falling, tumbling


def volume(mesh: Mesh) -> float:
    """Return what a closed mesh holds, by the divergence theorem: positive if faces look out."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    return float(np.sum(a * np.cross(b, c)) / 6.0)


@pytest.mark.parametrize(
    "mesh, exact",
    [
        (box([1.0, 2.0, 3.0]), 6.0),
        (sphere(1.0, 96), 4.0 * np.pi / 3.0),
        (cylinder(0.5, 2.0, n=96), 0.5 * np.pi),
        (capsule(0.5, 2.0, n=96), 0.5 * np.pi + np.pi / 6.0),
        (revolve([[0.0, 1.0], [3.0, 0.0]], 96), np.pi),
        (moved(box([1.0, 1.0, 1.0]), [5.0, 6.0, 7.0], np.diag([-1.0, -1.0, 1.0])), 1.0),
    ],
)
def test_solids_are_closed_and_look_outwards(mesh, exact):
    assert volume(mesh) == pytest.approx(exact, rel=5e-3)


def test_a_closed_profile_makes_a_ring_with_a_hole():
    """A gate: without the discs that close the ends of other solids."""
    turn = np.linspace(0.0, 2.0 * np.pi, 65)
    ring = revolve(np.stack([0.1 * np.cos(turn), 1.0 + 0.1 * np.sin(turn)], 1), n=128)
    assert volume(ring) == pytest.approx(2.0 * np.pi**2 * 0.1**2, rel=5e-3)
    used = ring.vertices[np.unique(ring.triangles)]
    assert np.linalg.norm(used[:, 1:], axis=1).min() == pytest.approx(0.9)


@pytest.mark.parametrize(
    "meshes",
    [
        fighter(),
        [m for part in fighter_surfaces().values() for m in part],
        satellite_meshes(),
        rocket_stage(0.0, 10.0, 1.0, "#ff0000"),
        rocket_nose(10.0, 3.0, 1.0),
        multirotor_meshes([[0.2, 0.2, 0], [-0.2, 0.2, 0], [-0.2, -0.2, 0], [0.2, -0.2, 0]]),
        car_meshes(1.2, 1.4, 1.5, 0.5),
        handle_meshes(),
    ],
)
def test_parts_of_vehicles_look_outwards(meshes):
    for mesh in meshes:
        assert volume(mesh) > 0.0 and np.all(np.isfinite(mesh.vertices))


def test_the_fighter_is_as_large_as_an_f16_and_symmetric():
    points = np.concatenate([m.vertices for m in fighter()])
    length, span = np.ptp(points[:, 0]), np.ptp(points[:, 1])
    assert 14.0 < length < 17.0 and 9.0 < span < 10.2
    assert points[:, 1].max() == pytest.approx(-points[:, 1].min())
    assert panel((1, 0, 0, 1), (0, 3, 0, 0.5)).vertices[:, 1].max() == 3.0


def test_normals_are_smooth_where_faces_hardly_bend_and_sharp_at_edges():
    ball = sphere(2.0, 32)
    corners = ball.vertices[ball.triangles].reshape(-1, 3)
    assert np.sum(corner_normals(ball) * corners / 2.0, axis=1).min() > 0.98
    cube = corner_normals(box([1, 1, 1]))
    np.testing.assert_allclose(np.abs(cube).max(axis=1), 1.0)


def test_flat_earth_becomes_east_north_up():
    traj = tumbling()
    shown = view(Projectile(1.0, np.eye(3), world=FlatEarth()), traj).scene
    body = shown.bodies[0]
    np.testing.assert_allclose(body.position[-1], [0.0, 8.0, 10.0], atol=1e-12)
    # The body's own x axis, which points north at first, is the scene's y.
    q = Quaternion(body.attitude[0])
    np.testing.assert_allclose(q.rotate([1.0, 0, 0], inverse=True), [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(q.rotate([0, 0, 1.0], inverse=True), [0, 0, -1], atol=1e-12)
    assert shown.ground is not None and shown.earth is None


def test_the_ellipsoid_becomes_a_plane_near_by_and_a_planet_far_away():
    lat, lon = 0.6, -1.2
    p = geodetic_to_ecef(lat, lon, 1000.0)
    north = np.asarray(ned(lat, lon).as_matrix())[0]
    near = placing_of(RotatingEarth(), np.stack([p, p + 500.0 * north]))
    np.testing.assert_allclose(near.points(p), [0, 0, 1000.0], atol=1e-6)
    np.testing.assert_allclose(near.points(p + 500.0 * north), [0, 500, 1000.0], atol=1e-6)
    far = placing_of(RotatingEarth(), np.stack([p, -p]))
    assert far.ground is None and far.earth.radius == WGS84.a


def test_angles_of_charts_do_not_jump():
    charts = {c.title: c for c in view(RigidBody(), tumbling()).scene.charts}
    yaw = charts["attitude"].values[2]
    np.testing.assert_allclose(yaw, np.linspace(0.0, 720.0, 81), atol=1e-9)
    assert charts["attitude"].units == "deg"


def test_a_batch_is_one_flight_and_ghosts():
    one = tumbling()
    x = one.x
    many = Trajectory(
        np.tile(one.t, (5, 1)),
        RigidBody.State(*(np.stack([np.asarray(v)] * 5) for v in (x.pos,)),
                        att=Quaternion(np.stack([x.att.array] * 5)),
                        v_B=np.zeros((5, 81, 3)), w_B=np.zeros((5, 81, 3))),
    )  # fmt: skip
    scene = view(RigidBody(), many).scene
    assert scene.ghosts[0].position.shape[0] == 5 and len(scene.bodies) == 1


def test_several_vehicles_have_names():
    body = RigidBody()
    shown = view({"first": (body, tumbling()), "second": (body, tumbling())}).scene
    assert [b.name for b in shown.bodies] == ["first", "second"]
    assert all(b.label for b in shown.bodies)


def test_charts_by_name():
    shown = view(RigidBody(), tumbling(), charts=["pos", "w_B[2]"]).scene
    assert [(c.title, c.units, len(c.values)) for c in shown.charts] == [
        ("pos", "m", 3),
        ("w_B[2]", "deg/s", 1),
    ]


MISTAKES = [
    (lambda: view(RigidBody(), 3.0), TypeError, "needs a Trajectory of solve_ode, got float"),
    (lambda: view({"a": 1}), TypeError, "'a' must be a pair"),
    (
        lambda: view(RigidBody(), Trajectory([0.0, 1.0], {"angle": np.zeros(2)})),
        ValueError,
        "neither pos and att",
    ),
    (lambda: view(falling(), theme="blue").html(), ValueError, "theme='blue' is not one of"),
    (lambda: view(falling()).save("a.png"), ValueError, "must end in .html"),
    (lambda: view(falling()).screenshot("a.jpg"), ValueError, "must end in .png"),
    (lambda: view(falling()).video("a.avi"), ValueError, "must end in .mp4 or .gif"),
    (lambda: view(Scene("empty")).html(), ValueError, "no body to show"),
    (lambda: Body("b", [], [0.0, 1.0], np.zeros((3, 3)), [1, 0, 0, 0]), ValueError, "'b': pos"),
    (lambda: Body("b", [], [1.0, 0.0], np.zeros((2, 3)), [1, 0, 0, 0]), ValueError, "not decrease"),
    (lambda: Body("b", [], 0.0, [np.nan, 0, 0], [1, 0, 0, 0]), ValueError, "nan or inf"),
    (lambda: Mesh([[0, 0, 0]], [[0, 1, 2]]), ValueError, "vertices from 0 to 0, got 0 to 2"),
    (lambda: Mesh([[0, 0, 0]], [[0, 0, 0]], color="red"), ValueError, "#rrggbb"),
    (lambda: Chart("c", [0.0, 1.0], [[1, 2], [3, 4]], ["a"]), ValueError, "1 labels for 2"),
    (lambda: Ghosts("g", [0.0], np.zeros((2, 3, 3))), ValueError, "position must have shape"),
]


@pytest.mark.parametrize("act, kind, message", MISTAKES)
def test_mistakes_are_named(act, kind, message):
    with pytest.raises(kind, match=message):
        act()


def test_bodies_need_names_and_parents_of_their_own():
    scene = falling()
    scene.bodies.append(scene.bodies[0])
    with pytest.raises(ValueError, match="two bodies"):
        scene.check()
    scene.bodies[1] = Body("arm", [], 0.0, [0, 0, 0], [1, 0, 0, 0], parent="hand")
    with pytest.raises(ValueError, match="the parent 'hand' of 'arm' must come before"):
        scene.check()


URDF = """<robot name="arm"><link name="base"/><link name="upper">
<visual><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1"/></geometry></visual>
<collision><geometry><box size="9 9 9"/></geometry></collision>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><link name="hand"><visual><geometry><sphere radius="0.2"/></geometry></visual></link>
<joint name="j" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="w" type="fixed"><parent link="upper"/><child link="hand"/><origin xyz="0 0 1"/></joint>
</robot>"""


def test_robots_have_the_shapes_of_their_file(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    model = mb.load(path)
    t = np.linspace(0.0, 1.0, 3)
    states = mb.State(np.array([[0.0], [0.5 * np.pi], [0.0]]), np.zeros((3, 1)))
    (body,) = view({"arm": (model, Trajectory(t, states))}).scene.bodies
    points = np.concatenate([m.vertices for m in body.meshes])
    assert len(body.meshes) == 2 and points[:, 2].max() == pytest.approx(1.2)
    assert np.abs(points[:, :2]).max() == pytest.approx(0.2)
    # Turned by 90 deg about y, its z axis points along x: as forward kinematics has it.
    up = Quaternion(body.attitude[1]).rotate([0.0, 0.0, 1.0], inverse=True)
    np.testing.assert_allclose(up, mb.frame_pose(model, states.q[1], "hand").t, atol=1e-12)


def test_robots_without_shapes_are_rods():
    b = mb.Builder("rod")
    b.add_body("bob", mass=2.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge", axis=[0, 1, 0])
    t = np.linspace(0.0, 1.0, 3)
    states = mb.State(np.zeros((3, 1)), np.zeros((3, 1)))
    (body,) = view(b.build(), Trajectory(t, states)).scene.bodies
    assert min(m.vertices[:, 2].min() for m in body.meshes) < -0.95


@arc.struct
class Pose:
    pos: np.ndarray
    att: Quaternion


@pytest.fixture(scope="module")
def turning():
    """A solution of optimal control whose states have a position and an attitude, no rates."""
    level = Quaternion([1.0, 0.0, 0.0, 0.0])
    problem = OptimalControl(
        lambda t, x, u: Pose(u, x.att.kinematics(np.zeros(3))),
        running_cost=lambda t, x, u: np.sum(u**2),
        initial=Pose(np.zeros(3), level),
        final=Pose(np.array([1.0, 2.0, -3.0]), None),
    )
    return problem.solve({"x": Pose(np.zeros(3), level), "u": np.zeros(3)}, intervals=3)


def test_solutions_of_optimal_control_are_shown(turning):
    """By themselves as a block, and with the shape of the vehicle that they are a model of."""
    alone = view(turning).scene
    assert [chart.title for chart in alone.charts] == ["altitude", "attitude"]
    drone = view(load("multirotor"), turning).scene
    assert [chart.title for chart in drone.charts] == ["altitude", "attitude"]
    assert drone.arrows == []
    np.testing.assert_allclose(drone.bodies[0].position[-1], [2.0, 1.0, 3.0], atol=1e-6)


def test_records_of_flights_are_shown():
    drone = load("multirotor", world=FlatEarth())
    start = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
    record = fly(FlightCase(drone, start, 0.5, drone.Input(drone.hover_speeds())))
    assert len(view(record).scene.arrows) == len(view(drone, record).scene.arrows) == 4

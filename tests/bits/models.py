"""Models: attitudes, the Earth and its air, the F-16 and other vehicles, a robot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import environment, spatial
from archimedes import multibody as mb
from archimedes.spatial import EulerAngles, Quaternion, RigidBody
from archimedes.vehicles import (
    F16,
    Car,
    F16Autopilot,
    FlatEarth,
    FlightCase,
    FlightState,
    GeometricController,
    OrbitGuidance,
    Satellite,
    fly,
    linearize,
    load,
    trim,
)

from .result import Result, of_function, seeded

__all__ = ["aircraft", "attitudes", "robots", "surroundings", "vehicles"]

COUNT = 60


def attitudes() -> Iterator[Result]:
    """Conversions between attitudes, their kinematics, a rigid body."""
    q = seeded(1, COUNT, 4) + np.array([0.5, 0.0, 0.0, 0.0])
    v, w = seeded(2, COUNT, 3), 3.0 * seeded(3, COUNT, 3)

    def convert(q: Any, v: Any) -> Any:
        att = Quaternion(q).normalize()
        return (
            *(att.as_matrix(), att.as_euler("xyz").array, att.as_euler("ZXZ").array),
            *(att.as_rotvec().array, att.as_mrp().array, att.rotate(v), att.log()),
            att.kinematics(v).array,
            spatial.quaternion_exp(v),
            Quaternion.from_matrix(EulerAngles(v, "ZYX").as_matrix()).array,
            spatial.slerp(att, Quaternion.from_euler(v, "xyz"), 0.3).array,
        )

    def body(q: Any, v: Any, w: Any) -> Any:
        state = RigidBody.State(v, Quaternion(q), w, v - w)
        return RigidBody.dynamics(0.0, state, RigidBody.Input(w, v, 2.0, np.diag([1.0, 2.0, 2.5])))

    yield of_function("conversions", convert, q, v)
    yield of_function("rigid body", body, q, v, w)
    jacobian = arc.jac(lambda q, v: Quaternion(q).as_euler("xyz").rotate(v), argnums=(0, 1))
    yield of_function("jacobian", jacobian, q, v)


def surroundings() -> Iterator[Result]:
    """Air, gravity, places, magnetic field, Sun."""
    z = np.concatenate([np.linspace(-4900.0, 86000.0, 150), np.linspace(86001.0, 9.9e5, 50)])
    where = np.stack([1.5 * seeded(4, COUNT), 3.1 * seeded(5, COUNT), 4e5 * seeded(6, COUNT)], 1)
    standard = environment.StandardAtmosphere1976()
    smooth = environment.SmoothAtmosphere()
    exponential = environment.ExponentialAtmosphere()
    yield of_function("atmosphere", lambda z: (standard(z), smooth(z), exponential(z)), z)
    yield of_function("atmosphere slope", lambda z: arc.grad(lambda z: standard(z).density)(z), z)

    def place(where: Any) -> Any:
        lat, lon, alt = where
        p = environment.geodetic_to_ecef(lat, lon, alt)
        back = environment.ecef_to_geodetic(p)
        fields = [
            model(p)
            for model in (
                environment.PointMassGravity(),
                environment.J2Gravity(),
                environment.NormalGravity(),
                environment.MagneticDipole(),
            )
        ]
        return p, back, environment.ned(lat, lon).as_matrix(), fields

    yield of_function("gravity and places", place, where)


def flight_of(z: Any) -> FlightState:
    """Return a state of flight for ten numbers between -1 and 1."""
    return FlightState(
        lat=1.2 * z[0],
        lon=3.0 * z[1],
        alt=7000.0 + 6500.0 * z[2],
        v_NED=np.stack([180.0 + 60.0 * z[3], 30.0 * z[4], 20.0 * z[5]]),
        rpy=np.stack([0.8 * z[6], 0.3 * z[7], 3.0 * z[8]]),
        w_B=0.2 * np.stack([z[9], z[3], z[6]]),
    )


def aircraft() -> Iterator[Result]:
    """The F-16: rates, trim, linearization, autopilot and flight."""
    plane, flat = load("f16"), load("f16", world=FlatEarth())
    z = seeded(7, 300, 15)

    def rates(vehicle: F16, z: Any) -> Any:
        x = vehicle.state(flight_of(z), 50.0 + 45.0 * z[10])
        u = F16.Input(0.5 + 0.5 * z[11], 0.3 * z[12], 0.3 * z[13], 0.4 * z[14])
        return vehicle.dynamics(0.0, x, u)

    yield of_function("rates", lambda z: rates(plane, z), z)
    yield of_function("rates on a flat Earth", lambda z: rates(flat, z), z)
    yield of_function("jacobian", arc.jac(lambda z: rates(plane, z), flat=True), z[:8])

    wanted = FlightState(
        *(0.63, -1.32, 3000.0),
        *(np.array([170.0, 0.0, 0.0]), np.array([0.0, 0.05, 0.0]), np.zeros(3)),
    )

    def steady() -> Any:
        return trim(plane, wanted, F16.Input(throttle=0.15, elevator=-0.03), {"power": 10.0})

    def small(found: Any) -> Any:
        return linearize(plane, found.flight, found.input, {"power": found.state.power})

    def level() -> Any:
        found = steady()
        return found.state, found.input, found.flight

    def linear() -> Any:
        model = small(steady())
        return model.A, model.B, model.C, model.D

    def autopilot() -> Any:
        found = steady()
        return F16Autopilot.design(plane, found, small(found))

    def flight() -> Any:
        found = steady()
        inner = {"power": found.state.power}
        case = FlightCase(plane, found.flight, 20.0, found.input, inner=inner)
        return fly(case, t_eval=np.linspace(0.0, 20.0, 5)).trajectory.x

    yield Result("trim", {"native": level})
    yield Result("linearization", {"native": linear})
    yield Result("autopilot", {"native": autopilot})
    yield Result("flight", {"native": flight})


def vehicles() -> Iterator[Result]:
    """Rates of the other vehicles, with the parts and controllers that they bring."""
    z = seeded(8, COUNT, 15)
    drone, controller = load("multirotor"), GeometricController()
    rocket, guidance = load("rocket"), OrbitGuidance()
    car, satellite = load("car"), load("satellite")

    def multirotor(z: Any) -> Any:
        x = drone.state(flight_of(0.1 * z))
        u = controller.command(drone, x, z[:3], z[3:6], z[6:9], z[9])
        return drone.dynamics(0.0, x, u)

    def launcher(z: Any) -> Any:
        x = rocket.state(flight_of(z))
        return rocket.dynamics(0.0, x, guidance.command(rocket, 20.0 + 10.0 * z[10], x))

    def driven(z: Any) -> Any:
        flight = FlightState(
            *(0.0 * z[0], 0.0 * z[0], car.height + 0.01 * z[0]),
            *(np.stack([25.0 + 5.0 * z[1], z[2], 0.0 * z[2]]), 0.1 * z[3:6], 0.1 * z[6:9]),
        )
        return car.dynamics(0.0, car.state(flight), Car.Input(0.1 * z[9], 250.0 * z[10]))

    def orbiting(z: Any) -> Any:
        pos = 6.9e6 * z[:3] / np.sqrt(z[:3] @ z[:3])
        x = Satellite.State(pos, 7500.0 * z[3:6], Quaternion(z[6:10]), 0.1 * z[10:13], 0.1 * z[:3])
        return satellite.dynamics(100.0 * z[14], x, satellite.idle().replace(dipole=z[12:15]))

    yield of_function("multirotor", multirotor, z)
    yield of_function("rocket", launcher, z)
    yield of_function("car", driven, z)
    yield of_function("satellite", orbiting, z)


URDF = """
<robot name="arm">
  <link name="base"><inertial><origin xyz="0 0 0.1" rpy="0.2 0 0"/><mass value="5"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.08"/></inertial></link>
  <link name="upper"><inertial><origin xyz="0.01 -0.02 0.15" rpy="0.3 -0.2 0.9"/><mass value="2.3"/>
    <inertia ixx="0.031" ixy="0.001" ixz="-0.002" iyy="0.029" iyz="0.0005" izz="0.004"/>
  </inertial></link>
  <link name="lower"><inertial><origin xyz="0 0.03 0.2" rpy="1.1 0.4 -0.6"/><mass value="1.7"/>
    <inertia ixx="0.02" ixy="0" ixz="0.0003" iyy="0.021" iyz="0" izz="0.003"/></inertial></link>
  <link name="hand"><inertial><origin xyz="0 0 0.05" rpy="0 0 0.7"/><mass value="0.4"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.0012" iyz="0" izz="0.0009"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.3" rpy="0.1 0.7 -0.4"/><axis xyz="0.6 0.8 0.1"/>
    <limit lower="-2.5" upper="2.5" effort="50" velocity="5"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0.05 0.4" rpy="1.57 0 0.3"/><axis xyz="0 1 0"/><dynamics damping="0.1"/>
    <limit lower="-2.5" upper="2.5" effort="50" velocity="5"/></joint>
  <joint name="wrist" type="prismatic"><parent link="lower"/><child link="hand"/>
    <origin xyz="0 0 0.3" rpy="-0.2 0.5 2.1"/><axis xyz="0.3 0.3 0.9"/>
    <limit lower="-0.2" upper="0.2" effort="50" velocity="5"/></joint>
</robot>
"""


def robots() -> Iterator[Result]:
    """A robot of a file, fixed and floating: dynamics, kinematics, derivatives; contact."""
    for base in ("fixed", "floating"):
        with TemporaryDirectory() as folder:
            file = Path(folder) / "arm.urdf"
            file.write_text(URDF)
            model = mb.load(file, base=base)
        q = np.stack([mb.neutral(model)] * COUNT) + 0.5 * seeded(9, COUNT, model.nq)
        v, a = seeded(10, COUNT, model.nv), seeded(11, COUNT, model.nv)

        def dynamics(q: Any, v: Any, a: Any, model: Any = model) -> Any:
            tau = mb.rnea(model, q, v, a)
            pose = mb.frame_pose(model, q, "hand")
            jacobian = mb.frame_jacobian(model, q, "hand")
            return tau, mb.aba(model, q, v, tau), mb.crba(model, q), pose, jacobian

        slopes = arc.jac(lambda q, v, a, m=model: mb.aba(m, q, v, a), argnums=(0, 1, 2))
        yield of_function(f"dynamics, {base} base", dynamics, q, v, a)
        yield of_function(f"derivatives, {base} base", slopes, q[:20], v[:20], a[:20])
    q = mb.integrate(model, mb.neutral(model), 0.5 * seeded(12, COUNT, model.nv))
    places = [mb.sphere(frame, 0.3) for frame in ("hand", "lower")]

    def touch(q: Any, v: Any, model: Any = model) -> Any:
        ground, x = mb.Ground(friction=0.6, torsional=0.02), mb.State(q, v)
        x, contact = mb.contact_step(model, x, 2e-3, places, ground, full_output=True)
        return x, contact.force, contact.torque

    yield of_function("contact", touch, q, v)
    b = mb.Builder()
    for k in range(4):
        b.add_body(f"b{k}", mass=1.0 + k, inertia=[0.01, 0.02, 0.02])
        b.attach(f"b{k}", joint=f"b{k}", kind="free")
    boxes, cubes = b.build(), [mb.box(f"b{k}", [0.2, 0.2, 0.2]) for k in range(4)]
    pairs = mb.every_pair(cubes, friction=0.5)
    q = mb.neutral(boxes) + np.tile([0, 0, 0.09, 0, 0, 0, 0], 4)
    q[2::7] += 0.195 * np.arange(4)
    q = mb.integrate(boxes, q, 0.02 * seeded(13, 12, boxes.nv))

    def pile(q: Any, v: Any) -> Any:
        x = mb.State(q, v)
        return mb.contact_step(boxes, x, 2e-3, cubes, mb.Ground(friction=0.5), pairs=pairs)

    yield of_function("many bodies in contact", pile, q, 0.1 * seeded(14, 12, boxes.nv))

"""Vehicles in a scene: one function per kind adds bodies, arrows and charts for a trajectory.

A vehicle of one's own is shown by a function registered for its class::

    @add_actor.register
    def _(vehicle: Glider, scene, flight):
        body = flight.body([box([1, 6, 0.2])])
        scene.bodies.append(body)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.function import vmap
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion
from archimedes.vehicles import F16, Car, Multirotor, Rocket, Satellite
from archimedes.viewer.placing import Placing, placing_of
from archimedes.viewer.scene import Arrow, Body, Camera, Chart, Earth, Ghosts, Scene
from archimedes.viewer.shapes import aircraft, small_vehicles, spacecraft

__all__ = ["Flight", "add_actor"]

STANDARD_GRAVITY = 9.80665
#: The colour of the trail of the one vehicle that a scene is about.
TRAIL = "#f2662b"
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


@dataclass(eq=False)
class Flight:
    """A trajectory on its way into a scene.

    Parameters
    ----------
    trajectory : Trajectory
        The trajectory.
    inputs : tree, optional
        Inputs over time, if they are known.
    batch : Trajectory, optional
        A batch to show beside the flight.
    name : str, optional
        Name.
    color : str, optional
        Colour, ``"#rrggbb"``.
    placing : Placing, optional
        How positions become those of the scene.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.simulate import Trajectory
    >>> from archimedes.spatial import Quaternion, RigidBody
    >>> from archimedes.viewer import Flight
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> x = RigidBody.State(np.outer(t, [10.0, 0, 0]), Quaternion(np.eye(4)[np.zeros(5, int)]),
    ...                     np.zeros((5, 3)), np.zeros((5, 3)))
    >>> flight = Flight(Trajectory(t, x), name="glider")
    >>> flight.t[-1], flight.motion.pos[-1]
    (np.float64(1.0), array([10.,  0.,  0.]))
    """

    trajectory: Trajectory
    inputs: Any = None
    batch: Trajectory | None = None
    name: str = "vehicle"
    color: str | None = None
    placing: Placing | None = None

    @property
    def t(self) -> np.ndarray:
        """The times (m,)."""
        return self.trajectory.t

    @property
    def motion(self) -> Any:
        """The states of motion: the field ``motion`` of the state, or the state itself."""
        return motion_of(self.trajectory.x)

    def place(self, world: Any, scene: Scene) -> Placing:
        """Choose the scene's axes by the world, once, and put ground or Earth below.

        Parameters
        ----------
        world : world
            World of the vehicle.
        scene : Scene
            The scene to add to.
        """
        if self.placing is None:
            self.placing = placing_of(world, self.motion.pos)
            scene.ground = scene.ground or self.placing.ground
            scene.earth = scene.earth or self.placing.earth
        return self.placing

    def body(self, meshes: Any, **options: Any) -> Body:
        """Return the body of the whole vehicle, with a trail.

        Parameters
        ----------
        meshes : sequence of Mesh
            Its shape.
        **options
            Fields of `Body`.
        """
        assert self.placing is not None
        settings: dict[str, Any] = {
            "trail": True,
            "curtain": True,
            "framed": True,
            "color": self.color or TRAIL,
            **options,
        }
        return Body(
            self.name,
            meshes,
            self.t,
            self.placing.points(self.motion.pos),
            self.placing.attitudes(quaternions(self.motion.att)),
            **settings,
        )

    def arrow(self, name: str, values_B: Any, color: str, scale: float, units: str = "kN") -> Arrow:
        """Return an arrow for vectors in body axes, in units of a thousand.

        Parameters
        ----------
        name : str
            Name.
        values_B : array (m, 3)
            Vectors in body axes.
        color : str
            Colour, ``"#rrggbb"``.
        scale : float
            Length in m of one unit.
        units : str, optional
            Unit of the values.
        """
        R = np.asarray(self.motion.att.as_matrix())
        assert self.placing is not None
        world = np.einsum("mji,mj->mi", R, np.asarray(values_B))
        values = 1e-3 * self.placing.vectors(world)
        return Arrow(name, self.name, self.t, values, units, 1e3 * scale, color)

    def ghosts(self, size: float) -> list[Ghosts]:
        """Return the batch as ghosts, if there is one.

        Parameters
        ----------
        size : float
            Size in m.
        """
        if self.batch is None or self.placing is None:
            return []
        motion = motion_of(self.batch.x)
        count = len(self.batch.t)
        t = self.batch.t[np.argmax(np.isfinite(self.batch.t).sum(axis=1))]
        q = self.placing.attitudes(quaternions(motion.att))
        return [Ghosts(f"{count:,} dispersed", t, self.placing.points(motion.pos), q, size)]


def motion_of(x: Any) -> Any:
    """Return the part of a state that has pos and att."""
    motion = getattr(x, "motion", x)
    if not (hasattr(motion, "pos") and hasattr(motion, "att")):
        raise ValueError(
            "view: the states have neither pos and att nor a part motion that has them: give a "
            "Scene with bodies of your own (archimedes.viewer.Body)"
        )
    return motion


def quaternions(att: Any) -> Any:
    """Return any attitude as arrays (..., 4)."""
    return (
        att.as_quat().array if hasattr(att, "as_quat") else Quaternion.from_euler(att, "xyz").array
    )


def degrees(angles: Any) -> np.ndarray:
    """Return angles (m, k) in rad as rows (k, m) in deg, without jumps of a turn."""
    rows = np.rad2deg(np.unwrap(np.asarray(angles), axis=0)).T
    # Unwrapped from the start, a whole number of turns is left over at most.
    return rows - 360.0 * np.round(rows[:, :1] / 360.0)


def band(batch_t: Any, values: Any) -> dict[str, Any]:
    """Return what a chart needs for the band of 5 % to 95 % over a batch (n, m)."""
    low, high = np.nanquantile(np.asarray(values), [0.05, 0.95], axis=0)
    return {"band_t": batch_t, "low": low, "high": high}


@functools.singledispatch
def add_actor(vehicle: Any, scene: Scene, flight: Flight) -> None:
    """Add the shape of a vehicle and its motion to a scene.

    By default it is a block with the mass and inertia of the vehicle.

    Parameters
    ----------
    vehicle : vehicle
        The vehicle.
    scene : Scene
        The scene to add to.
    flight : Flight
        The flight to show.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.simulate import Trajectory
    >>> from archimedes.spatial import Quaternion, RigidBody
    >>> from archimedes.viewer import add_actor, box, view
    >>> class Glider:
    ...     pass
    >>> @add_actor.register
    ... def _(glider: Glider, scene, flight):
    ...     flight.place(None, scene)
    ...     scene.bodies.append(flight.body([box([1, 6, 0.2])]))
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> x = RigidBody.State(np.outer(t, [10.0, 0, 0]), Quaternion(np.eye(4)[np.zeros(5, int)]),
    ...                     np.zeros((5, 3)), np.zeros((5, 3)))
    >>> view(Glider(), Trajectory(t, x)).scene.bodies[0].radius > 3.0
    True
    """
    place = flight.place(getattr(vehicle, "world", None), scene)
    mass, inertia = getattr(vehicle, "mass", None), getattr(vehicle, "inertia", None)
    body = flight.body(small_vehicles.plain_body(inertia, mass), least_pixels=30.0)
    scene.bodies.append(body)
    scene.ghosts += flight.ghosts(2.0 * body.radius)
    v = getattr(flight.motion, "v_B", None)
    if place.ground is not None and v is not None:
        scene.charts.append(Chart("altitude", flight.t, body.position[:, 2], units="m"))
        speed = np.linalg.norm(v, axis=1)
        scene.charts.append(Chart("speed", flight.t, speed, units="m/s"))
    scene.charts.append(attitude_chart(flight))
    add_rates(scene, flight)


def attitude_chart(flight: Flight) -> Chart:
    """Return roll, pitch and yaw in the world's axes, in deg without jumps."""
    rpy = Quaternion(quaternions(flight.motion.att)).as_euler("xyz").array
    return Chart("attitude", flight.t, degrees(rpy), ["roll", "pitch", "yaw"], "deg")


def add_rates(scene: Scene, flight: Flight) -> None:
    """Add a chart of the angular velocity."""
    w = np.rad2deg(np.asarray(flight.motion.w_B)).T
    scene.charts.append(Chart("angular velocity", flight.t, w, ["p", "q", "r"], "deg/s"))


@add_actor.register
def _(plane: F16, scene: Scene, flight: Flight) -> None:
    place = flight.place(plane.world, scene)
    body = flight.body(aircraft.fighter(), label=bool(scene.bodies))
    scene.bodies.append(body)
    scene.camera = Camera("chase", flight.name, azimuth=160.0, elevation=14.0, distance=34.0)
    scene.ghosts += flight.ghosts(12.0)
    u, x = flight.inputs, flight.trajectory.x
    state = plane.world.flight(flight.t, flight.motion)
    flights = (
        None
        if flight.batch is None
        else plane.world.flight(flight.batch.t, motion_of(flight.batch.x))
    )
    ghost_t = scene.ghosts[-1].t if flights is not None and scene.ghosts else None
    wide = lambda v: {} if flights is None else band(ghost_t, v(flights))  # noqa: E731
    scene.charts.append(Chart("altitude", flight.t, state.alt, units="m", **wide(lambda f: f.alt)))
    if u is not None:
        add_surfaces(scene, flight, u)
        out = vmap(plane.outputs)(flight.t, x, u)
        speed = Chart("airspeed", flight.t, out.airspeed, units="m/s")
        force = vmap(plane.forces)(flight.t, x, u)[0]
        thrust = np.asarray(out.thrust)[:, None] * np.array([1.0, 0.0, 0.0])
        weight = float(plane.mass) * STANDARD_GRAVITY
        scale = 9.0 / weight
        down_B = np.asarray(flight.motion.att.as_matrix()) @ np.asarray(
            place.R.T @ np.array([0.0, 0.0, -weight])
        )
        scene.arrows += [
            flight.arrow("aerodynamic force", force - thrust, "#3d8bd4", scale),
            flight.arrow("thrust", thrust, "#f5a623", scale),
            flight.arrow("weight", down_B, "#8e63ce", scale),
        ]
        scene.charts += [
            speed,
            Chart("load factor", flight.t, out.load_factor, units="g"),
            Chart("angle of attack", flight.t, np.rad2deg(out.alpha), units="deg"),
        ]
    bank = wide(lambda f: np.rad2deg(np.unwrap(f.rpy[..., 0], axis=1)))
    scene.charts.append(Chart("bank", flight.t, degrees(state.rpy)[:1], units="deg", **bank))
    scene.charts.append(Chart("heading", flight.t, degrees(state.rpy)[2:], units="deg"))


def add_surfaces(scene: Scene, flight: Flight, u: Any) -> None:
    """Add elevator, ailerons and rudder, turned as the inputs say: trailing edge down, left."""
    angles = {
        "elevator": -np.asarray(u.elevator),
        "aileron_right": -np.asarray(u.aileron),
        "aileron_left": np.asarray(u.aileron),
        "rudder": -np.asarray(u.rudder),
    }
    for name, meshes in aircraft.fighter_surfaces().items():
        point, axis = aircraft.HINGES[name]
        axis_ = np.asarray(axis) / np.linalg.norm(axis)
        half = 0.5 * np.broadcast_to(angles[name], flight.t.shape)
        turned = np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * axis_], axis=1)
        label = f"{flight.name}: {name.replace('_', ', ')}"
        scene.bodies.append(Body(label, meshes, flight.t, point, turned, parent=flight.name))


@add_actor.register
def _(drone: Multirotor, scene: Scene, flight: Flight) -> None:
    flight.place(drone.world, scene)
    # Its ways cross and turn close to the eye: a curtain below them would hide it.
    shape = small_vehicles.multirotor(drone.rotors.positions)
    body = flight.body(shape, label=bool(scene.bodies), curtain=False)
    scene.bodies.append(body)
    scene.camera = Camera("follow", flight.name, azimuth=-120.0, elevation=22.0)
    scene.ghosts += flight.ghosts(1.6 * body.radius)
    speeds = np.asarray(flight.trajectory.x.speeds)
    pushes = np.asarray(drone.rotors.thrust) * speeds**2
    share = float(drone.mass) * STANDARD_GRAVITY / speeds.shape[1]
    for k, place in enumerate(np.asarray(drone.rotors.positions)):
        up = -pushes[:, k, None] * np.array([0.0, 0.0, 1.0])
        one = flight.arrow(f"rotor {k + 1}", 1e3 * up, "#e8743b", 5e-4 * body.radius / share, "N")
        one.origin = place
        scene.arrows.append(one)
    scene.charts += [
        Chart("altitude", flight.t, body.position[:, 2], units="m"),
        attitude_chart(flight),
        Chart(
            "rotor speeds",
            flight.t,
            speeds.T,
            [str(k + 1) for k in range(speeds.shape[1])],
            "rad/s",
        ),
    ]


@add_actor.register
def _(satellite: Satellite, scene: Scene, flight: Flight) -> None:
    angle, rate = float(satellite.angle), float(satellite.omega)
    flight.placing = Placing(np.eye(3), np.zeros(3), earth=Earth(rate=rate, angle=angle))
    scene.earth = scene.earth or flight.placing.earth
    size = (float(satellite.mass) / 300.0) ** (1.0 / 3.0)
    body = flight.body(spacecraft.satellite(size), least_pixels=90.0, label=bool(scene.bodies))
    scene.bodies.append(body)
    scene.camera = Camera(
        "follow", flight.name, azimuth=-60.0, elevation=25.0, distance=5.0 * body.radius
    )
    scene.ghosts += flight.ghosts(2.0 * body.radius)
    x = flight.trajectory.x
    wheels = np.asarray(x.h).T
    scene.charts.append(attitude_chart(flight))
    add_rates(scene, flight)
    labels = [str(k + 1) for k in range(len(wheels))]
    scene.charts.append(Chart("momenta of the wheels", flight.t, wheels, labels, "N m s"))


@add_actor.register
def _(rocket: Rocket, scene: Scene, flight: Flight) -> None:
    place = flight.place(rocket.world, scene)
    x = flight.trajectory.x
    com = np.asarray(vmap(rocket.mass_properties)(x).com)
    attached = np.asarray(x.attached)
    radius = float(np.sqrt(np.asarray(rocket.area) / np.pi))
    top = max(
        float(np.asarray(s.tank.bottom)[0]) + float(s.tank.length) + 0.5 for s in rocket.stages
    )
    last = float(np.asarray(rocket.payload.com)[0])
    nose = spacecraft.rocket_nose(top, max(2.0 * (last - top), 3.0 * radius), radius)
    whole = flight.body([], least_pixels=70.0, reach=0.6 * last, label=bool(scene.bodies))
    scene.bodies.append(whole)
    # The origin of the motion is the centre of mass, which moves along the rocket.
    payload = f"{flight.name}: payload"
    scene.bodies.append(Body(payload, nose, flight.t, -com, UPRIGHT, parent=flight.name))
    for k, stage in enumerate(rocket.stages):
        bottom, length = float(stage.engine), float(stage.tank.length) + 1.0
        meshes = spacecraft.rocket_stage(bottom, length, radius, ("#e8743b", "#3d8bd4")[k % 2])
        there = np.where(attached[:, k, None] > 0.5, -com, 1e9)  # a stage that has gone is far away
        scene.bodies.append(
            Body(
                f"{flight.name}: stage {k + 1}",
                meshes,
                flight.t,
                there,
                UPRIGHT,
                parent=flight.name,
            )
        )
    scene.camera = Camera(
        "overview" if place.earth else "follow", flight.name, azimuth=-60.0, elevation=20.0
    )
    state = rocket.world.flight(flight.t, flight.motion)
    big = place.earth is not None
    scene.charts.append(
        Chart(
            "altitude",
            flight.t,
            np.asarray(state.alt) * (1e-3 if big else 1.0),
            units="km" if big else "m",
        )
    )
    speed = np.linalg.norm(np.asarray(state.v_NED), axis=1)
    scene.charts.append(Chart("speed over ground", flight.t, speed, units="m/s"))
    pitch = degrees(state.rpy)[1:2]
    scene.charts.append(Chart("pitch", flight.t, pitch, units="deg"))
    tanks = 1e-3 * np.asarray(x.propellant).T
    scene.charts.append(
        Chart("propellant", flight.t, tanks, [f"stage {k + 1}" for k in range(len(tanks))], "t")
    )


@add_actor.register
def _(car: Car, scene: Scene, flight: Flight) -> None:
    flight.place(getattr(car, "world", None), scene)
    sizes = [float(getattr(car, name)) for name in ("front", "rear", "track", "height")]
    body = flight.body(small_vehicles.car(*sizes), label=bool(scene.bodies))
    scene.bodies.append(body)
    scene.camera = Camera("chase", flight.name, azimuth=165.0, elevation=16.0, distance=14.0)
    scene.ghosts += flight.ghosts(2.0)
    v = np.asarray(flight.motion.v_B)
    scene.charts += [
        Chart("speed", flight.t, v[:, 0], units="m/s"),
        Chart("to the side", flight.t, np.asarray(flight.motion.pos)[:, 1], units="m"),
        attitude_chart(flight),
    ]

"""Models in a scene: how a trajectory becomes bodies, arrows, ghosts and charts.

A vehicle shows itself by a method ``add_to_scene(scene, flight)``; without one it is drawn as a
block. A class that is not one's own is shown by a function registered for it::

    @add_actor.register
    def _(vehicle: Glider, scene, flight):
        flight.place(vehicle.world, scene)
        scene.bodies.append(flight.body([box([1, 6, 0.2])]))
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.display import Readable
from archimedes.environment import ecef_to_geodetic, ned
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion
from archimedes.spatial.attitudes.quaternions import quaternion_multiply
from archimedes.typing import Array, ArrayLike
from archimedes.viewer.meshes import arrow, box, moved, squares_of_edges
from archimedes.viewer.scene import (
    Arrow,
    Body,
    Camera,
    Chart,
    Earth,
    Ghosts,
    Ground,
    Mesh,
    Scene,
    as_quaternions,
)

__all__ = ["Flight", "add_actor"]

STANDARD_GRAVITY = 9.80665
#: The colour of the trail of the one vehicle that a scene is about.
TRAIL = "#f2662b"
#: From north, east, down to axes with z up: x is east, y north.
R_UP_NED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
#: Flights on the ellipsoid that stay within this many m are shown above a level ground.
LOCAL = 150e3


@dataclass(frozen=True, eq=False)
class Placing:
    """The map from a world to the scene, ``R (p - origin)``, and what lies below."""

    R: Array
    origin: Array
    ground: Ground | None = None
    earth: Earth | None = None

    def points(self, p: ArrayLike) -> Array:
        """Return positions (..., 3) in the scene."""
        return (as_array(p) - self.origin) @ self.R.T

    def vectors(self, v: ArrayLike) -> Array:
        """Return vectors (..., 3) in the axes of the scene."""
        return as_array(v) @ self.R.T

    def attitudes(self, q: Any) -> Array:
        """Return the attitudes of bodies (..., 4) in the axes of the scene."""
        q = as_array(as_quaternions(q))
        # A quaternion's matrix takes the scene's axes to the world's here: the other way round.
        own = np.asarray(Quaternion.from_matrix(self.R.T).array)
        return np.asarray(quaternion_multiply(np.broadcast_to(own, q.shape), q))


def placing_of(world: object, pos: ArrayLike) -> Placing:
    """Return the map for a vehicle's world and its positions, `pos` (..., 3)."""
    ellipsoid = getattr(world, "ellipsoid", None)
    if ellipsoid is None:
        return Placing(R_UP_NED, np.zeros(3), ground=Ground(0.0))
    flat = np.asarray(pos, dtype=float).reshape(-1, 3)
    first = flat[0]
    reach = np.nanmax(np.linalg.norm(flat - first, axis=1))
    if reach > LOCAL:
        return Placing(np.eye(3), np.zeros(3), earth=Earth(float(ellipsoid.a)))
    lat, lon, alt = ecef_to_geodetic(first, ellipsoid)
    R_NE = np.asarray(ned(lat, lon).as_matrix())
    below = first - float(alt) * -R_NE[2]
    return Placing(R_UP_NED @ R_NE, below, ground=Ground(0.0))


@dataclass(eq=False, repr=False)
class Flight(Readable):
    """A trajectory that is being added to a scene.

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
    def t(self) -> Array:
        """The times (m,)."""
        return self.trajectory.t

    @property
    def motion(self) -> Any:
        """The states of motion: the field ``motion`` of the state, or the state itself."""
        return motion_of(self.trajectory.x)

    def place(self, world: object, scene: Scene) -> Placing:
        """Choose the axes of the scene for a world, once, and add the ground or the Earth.

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

    def body(self, meshes: Sequence[Mesh], **options: Any) -> Body:
        """Return the body of the whole vehicle, with a trail.

        Parameters
        ----------
        meshes : sequence of Mesh
            Its shape.
        **options
            Fields of `Body`.
        """
        assert self.placing is not None
        look: dict[str, Any] = {"trail": True, "curtain": True, "framed": True}
        position = self.placing.points(self.motion.pos)
        attitude = self.placing.attitudes(quaternions(self.motion.att))
        look |= {"color": self.color or TRAIL, **options}
        return Body(self.name, meshes, self.t, position, attitude, **look)

    def arrow(
        self, name: str, values_B: ArrayLike, color: str, scale: float, units: str = "kN"
    ) -> Arrow:
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


def quaternions(att: Any) -> Array:
    """Return any attitude as arrays (..., 4)."""
    att = att if hasattr(att, "as_quat") else Quaternion.from_euler(att, "xyz")
    return att.as_quat().array


def degrees(angles: ArrayLike) -> Array:
    """Return angles (m, k) in rad as rows (k, m) in deg, unwrapped."""
    angles = np.asarray(angles)
    rows = np.rad2deg(np.unwrap(angles, axis=0) if len(angles) > 1 else angles).T
    # Unwrapped from the start, a whole number of turns is left over at most.
    return rows - 360.0 * np.round(rows[:, :1] / 360.0)


def band(batch_t: Array, values: ArrayLike) -> dict[str, Any]:
    """Return what a chart needs for the band of 5 % to 95 % over a batch (n, m)."""
    low, high = np.nanquantile(np.asarray(values), [0.05, 0.95], axis=0)
    return {"band_t": batch_t, "low": low, "high": high}


@functools.singledispatch
def add_actor(vehicle: Any, scene: Scene, flight: Flight) -> None:
    """Add the shape of a vehicle and its motion to a scene.

    A vehicle that has a method ``add_to_scene(scene, flight)`` adds itself. By default it is a
    block with the mass and inertia of the vehicle.

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
    if hasattr(vehicle, "add_to_scene"):
        vehicle.add_to_scene(scene, flight)
        return
    placing = flight.place(getattr(vehicle, "world", None), scene)
    meshes = plain_body(getattr(vehicle, "inertia", None), getattr(vehicle, "mass", None))
    body = flight.body(meshes, least_pixels=30.0)
    scene.bodies.append(body)
    scene.ghosts += flight.ghosts(2.0 * body.radius)
    v, w = (getattr(flight.motion, name, None) for name in ("v_B", "w_B"))
    if placing.ground is not None:
        scene.charts.append(Chart("altitude", flight.t, body.position[:, 2], units="m"))
    if placing.ground is not None and v is not None:
        scene.charts.append(Chart("speed", flight.t, np.linalg.norm(v, axis=1), units="m/s"))
    scene.charts.append(attitude_chart(flight))
    if w is not None:
        scene.charts.append(rate_chart(flight))


def plain_body(inertia: ArrayLike | None, mass: float | None) -> list[Mesh]:
    """Return a block with an arrow ahead; with mass and inertia, the block that has them."""
    edges = np.array([1.0, 0.6, 0.3])
    if inertia is not None and mass:
        squares = squares_of_edges(inertia, mass)
        edges = np.sqrt(np.maximum(squares, 1e-4 * squares.max()))
    tip = 0.5 * float(edges[0])
    pointer = arrow(0.6 * tip, 0.06 * tip, color="#e8743b")
    return [box(edges, color="#c9d0d9"), moved(pointer, [tip, 0, 0])]


def add_vehicle(
    scene: Scene,
    flight: Flight,
    meshes: Sequence[Mesh],
    camera: Camera,
    ghosts: float | None = None,
    **options: Any,
) -> Body:
    """Add the body of a vehicle, its camera, and its batch as ghosts of a size in m (None: none).

    `options` are fields of `Body`. The name is shown where a scene has several vehicles.
    """
    body = flight.body(meshes, label=bool(scene.bodies), **options)
    scene.bodies.append(body)
    scene.camera = camera
    if ghosts is not None:
        scene.ghosts += flight.ghosts(ghosts)
    return body


def attitude_chart(flight: Flight) -> Chart:
    """Return roll, pitch and yaw in the world's axes, in deg without jumps."""
    rpy = Quaternion(quaternions(flight.motion.att)).as_euler("xyz").array
    return Chart("attitude", flight.t, degrees(rpy), ["roll", "pitch", "yaw"], "deg")


def rate_chart(flight: Flight) -> Chart:
    """Return a chart of the angular velocity."""
    w = np.rad2deg(np.asarray(flight.motion.w_B)).T
    return Chart("angular velocity", flight.t, w, ["p", "q", "r"], "deg/s")

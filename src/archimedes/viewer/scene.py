"""What a scene consists of: moving bodies, paths, arrows, ghosts, charts.

Axes of a scene: right-handed, z up where there is a ground; metres and seconds. An attitude is a
quaternion with its scalar first, as everywhere here: its body's axes in the axes of the scene.
Everything that moves brings its own times; between them a viewer interpolates.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_choice, concrete, is_traced
from archimedes.display import Readable
from archimedes.errors import TraceError
from archimedes.typing import Array, ArrayLike

__all__ = [
    "Arrow",
    "Body",
    "Camera",
    "Chart",
    "Earth",
    "Ghosts",
    "Ground",
    "Mark",
    "Mesh",
    "Path",
    "Scene",
]

CAMERA_MODES = ("chase", "follow", "overview", "free")
#: Colours of bodies in order, readable on light and dark ground (after M. Okabe and K. Ito, 2008).
COLORS = ("#3d8bd4", "#e8743b", "#19a979", "#c96fb4", "#d0a11c", "#7f8fa6")


@dataclass(frozen=True, eq=False, repr=False)
class Mesh(Readable):
    """A surface of triangles in one colour.

    Parameters
    ----------
    vertices : array (n, 3)
        Vertices in m.
    triangles : array of int (m, 3)
        Vertices of each triangle.
    color : str, optional
        Colour, ``"#rrggbb"``.
    opacity : float, optional
        Opacity from 0 to 1.
    crease : float, optional
        Edges that bend by more than this angle in rad look sharp.

    Examples
    --------
    >>> Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).triangles.shape
    (1, 3)
    """

    vertices: Any
    triangles: Any
    color: str = "#b8c0cc"
    opacity: float = 1.0
    crease: float = 0.7

    def __post_init__(self) -> None:
        """Check the shapes and which vertices are named."""
        vertices = numbers(self.vertices, "Mesh.vertices", (None, 3))
        triangles = np.asarray(self.triangles)
        if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
            raise ValueError(
                f"Mesh.triangles must be integers (m, 3), got {triangles.dtype} {triangles.shape}"
            )
        if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(vertices):
            raise ValueError(
                f"Mesh.triangles must number vertices from 0 to {len(vertices) - 1}, got "
                f"{triangles.min()} to {triangles.max()}"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles.astype(np.int64))
        check_color(self.color, "Mesh.color")


@dataclass(eq=False, repr=False)
class Body(Readable):
    """A rigid body that moves.

    Parameters
    ----------
    name : str
        Name of the body.
    meshes : sequence of Mesh
        Its shape.
    t : array (m,)
        Times in s.
    position : array (m, 3)
        Position in m. One row holds for all times.
    attitude : array (m, 4)
        Attitude as quaternions. One row holds for all times.
    parent : str, optional
        Name of another body, to which position and attitude are relative. None by default.
    color : str, optional
        Colour, ``"#rrggbb"``.
    trail : bool, optional
        Draw where the body has been. False by default.
    label : bool, optional
        Show its name. False by default.
    least_pixels : float, optional
        Size on the screen below which it is enlarged, so that a satellite can be seen beside its
        planet.
    reach : float, optional
        Size in m of the whole that it is part of. 0, the default, for its own.
    framed : bool, optional
        Draw its axes. False by default.
    curtain : bool, optional
        Join the trail to the ground. False by default.

    Examples
    --------
    >>> from archimedes.viewer import Body, sphere
    >>> ball = Body("ball", [sphere(0.5)], t=[0.0, 1.0], position=[[0, 0, 2], [1, 0, 1]],
    ...             attitude=[1, 0, 0, 0], trail=True)
    >>> ball.position.shape, ball.attitude.shape, round(ball.radius, 6)
    ((2, 3), (2, 4), 0.5)
    """

    name: str
    meshes: Sequence[Mesh]
    t: Any
    position: Any
    attitude: Any
    parent: str | None = None
    color: str | None = None
    trail: bool = False
    label: bool = False
    least_pixels: float = 0.0
    reach: float = 0.0
    framed: bool = False
    curtain: bool = False

    def __post_init__(self) -> None:
        """Check the shapes against the times."""
        what = f"Body {self.name!r}"
        self.t = times(self.t, what)
        self.position = rows(self.position, self.t, 3, f"{what}: position")
        self.attitude = rows(as_quaternions(self.attitude), self.t, 4, f"{what}: attitude")
        if self.color is not None:
            check_color(self.color, f"{what}: color")

    @property
    def radius(self) -> float:
        """Radius in m of a sphere about the origin that holds all meshes."""
        reach = [np.linalg.norm(m.vertices, axis=1).max() for m in self.meshes if len(m.vertices)]
        return float(max(reach, default=1.0))


@dataclass(eq=False, repr=False)
class Path(Readable):
    """A fixed line.

    Parameters
    ----------
    name : str
        Name.
    points : array (m, 3)
        Points in m.
    color : str, optional
        Colour, ``"#rrggbb"``.
    dashed : bool, optional
        Dashed, for a plan rather than a flight. False by default.

    Examples
    --------
    >>> from archimedes.viewer import Path
    >>> Path("plan", points=[[0, 0, 0], [100, 0, 50]], dashed=True).points.shape
    (2, 3)
    """

    name: str
    points: Any
    color: str = "#8a94a6"
    dashed: bool = False

    def __post_init__(self) -> None:
        """Check the shape."""
        self.points = numbers(self.points, f"Path {self.name!r}: points", (None, 3))
        check_color(self.color, f"Path {self.name!r}: color")


@dataclass(eq=False, repr=False)
class Arrow(Readable):
    """A vector at a body over time.

    Parameters
    ----------
    name : str
        Name.
    body : str
        Name of the body at which it starts.
    t : array (m,)
        Times in s.
    values : array (m, 3)
        Vectors in the axes of the scene.
    units : str, optional
        Unit of the values.
    scale : float, optional
        Length in m of one unit.
    color : str, optional
        Colour, ``"#rrggbb"``.
    origin : array (3,), optional
        Start of the arrow in m, in the axes of the body.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.viewer import Arrow
    >>> lift = Arrow("lift", "glider", t=[0.0, 1.0], values=np.array([[0, 0, 3.0], [0, 0, 4.0]]),
    ...              units="kN", scale=0.5)
    >>> lift.values.shape
    (2, 3)
    """

    name: str
    body: str
    t: Any
    values: Any
    units: str = ""
    scale: float = 1.0
    color: str = "#e8743b"
    origin: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the shapes."""
        self.t = times(self.t, f"Arrow {self.name!r}")
        self.values = rows(self.values, self.t, 3, f"Arrow {self.name!r}: values")
        self.origin = numbers(self.origin, f"Arrow {self.name!r}: origin", (3,))
        check_color(self.color, f"Arrow {self.name!r}: color")


@dataclass(eq=False, repr=False)
class Ghosts(Readable):
    """The flights of a batch, drawn small and faint.

    Parameters
    ----------
    name : str
        Name.
    t : array (m,)
        Times in s.
    position : array (n, m, 3)
        Positions in m of n instances. Where one is nan, nothing is drawn.
    attitude : array (n, m, 4), optional
        Attitudes as quaternions. None by default.
    size : float, optional
        Size in m.
    color : str, optional
        Colour, ``"#rrggbb"``.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.viewer import Ghosts
    >>> Ghosts("100 flights", t=[0.0, 1.0], position=np.zeros((100, 2, 3)), size=2.0).position.shape
    (100, 2, 3)
    """

    name: str
    t: Any
    position: Any
    attitude: Any = None
    size: float = 1.0
    color: str = "#6d8fc4"

    def __post_init__(self) -> None:
        """Check the shapes."""
        what = f"Ghosts {self.name!r}"
        self.t = times(self.t, what)
        m = len(self.t)
        self.position = numbers(self.position, f"{what}: position", (None, m, 3), nan=True)
        if self.attitude is not None:
            raw = as_quaternions(self.attitude)
            wanted = (len(self.position), m, 4)
            self.attitude = numbers(raw, f"{what}: attitude", wanted, nan=True)
        check_color(self.color, f"{what}: color")


@dataclass(eq=False, repr=False)
class Chart(Readable):
    """Lines over time that follow the cursor.

    Parameters
    ----------
    title : str
        Title.
    t : array (m,)
        Times in s.
    values : array (k, m)
        Values of k lines.
    labels : sequence of str, optional
        Label of each line.
    units : str, optional
        Unit of the values.
    band_t : array, optional
        Times in s of the band.
    low : array (k, m), optional
        Lower edge of a band around each line.
    high : array (k, m), optional
        Upper edge of the band.

    Examples
    --------
    >>> from archimedes.viewer import Chart
    >>> Chart("height", t=[0.0, 1.0], values=[[10.0, 5.1]], labels=["ball"], units="m").values.shape
    (1, 2)
    """

    title: str
    t: Any
    values: Any
    labels: Sequence[str] = ()
    units: str = ""
    band_t: Any = None
    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        """Check the shapes."""
        what = f"Chart {self.title!r}"
        self.t = times(self.t, what)
        values = np.atleast_2d(known_numbers(self.values, f"{what}: values"))
        self.values = numbers(values, f"{what}: values", (None, len(self.t)), nan=True)
        self.labels = list(self.labels) or [""] * len(self.values)
        if len(self.labels) != len(self.values):
            raise ValueError(f"{what}: {len(self.labels)} labels for {len(self.values)} lines")
        if (self.low is None) != (self.high is None):
            raise ValueError(f"{what}: a band needs both low and high")
        if self.low is not None:
            self.band_t = self.t if self.band_t is None else times(self.band_t, what)
            for side in ("low", "high"):
                edge = np.atleast_2d(np.asarray(getattr(self, side), dtype=float))
                wanted = (len(self.values), len(self.band_t))
                setattr(self, side, numbers(edge, f"{what}: {side}", wanted, nan=True))


@dataclass(frozen=True, repr=False)
class Mark(Readable):
    """An event: a tick on the time slider, with a name.

    Parameters
    ----------
    t : float
        Time in s.
    name : str
        Name.

    Examples
    --------
    >>> from archimedes.viewer import Mark
    >>> Mark(46.0, "gust").name
    'gust'
    """

    t: float
    name: str


@dataclass(frozen=True, repr=False)
class Ground(Readable):
    """A level plane with a grid.

    Parameters
    ----------
    height : float, optional
        Height in m.
    cell : float, optional
        Width of a grid cell in m. 0, the default, for one that suits the scene.

    Examples
    --------
    >>> from archimedes.viewer import Ground
    >>> Ground(height=-1.0, cell=10.0).cell
    10.0
    """

    height: float = 0.0
    cell: float = 0.0


@dataclass(frozen=True, repr=False)
class Earth(Readable):
    """A planet at the origin, with its graticule.

    Parameters
    ----------
    radius : float, optional
        Radius in m.
    rate : float, optional
        Angular velocity about z in rad/s. 0 in Earth-fixed axes.
    angle : float, optional
        Rotation angle at t = 0 in rad.

    Examples
    --------
    >>> from archimedes.viewer import Earth
    >>> Earth(rate=7.292e-5).radius
    6378137.0
    """

    radius: float = 6378137.0
    rate: float = 0.0
    angle: float = 0.0


@dataclass(repr=False)
class Camera(Readable):
    """How the scene is looked at first.

    Parameters
    ----------
    mode : {"chase", "follow", "overview", "free"}, optional
        Rotate with the course of the body, move with the body, show the whole scene, or stay.
    body : str, optional
        Name of the body to look at. By default the first.
    azimuth : float, optional
        Azimuth in deg.
    elevation : float, optional
        Elevation in deg.
    distance : float, optional
        Distance in m. 0, the default, shows the body or the scene in full.
    target : array (3,), optional
        Point in m that a camera of mode ``"free"`` looks at. By default the centre of the scene.

    Examples
    --------
    >>> from archimedes.viewer import Camera
    >>> Camera(mode="chase", body="glider", distance=20.0).elevation
    18.0
    """

    mode: str = "follow"
    body: str | None = None
    azimuth: float = -140.0
    elevation: float = 18.0
    distance: float = 0.0
    target: Any = None

    def __post_init__(self) -> None:
        """Check the mode and the target."""
        check_choice(self.mode, "Camera: mode", CAMERA_MODES)
        if self.target is not None:
            self.target = numbers(self.target, "Camera: target", (3,)).tolist()


@dataclass(eq=False, repr=False)
class Scene(Readable):
    """Everything there is to see. Add to the lists, or let `view` fill them.

    Parameters
    ----------
    title : str, optional
        Title.
    bodies : list of Body, optional
        Moving bodies.
    paths : list of Path, optional
        Fixed lines.
    arrows : list of Arrow, optional
        Vectors.
    ghosts : list of Ghosts, optional
        Flights of a batch.
    charts : list of Chart, optional
        Charts beside the scene.
    marks : list of Mark, optional
        Events on the time slider.
    ground : Ground, optional
        Ground, if there is any.
    earth : Earth, optional
        Planet, if there is any.
    camera : Camera, optional
        How the scene is looked at first.
    note : str, optional
        Line of text below the title.
    left_out : list of str, optional
        What cannot be shown, a line each. The page has the first line.

    Examples
    --------
    >>> scene = Scene("a falling ball")
    >>> from archimedes.viewer import sphere
    >>> t = np.linspace(0.0, 1.0, 11)
    >>> height = np.stack([0 * t, 0 * t, 5 - 4.9 * t**2], axis=1)
    >>> scene.bodies.append(Body("ball", [sphere(0.2)], t, height, [1, 0, 0, 0], trail=True))
    >>> scene.span
    (0.0, 1.0)
    """

    title: str = ""
    bodies: list[Body] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    ghosts: list[Ghosts] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    ground: Ground | None = None
    earth: Earth | None = None
    camera: Camera = field(default_factory=Camera)
    note: str = ""
    left_out: list[str] = field(default_factory=list)

    @property
    def span(self) -> tuple[float, float]:
        """First and last time of anything in it, in s."""
        times = [x.t for kind in (self.bodies, self.ghosts, self.charts) for x in kind]
        moving = [t for t in times if len(t) > 1]
        if not moving:
            return 0.0, 0.0
        return float(min(t[0] for t in moving)), float(max(t[-1] for t in moving))

    def body(self, name: str) -> Body:
        """Return a body by its name.

        Parameters
        ----------
        name : str
            Name.
        """
        names = [body.name for body in self.bodies]
        if name not in names:
            raise ValueError(f"no body {name!r} in this scene; there are {names}")
        return self.bodies[names.index(name)]

    def check(self) -> None:
        """Raise where names do not fit together: two bodies of one name, a parent not yet there."""
        if not self.bodies:
            raise ValueError("this scene has no body to show: append one to scene.bodies")
        seen: set[str] = set()
        for body in self.bodies:
            if body.name in seen:
                raise ValueError(f"two bodies of this scene are called {body.name!r}")
            if body.parent is not None and body.parent not in seen:
                raise ValueError(f"the parent {body.parent!r} of {body.name!r} must come before it")
            seen.add(body.name)
        for name in [a.body for a in self.arrows] + [self.camera.body or self.bodies[0].name]:
            self.body(name)


# ---- checks of what users give to a scene, by name ----------------------------------------------


#: Whether numbers may be traced: while the model of an interactive page is being recorded.
RECORDING: ContextVar[bool] = ContextVar("recording", default=False)


def numbers(values: ArrayLike, what: str, shape: Sequence[int | None], nan: bool = False) -> Array:
    """Return an array of a shape (None: any length), finite unless `nan` is allowed."""
    array = known_numbers(values, what)
    fits = array.ndim == len(shape) and all(n is None or n == k for n, k in zip(shape, array.shape))
    if not fits:
        wanted = str(tuple("any" if n is None else n for n in shape)).replace("'", "")
        raise ValueError(f"{what} must have shape {wanted}, got {array.shape}")
    if not nan and not is_traced(array) and not np.all(np.isfinite(array)):
        raise ValueError(f"{what} holds nan or inf: leave these samples out")
    return array


def known_numbers(values: ArrayLike, what: str) -> Array:
    """Return values as an array; raise for those of a function that is being recorded."""
    if RECORDING.get() and is_traced(values):
        return as_array(values, what)
    array = np.asarray(values)
    if concrete(array) is None and array.dtype != object:
        raise TraceError(
            f"{what} has no numbers yet: the function around it is being recorded. Return it from "
            "that function, and draw what the call gives"
        )
    return np.asarray(array, dtype=np.float64)


def times(t: ArrayLike, what: str) -> Array:
    """Return times (m,), which must not decrease."""
    array = numbers(np.atleast_1d(known_numbers(t, f"{what}: t")), f"{what}: t", (None,))
    if not len(array) or (len(array) > 1 and np.any(np.diff(array) < 0.0)):
        raise ValueError(f"{what}: t must have at least one time, and times must not decrease")
    return array


def rows(values: ArrayLike, t: Array, width: int, what: str) -> Array:
    """Return a row for each time; a single row holds for all."""
    array = known_numbers(values, what)
    if array.shape == (width,):
        array = np.broadcast_to(array, (len(t), width))
    return numbers(array, what, (len(t), width))


def as_quaternions(attitude: Any) -> Any:
    """Return the array of an attitude; an array as it is."""
    return attitude.array if hasattr(attitude, "as_matrix") else attitude


def check_color(text: str, what: str) -> None:
    """Raise for colours that are not written "#rrggbb"."""
    if not (isinstance(text, str) and len(text) == 7 and text[0] == "#"):
        raise ValueError(f'{what} must be written "#rrggbb", got {text!r}')
    int(text[1:], 16)

"""What touches: shapes on frames, the ground, and which shapes may touch each other.

A shape is a set of spheres of one radius (points have radius zero): all that the ground needs to
know of it. Where it meets another shape a capsule is all that is between its two spheres, a box all
that is between its corners, a half-space all that is below its plane. A cylinder and an ellipsoid
are exact where they meet the ground or a half-space, and polytopes where they meet other shapes.

The shapes of a model that collide, as contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import checks
from archimedes.multibody.contact.decomposition import convex_parts
from archimedes.multibody.contact.hulls import Polygons, hull_core, tangents
from archimedes.multibody.parts.closures import Softness
from archimedes.multibody.parts.geometry import Shape, mesh_surface, mesh_vertices
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.parts.ranges import check_placement
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar, Vec3

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = [
    "Contacts",
    "Ground",
    "Pair",
    "box",
    "capsule",
    "contact_shapes",
    "cylinder",
    "ellipsoid",
    "every_pair",
    "half_space",
    "height_field",
    "hull",
    "sphere",
]

KINDS = (
    "points", "capsule", "box", "hull", "cylinder", "ellipsoid", "half-space", "heightfield"
)  # fmt: skip
#: Those that do not touch each other.
ENDLESS_KINDS = ("half-space", "heightfield")
#: Those that have polygons, where they meet each other and boxes, capsules and spheres.
FACETED = ("hull", "cylinder", "ellipsoid")
#: Numbers of a ground and of a pair.
MATERIAL = (
    "friction", "stiffness", "dissipation", "slip_speed", "torsional", "rolling", "margin"
)  # fmt: skip


@struct
class Ground:
    """A half-space or a terrain, with its material.

    Parameters
    ----------
    normal : array (3,), optional
        Normal vector, which points out of the solid.
    point : array (3,), optional
        Point of the plane in m.
    friction : float, optional
        Coefficient of friction. Above 100 it counts as 100 in `contact_step` and
        `whole_body_control`.
    stiffness : float, optional
        Stiffness of the compliant contact in N/m^1.5.
    dissipation : float, optional
        Dissipation of the compliant contact in s/m.
    slip_speed : float, optional
        Speed in m/s below which the friction of the compliant contact is viscous.
    torsional : float, optional
        Coefficient of torsional friction in m: spinning about the normal is resisted by up to this
        times the normal force. 0 by default.
    rolling : float, optional
        Coefficient of rolling friction in m: rolling is resisted by up to this times the normal
        force. 0 by default.
    height : callable, optional
        Height ``height(x, y)`` in m of a terrain above the plane, or a `HeightField`. None by
        default.
    margin : float, optional
        Distance in m from which on `soft_dynamics` pushes, which is MuJoCo's margin less its gap.
        0 by default.
    softness : Softness, optional
        How soft `soft_dynamics` makes the contact: MuJoCo's usual numbers by default.

    Examples
    --------
    >>> from archimedes.multibody import Ground
    >>> Ground(friction=0.4).normal
    array([0., 0., 1.])
    """

    normal: Any = field(units="", default=np.array([0.0, 0.0, 1.0]))
    point: Any = field(units="m", default=np.zeros(3))
    friction: Any = field(units="", default=0.7)
    stiffness: Any = field(units="N/m^1.5", default=1e6)
    dissipation: Any = field(units="s/m", default=0.5)
    slip_speed: Any = field(units="m/s", default=1e-3)
    torsional: Any = field(units="m", default=0.0)
    rolling: Any = field(units="m", default=0.0)
    height: Any = field(static=True, default=None)
    margin: Any = field(units="m", default=0.0)
    softness: Softness = field(static=True, default=Softness())

    def __post_init__(self) -> None:
        """Check the directions, and make the normal one of length one."""
        self.__dict__["normal"] = unit_normal(self.normal, "Ground normal")
        self.__dict__["point"] = checks.check_vector(self.point, 3, "Ground point")
        if self.height is not None:
            remedy = "write lambda x, y: ..., or give a HeightField"
            checks.check_callable(self.height, "Ground height", "(x, y)", remedy)
        check_material(self, "Ground")

    def gap(self, point: Vec3) -> tuple[Scalar, Vec3]:
        """Return the distance of a position from the surface, and the normal (3,) below it.

        On a terrain it is the distance from the tangent plane below the position, on a
        `HeightField` that from the plane of the triangle below.

        Parameters
        ----------
        point : array (3,)
            Position in m.
        """
        above = np.sum((point - self.point) * self.normal)
        if self.height is None:
            return above, self.normal
        from archimedes.function import grad

        x, y = tangents(self.normal)
        at = (np.sum((point - self.point) * x), np.sum((point - self.point) * y))
        sx, sy = grad(self.height, argnums=(0, 1))(*at)
        length = np.sqrt(1.0 + sx * sx + sy * sy)
        return (above - self.height(*at)) / length, (self.normal - sx * x - sy * y) / length


@struct
class Contacts:
    """Spheres of one radius that are fixed to a frame, as a contact shape.

    `sphere`, `capsule`, `box`, `cylinder`, `ellipsoid`, `hull`, `half_space` and `height_field`
    make solids, of which other shapes touch more than the spheres.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    centers : array (n, 3)
        Centres of the spheres in m, in the axes of the frame.
    radius : float, optional
        Radius of the spheres in m, 0 by default.
    kind : str, optional
        Solid that other shapes touch: ``"points"``, ``"capsule"``, ``"box"``, ``"hull"``,
        ``"cylinder"``, ``"ellipsoid"``, ``"half-space"`` or ``"heightfield"``.
    rotation : array (3, 3), optional
        Rotation matrix from its axes to those of the frame. None, the default, for none.
    position : array (3,), optional
        Position in m in the frame. The origin by default.
    size : array (3,), optional
        Lengths in m of the edges of a box, or of that around a cylinder or an ellipsoid.
    polygons : Polygons, optional
        Faces of a hull, a cylinder or an ellipsoid, in its axes. None for other kinds.
    heights : HeightField, optional
        A height field. None for other kinds.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> foot = mb.Contacts("foot", centers=[[0.1, 0.0, 0.0], [-0.1, 0.0, 0.0]], radius=0.02)
    >>> foot.kind, len(foot.centers)
    ('points', 2)
    """

    frame: str = field(static=True)
    centers: Any = field(units="m")
    radius: Any = field(units="m", default=0.0)
    kind: str = field(static=True, default="points")
    rotation: Any = field(units="", default=np.eye(3))
    position: Any = field(units="m", default=np.zeros(3))
    size: Any = field(units="m", default=np.zeros(3))
    polygons: Polygons | None = field(static=True, default=None)
    heights: HeightField | None = field(static=True, default=None)

    def __post_init__(self) -> None:
        """Check the shape."""
        centers = checks.as_array(self.centers, "Contacts centers")
        if centers.ndim != 2 or centers.shape[1] != 3:
            raise ValueError(f"Contacts centers must be (n, 3), got {tuple(centers.shape)}")
        checks.check_choice(self.kind, "Contacts kind", KINDS)
        checks.check_not_negative(self.radius, f"Contacts on {self.frame!r}: radius")
        if (self.kind in FACETED) != (self.polygons is not None):
            remedy = "make a hull, a cylinder or an ellipsoid by the function of that name"
            raise ValueError(f"Contacts on {self.frame!r}: {remedy}")
        if (self.kind == "heightfield") != isinstance(self.heights, HeightField):
            raise ValueError(f"Contacts on {self.frame!r}: make a height field by height_field")
        self.__dict__["centers"] = centers


@struct
class Pair:
    """Two shapes that may touch, with their material.

    Parameters
    ----------
    first : Contacts
        First shape.
    second : Contacts
        Second shape.
    friction : float, optional
        Coefficient of friction. Above 100 it counts as 100 in `contact_step` and
        `whole_body_control`.
    stiffness : float, optional
        Stiffness of the compliant contact in N/m^1.5.
    dissipation : float, optional
        Dissipation of the compliant contact in s/m.
    slip_speed : float, optional
        Speed in m/s below which the friction of the compliant contact is viscous.
    torsional : float, optional
        Coefficient of torsional friction in m: spinning about the normal is resisted by up to this
        times the normal force. 0 by default.
    rolling : float, optional
        Coefficient of rolling friction in m: rolling is resisted by up to this times the normal
        force. 0 by default.
    margin : float, optional
        Distance in m from which on `soft_dynamics` pushes, which is MuJoCo's margin less its gap.
        0 by default.
    softness : Softness, optional
        How soft `soft_dynamics` makes the contact: MuJoCo's usual numbers by default.

    Examples
    --------
    >>> from archimedes.multibody import Pair, sphere
    >>> Pair(sphere("left", 0.1), sphere("right", 0.1), friction=0.2).friction
    0.2
    """

    first: Contacts = field()
    second: Contacts = field()
    friction: Any = field(units="", default=0.7)
    stiffness: Any = field(units="N/m^1.5", default=1e6)
    dissipation: Any = field(units="s/m", default=0.5)
    slip_speed: Any = field(units="m/s", default=1e-3)
    torsional: Any = field(units="m", default=0.0)
    rolling: Any = field(units="m", default=0.0)
    margin: Any = field(units="m", default=0.0)
    softness: Softness = field(static=True, default=Softness())

    def __post_init__(self) -> None:
        """Raise if the shapes cannot touch."""
        check_material(self, "Pair")
        if self.first.frame == self.second.frame:
            raise ValueError(f"Pair: both shapes are on frame {self.first.frame!r}")
        if self.first.kind == self.second.kind == "half-space":
            raise ValueError("Pair: two half-spaces cannot be in contact")
        if {self.first.kind, self.second.kind} <= {*ENDLESS_KINDS}:
            raise ValueError("Pair: a height field touches no half-space and no height field")


def every_pair(shapes: Sequence[Contacts], **values: Any) -> list[Pair]:
    """Return all pairs of shapes on different frames.

    Parameters
    ----------
    shapes : sequence of Contacts
        The shapes.
    **values
        Fields of `Pair`.

    Examples
    --------
    >>> from archimedes.multibody import every_pair, sphere
    >>> len(every_pair([sphere(name, 0.1) for name in ("a", "b", "c")], friction=0.0))
    3
    """
    return [
        Pair(a, b, **values)
        for k, a in enumerate(shapes)
        for b in shapes[k + 1 :]
        if a.frame != b.frame and not {a.kind, b.kind} <= {*ENDLESS_KINDS}
    ]


def sphere(frame: str, radius: Scalar, center: ArrayLike = (0.0, 0.0, 0.0)) -> Contacts:
    """Return a sphere as a contact shape.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    radius : float
        Radius in m.
    center : array (3,), optional
        Centre in m, in the axes of the frame.

    Examples
    --------
    >>> from archimedes.multibody import sphere
    >>> sphere("wheel", 0.3).centers.shape
    (1, 3)
    """
    return Contacts(frame, checks.check_vector(center, 3, "sphere center")[None, :], radius)


def capsule(
    frame: str,
    radius: Scalar,
    length: Scalar,
    rotation: ArrayLike | None = None,
    position: ArrayLike | None = None,
) -> Contacts:
    """Return a capsule along z as a contact shape.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    radius : float
        Radius in m.
    length : float
        Distance in m between the centres of its ends.
    rotation : array (3, 3), optional
        Rotation matrix from its axes to those of the frame. None, the default, for none.
    position : array (3,), optional
        Position in m in the frame. The origin by default.

    Examples
    --------
    >>> from archimedes.multibody import capsule
    >>> capsule("shin", 0.05, 0.4).centers[:, 2]
    array([-0.2,  0.2])
    """
    checks.check_not_negative(length, "capsule length")
    ends = length * np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]])
    R, p, _ = check_placement(rotation, position, "capsule")
    return Contacts(frame, ends @ R.T + p, radius, "capsule", R, p)


def box(
    frame: str,
    size: ArrayLike,
    rotation: ArrayLike | None = None,
    position: ArrayLike | None = None,
) -> Contacts:
    """Return a box as a contact shape, with its centre at the origin of the frame.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    size : array (3,)
        Lengths of the edges in m.
    rotation : array (3, 3), optional
        Rotation matrix from its axes to those of the frame. None, the default, for none.
    position : array (3,), optional
        Position in m in the frame. The origin by default.

    Examples
    --------
    >>> from archimedes.multibody import box
    >>> box("crate", [1.0, 1.0, 2.0]).centers.shape
    (8, 3)
    """
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    sides = checks.check_vector(size, 3, "box size")
    checks.check_positive(sides, "box size", "m")
    R, p, _ = check_placement(rotation, position, "box")
    return Contacts(frame, (signs * sides) @ R.T + p, 0.0, "box", R, p, sides)


def hull(
    frame: str,
    points: ArrayLike,
    rounding: float | None = None,
    rotation: ArrayLike | None = None,
    position: ArrayLike | None = None,
) -> Contacts:
    """Return the convex hull of points as a contact shape, with rounded edges.

    Its faces are where they are without the rounding; edges and corners are rounded off, so that
    normals change continuously. Shapes that overlap by less than the rounding are told apart
    exactly. Deeper, the way out is along the normal of a face.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    points : array (n, 3)
        Points in m, such as the vertices of a mesh. They must be numbers.
    rounding : float, optional
        Radius of edges and corners in m. By default 2 % of the radius of the largest ball inside.
    rotation : array (3, 3), optional
        Rotation matrix from the axes of the points to those of the frame. None, the default, for
        none.
    position : array (3,), optional
        Position in m of their origin in the frame. The origin by default.

    Examples
    --------
    >>> from archimedes.multibody import hull
    >>> tetrahedron = hull("rock", [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], rounding=0.01)
    >>> tetrahedron.centers.shape, tetrahedron.polygons
    ((4, 3), Polygons(4 faces))
    """
    R, p, _ = check_placement(rotation, position, "hull")
    if rounding is not None:
        checks.check_not_negative(rounding, "hull rounding")
    core, radius, polygons = hull_core(points, rounding, f"hull on {frame!r}", R, p)
    return Contacts(frame, core, radius, "hull", polygons=polygons)


def cylinder(
    frame: str,
    radius: Scalar,
    length: Scalar,
    rotation: ArrayLike | None = None,
    position: ArrayLike | None = None,
) -> Contacts:
    """Return a cylinder along z as a contact shape: a wheel, or a disk if its length is zero.

    It rolls on the ground and on half-spaces as what is round. To other shapes it is a prism of
    sixteen sides, whose radius is off by at most 1 %.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    radius : float
        Radius in m.
    length : float
        Length in m.
    rotation : array (3, 3), optional
        Rotation matrix from its axes to those of the frame. None, the default, for none.
    position : array (3,), optional
        Position of its centre in m in the frame. The origin by default.

    Examples
    --------
    >>> from archimedes.multibody import cylinder
    >>> cylinder("wheel", 0.3, 0.05).polygons
    Polygons(18 faces)
    """
    checks.check_positive(radius, "cylinder radius", "m")
    checks.check_not_negative(length, "cylinder length")
    R, p, _ = check_placement(rotation, position, "cylinder")
    size = np.stack([2.0 * radius, 2.0 * radius, 1.0 * length])
    core = 0.5 * size * PRISM_CORNERS
    return Contacts(frame, core @ R.T + p, 0.0, "cylinder", R, p, size, PRISM)


def ellipsoid(
    frame: str,
    half_axes: ArrayLike,
    rotation: ArrayLike | None = None,
    position: ArrayLike | None = None,
) -> Contacts:
    """Return an ellipsoid as a contact shape.

    It is smooth to the ground and to half-spaces. To other shapes it is the hull of 162 points,
    which is off by at most 1 % of its size.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    half_axes : array (3,)
        Half axes in m. They must be numbers.
    rotation : array (3, 3), optional
        Rotation matrix from its axes to those of the frame. None, the default, for none.
    position : array (3,), optional
        Position of its centre in m in the frame. The origin by default.

    Examples
    --------
    >>> from archimedes.multibody import ellipsoid
    >>> ellipsoid("egg", [0.1, 0.1, 0.15]).size
    array([0.2, 0.2, 0.3])
    """
    a = checks.check_vector(half_axes, 3, "ellipsoid half_axes")
    checks.check_positive(a, "ellipsoid half_axes", "m")
    R, p, _ = check_placement(rotation, position, "ellipsoid")
    points = a * round_points()
    core, radius, polygons = hull_core(points, 0.0, f"ellipsoid on {frame!r}")
    return Contacts(frame, core @ R.T + p, radius, "ellipsoid", R, p, 2.0 * a, polygons)


def half_space(
    frame: str, normal: ArrayLike = (0.0, 0.0, 1.0), point: ArrayLike | None = None
) -> Contacts:
    """Return the half-space below a plane as a contact shape.

    The frame may move: a table that tilts.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    normal : array (3,), optional
        Normal vector, which points out of the solid.
    point : array (3,), optional
        Point of the plane in m.

    Examples
    --------
    >>> from archimedes.multibody import half_space
    >>> half_space("table").kind
    'half-space'
    """
    p = check_placement(None, point, "half_space").p
    n = unit_normal(normal, "half_space normal")
    return Contacts(frame, p[None, :], 0.0, "half-space", np.stack([*tangents(n), n], axis=1), p)


def height_field(
    frame: str,
    heights: HeightField,
    rotation: ArrayLike | None = None,
    position: ArrayLike | None = None,
) -> Contacts:
    """Return a height field as a contact shape, which is solid below and ends at its edges.

    Spheres touch up to three of its faces, edges and vertices, capsules with both ends and where
    they are nearest between them. Of other shapes it touches the points that a plane would, not
    their edges: triangles should be larger than these.

    Parameters
    ----------
    frame : str
        Name of a frame or body.
    heights : HeightField
        The heights.
    rotation : array (3, 3), optional
        Rotation matrix from its axes to those of the frame. None, the default, for none.
    position : array (3,), optional
        Position of its origin in m in the frame. The origin by default.

    Examples
    --------
    >>> from archimedes.multibody import HeightField, height_field
    >>> height_field("world", HeightField([[0.0, 0.1], [0.2, 0.1]], (10.0, 10.0))).kind
    'heightfield'
    """
    checks.check_type(heights, "height_field heights", HeightField, "write HeightField(...)")
    R, p, _ = check_placement(rotation, position, "height_field")
    return Contacts(frame, p[None, :], 0.0, "heightfield", R, p, heights=heights)


def check_material(material: Ground | Pair, name: str) -> None:
    """Raise if a known number of a ground or pair is negative."""
    for key in MATERIAL:
        if key != "slip_speed":
            checks.check_not_negative(getattr(material, key), f"{name} {key}")
    checks.check_positive(material.slip_speed, f"{name} slip_speed")
    checks.check_type(material.softness, f"{name} softness", Softness, "write Softness(...)")


def unit_normal(normal: ArrayLike, name: str) -> Vec3:
    """Return a direction (3,) of length one."""
    n = checks.check_vector(normal, 3, name)
    checks.check_that(np.any, n, name, "must not be zero")
    return n / np.sqrt(np.sum(n * n))


def prism(sides: int) -> tuple[Array, Polygons]:
    """Return corners and faces of a regular prism along z, as wide as a cylinder of radius one.

    Halfway between the prism around the cylinder and that within.
    """
    angles = 2.0 * np.pi * np.arange(sides) / sides
    r = 2.0 / (1.0 + np.cos(np.pi / sides))
    rim = np.stack([r * np.cos(angles), r * np.sin(angles), 0.0 * angles], axis=1)
    up = np.array([0.0, 0.0, 1.0])
    corners = np.concatenate([rim - up, rim + up])
    numbers = np.arange(sides)
    after = (numbers + 1) % sides
    walls = np.stack([numbers, after, after + sides] + [numbers + sides] * (sides - 3), axis=1)
    middle = angles + np.pi / sides
    outward = np.stack([np.cos(middle), np.sin(middle), 0.0 * middle], axis=1)
    faces = np.concatenate([numbers[None, ::-1], numbers[None, :] + sides, walls])
    return corners, Polygons(faces, np.concatenate([np.stack([-up, up]), outward]))


PRISM_CORNERS, PRISM = prism(16)


@cache
def round_points() -> Array:
    """Return 162 points (n, 3) near the unit sphere, half of whose hull is outside of it."""
    from scipy.spatial import ConvexHull

    ratio = 0.5 * (1.0 + np.sqrt(5.0))
    corners = [[0.0, x, y * ratio] for x in (-1.0, 1.0) for y in (-1.0, 1.0)]
    points = np.concatenate([np.roll(corners, k, axis=1) for k in range(3)])
    for _ in range(2):  # an icosahedron, each triangle of which is cut into sixteen
        triangles = ConvexHull(points).simplices
        edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0)
        points = np.concatenate([points, points[edges].mean(axis=1)])
        points /= np.sqrt(np.sum(points * points, axis=1))[:, None]
    return 2.0 / (1.0 - ConvexHull(points).equations[:, 3].max()) * points


def contact_shapes(model: Model, *bodies: str, concavity: float | None = None) -> list[Contacts]:
    """Return the collision shapes of a model, for `contact_step` and `contact_forces`.

    A mesh touches as its convex hull, or as several with `concavity`, a plane as a half-space
    without edges, a height field as its triangles. Shapes of the world are among them: they touch
    what moves through `every_pair`, and a `Ground` not at all.

    Parameters
    ----------
    model : Model
        The robot.
    *bodies
        Names of bodies. All by default.
    concavity : float, optional
        With a number meshes are cut into convex parts, each no more concave than that
        (`convex_parts`). None, the default, keeps them whole.

    Examples
    --------
    >>> from archimedes.multibody import Builder, contact_shapes
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.add_shape("ball", "sphere", [0.2], "collision")
    >>> contact_shapes(b.build(base="floating"))[0].radius
    0.2
    """
    for name in bodies:
        model.frame(name)  # an error that names it
    chosen = [s for s in model.geometry if s.role == "collision"]
    chosen = [s for s in chosen if not bodies or s.body in bodies]
    if concavity is None:
        return [contact_of(s) for s in chosen]
    return [part for s in chosen for part in contact_parts(s, concavity)]


def contact_parts(shape: Shape, concavity: float) -> list[Contacts]:
    """Return one shape as contacts, a mesh as its convex parts."""
    if shape.kind != "mesh":
        return [contact_of(shape)]
    R, p = np.array(shape.rotation), np.array(shape.position)
    return [
        hull(shape.body, part, None, R, p) for part in convex_parts(mesh_surface(shape), concavity)
    ]


def contact_of(shape: Shape) -> Contacts:
    """Return one shape as contacts."""
    R, p = np.array(shape.rotation), np.array(shape.position)
    if shape.kind == "sphere":
        return sphere(shape.body, shape.size[0], p)
    if shape.kind == "capsule":
        return capsule(shape.body, shape.size[0], shape.size[1], R, p)
    if shape.kind == "box":
        return box(shape.body, shape.size, R, p)
    if shape.kind == "cylinder":
        return cylinder(shape.body, shape.size[0], shape.size[1], R, p)
    if shape.kind == "ellipsoid":
        return ellipsoid(shape.body, shape.size, R, p)
    if shape.kind == "heightfield":
        assert isinstance(shape.surface, HeightField)
        return height_field(shape.body, shape.surface, R, p)
    if shape.kind == "plane":
        return half_space(shape.body, R[:, 2], p)
    return hull(shape.body, mesh_vertices(shape), None, R, p)

"""Many free bodies that may touch: where they touch, and how they respond, as loops over bodies.

Legend: a body is a row: its pose, its velocity in its own axes, and the matrix T (6, 6) with
``T T' = M^-1``. In units of T its mass matrix is one (`impulses_of_many`). What all bodies have in
common is a constant of the program, what differs a column of numbers; the program is as long for
three bodies as for a thousand.

Shapes that meet in the same way, a box and a box say, are one loop. A shape lies within a sphere
around its middle. Two shapes are near if these spheres could meet in the step at four times the
highest speed that any body has; where they are not, nothing more is computed of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.function import compile, cond, scan
from archimedes.multibody.algorithms import links
from archimedes.multibody.algorithms.kinematics import frame_placement
from archimedes.multibody.algorithms.mass_matrix import Factors, sweep_from_base
from archimedes.multibody.contact.collision import (
    FAR,
    Meeting,
    ground_touches,
    link_of,
    place_shape,
    solid_touches,
)
from archimedes.multibody.contact.contact_shapes import Contacts
from archimedes.multibody.contact.hulls import tangents
from archimedes.multibody.contact.impulses_of_many import (
    UNROLLED,
    Meetings,
    MobilitiesOfMany,
    changes,
    for_each,
    rates,
)
from archimedes.multibody.parts.joints import Free
from archimedes.multibody.parts.ranges import known_zero
from archimedes.spatial.components import skew
from archimedes.spatial.spatial_algebra import Pose
from archimedes.tree import replace
from archimedes.typing import Array, Matrix, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

#: A step of free bodies is made of loops from so many meetings on, and so many of a kind.
MANY, PER_KIND = 4, 2
#: Newton's matrix has a row for each velocity: more bodies are left to the unrolled program.
MOST_BODIES = 400
#: Contacts of a meeting; a shape with more is several meetings.
CONTACTS = 4
#: How many times as fast as anything in the step a body may get by an impact.
SPEED_UP = 4.0


def are_free_bodies(model: Model) -> bool:
    """Return whether a model is free bodies alone, without damping, springs and a fluid."""
    free = all(type(x.kind) is Free and x.parent < 0 and not x.mimic for x in model.links)
    passive = (model.damping, model.friction, model.stiffness)
    nothing = model.tendons is None and model.compensation is None and model.fluid is None
    return free and nothing and all(known_zero(x) for x in passive)


#: Numbers of a model that free bodies do not need, or that are the same for all of them.
PER_VELOCITY = (
    *("damping", "friction", "stiffness", "speed_limits", "effort_limits", "angle_limits"),
    *("limit_frequency", "limit_damping", "limit_impedance", "friction_softness"),
)
PER_COORDINATE = ("rest", "lower", "upper")


# ---- bodies as rows ------------------------------------------------------------------------------


def common_or_rows(values: Sequence[Any]) -> tuple[Any, bool]:
    """Return what all values are, or an array with a row for each; and whether it has rows."""
    known = [concrete(x) for x in values]
    first = known[0]
    if first is not None and all(x is not None and np.array_equal(first, x) for x in known):
        return values[0], False
    return np.stack([1.0 * np.asarray(x) for x in values]), True


class Table:
    """Values of some names for many: those that all have, and rows where they differ."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        both = {name: common_or_rows(values) for name, values in columns.items()}
        self.common = {name: x for name, (x, rows) in both.items() if not rows}
        self.rows = {name: x for name, (x, rows) in both.items() if rows}

    def of(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the values of one, given its row."""
        return {**self.common, **row}


class Bodies:
    """The bodies of a model, each of them a model of its own."""

    def __init__(self, model: Model) -> None:
        self.model, self.n = model, len(model.links)
        self.link = replace(model.links[0], body="body", joint="joint", parent=-1, q=0, v=0)
        columns = {
            name: list(getattr(model, name))
            for name in ("rotations", "positions", "masses", "centers", "inertias")
        }
        columns["armature"] = [model.armature[x.v_slice] for x in model.links]
        self.table = Table(columns)

    def each(self, f: Callable[..., Any], *rows: Any) -> Any:
        """Return ``f(model, *row)`` of each body, whose model is of that body alone."""

        def one(row: dict[str, Any], *own: Any) -> Any:
            return f(self.alone(**self.table.of(row)), *own)

        if self.table.rows:
            return for_each(one)(self.table.rows, *rows)
        return for_each(lambda *own: one({}, *own))(*rows)

    def alone(self, armature: Vector, **numbers: Any) -> Model:
        """Return the model of one body."""
        own = self.link
        kept = {name: getattr(self.model, name)[own.v_slice] for name in PER_VELOCITY}
        kept |= {name: getattr(self.model, name)[own.q_slice] for name in PER_COORDINATE}
        kept |= {name: value[None] for name, value in numbers.items()}
        kept |= {"frame_rotations": np.zeros((0, 3, 3)), "frame_positions": np.zeros((0, 3))}
        kept |= dict.fromkeys(("actuators", "closures", "geometry", "transmissions", "frames"), ())
        return replace(self.model, links=(own,), armature=armature, keyframes={}, **kept)


def unit_mobility(factors: Factors) -> Matrix:
    """Return T with ``T T' = M^-1`` for the factors of a mass matrix M."""
    D = 1.0 / np.stack(factors.inverse_D)
    return np.stack(sweep_from_base(factors, list(np.sqrt(D)[:, None] * np.eye(len(D)))))


def body_pose(model: Model, q: Vector) -> tuple[Matrix, Vec3]:
    """Return the rotation matrix and the position of a body."""
    X = links.link_pose(model, 0, links.coordinates_of(model, q)[0])
    return X.R, X.p


# ---- where they touch ----------------------------------------------------------------------------


class Touches(NamedTuple):
    """Places where bodies may touch, in meetings of up to four contacts of the same two.

    Gaps (p, c), normals and points (p, c, 3), which meetings have been `looked` at and which are
    `near` (p,), 1 or 0, and the number of the place (p, c) among those that `touches` lists;
    `total` is how many these are, and stands for a contact that is none; `frames` are theirs.
    """

    meetings: Meetings
    gaps: Any
    normals: Any
    points: Any
    looked: Any
    near: Any
    places: np.ndarray
    materials: list[Any]
    total: int
    frames: tuple[tuple[str, str | None], ...]


#: What the sphere around a shape follows from; its rotation is needed to place it.
SHAPE = ("centers", "radius", "position", "size")


class Form(NamedTuple):
    """What `place_shape` needs of a shape."""

    centers: Any
    radius: Any
    position: Any
    rotation: Any
    size: Any
    kind: str
    polygons: Any
    heights: Any = None


def kind_of(meeting: Meeting) -> tuple[Any, ...]:
    """Return what is the same for meetings that one loop goes through."""
    first, second, material = meeting
    shapes = [(x.kind, np.shape(x.centers), x.polygons) for x in (first, second) if x is not None]
    return (*shapes, id(material) if second is None else None)


def find_touches(
    model: Model, listed: Sequence[Meeting], R: Array, p: Array, reach: Scalar
) -> Touches:
    """Return where bodies with rotations R (n, 3, 3) and positions p (n, 3) may touch.

    What is farther apart than `reach` is left out.
    """
    groups: dict[Any, list[int]] = {}
    for k, one in enumerate(listed):
        groups.setdefault(kind_of(one), []).append(k)
    X_R, X_p = (np.concatenate([x, y[None]]) for x, y in ((R, np.eye(3)), (p, np.zeros(3))))
    gaps, normals, points, nears = [], [], [], []
    counts, first_row = [0] * len(listed), [0] * len(listed)
    total = 0
    for members in groups.values():
        own = touch_loop(model, [listed[k] for k in members], X_R, X_p, reach)
        count = own[0].shape[1]
        for at, k in enumerate(members):
            counts[k], first_row[k] = count, total + at * count
        total += len(members) * count
        gaps.append(own[0].ravel())
        normals.append(own[1].reshape(-1, 3))
        points.append(own[2].reshape(-1, 3))
        nears.append(np.repeat(own[3], count))
    a, b, rows, places, materials = [], [], [], [], []
    width = min(max(counts), CONTACTS)
    place = 0
    for k, (first, second, material) in enumerate(listed):
        ends = [link_of(model, x.frame) if x is not None else -1 for x in (first, second)]
        for start in range(0, counts[k], width):
            here = range(start, min(start + width, counts[k]))
            missing = width - len(here)
            a.append(ends[0])
            b.append(ends[1])
            rows.append([first_row[k] + j for j in here] + [total] * missing)
            places.append([place + j for j in here] + [-1] * missing)
            materials.append(material)
        place += counts[k]
    chosen, numbers = np.array(rows), np.array(places)
    numbers = np.where(numbers < 0, place, numbers)
    n = len(model.links)
    first_bodies, second_bodies = (np.where(np.array(x) < 0, n, x) for x in (a, b))
    gap = np.concatenate([*gaps, np.full(1, FAR)])[chosen]
    close = np.concatenate([*nears, np.zeros(1)])[chosen]
    up = np.array([[0.0, 0.0, 1.0]])
    return Touches(
        Meetings(first_bodies, second_bodies, n),
        gap,
        np.concatenate([*normals, up])[chosen],
        np.concatenate([*points, 0.0 * up])[chosen],
        np.max(close, axis=1),
        np.where(np.any((close > 0.5) & (gap < reach), axis=1), 1.0, 0.0),
        numbers,
        materials,
        place,
        tuple(
            (first.frame, None if second is None else second.frame)
            for (first, second, _), count in zip(listed, counts, strict=True)
            for _ in range(count)
        ),
    )


def touch_loop(
    model: Model, listed: Sequence[Meeting], R: Array, p: Array, reach: Scalar
) -> tuple[Array, Array, Array, Array]:
    """Return gaps (k, c), normals and points (k, c, 3) of one kind, and which are near (k,)."""
    first, second, material = listed[0]
    sides = [[x.first for x in listed]]
    if second is not None:
        sides.append([x.second for x in listed if x.second is not None])
    tables = [shape_table(model, shapes) for shapes in sides]
    bodies = [np.array([link_of(model, x.frame) for x in shapes]) for shapes in sides]
    poses = [(R[at], p[at]) for at in bodies]  # -1, the last one, is the world

    def places(rows: list[Any]) -> list[tuple[Any, ...]]:
        solids = []
        for (R, p, row), table, shape in zip(rows, tables, (first, second)):
            own = table.of(row)
            at = Pose(R, p) @ Pose(own.pop("frame_rotation"), own.pop("frame_position"))
            assert shape is not None
            solids.append(place_shape(Form(**own, kind=shape.kind, polygons=shape.polygons), at))
        if second is None:
            return ground_touches(solids[0], first.kind, material)
        return solid_touches(solids[0], solids[1], first.kind, second.kind)

    def joined(rows: list[Any]) -> tuple[Array, Array, Array]:
        found = places(rows)
        gaps, normals, points = (
            np.stack([1.0 * np.asarray(x[k]) for x in found]) for k in range(3)
        )
        return gaps, normals, points

    def one(carry: Scalar, rows: list[Any]) -> tuple[Scalar, Any]:
        if second is None:
            return carry, (*joined(rows), 1.0)
        count = count_places(first, second)
        up = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (count, 3))
        far = np.full(count, FAR), 1.0 * up, 0.0 * up
        is_near = distance_of(rows, tables, (first, second)) < reach
        found = cond(is_near, joined, lambda rows: far, rows)
        return carry, (*found, np.where(is_near, 1.0, 0.0))

    rows = [(R, p, table.rows) for (R, p), table in zip(poses, tables, strict=True)]
    return scan(compile(one, loops_from=UNROLLED), 0.0, rows)[1]


def shape_table(model: Model, shapes: Sequence[Contacts]) -> Table:
    """Return the numbers of shapes of one kind, and where their frames are on the bodies."""
    columns: dict[str, list[Any]] = {
        name: [getattr(x, name) for x in shapes] for name in (*SHAPE, "rotation")
    }
    at = [Pose(np.eye(3), np.zeros(3)) if is_world(model, x.frame) else
          frame_placement(model, model.frame(x.frame)) for x in shapes]  # fmt: skip
    columns["frame_rotation"] = [x.R for x in at]
    columns["frame_position"] = [x.p for x in at]
    return Table(columns)


def is_world(model: Model, frame: str) -> bool:
    """Return whether a frame is the world itself."""
    return frame == "world" and "world" not in model.frame_names


def count_places(first: Contacts, second: Contacts) -> int:
    """Return at how many places two shapes may touch."""
    a, b = (place_shape(x, Pose(np.eye(3), np.zeros(3))) for x in (first, second))
    return len(solid_touches(a, b, first.kind, second.kind))


def distance_of(rows: list[Any], tables: Sequence[Table], shapes: Sequence[Contacts]) -> Scalar:
    """Return how far the spheres around two shapes are apart, or one and a half-space."""
    spheres = []
    for (R, p, row), table, shape in zip(rows, tables, shapes, strict=True):
        own = table.of(row)
        at = Pose(R, p) @ Pose(own["frame_rotation"], own["frame_position"])
        middle, radius = around(shape.kind, *(own[x] for x in SHAPE))
        spheres.append((at.p + at.R @ middle, radius, at.R @ own["rotation"][:, 2], shape.kind))
    (a, size_a, z_a, kind_a), (b, size_b, z_b, kind_b) = spheres
    if kind_b == "half-space":
        return np.sum((a - b) * z_b) - size_a
    if kind_a == "half-space":
        return np.sum((b - a) * z_a) - size_b
    return np.sqrt(np.sum((a - b) ** 2)) - size_a - size_b


def around(
    kind: str, centers: Matrix, radius: Scalar, position: Vec3, size: Vec3
) -> tuple[Any, Any]:
    """Return the middle (3,), in the frame, and the radius of a sphere around a shape."""
    if kind in ("box", "cylinder", "ellipsoid"):
        return position, 0.5 * np.sqrt(np.sum(size * size)) + radius
    if kind == "half-space":
        return position, 0.0
    middle = np.sum(centers, axis=0) / centers.shape[0]
    away = np.sum((centers - middle) ** 2, axis=1)
    return middle, np.sqrt(np.max(away)) + radius


def farthest_point(model: Model, listed: Sequence[Meeting]) -> Scalar:
    """Return how far a point of any shape may be from the origin of its body."""
    farthest: Any = 0.0
    shapes = {id(x): x for one in listed for x in (one.first, one.second) if x is not None}
    for shape in shapes.values():
        if shape.kind == "half-space" or link_of(model, shape.frame) < 0:
            continue
        middle, radius = around(shape.kind, *(getattr(shape, x) for x in SHAPE))
        at = frame_placement(model, model.frame(shape.frame))
        farthest = np.maximum(farthest, np.sqrt(np.sum((at.p + at.R @ middle) ** 2)) + radius)
    return farthest


# ---- rows of contacts ----------------------------------------------------------------------------


class RowsOfMany:
    """Rows J of contacts, of velocities (6 n,) of bodies; `each` rows per contact."""

    def __init__(self, meetings: Meetings, J: Array, each: int) -> None:
        self.meetings, self.J, self.each = meetings, J, each

    def __matmul__(self, v: Vector) -> Vector:
        """Return the rates of velocities (6 n,)."""
        return rates(self.meetings, self.J, v.reshape(-1, 6))

    def normals(self) -> RowsOfMany:
        """Return the rows of normals."""
        return RowsOfMany(self.meetings, self.J[:, :: self.each], 1)


def rows_of(touched: Touches, R: Array, p: Array, each: int) -> RowsOfMany:
    """Return the rows of contacts of bodies with rotations R (n, 3, 3) and positions p (n, 3)."""
    meetings = touched.meetings
    R, p = (np.concatenate([x, y[None]]) for x, y in ((R, np.zeros((3, 3))), (p, np.zeros(3))))

    def one(ends: list[Any], normals: Matrix, points: Matrix, looked: Scalar) -> Matrix:
        rows = []
        for k in range(normals.shape[0]):
            axes = looked * np.stack([normals[k], *tangents(normals[k])])
            sides = []
            for sign, (R, p) in zip((1.0, -1.0), ends, strict=True):
                own = sign * (axes @ R)
                moved = sign * -(axes @ skew(points[k] - p) @ R)
                turns = np.concatenate([0.0 * own, own], axis=1)[: each - 3]
                sides.append(np.concatenate([np.concatenate([own, moved], axis=1), turns]))
            rows.append(np.concatenate(sides, axis=1))
        return np.concatenate(rows)

    ends = [(R[at], p[at]) for at in (meetings.a, meetings.b)]
    J = for_each(one)(ends, touched.normals, touched.points, touched.looked)
    return RowsOfMany(meetings, J, each)


class ResponseOfMany:
    """How bodies respond to impulses; T (n, 6, 6) has the inverse of their mass matrices."""

    def __init__(self, J: RowsOfMany, T: Array, near: Array) -> None:
        self.T, self.each = T, J.each
        padded = np.concatenate([T, np.zeros((1, 6, 6))])
        meetings = J.meetings

        def unit_rows(J: Matrix, first: Matrix, second: Matrix) -> Matrix:
            return np.concatenate([J[:, :6] @ first, J[:, 6:] @ second], axis=1)

        Y = for_each(unit_rows)(J.J, padded[meetings.a], padded[meetings.b])
        self.G = MobilitiesOfMany(meetings, Y, near, J.each)

    def normals(self, each: int = 0) -> MobilitiesOfMany:
        """Return G of the normals of contacts alone; they know `each` themselves."""
        return self.G.normals()

    def velocities(self, impulses: Vector) -> Vector:
        """Return by how much impulses change velocities (6 n,)."""
        z = changes(self.G.meetings, self.G.Y, impulses)
        return np.sum(self.T * z[:, None, :], axis=2).ravel()

    def normal_velocities(self, impulses: Vector) -> Vector:
        """Return by how much impulses along normals change velocities (6 n,)."""
        normals = self.G.normals()
        z = changes(normals.meetings, normals.Y, impulses)
        return np.sum(self.T * z[:, None, :], axis=2).ravel()

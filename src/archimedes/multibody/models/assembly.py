"""A `Builder` made a `Model`: links in order, welded bodies as one, numbers in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_choice, concrete
from archimedes.multibody.models.builder_parts import Body, Joint, carried_row, inertia_fault
from archimedes.multibody.models.model import LIMITS, PER_VELOCITY, Frame, Link, Model
from archimedes.multibody.parts.joints import KINDS, Screw
from archimedes.multibody.parts.ranges import known_zero, read_only
from archimedes.multibody.parts.tendons import USUAL, Tendons
from archimedes.multibody.systems.dynamics import Keyframe
from archimedes.portable_numpy import matmul
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion
from archimedes.spatial.axis_rotations import round_rotation
from archimedes.spatial.components import matvec, skew
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.tree.struct_methods import nearest
from archimedes.typing import Array, ArrayLike

if TYPE_CHECKING:
    from archimedes.multibody.models.builder import Builder


#: The joint of a floating base.
ROOT_JOINT = "root_joint"
#: Inertias of plates, rounded to three digits, may miss the triangle inequality by this part.
MOST_EXCESS = 1e-3


def assemble(builder: Builder, base: str, gravity: ArrayLike, physical: bool) -> Model:
    """Return the model of all that was added."""
    model = _Assembly(builder).model(base, gravity)
    for link, J in zip(model.links, model.inertias, strict=True):
        if physical and (fault := inertia_fault(J, MOST_EXCESS)):
            body = f"body {link.body!r}, with all that is welded to it,"
            remedy = "Check its numbers and units, or take it as it is with physical=False"
            raise ValueError(f"{body} has an inertia that no body has: {fault}. {remedy}")
    return model


class _Assembly:
    """Walks over the tree, parents first, and collects rows."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.links: list[Link] = []
        self.placements: list[Pose] = []
        self.parts: list[list[tuple[Body, Pose]]] = []
        self.frames: list[tuple[Frame, Pose]] = []
        names = (*PER_VELOCITY, *LIMITS, "rest")
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.nq = self.nv = 0
        self.children: dict[str | None, list[Joint]] = {}
        for joint in builder.joints.values():
            self.children.setdefault(joint.parent, []).append(joint)

    def model(self, base: str, gravity: ArrayLike) -> Model:
        start = [*self.base_joints(base), *self.children.get(None, [])]
        self.add_frames(None, -1, IDENTITY)
        waiting = [(joint, -1, IDENTITY) for joint in reversed(start)]
        while waiting:
            joint, link, pose = waiting.pop()
            link, pose = self.carry(joint, link, pose)
            body = joint.child
            if link >= 0:
                self.parts[link].append((self.builder.bodies[body], pose))
            if not self.builder.bodies[body].link_only:
                self.frames.append((Frame(body, link), pose))
            self.add_frames(body, link, pose)
            children = self.children.get(body, [])
            waiting += [(child, link, pose) for child in reversed(children)]
        if not self.links:
            remedy = 'attach a body by one, leave a joint unlocked, or build(base="floating")'
            raise ValueError(f"{self.builder.name!r} has no joint that moves: {remedy}")
        self.resolve_mimics()
        return self.fill(gravity)

    def add_frames(self, body: str | None, link: int, pose: Pose) -> None:
        """Add the frames on a body, or on the world."""
        for name, (owner, at) in self.builder.frames.items():
            if owner == body:
                self.frames.append((Frame(name, link), pose @ at if body else at))

    def base_joints(self, base: str) -> list[Joint]:
        """Return the joint of what is attached to nothing."""
        loose, name = self.builder.unattached(), self.builder.name
        if not self.builder.bodies:
            raise ValueError(f"{name!r} has no bodies: add_body adds one")
        if len(loose) > 1 and not {*loose} <= {*self.builder.root_poses}:
            raise ValueError(f"{name!r} has {len(loose)} roots, {loose}: attach all but one")
        check_choice(base, "base", ("fixed", "floating"))
        if base == "floating" and not loose:
            remedy = 'attach its base with kind="free" instead'
            raise ValueError(f"{name!r} cannot float: all is attached to the world; {remedy}")
        joints = []
        for body in loose:
            title = ROOT_JOINT if len(loose) == 1 else f"{body}::{ROOT_JOINT}"
            if base == "floating" and title in self.builder.joints:
                raise ValueError(f"{name!r}: {title!r} joins a floating base; rename your joint")
            at = self.builder.root_poses.get(body, IDENTITY)
            if base == "fixed":
                joints.append(Joint(title, KINDS["fixed"], None, body, at, Screw()))
                continue
            rest = np.concatenate([at.p, dcm_to_quaternion(np.asarray(at.R).T)])
            values = {} if is_identity(at) else {"rest": read_only(rest)}
            joints.append(Joint(title, KINDS["free"], None, body, IDENTITY, Screw(), None, values))
        return joints

    def carry(self, joint: Joint, link: int, pose: Pose) -> tuple[int, Pose]:
        """Add the links of a joint; return the link of its child and the child's pose in it."""
        at, parts, follows = pose @ joint.at, joint.kind.parts(joint.screw), bool(joint.mimic)
        for n, (kind, screw) in enumerate(parts):
            last = n == len(parts) - 1 and not self.builder.bodies[joint.child].link_only
            body, part = joint.child if last else "", n if len(parts) > 1 else None
            own = Link(body, joint.name, kind, link, self.nq, self.nv, screw, mimic=follows)
            link, at = self.add(joint, own, at, part), IDENTITY
        return link, at

    def add(self, joint: Joint, link: Link, at: Pose, part: int | None) -> int:
        """Add one link and the numbers of its coordinates."""
        where, kind = f"joint {joint.name!r}", link.kind
        if link.mimic and (kind.nq, kind.nv, part) != (1, 1, None):
            raise ValueError(f"{where}: only joints of one coordinate can follow another")
        self.links.append(link)
        self.placements.append(at)
        self.parts.append([])
        if not link.mimic:
            for rows, count in ((PER_VELOCITY, kind.nv), (LIMITS, kind.nq)):
                for name, (key, default) in rows.items():
                    value = joint.values.get(key, default)  # limits: of straight joints alone
                    where_to = f"{where}: {key}"
                    self.columns[name] += spread(value, count, part, where_to, np.ndim(default))
            rest = joint.values.get("rest", kind.neutral if part is None else 0.0)
            self.columns["rest"] += spread(rest, kind.nq, part, f"{where}: rest")
            self.nq, self.nv = self.nq + kind.nq, self.nv + kind.nv
        return len(self.links) - 1

    def resolve_mimics(self) -> None:
        """Give mimic joints the coordinates of the joints they follow, through chains of mimics."""
        at = {link.joint: i for i, link in enumerate(self.links)}
        joints = self.builder.joints
        for i, link in enumerate(self.links):
            if not link.mimic:
                continue
            scale, offset, name, chain = 1.0, 0.0, link.joint, [link.joint]
            while name in joints and (follow := joints[name].mimic):
                where, name = f"joint {link.joint!r} follows {follow.joint!r}", follow.joint
                if name not in at:
                    raise ValueError(f"{where}, which is not a joint that moves")
                chain.append(name)
                if name in chain[:-1]:
                    raise ValueError(
                        f"joint {link.joint!r} follows {chain[1]!r}, and that follows it in turn"
                    )
                scale, offset = scale * follow.multiplier, offset + scale * follow.offset
            source = self.links[at[name]]
            if source.kind.nq != 1:
                raise ValueError(f"{where}, which has {source.kind.nq} coordinates; one is needed")
            self.share(joints[link.joint], source, scale, offset)
            self.links[i] = replace(link, q=source.q, v=source.v, scale=scale, offset=offset)

    def share(self, joint: Joint, source: Link, scale: float, offset: float) -> None:
        """Add damping, friction, armature and spring of a follower to the joint that it follows.

        The follower moves ``scale`` times as far: torques count by that, and rates once more.
        """
        v, where = source.v, f"joint {joint.name!r}"
        own = {key: spread(joint.values.get(key, 0.0), 1, None, f"{where}: {key}")[0]
               for key in ("damping", "friction", "armature", "stiffness", "rest")}  # fmt: skip
        squared = scale * scale
        for key, factor in (("damping", squared), ("friction", abs(scale)), ("armature", squared)):
            if key in joint.values:
                self.columns[key][v] = self.columns[key][v] + factor * own[key]
        if "stiffness" in joint.values and scale != 0.0:
            # Two springs are one, at rest where their pulls cancel.
            first, second = self.columns["stiffness"][v], squared * own["stiffness"]
            rest, other = self.columns["rest"][source.q], (own["rest"] - offset) / scale
            total = first + second
            some = np.where(total == 0.0, 1.0, total)
            pulled = (first * rest + second * other) / some
            self.columns["rest"][source.q] = np.where(total == 0.0, rest, pulled)
            self.columns["stiffness"][v] = total

    def keyframes(self) -> dict[str, Any]:
        """Return the states by name, of which a builder knows coordinates by joint."""
        found = {}
        for name, values in self.builder.keyframes.items():
            q, v = np.zeros(self.nq), np.zeros(self.nv)
            for link in (link for link in self.links if not link.mimic):
                own_q, own_v = values.get(link.joint, (link.kind.neutral, 0.0))
                q[link.q_slice], v[link.v_slice] = own_q, own_v
            found[name] = Keyframe(q, v, *values.get("", (np.zeros(0), np.zeros(0))))
        return found

    def fluid(self) -> Any:
        """Return the fluid around, whose shapes are all on frames of the model."""
        fluid, known = self.builder.fluid, {frame.name for frame, _ in self.frames}
        for shape in () if fluid is None else fluid.shapes:
            if shape.frame not in known:
                hint = nearest(shape.frame, known)
                raise ValueError(f"Fluid: there is no frame {shape.frame!r}; {hint}")
        return fluid

    def fill(self, gravity: ArrayLike) -> Model:
        """Return the model of the rows."""
        masses, centers, inertias = zip(*map(merge_bodies, self.parts), strict=True)
        return Model(
            name=self.builder.name,
            links=tuple(self.links),
            frames=tuple(frame for frame, _ in self.frames),
            rotations=stack_rows([round_rotation(at.R) for at in self.placements]),
            positions=stack_rows([at.p for at in self.placements]),
            masses=stack_rows(masses),
            centers=stack_rows(centers),
            inertias=stack_rows(inertias),
            frame_rotations=stack_rows([round_rotation(at.R) for _, at in self.frames], (3, 3)),
            frame_positions=stack_rows([at.p for _, at in self.frames], (3,)),
            gravity=gravity,
            tendons=tendons_of(self.builder),
            actuators=tuple(self.builder.actuators),
            closures=tuple(self.builder.closures),
            geometry=self.builder.geometry,
            transmissions=tuple(self.builder.transmissions.values()),
            compensation=compensation_of(self.parts),
            fluid=self.fluid(),
            keyframes=self.keyframes(),
            **{name: stack_rows(rows) for name, rows in self.columns.items()},
        )


def tendons_of(builder: Builder) -> Tendons | None:
    """Return the tendons as arrays, None if there are none."""
    if not builder.tendons:
        return None
    each = builder.tendons.values()
    joints = tuple(dict.fromkeys(name for tendon in each for name in tendon.arms))
    for name in joints:
        if builder.joints[name].kind.nq != 1 or builder.joints[name].mimic is not None:
            raise ValueError(f"a tendon runs along joint {name!r}: it must have one coordinate")
    arms = [stack_rows([t.arms.get(name, 0.0) for name in joints]) for t in each]
    numbers = [[getattr(t, name) for t in each] for name in ("stiffness", "damping", "rest")]
    own = {
        key: stack_rows([t.values.get(key, usual) for t in each]) for key, usual in USUAL.items()
    }
    paths = tuple(tendon.path for tendon in each)
    first, second, third = map(stack_rows, numbers)
    names: Any = tuple(builder.tendons)
    return Tendons(names, joints, np.stack(arms), first, second, third, paths, **own)


def compensation_of(parts: list[list[tuple[Body, Pose]]]) -> Array | None:
    """Return mass and first moment (n, 4) of what is carried against gravity, None for nothing."""
    bodies = [body for own in parts for body, _ in own]
    if all(known_zero(body.compensated) and body.carried is None for body in bodies):
        return None
    rows = []
    for own in parts:
        row: Any = np.zeros(4)
        for body, at in own:
            carried = carried_row(body)
            if not is_identity(at):
                mass, moment = carried[:1], carried[1:]
                carried = np.concatenate([mass, mass * at.p + matvec(at.R, moment)])
            row = row + carried
        rows.append(row)
    return stack_rows(rows)


def spread(value: ArrayLike, count: int, part: int | None, name: str, axes: int = 0) -> list[Any]:
    """Return one value, a number or a row, per coordinate of a link: one for all, or the given."""
    array = as_array(value, name)
    if array.ndim == axes:
        return [array] * count
    rows = [array[k] for k in range(array.shape[0])]
    if part is not None:
        rows = rows[part : part + count] if len(rows) == 2 else rows
    if len(rows) != count:
        raise ValueError(f"{name} must be a number or {count} of them, got {len(rows)}")
    return rows


def merge_bodies(parts: list[tuple[Body, Pose]]) -> tuple[Any, Any, Any]:
    """Return mass, centre and inertia about it of bodies that are welded together."""
    solid = [(b, at) for b, at in parts if has_inertia(b)]
    if not solid:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    if len(solid) == 1 and is_identity(solid[0][1]):
        body = solid[0][0]
        return body.mass, body.com, body.inertia
    mass = sum(body.mass for body, _ in solid)
    centers = [at.p + matvec(at.R, as_array(body.com)) for body, at in solid]
    known = concrete(as_array(mass))
    moment = sum(body.mass * c for (body, _), c in zip(solid, centers, strict=True))
    center = np.zeros(3) if known is not None and known == 0.0 else moment / mass
    J: Any = np.zeros((3, 3))
    for (body, at), c in zip(solid, centers, strict=True):
        shift = skew(c - center)
        J = J + matmul(at.R, as_array(body.inertia), at.R.T) - body.mass * matmul(shift, shift)
    return mass, center, 0.5 * J + 0.5 * J.T  # exactly symmetric


def has_inertia(body: Body) -> bool:
    """Return whether a body has mass or inertia, as far as is known."""
    mass, J = concrete(as_array(body.mass)), concrete(as_array(body.inertia))
    return mass is None or J is None or bool(mass != 0.0) or bool(J.any())


def is_identity(pose: Pose) -> bool:
    """Return whether a pose is known to leave coordinates as they are."""
    R, p = concrete(pose.R), concrete(pose.p)
    return R is not None and p is not None and not p.any() and bool(np.all(np.eye(3) == R))


def stack_rows(rows: Sequence[Any], shape: tuple[int, ...] = ()) -> Array:
    """Return rows as one array; without any rows it has their `shape`."""
    return np.stack([as_array(row) for row in rows]) if rows else np.zeros((0, *shape))

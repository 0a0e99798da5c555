"""Trajectories as MCAP files, which Foxglove shows: numbers, poses, shapes.

State, inputs and outputs are the topics ``/x``, ``/u`` and ``/y``, with messages in JSON whose
schemas have units. Poses are ``foxglove.FrameTransforms`` on ``/tf``, shapes are a
``foxglove.SceneUpdate`` on ``/scene``. Times of messages are whole nanoseconds; the field ``t`` has
the time as it is. Source: https://mcap.dev/spec, Foxglove's documentation of its schemas.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.simulate.trajectory.columns import PARTS
from archimedes.simulate.trajectory.exports import check_numbers, leaves_by_name, require

WORLD = "world"


def schema_of(title: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON schema of an object."""
    return {"title": title, "type": "object", "properties": properties}


def listed(item: Any) -> dict[str, Any]:
    """Return the JSON schema of a list."""
    return {"type": "array", "items": item}


NUMBER, TEXT = {"type": "number"}, {"type": "string"}
TIME = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
VECTOR = schema_of("foxglove.Vector3", x=NUMBER, y=NUMBER, z=NUMBER)
QUATERNION = schema_of("foxglove.Quaternion", x=NUMBER, y=NUMBER, z=NUMBER, w=NUMBER)
COLOR = schema_of("foxglove.Color", r=NUMBER, g=NUMBER, b=NUMBER, a=NUMBER)
POSE = schema_of("foxglove.Pose", position=VECTOR, orientation=QUATERNION)
TRANSFORM = schema_of(
    "foxglove.FrameTransform", timestamp=TIME, parent_frame_id=TEXT, child_frame_id=TEXT,
    translation=VECTOR, rotation=QUATERNION,
)  # fmt: skip
TRANSFORMS = schema_of("foxglove.FrameTransforms", transforms=listed(TRANSFORM))
TRIANGLES = schema_of(
    "foxglove.TriangleListPrimitive", pose=POSE, points=listed(VECTOR), color=COLOR,
    colors=listed(COLOR), indices=listed({"type": "integer"}),
)  # fmt: skip
ENTITY = schema_of(
    "foxglove.SceneEntity", timestamp=TIME, frame_id=TEXT, id=TEXT, lifetime=TIME,
    frame_locked={"type": "boolean"}, triangles=listed(TRIANGLES),
)  # fmt: skip
SCENE = schema_of("foxglove.SceneUpdate", deletions=listed({}), entities=listed(ENTITY))


def to_mcap(traj: Any, path: Any, scene: Any = None) -> Path:
    """Write a trajectory; see `Trajectory.to_mcap`."""
    writing = require("mcap.writer", "logs", "Trajectory.to_mcap")
    known = traj.t[np.isfinite(traj.t)]
    if known.size and not 0.0 <= known.min() <= known.max() < 9.2e9:
        span = f"{known.min():g} to {known.max():g} s"
        raise ValueError(f"to_mcap: times must be from 0 to 9.2e9 s, got {span}; shift them")
    bodies = [] if scene is None else bodies_of(scene)
    messages = [*number_messages(traj)]
    messages += body_messages(bodies) if bodies else pose_messages(traj)
    messages.sort(key=lambda message: message[0])
    target = Path(path)
    with target.open("wb") as file:
        writer = writing.Writer(file)
        writer.start(profile="", library="archimedes")
        channels: dict[str, int] = {}
        for stamp, topic, schema, data in messages:
            if topic not in channels:
                text = json.dumps(schema).encode()
                number = writer.register_schema(schema["title"], "jsonschema", text)
                channels[topic] = writer.register_channel(topic, "json", number)
            body = json.dumps(data, separators=(",", ":")).encode()
            writer.add_message(channels[topic], stamp, body, stamp)
        writer.finish()
    return target


Message = tuple[int, str, dict[str, Any], Any]


def number_messages(traj: Any) -> list[Message]:
    """Return the messages of state, inputs and outputs."""
    lead, messages = traj.t.ndim, []
    leaves = leaves_by_name(traj)
    for name, (leaf, _) in leaves.items():
        check_numbers("to_mcap", name, np.asarray(leaf), "biuf", "to_hdf5 or to_npz")
    for part in PARTS:
        own = {
            name[len(part) :].lstrip(".") or "value": pair
            for name, pair in leaves.items()
            if name == part or name.startswith((f"{part}.", f"{part}["))
        }
        if not own:
            continue
        properties: dict[str, Any] = {"t": {"type": "number", "unit": "s"}}
        for name, (leaf, unit) in own.items():
            inner: dict[str, Any] = NUMBER
            for _ in range(np.ndim(leaf) - lead):
                inner = listed(inner)
            place(properties, name, inner | ({"unit": unit} if unit else {}), schema=True)
        for run in np.ndindex(*traj.batch_shape):
            topic = "".join(f"/run{k}" for k in run) + f"/{part}"
            schema = schema_of(topic.lstrip("/").replace("/", "."), **properties)
            for k in np.flatnonzero(np.isfinite(traj.t[run])).tolist():
                data: dict[str, Any] = {"t": float(traj.t[run][k])}
                for name, (leaf, _) in own.items():
                    place(data, name, plain(leaf[run][k]))
                messages.append((stamp_of(traj.t[run][k]), topic, schema, data))
    return messages


def place(data: dict[str, Any], name: str, value: Any, schema: bool = False) -> None:
    """Put a value into nested data by its dotted name."""
    *above, last = name.split(".")
    for key in above:
        data = data.setdefault(key, {"type": "object", "properties": {}} if schema else {})
        data = data["properties"] if schema else data
    data[last] = value


def plain(value: Any) -> Any:
    """Return numbers as JSON has them: nan and inf, which it has not, are null."""
    value = np.asarray(value)
    if value.ndim:
        return [plain(part) for part in value]
    number = value.item()
    return None if isinstance(number, float) and not math.isfinite(number) else number


def pose_messages(traj: Any) -> list[Message]:
    """Return the poses of states that have ``pos`` and ``att``, of themselves or in a part.

    Samples that are not finite have no pose, because JSON has neither nan nor inf.
    """
    found = {}
    for name, part in {"body": traj.x, **vars_of(traj.x)}.items():
        if hasattr(part, "pos") and hasattr(getattr(part, "att", None), "as_quat"):
            found[name] = part
    messages = []
    for name, part in found.items():
        q = np.asarray(part.att.as_quat().array)
        for run in np.ndindex(*traj.batch_shape):
            child = "_".join([name, *map(str, run)])
            rows = zip(traj.t[run], np.asarray(part.pos)[run], q[run], strict=True)
            for t, p, attitude in rows:
                if np.isfinite([t, *p, *attitude]).all():
                    one = transform(float(t), WORLD, child, p, attitude)
                    messages.append((stamp_of(t), "/tf", TRANSFORMS, {"transforms": [one]}))
    return messages


def vars_of(x: Any) -> dict[str, Any]:
    """Return the fields of a struct, or the entries of a dict."""
    return x if isinstance(x, dict) else getattr(x, "__dict__", {}) if tree.is_struct(x) else {}


def bodies_of(scene: Any) -> Any:
    """Return the bodies of a scene or of a view of one."""
    scene = getattr(scene, "scene", scene)
    if not hasattr(scene, "bodies"):
        raise TypeError(
            f"to_mcap: scene must be a Scene or what arc.view returns, got {type(scene).__name__}"
        )
    scene.check()
    return scene.bodies


def body_messages(bodies: Any) -> list[Message]:
    """Return the poses of bodies over time, and their shapes, once."""
    messages: list[Message] = []
    first = min(float(body.t[0]) for body in bodies)
    entities = []
    for body in bodies:
        parent = body.parent or WORLD
        for t, p, q in zip(body.t, body.position, body.attitude, strict=True):
            one = transform(float(t), parent, body.name, p, q)
            messages.append((stamp_of(t), "/tf", TRANSFORMS, {"transforms": [one]}))
        entities.append(
            {
                "timestamp": stamp_parts(first), "frame_id": body.name, "id": body.name,
                "lifetime": {"sec": 0, "nsec": 0}, "frame_locked": True,
                "triangles": [triangles_of(mesh) for mesh in body.meshes],
            }
        )  # fmt: skip
    data = {"deletions": [], "entities": entities}
    return [(stamp_of(first), "/scene", SCENE, data), *messages]


def triangles_of(mesh: Any) -> dict[str, Any]:
    """Return the triangles of a mesh in its colour."""
    red, green, blue = (int(mesh.color[k : k + 2], 16) / 255.0 for k in (1, 3, 5))
    return {
        "pose": {"position": vector(np.zeros(3)), "orientation": quaternion([1.0, 0.0, 0.0, 0.0])},
        "points": [vector(v) for v in mesh.vertices],
        "color": {"r": red, "g": green, "b": blue, "a": float(mesh.opacity)},
        "colors": [],
        "indices": np.ravel(mesh.triangles).tolist(),
    }


def transform(t: float, parent: str, child: str, p: Any, q: Any) -> dict[str, Any]:
    """Return a ``foxglove.FrameTransform``."""
    return {
        "timestamp": stamp_parts(t), "parent_frame_id": parent, "child_frame_id": child,
        "translation": vector(p), "rotation": quaternion(q),
    }  # fmt: skip


def vector(v: Any) -> dict[str, float]:
    """Return a vector."""
    return dict(zip("xyz", map(float, v), strict=True))


def quaternion(q: Any) -> dict[str, float]:
    """Return a quaternion of length 1; of one whose scalar comes first."""
    q = np.asarray(q, dtype=float)
    return dict(zip("wxyz", (q / np.linalg.norm(q)).tolist(), strict=True))


def stamp_of(t: Any) -> int:
    """Return a time in nanoseconds."""
    return round(float(t) * 1e9)


def stamp_parts(t: float) -> dict[str, int]:
    """Return a time as seconds and nanoseconds."""
    sec, nsec = divmod(stamp_of(t), 1_000_000_000)
    return {"sec": sec, "nsec": nsec}

"""Scenes as glTF and USD: what other readers find in them, and where bodies are over time."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import archimedes as arc
from archimedes import multibody as mb
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody
from archimedes.viewer import Body, Ghosts, Mesh, Path, Scene, View, box
from tests.optional_packages import import_or_skip

#: From z up to glTF's y up.
UPRIGHT = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])


@pytest.fixture(scope="module")
def arm():
    """A robot of two links, its trajectory and its view."""
    b = mb.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.add_body(name, mass=1.0, com=[0, 0, 0.3], inertia=[0.1, 0.1, 0.01])
        height = [0, 0, 0.6] if parent == "upper" else [1.0, 2.0, 3.0]
        axis = [0, 1, 0] if parent == "upper" else [0, 0, 1]
        b.attach(name, parent, joint=f"{name}_hinge", axis=axis, position=height)
        b.add_shape(name, "box", [0.1, 0.2, 0.6], position=[0, 0, 0.3], color=[1.0, 0.5, 0.0])
    model = b.build()
    t = np.linspace(2.0, 4.0, 41)
    q = np.stack([3.0 * np.sin(t), 2.0 * t], axis=1)
    traj = Trajectory(t, mb.State(q, np.gradient(q, t, axis=0)))
    return model, traj, arc.view(model, traj, title="two links")


def read_glb(path):
    """Return document and numbers of each accessor, checked against what it says of itself."""
    data = path.read_bytes()
    magic, version, size = struct.unpack_from("<4sII", data)
    assert (magic, version, size) == (b"glTF", 2, len(data)) and len(data) % 4 == 0
    count, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON" and count % 4 == 0
    document = json.loads(data[20 : 20 + count])
    length, kind = struct.unpack_from("<I4s", data, 20 + count)
    assert kind == b"BIN\0"
    block = data[28 + count :]
    assert len(block) == length and 0 <= length - document["buffers"][0]["byteLength"] < 4
    arrays = []
    for accessor in document["accessors"]:
        view = document["bufferViews"][accessor["bufferView"]]
        kind = {5126: "<f4", 5125: "<u4"}[accessor["componentType"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        part = block[view["byteOffset"] : view["byteOffset"] + view["byteLength"]]
        array = np.frombuffer(part, kind).reshape(-1, width)
        assert len(array) == accessor["count"] and view["byteOffset"] % 4 == 0
        if "min" in accessor:
            assert accessor["min"] == array.min(axis=0).tolist()
            assert accessor["max"] == array.max(axis=0).tolist()
        arrays.append(array)
    return document, arrays


def motion_of(document, arrays, name):
    """Return functions of time: position and rotation of a node in the axes of its parent."""
    number = next(k for k, node in enumerate(document["nodes"]) if node["name"] == name)
    node, tracks = document["nodes"][number], {}
    for channel in document.get("animations", [{"channels": []}])[0]["channels"]:
        if channel["target"]["node"] == number:
            sampler = document["animations"][0]["samplers"][channel["sampler"]]
            times = arrays[sampler["input"]].ravel().astype(float)
            assert np.all(np.diff(times) > 0.0) and times[0] >= 0.0
            tracks[channel["target"]["path"]] = times, arrays[sampler["output"]].astype(float)
    if not tracks:
        return (
            lambda t: np.array(node["translation"]),
            lambda t: Rotation.from_quat(node["rotation"]),
        )
    moves, turns = tracks["translation"], tracks["rotation"]
    assert np.all(np.sum(turns[1][1:] * turns[1][:-1], axis=1) >= 0.0)  # the short way round
    return (
        lambda t: np.array([np.interp(t, moves[0], column) for column in moves[1].T]),
        Slerp(turns[0], Rotation.from_quat(turns[1])),
    )


def test_glb_places_bodies_where_kinematics_does(arm, tmp_path):
    model, traj, view = arm
    path = view.save(tmp_path / "arm.glb")
    document, arrays = read_glb(path)
    root = document["nodes"][0]
    np.testing.assert_allclose(
        Rotation.from_quat(root["rotation"]).as_matrix(), UPRIGHT, atol=1e-15
    )
    for name in ("upper", "lower"):
        position, rotation = motion_of(document, arrays, f"arm: {name}")
        for k in (0, 7, 40):
            pose = mb.frame_pose(model, traj.x.q[k], name)
            t = traj.t[k] - traj.t[0]
            np.testing.assert_allclose(position(t), pose.t, atol=1e-6)
            np.testing.assert_allclose(
                rotation(t).as_matrix(), np.asarray(pose.r.as_matrix()), atol=1e-6
            )


def test_glb_in_trimesh(arm, tmp_path):
    trimesh = import_or_skip("trimesh")
    model, traj, view = arm
    scene = trimesh.load(view.save(tmp_path / "arm.glb"))
    pose = mb.frame_pose(model, traj.x.q[0], "lower")
    T, name = scene.graph["arm: lower"]
    np.testing.assert_allclose(T[:3, 3], UPRIGHT @ pose.t, atol=1e-6)
    corners = scene.geometry[name].vertices if name else None
    assert corners is not None
    np.testing.assert_allclose(np.ptp(corners, axis=0), [0.1, 0.2, 0.6], atol=1e-6)
    color = scene.geometry[name].visual.material.baseColorFactor
    assert color[0] == 255 and color[2] == 0


def usd_faults(path):
    """Return what USD's own validators find."""
    from pxr import Usd, UsdUtils

    if hasattr(UsdUtils, "ComplianceChecker"):  # before 26
        checker = UsdUtils.ComplianceChecker()
        checker.CheckCompliance(str(path))
        return checker.GetErrors() + checker.GetFailedChecks() + checker.GetWarnings()
    from pxr import UsdValidation

    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) >= 25
    errors = UsdValidation.ValidationContext(validators).Validate(Usd.Stage.Open(str(path)))
    return [error.GetMessage() for error in errors]


@pytest.mark.parametrize("suffix", [".usda", ".usdc"])
def test_usd_places_bodies_where_kinematics_does(arm, suffix, tmp_path):
    import_or_skip("pxr")
    from pxr import Usd, UsdGeom

    model, traj, view = arm
    path = view.save(tmp_path / f"arm{suffix}")
    assert usd_faults(path) == []
    stage = Usd.Stage.Open(str(path))
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    rate = stage.GetTimeCodesPerSecond()
    assert (stage.GetStartTimeCode() / rate, stage.GetEndTimeCode() / rate) == (2.0, 4.0)
    prims = {prim.GetDisplayName(): prim for prim in stage.Traverse()}
    for name in ("upper", "lower"):
        node = UsdGeom.Xformable(prims[f"arm: {name}"])
        for k in (0, 13, 40):
            M = np.array(node.ComputeLocalToWorldTransform(Usd.TimeCode(rate * traj.t[k])))
            pose = mb.frame_pose(model, traj.x.q[k], name)
            np.testing.assert_allclose(M[3, :3], pose.t, atol=1e-12)
            # USD multiplies rows from the left.
            np.testing.assert_allclose(M[:3, :3].T, np.asarray(pose.r.as_matrix()), atol=1e-12)
    (mesh, *_) = [UsdGeom.Mesh(p) for p in stage.Traverse() if p.IsA(UsdGeom.Mesh)]
    np.testing.assert_allclose(
        np.ptp(np.array(mesh.GetPointsAttr().Get()), axis=0), [0.1, 0.2, 0.6]
    )


def odd_scene():
    """A hierarchy, jumps, flips of sign, flat triangles, odd names, ghosts that end early."""
    t = [0.0, 0.5, 0.5, 1.0]
    q = [[1.0, 0, 0, 0], [-2.0, 0, 0, 0.1], [1, 0, 0, 0.2], [-1, 0, 0, 0.3]]
    flat = Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 1, 3]], opacity=0.5)
    base = Body("1 base/ü", [box([1, 1, 1]), flat], t, np.eye(4)[:, :3], q)
    tip = Body("tip", [], 0.0, [0, 0, 1.0], [1, 0, 0, 0], parent="1 base/ü")
    twin = Body("1_base__", [box([1, 1, 1])], 0.0, [5.0, 0, 0], [1, 0, 0, 0])
    rows = np.zeros((300, 3, 3))
    rows[:, 2] = np.nan
    ghosts = Ghosts("300 flights", [0.0, 0.5, 1.0], rows, size=2.0)
    return Scene("odd", [base, tip, twin], paths=[Path("plan", np.eye(3))], ghosts=[ghosts])


def test_odd_scenes(tmp_path):
    path = View(odd_scene()).save(tmp_path / "odd.glb")
    document, arrays = read_glb(path)
    names = [node["name"] for node in document["nodes"]]
    assert names[:4] == ["odd", "1 base/ü", "tip", "1_base__"] and len(names) == 5 + 150
    assert document["nodes"][1]["children"] == [2]
    position, _ = motion_of(document, arrays, "1 base/ü")
    np.testing.assert_allclose(position(0.5), [0, 0, 1])  # of two samples at a time, the last
    modes = [p["mode"] for mesh in document["meshes"] for p in mesh["primitives"]]
    assert modes.count(3) == 1 and len(document["meshes"]) < 6  # ghosts share one
    assert {"BLEND"} == {m.get("alphaMode", "BLEND") for m in document["materials"][1:2]}
    normals = [p["attributes"]["NORMAL"] for m in document["meshes"] for p in m["primitives"]
               if p["mode"] == 4]  # fmt: skip
    for k in normals:
        np.testing.assert_allclose(np.linalg.norm(arrays[k], axis=1), 1.0, atol=1e-6)


def test_times_of_a_clock(tmp_path):
    """Seconds since 1970 are further apart in single precision than the samples."""
    n = 41
    p = np.stack([np.linspace(0.0, 1.0, n), np.zeros(n), np.zeros(n)], axis=1)
    body = Body("x", [box([1.0, 1.0, 1.0])], 1.7e9 + np.linspace(0.0, 10.0, n), p, [1, 0, 0, 0])
    document, arrays = read_glb(View(Scene(bodies=[body])).save(tmp_path / "x.glb"))
    times = arrays[document["animations"][0]["samplers"][0]["input"]]
    np.testing.assert_allclose(times[:, 0], np.linspace(0.0, 10.0, n), rtol=1e-6)


def test_odd_scenes_in_usd(tmp_path):
    import_or_skip("pxr")
    from pxr import Usd

    path = View(odd_scene()).save(tmp_path / "odd.usda")
    assert usd_faults(path) == []
    stage = Usd.Stage.Open(str(path))
    names = [prim.GetDisplayName() for prim in stage.Traverse() if prim.GetDisplayName()]
    assert names[:3] == ["1 base/ü", "tip", "1_base__"] and len(names) == 153
    assert str(next(p for p in stage.Traverse() if p.GetDisplayName() == "tip").GetPath().
               GetParentPath()).startswith("/Scene/")  # fmt: skip


def test_wrong_uses(arm, tmp_path):
    view = arm[2]
    with pytest.raises(ValueError, match=r"'arm.obj' must end in .html, .glb, .usda, .usdc, .usd"):
        view.save("arm.obj")
    body = Body("b", [box([1, 1, 1])], 0.0, [0, 0, 0], [0, 0, 0, 0])
    for name in ("a.glb", "a.usda"):
        with pytest.raises(ValueError, match="body 'b': a quaternion of its attitude is zero"):
            View(Scene("x", [body])).save(tmp_path / name)
    with pytest.raises(ValueError, match="this scene has no body to show"):
        View(Scene("x")).save(tmp_path / "a.glb")
    assert not [*tmp_path.iterdir()]


def test_a_flight_with_its_batch(tmp_path):
    t = np.linspace(0.0, 1.0, 5)
    n = 3
    pos = np.zeros((n, 5, 3))
    pos[..., 2] = -t  # down is positive: it climbs
    att = Quaternion(np.broadcast_to([1.0, 0, 0, 0], (n, 5, 4)).copy())
    x = RigidBody.State(pos, att, 0.0 * pos, 0.0 * pos)
    path = arc.view(RigidBody(), Trajectory(np.tile(t, (n, 1)), x)).save(tmp_path / "b.glb")
    document, arrays = read_glb(path)
    position, _ = motion_of(document, arrays, "RigidBody")
    np.testing.assert_allclose(position(1.0), [0, 0, 1], atol=1e-7)
    assert sum("dispersed" in node["name"] for node in document["nodes"]) == n

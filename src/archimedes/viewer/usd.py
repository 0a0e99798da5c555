"""A scene as a USD file: bodies as transforms with samples over time, z up, in metres.

Time codes are 60 to the second, so that a tool that takes them for frames plays at 60 frames per
second. Source: OpenUSD, UsdGeom and UsdShade.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from archimedes.simulate.trajectory.exports import require
from archimedes.viewer.html import corner_normals
from archimedes.viewer.motion import Moving, linear_color, moving_bodies
from archimedes.viewer.scene import Mesh, Scene

#: Time codes per second.
RATE = 60.0
ROOT = "/Scene"


def save_usd(scene: Scene, path: Path) -> None:
    """Write a scene as ``.usda`` (text), ``.usdc`` (binary) or ``.usd``."""
    bodies = moving_bodies(scene)  # before the file is made
    pxr = require("pxr", "usd", "saving scenes as USD")
    for module in ("Gf", "Sdf", "Tf", "Usd", "UsdGeom", "UsdShade", "Vt"):
        require(f"pxr.{module}", "usd", "saving scenes as USD")
    stage = pxr.Usd.Stage.CreateInMemory()
    UsdWriter(pxr, stage, scene).write(bodies)
    if not stage.GetRootLayer().Export(str(path)):
        raise OSError(f"{path}: USD could not write it")


class UsdWriter:
    """A stage that is being filled."""

    def __init__(self, pxr: Any, stage: Any, scene: Scene) -> None:
        self.pxr, self.stage, self.scene = pxr, stage, scene
        self.paths: dict[str, str] = {}
        self.materials: dict[tuple[Any, ...], Any] = {}

    def write(self, bodies: list[Moving]) -> None:
        """Add everything."""
        pxr, stage = self.pxr, self.stage
        pxr.UsdGeom.SetStageUpAxis(stage, pxr.UsdGeom.Tokens.z)
        pxr.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(RATE)
        stage.SetFramesPerSecond(RATE)
        first, last = self.scene.span
        stage.SetStartTimeCode(RATE * first)
        stage.SetEndTimeCode(RATE * last)
        root = pxr.UsdGeom.Xform.Define(stage, ROOT)
        stage.SetDefaultPrim(root.GetPrim())
        if self.scene.title:
            root.GetPrim().SetDocumentation(self.scene.title)
        for body in bodies:
            self.add_body(body)
        for path in self.scene.paths:
            if len(path.points) > 1:
                self.add_path(path)

    def new_path(self, name: str, parent: str) -> str:
        """Return a path for a name below a parent, which USD takes and nothing else has."""
        base = path = f"{parent}/{self.pxr.Tf.MakeValidIdentifier(name)}"
        number = 1
        while self.stage.GetPrimAtPath(path):
            path, number = f"{base}_{number}", number + 1
        return path

    def add_body(self, body: Moving) -> None:
        """Add a body, with its motion and its shape."""
        pxr = self.pxr
        parent = ROOT if body.parent is None else self.paths[body.parent]
        self.paths[body.name] = path = self.new_path(body.name, parent)
        node = pxr.UsdGeom.Xform.Define(self.stage, path)
        node.GetPrim().SetDisplayName(body.name)
        double = pxr.UsdGeom.XformOp.PrecisionDouble
        move, turn = node.AddTranslateOp(double), node.AddOrientOp(double)
        samples = zip(body.t.tolist(), body.position.tolist(), body.attitude.tolist(), strict=True)
        for t, p, (w, *xyz) in samples:
            code = pxr.Usd.TimeCode(RATE * t) if body.is_moving else pxr.Usd.TimeCode.Default()
            move.Set(pxr.Gf.Vec3d(*p), code)
            turn.Set(pxr.Gf.Quatd(w, *xyz), code)
            if not body.is_moving:
                break
        for mesh in body.meshes:
            self.add_mesh(mesh, path)

    def add_mesh(self, mesh: Mesh, parent: str) -> None:
        """Add triangles in their colour."""
        pxr = self.pxr
        one = pxr.UsdGeom.Mesh.Define(self.stage, self.new_path("mesh", parent))
        points = pxr.Vt.Vec3fArray.FromNumpy(mesh.vertices.astype(np.float32))
        one.CreatePointsAttr(points)
        count = len(mesh.triangles)
        one.CreateFaceVertexCountsAttr(pxr.Vt.IntArray.FromNumpy(np.full(count, 3, np.int32)))
        corners = np.ravel(mesh.triangles).astype(np.int32)
        one.CreateFaceVertexIndicesAttr(pxr.Vt.IntArray.FromNumpy(corners))
        normals = corner_normals(mesh).astype(np.float32)
        one.CreateNormalsAttr(pxr.Vt.Vec3fArray.FromNumpy(normals))
        one.SetNormalsInterpolation(pxr.UsdGeom.Tokens.faceVarying)
        one.CreateSubdivisionSchemeAttr(pxr.UsdGeom.Tokens.none)
        one.CreateDoubleSidedAttr(True)
        one.CreateExtentAttr(pxr.UsdGeom.PointBased.ComputeExtent(points))
        color = linear_color(mesh.color)
        one.CreateDisplayColorAttr([pxr.Gf.Vec3f(*color)])
        one.CreateDisplayOpacityAttr([float(mesh.opacity)])
        pxr.UsdShade.MaterialBindingAPI.Apply(one.GetPrim()).Bind(self.material(mesh))

    def material(self, mesh: Mesh) -> Any:
        """Return the material of a colour and an opacity."""
        if (key := (mesh.color, mesh.opacity)) in self.materials:
            return self.materials[key]
        pxr = self.pxr
        name = f"color_{mesh.color[1:]}_{round(100 * mesh.opacity)}"
        path = self.new_path(name, f"{ROOT}/Looks")
        one = pxr.UsdShade.Material.Define(self.stage, path)
        shader = pxr.UsdShade.Shader.Define(self.stage, f"{path}/surface")
        shader.CreateIdAttr("UsdPreviewSurface")
        types = pxr.Sdf.ValueTypeNames
        color = pxr.Gf.Vec3f(*linear_color(mesh.color))
        shader.CreateInput("diffuseColor", types.Color3f).Set(color)
        shader.CreateInput("opacity", types.Float).Set(float(mesh.opacity))
        shader.CreateInput("roughness", types.Float).Set(0.7)
        one.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        self.materials[key] = one
        return one

    def add_path(self, path: Any) -> None:
        """Add a line."""
        pxr = self.pxr
        one = pxr.UsdGeom.BasisCurves.Define(self.stage, self.new_path(path.name, ROOT))
        points = pxr.Vt.Vec3fArray.FromNumpy(path.points.astype(np.float32))
        one.CreatePointsAttr(points)
        one.CreateCurveVertexCountsAttr([len(path.points)])
        one.CreateTypeAttr(pxr.UsdGeom.Tokens.linear)
        one.CreateExtentAttr(pxr.UsdGeom.PointBased.ComputeExtent(points))
        one.CreateDisplayColorAttr([pxr.Gf.Vec3f(*linear_color(path.color))])

"""MJCF files made builders, through MuJoCo's own compiler (the extra ``robots``).

The compiler resolves defaults, includes, meshes and inertias of shapes; what is read here is its
result. Joints of one body come one after the other, with massless links between them; each turns
about its anchor, in the axes of the body. q has MuJoCo's order and layout. v differs for free
joints: MuJoCo's linear velocity is in axes of the world, here it is in those of the body.
Source: MuJoCo documentation, "Computation" and ``mjModel``.

What an MJCF file has besides bodies and joints: shapes, tendons, actuators.

Of MuJoCo's compiled model is taken what has a counterpart here; the rest is reported.
Source: MuJoCo documentation, "Computation", "XML Reference" and ``mjModel``.

Equalities of MJCF files made closures: bodies and sites held together, coupled joints.

Legend: the data of an equality between bodies are a point of the first (0:3) and one of the second
(3:6) where these are connected; where they are welded the point of the second comes first, and is
followed by that of the first, by the quaternion of the second in it (6:10) and by how much turns
count beside shifts (10): where that is zero only the points are held together.
Source: MuJoCo documentation, "XML Reference", equality; ``mjModel.eq_data``.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.installation import install_command
from archimedes.multibody.files.mjcf_fluid import COEFFICIENTS, MJMINVAL, SAME, box_sides
from archimedes.multibody.files.robot_elements import inertia_in_body
from archimedes.multibody.files.xml_text import AGREES, unbounded
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_edits import free_name
from archimedes.multibody.parts.actuators import DELAYED_HOLDS, Delayed, Drive, Lagged, Muscle
from archimedes.multibody.parts.closures import Closure, Coupling, Softness
from archimedes.multibody.parts.fluid import Fluid, FluidBox, FluidEllipsoid
from archimedes.multibody.parts.geometry import Surface, make_shape
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.parts.joints import KINDS, Free
from archimedes.multibody.parts.tendons import FRICTION_SOFTNESS, Pulley, Wrap
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm
from archimedes.spatial.spatial_algebra import IDENTITY, Pose
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Matrix, Vector
from archimedes.xml_elements import read_elements

#: Kinds of joints by MuJoCo's number.
JOINTS = {kind.mjcf: kind for kind in KINDS.values() if kind.mjcf is not None}
#: Numbers of joints that a flag of the file makes zero.
SWITCHED = {"damping": "DAMPER", "stiffness": "SPRING", "friction": "FRICTIONLOSS"}
#: Parts of the physics that are constraints in MuJoCo, which one flag makes all inactive.
CONSTRAINTS = ("LIMIT", "FRICTIONLOSS", "EQUALITY")
#: Bodies are inside each other in these files, each a step of a chain.
DEEPEST = 500
#: Shapes by MuJoCo's number: kind here, and its numbers of MuJoCo's three half sizes.
SHAPES: dict[int, tuple[str, Any]] = {
    0: ("plane", lambda s: (2 * s[0], 2 * s[1])),
    2: ("sphere", lambda s: (s[0],)),
    3: ("capsule", lambda s: (s[0], 2 * s[1])),
    4: ("ellipsoid", lambda s: tuple(s)),
    5: ("cylinder", lambda s: (s[0], 2 * s[1])),
    6: ("box", lambda s: tuple(2 * s)),
}
PLANE, HEIGHTS, MESH = 0, 1, 7
#: The colour of a geom that has none of its own: that of its material counts.
UNSET = [0.5, 0.5, 0.5, 1.0]
TEXTURE_2D = 0
TEXTURE_ROLES = [1, 8]  # of a material's textures, those of colours: RGB and RGBA
HIDDEN = 3  # groups of geoms from here on are not shown
JOINT, IN_PARENT, CRANK, TENDON, ON_FRAME = 0, 1, 2, 3, 4  # what an actuator acts on
INTEGRATOR, FILTEREXACT = 1, 3  # kinds of lags, with "filter" between them
MUSCLE = 4  # and the activation of muscles
MUSCLE_LAW, DC_LAW = 2, 3  # laws of forces, which are numbers or linear below
ON_PULLEY, ON_SITE = 2, 3  # what a tendon runs along
WRAPPED = {4: "sphere", 5: "cylinder"}  # and around
FREE, BALL = 0, 1  # kinds of joints
SINGLE = (2, 3)  # joints of one coordinate: slides and hinges
CONNECT, WELD, COUPLED, TENDONS_COUPLED = 0, 1, 2, 3  # kinds of equalities
BODY, SITE = 1, 6  # what an equality is between
#: What a model may have that is not taken over: a count, and what it is.
LEFT_OUT = {
    "nsensor": "sensors",
    "nflex": "flexible bodies",
    "nskin": "skins",
    "nplugin": "plugins",
    "nplastic": "springs that yield",
    "nmocap": "motion-capture bodies, fixed where they are",
    "npair": "pairs of contacts",
    "nexclude": "pairs of bodies without contact",
    "ncam": "cameras",
    "nlight": "lights",
    "nnumeric": "custom numbers",
    "ntext": "custom texts",
    "ntuple": "custom tuples",
}
#: Numbers of which nothing is taken over where they are not zero.
NUMBERS = {
    "dof_dampingpoly": "nonlinear damping (dof_dampingpoly) of joint",
    "jnt_stiffnesspoly": "nonlinear stiffness (jnt_stiffnesspoly) of joint",
    "tendon_armature": "armature of tendon",
    "tendon_dampingpoly": "nonlinear damping of tendon",
    "tendon_stiffnesspoly": "nonlinear stiffness of tendon",
    "actuator_damping": "damping of actuator",
    "actuator_dampingpoly": "nonlinear damping of actuator",
    "actuator_armature": "armature of actuator",
}
#: A custom text of this name says that user data are what `multibody.save` has written.
MARK = "archimedes:exact"
HINGE, CONTINUOUS = 1.0, 2.0
NO_COLOR, COLOR, IN_FLUID = 1.0, 2.0, 3.0
#: What MuJoCo takes for contacts where a file says nothing.
USUAL = {
    "friction": (1.0, 0.005, 0.0001), "solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)
}  # fmt: skip


def read_mjcf(path: str | os.PathLike[str], packages: object = None) -> Builder:
    """Return a builder of an MJCF file; ``builder.report`` says what is not in it."""
    root = read_elements(path, None, DEEPEST)
    if root.tag != "mujoco":
        raise root.error(f"an MJCF file is a <mujoco>, this is a <{root.tag}>")
    try:
        import mujoco  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ImportError(
            f"MJCF files are read through MuJoCo's compiler: {install_command('robots')}"
        ) from None
    name = Path(path).name
    try:
        compiled, lost = compile_mjcf(mujoco, os.fspath(path))
    except (ValueError, mujoco.FatalError) as error:
        raise ValueError(f"{name}: MuJoCo's compiler: {error}") from None
    title = root.attributes.get("model", Path(path).stem)
    try:
        return MjcfReader(mujoco, compiled, title, lost).read()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def compile_mjcf(mujoco: Any, path: str) -> tuple[Any, dict[int, str]]:
    """Return MuJoCo's model, and which geoms miss the file of their mesh.

    These geoms have no mass. Textures whose files are not there are white. If that is no model, as
    where the mass of a body is that of its mesh, the error names the first file.
    """
    try:
        return mujoco.MjModel.from_xml_path(path), {}
    except (ValueError, mujoco.FatalError) as error:
        first = error
    try:
        spec = mujoco.MjSpec.from_file(path)
        meshes = {m.name or Path(m.file).stem: f for m in spec.meshes if (f := lost_file(spec, m))}
        geoms = [(geom, meshes[geom.meshname]) for geom in spec.geoms if geom.meshname in meshes]
        for geom, _ in geoms:
            geom.type, geom.meshname, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, "", [1e-3] * 3
            geom.contype = geom.conaffinity = geom.mass = 0
        for mesh in [mesh for mesh in spec.meshes if lost_file(spec, mesh)]:
            spec.delete(mesh) if hasattr(spec, "delete") else mesh.delete()
        for texture in [texture for texture in spec.textures if lost_file(spec, texture)]:
            texture.builtin, texture.file = mujoco.mjtBuiltin.mjBUILTIN_FLAT, ""
            texture.width, texture.height, texture.rgb1 = 8, 8, [1.0, 1.0, 1.0]
        return spec.compile(), {geom.id: file for geom, file in geoms}
    except (ValueError, AttributeError, mujoco.FatalError):
        raise first from None


def lost_file(spec: Any, asset: Any) -> str:
    """Return the file of a mesh or a texture if it is not there, and "" otherwise."""
    kind = "meshdir" if hasattr(asset, "refpos") else "texturedir"
    folder = getattr(getattr(spec, "compiler", spec), kind, "") or getattr(spec, kind, "")
    name = Path(asset.file).name if getattr(spec, "strippath", False) else asset.file
    file = Path(spec.modelfiledir, folder, name)
    return "" if not asset.file or file.is_file() else str(file)


class Side(NamedTuple):
    """One of two that are held together: a place on a body, the world is number 0."""

    body: int
    rotation: Any
    position: Any


class MjcfReader:
    """MuJoCo's compiled model `m`, and the names that its bodies, joints, ... have here.

    Those without a name get one that is not taken.
    """

    def __init__(self, mujoco: Any, m: Any, name: str, lost: dict[int, str]) -> None:
        self.mujoco, self.m, self.lost, self.builder = mujoco, m, lost, Builder(name)
        self.report = self.builder.report
        self.marked = MARK in self.name_each("TEXT", m.ntext, str)
        self.bodies = self.name_each("BODY", m.nbody, lambda k: f"body{k}")

        def joint(k: int) -> str:
            body = m.jnt_bodyid[k]
            return f"{self.bodies[body]}_joint{k - m.body_jntadr[body]}"

        self.joints = self.name_each("JOINT", m.njnt, joint)
        names = self.name_each("TENDON", m.ntendon, lambda k: f"tendon{k}")
        # Actuators know joints and tendons by one set of names.
        taken = {*self.joints, *names}
        self.tendons = [
            free_name(f"{name}:tendon", taken) if name in self.joints else name for name in names
        ]
        self.commands: list[int] = []
        self.activations: list[int] = []
        count = len(m.actuator_trntype)
        self.actuators = self.name_each("ACTUATOR", count, lambda k: f"actuator{k}")

    def name_each(self, what: str, count: int, default: Callable[[int], str]) -> list[str]:
        """Return a name for each part of a kind."""
        kind = getattr(self.mujoco.mjtObj, f"mjOBJ_{what}")
        names = [self.mujoco.mj_id2name(self.m, kind, k) or "" for k in range(count)]
        taken = {*names}
        for k, name in enumerate(names):
            names[k] = name or free_name(default(k), taken)
            taken.add(names[k])
        return names

    def read(self) -> Builder:
        """Return the builder of the model."""
        m = self.m
        self.builder.gravity = np.zeros(3) if self.is_off("GRAVITY") else np.array(m.opt.gravity)
        for k in range(1, m.nbody):
            self.add_body(k)
        self.sites = [m.site(k).name for k in range(m.nsite)]
        self.frames: list[str] = []
        for k in range(m.nsite):
            self.add_site(k)
        self.add_shapes()
        self.add_fluid()
        self.add_tendons()
        for k in range(len(self.actuators)):
            self.add_actuator(k)
        self.add_equalities()
        self.add_keyframes()
        self.report_left_out()
        return self.builder

    def is_off(self, what: str) -> bool:
        """Return whether a flag of the file disables a part of the physics."""
        names = [what, "CONSTRAINT"] if what in CONSTRAINTS else [what]
        bits = [int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{name}", 0)) for name in names]
        return any(int(self.m.opt.disableflags) & bit for bit in bits)

    def ignore(self, what: str) -> None:
        """Report what is not in the model."""
        self.report.ignored.append(f"{self.builder.name}: {what}")

    def approximate(self, what: str) -> None:
        """Report what is in the model otherwise than in the file."""
        self.report.approximated.append(f"{self.builder.name}: {what}")

    def exact(self, near: np.ndarray, user: np.ndarray, tolerance: float = AGREES) -> np.ndarray:
        """Return the numbers that `multibody.save` wrote if the compiled ones agree with them."""
        if not self.marked or len(user) < near.size:
            return near
        own = np.array(user[: near.size]).reshape(near.shape)
        return own if np.abs(own - near).max() <= tolerance * np.abs(near).max() else near

    def owner(self, body: int) -> str:
        """Return the name of a body, or the world."""
        return self.bodies[body] if body else "world"

    # ---- bodies and joints ---------------------------------------------------------------

    def add_site(self, k: int) -> None:
        """Add a site as a frame; bodies come first where both have one name."""
        m, builder = self.m, self.builder
        name = title = self.sites[k]
        if not title or title in builder.bodies:
            taken = {*builder.bodies, *builder.frames, *self.sites}
            name = free_name(f"{title}:site" if title else f"site{k}", taken)
        if title and name != title:
            self.approximate(f"site {title!r}, named as a body is, is the frame {name!r}")
        R = self.exact(rotation_of(m.site_quat[k]), m.site_user[k])
        builder.add_frame(name, self.owner(m.site_bodyid[k]), R, np.array(m.site_pos[k]))
        self.frames.append(name)
        self.report.use("site")

    def add_body(self, k: int) -> None:
        """Add a body with its joints."""
        m, builder, body = self.m, self.builder, self.bodies[k]
        parent = self.owner(m.body_parentid[k])
        J = inertia_in_body(rotation_of(m.body_iquat[k]), np.diag(m.body_inertia[k]))
        J = self.exact(J, m.body_user[k][9:])
        carried = 0.0 if self.is_off("GRAVITY") else float(m.body_gravcomp[k])
        mass, center = float(m.body_mass[k]), np.array(m.body_ipos[k])
        builder.add_body(body, mass, center, J, gravity_compensation=carried)
        self.report.use("body")
        R = self.exact(rotation_of(m.body_quat[k]), m.body_user[k])
        p = np.array(m.body_pos[k])
        at: dict[str, Any] = {"rotation": R, "position": p}
        first, count = int(m.body_jntadr[k]), int(m.body_jntnum[k])
        if count == 0:
            weld = free_name(f"{parent}_{body}", {*builder.joints, *self.joints})
            builder.attach(body, parent, joint=weld, kind="fixed", **at)
        for j in range(first, first + count):
            child, title = body, self.joints[j]
            if j < first + count - 1:
                child = free_name(f"{body}:{title}", {*builder.bodies, *self.bodies})
                builder.add_massless(child)
            if isinstance(JOINTS[m.jnt_type[j]], Free):
                at = {}
            builder.attach(child, parent, joint=title, **at, **self.joint_values(j))
            self.report.use("joint")
            parent, at = child, {}

    def joint_values(self, j: int) -> dict[str, Any]:
        """Return the kind, axis, anchor and all numbers of a joint."""
        m, kind = self.m, JOINTS[self.m.jnt_type[j]]
        q0, v0 = m.jnt_qposadr[j], m.jnt_dofadr[j]
        dofs = slice(v0, v0 + kind.nv)
        values: dict[str, Any] = {
            "kind": kind,
            "axis": np.array(m.jnt_axis[j]) if kind.axial else [0, 0, 1],
            "damping": np.array(m.dof_damping[dofs]),
            "friction": np.array(m.dof_frictionloss[dofs]),
            "armature": np.array(m.dof_armature[dofs]),
            "stiffness": float(m.jnt_stiffness[j]),
            "rest": np.array(m.qpos_spring[q0 : q0 + kind.nq]),
        }
        if m.jnt_type[j] in SINGLE:
            for key in ("damping", "armature"):
                values[key] = values[key] + self.reflected(key, (JOINT, IN_PARENT), j)
        creep = softness_row(m.dof_solref[v0], m.dof_solimp[v0])
        if np.any(creep != FRICTION_SOFTNESS):
            values["friction_softness"] = creep
        for key, flag in SWITCHED.items():
            if self.is_off(flag):
                values[key] = 0.0 * values[key]
        if self.marked and np.any(what := m.jnt_user[j][:1]):
            values["kind"] = KINDS["continuous"] if what == CONTINUOUS else kind
            speeds = m.jnt_user[j][1 : 1 + kind.nv].tolist()
            values["speed_limit"] = np.array([*map(unbounded, speeds)])
        if kind.anchored:
            values["anchor"] = np.array(m.jnt_pos[j])
        if kind.nq == 1:
            # MuJoCo's qpos is zero_at where the body is as in the file.
            values["zero_at"] = float(m.qpos0[q0])
        if m.jnt_limited[j] and not self.is_off("LIMIT"):
            narrowed = np.array(m.jnt_range[j]) + float(m.jnt_margin[j]) * np.array([1.0, -1.0])
            if kind.nq == 1:
                values["lower"], values["upper"] = map(unbounded, narrowed.tolist())
            else:
                values["angle_limit"] = float(narrowed[1])
            frequency, damping = stop_of(m.jnt_solref[j])
            values["limit_frequency"], values["limit_damping"] = frequency, damping
            values["limit_impedance"] = np.array(m.jnt_solimp[j])
            self.report.use("limit")
        if kind.nq == 1 and m.jnt_actfrclimited[j]:
            values["effort_limit"] = float(np.abs(m.jnt_actfrcrange[j]).max())
        return values

    def reflected(self, key: str, on: tuple[int, ...], k: int) -> float:
        """Return damping or armature of the actuators of a joint or tendon, behind their gears."""
        m = self.m
        each = getattr(m, f"actuator_{key}", np.zeros(m.nu))  # younger than some of MuJoCo
        total = 0.0
        for a in range(m.nu):
            if m.actuator_trntype[a] in on and m.actuator_trnid[a, 0] == k:
                total += float(m.actuator_gear[self.output_of(a)][0]) ** 2 * float(each[a])
        return total

    def takes_from(self, key: str, a: int) -> bool:
        """Return whether what an actuator acts on has its damping or armature in the model."""
        on = self.m.actuator_trntype[a]
        if on == TENDON:
            return key == "damping"
        single = on in (JOINT, IN_PARENT)
        return single and self.m.jnt_type[self.m.actuator_trnid[a, 0]] in SINGLE

    # ---- shapes, tendons, actuators ------------------------------------------------------

    def add_shapes(self) -> None:
        """Add the geoms of bodies: as collisions if they collide, to look at if they are shown.

        MuJoCo's own viewer hides groups from `HIDDEN` on.
        """
        m = self.m
        surfaces: dict[int, Surface] = {}
        for k in range(m.ngeom):
            if self.marked and np.any(m.geom_user[k][9:10] == IN_FLUID):
                continue
            where, kind = label(m.geom(k), "geom"), m.geom_type[k]
            if kind not in SHAPES and kind not in (MESH, HEIGHTS):
                self.ignore(f"{where}: the shape of a function")
                continue
            scenery = m.geom_bodyid[k] == 0 and not self.marked  # `save` writes what a model has
            scenery = scenery and kind != HEIGHTS
            if scenery:
                self.ignore(f"{where}, a shape of the world: it is shown, and touches nothing")
                if kind == PLANE:
                    continue
            surface: Surface | HeightField | None = None
            body = self.owner(m.geom_bodyid[k])
            if k in self.lost:
                self.ignore(f"{where}: its mesh {self.lost[k]!r} was not found")
                self.add_shape(body, "mesh", (1.0, 1.0, 1.0), "visual", file=self.lost[k])
                continue
            if kind == MESH:
                surface = self.surface_of(int(m.geom_dataid[k]), surfaces)
            name, size = SHAPES.get(kind, ("mesh", lambda s: (1.0, 1.0, 1.0)))
            if kind == HEIGHTS:
                surface = own = self.field_of(int(m.geom_dataid[k]))
                name, size = "heightfield", lambda s, own=own: own.size
            collides = bool(m.geom_contype[k] or m.geom_conaffinity[k])
            seen = m.geom_group[k] < HIDDEN or not collides
            values: dict[str, Any] = {
                "at": Pose(
                    self.exact(rotation_of(m.geom_quat[k]), m.geom_user[k]),
                    np.array(m.geom_pos[k]),
                ),
                "surface": surface,
                "color": self.color_of(k),
            }
            collides = collides and not scenery
            for role in ["collision"] * collides + ["visual"] * bool(seen):
                self.add_shape(body, name, size(np.array(m.geom_size[k])), role, **values)
            if not scenery:
                self.report.use("geom")

    def add_shape(
        self, body: str, kind: str, size: Any, role: str, at: Pose = IDENTITY, **look: Any
    ) -> None:
        """Add a shape of a body, or of the world."""
        self.builder.geometry += (make_shape(body, role, kind, size, at, **look),)

    def color_of(self, k: int) -> Vector | None:
        """Return red, green, blue and opacity of a geom: its own, or those of its material.

        A texture counts with its mean colour, where the mesh has it if it says so.
        """
        m, material = self.m, int(self.m.geom_matid[k])
        if self.marked and np.any(own := m.geom_user[k][9:14]):
            return None if own[0] == NO_COLOR else np.array(own[1:])
        color = np.array(m.geom_rgba[k], dtype=float)
        if material >= 0:
            if np.array_equal(color, UNSET):
                color = np.array(m.mat_rgba[material], dtype=float)
            mesh = int(m.geom_dataid[k]) if m.geom_type[k] == MESH else -1
            if (texture := int(m.mat_texid[material][TEXTURE_ROLES].max())) >= 0:
                color[:3] *= self.mean_color(texture, mesh)
        return np.clip(color, 0.0, 1.0)

    def mean_color(self, texture: int, mesh: int) -> Vector:
        """Return the mean colour (3,) of a texture, at the coordinates of a mesh if it has some."""
        m = self.m
        height, width, depth = m.tex_height[texture], m.tex_width[texture], m.tex_nchannel[texture]
        start, first = m.tex_adr[texture], -1 if mesh < 0 else m.mesh_texcoordadr[mesh]
        pixels = m.tex_data[start : start + height * width * depth].reshape(height, width, depth)
        if first >= 0 and m.tex_type[texture] == TEXTURE_2D:
            u, v = m.mesh_texcoord[first : first + m.mesh_texcoordnum[mesh]].T % 1.0
            pixels = pixels[(v * height).astype(int), (u * width).astype(int)]
        mean = pixels.reshape(-1, depth).mean(axis=0) / 255.0
        return np.resize(mean[:3], 3) if depth < 3 else mean[:3]

    def surface_of(self, mesh: int, surfaces: dict[int, Surface]) -> Surface:
        """Return a mesh as the compiler left it: scaled, and moved to the axes of its geoms."""
        if mesh not in surfaces:
            m = self.m
            vertex, face = m.mesh_vertadr[mesh], m.mesh_faceadr[mesh]
            surfaces[mesh] = Surface(
                m.mesh_vert[vertex : vertex + m.mesh_vertnum[mesh]],
                m.mesh_face[face : face + m.mesh_facenum[mesh]],
            )
        return surfaces[mesh]

    def field_of(self, k: int) -> HeightField:
        """Return a height field."""
        m = self.m
        first, rows, columns = (int(x[k]) for x in (m.hfield_adr, m.hfield_nrow, m.hfield_ncol))
        x, y, top, _ = m.hfield_size[k].tolist()
        heights = top * m.hfield_data[first : first + rows * columns].astype(float)
        return HeightField(heights.reshape(rows, columns), (2.0 * x, 2.0 * y))

    def add_fluid(self) -> None:
        """Add the fluid around: it acts on boxes of the bodies' inertia, or on ellipsoids."""
        m = self.m
        if not (m.opt.density > 0.0 or m.opt.viscosity > 0.0):
            return
        shapes: list[FluidBox | FluidEllipsoid] = []
        for k in range(1, m.nbody):
            if m.body_weldid[k] == 0 or m.body_mass[k] < MJMINVAL:
                continue
            own = range(m.body_geomadr[k], m.body_geomadr[k] + m.body_geomnum[k])
            round_ones = [geom for geom in own if m.geom_fluid[geom][0] > 0.0]
            shapes += [self.fluid_ellipsoid(geom) for geom in round_ones] or [self.fluid_box(k)]
        density, viscosity = float(m.opt.density), float(m.opt.viscosity)
        self.builder.fluid = Fluid(density, viscosity, np.array(m.opt.wind), tuple(shapes))

    def fluid_box(self, k: int) -> FluidBox:
        """Return the box that has mass and inertia of a body."""
        m = self.m
        inertia = np.array(m.body_inertia[k])
        sides = box_sides(inertia, m.body_mass[k])
        own, near = m.body_user[k][18:], (sides, rotation_of(m.body_iquat[k]), m.body_ipos[k])
        first = np.cumsum([0, 3, 9])
        parts = (self.exact(np.array(x), own[n:]) for x, n in zip(near, first, strict=True))
        return FluidBox(self.bodies[k], *parts)

    def fluid_ellipsoid(self, k: int) -> FluidEllipsoid:
        """Return the ellipsoid of a geom."""
        m, size = self.m, np.array(self.m.geom_size[k])
        kind = SHAPES.get(m.geom_type[k], ("", None))[0]
        if kind == "sphere":
            size[1:] = size[0]
        elif kind in ("capsule", "cylinder"):
            size = np.array([size[0], size[0], size[1] + size[0] * (kind == "capsule")])
        numbers = np.array(m.geom_fluid[k])
        R, p = self.exact(rotation_of(m.geom_quat[k]), m.geom_user[k]), np.array(m.geom_pos[k])
        coefficients: dict[str, Any] = dict(zip(COEFFICIENTS, numbers[1:6].tolist(), strict=True))
        for key, n in (("added_mass", 6), ("added_inertia", 9)):
            own = m.geom_user[k][n + 4 :]  # after rotation and kind
            coefficients[key] = self.exact(numbers[n : n + 3], own, SAME)
        return FluidEllipsoid(self.bodies[m.geom_bodyid[k]], size, R, p, **coefficients)

    def add_tendons(self) -> None:
        """Add tendons along joints and along paths through space."""
        m = self.m
        for k, name in enumerate(self.tendons):
            arms = self.tendon_arms(k)
            path = None if arms is not None else self.tendon_path(k)
            if arms is None and path is None:
                self.ignore(f"tendon {name!r} along a joint of several coordinates")
                continue
            values: dict[str, Any] = {
                key: 0.0 if self.is_off(SWITCHED[key]) else float(getattr(m, f"tendon_{key}")[k])
                for key in ("stiffness", "damping")
            }
            if not self.is_off(SWITCHED["damping"]):
                values["damping"] += self.reflected("damping", (TENDON,), k)
            if not self.is_off("FRICTIONLOSS"):
                values["friction"] = float(m.tendon_frictionloss[k])
                own = m.tendon_solref_fri[k], m.tendon_solimp_fri[k]
                values["friction_softness"] = softness_row(*own)
            if m.tendon_limited[k] and not self.is_off("LIMIT"):
                margin = float(m.tendon_margin[k])
                values["lower"] = float(m.tendon_range[k][0]) + margin
                values["upper"] = float(m.tendon_range[k][1]) - margin
                frequency, damping = stop_of(m.tendon_solref_lim[k])
                values["limit_frequency"], values["limit_damping"] = frequency, damping
                values["limit_impedance"] = np.array(m.tendon_solimp_lim[k])
                self.report.use("limit")
            limited = getattr(m, "tendon_actfrclimited", ())  # younger than some of MuJoCo
            if len(limited) and limited[k]:
                values |= self.efforts_of(k, name)
            rest = np.array(m.tendon_lengthspring[k])
            self.builder.add_tendon(name, arms, path=path, rest=rest, **values)
            self.report.use("tendon")

    def efforts_of(self, k: int, name: str) -> dict[str, float]:
        """Return limits of what actuators give a tendon, which MuJoCo has before their gears."""
        m, own = self.m, self.m.tendon_actfrcrange[k]
        on = (m.actuator_trntype == TENDON) & (m.actuator_trnid[:, 0] == k)
        gears = {float(m.actuator_gear[self.output_of(a)][0]) for a in map(int, np.flatnonzero(on))}
        gear = max(gears, key=abs, default=1.0) or 1.0
        if len(gears) > 1:
            largest = f"the largest gear of its actuators, {gear:g}"
            self.approximate(f"tendon {name!r}: actuatorfrcrange is that of {largest}")
        low, high = sorted(gear * unbounded(float(x)) for x in own)
        return {"effort_lower": low, "effort_upper": high}

    def tendon_path(self, k: int) -> list[str | Wrap | Pulley] | None:
        """Return the path of a tendon through space, or None if it has none."""
        m, path = self.m, list[str | Wrap | Pulley]()
        for w in range(m.tendon_adr[k], m.tendon_adr[k] + m.tendon_num[k]):
            kind, what = int(m.wrap_type[w]), int(m.wrap_objid[w])
            if kind == ON_SITE:
                path.append(self.frames[what])
            elif kind == ON_PULLEY:
                path.append(Pulley(float(m.wrap_prm[w])))
            elif kind in WRAPPED:
                path.append(self.wrapped(what, WRAPPED[kind], round(float(m.wrap_prm[w]))))
            else:
                return None
        return path

    def wrapped(self, geom: int, shape: str, side: int) -> Wrap:
        """Return what a tendon wraps around; the frame is at the geom."""
        m, builder, body = self.m, self.builder, self.m.geom_bodyid[geom]
        frame = f"{m.geom(geom).name or f'geom{geom}'}:wrap"
        if frame not in builder.frames:
            at = rotation_of(m.geom_quat[geom]), np.array(m.geom_pos[geom])
            builder.add_frame(frame, self.owner(body), *at)
        radius = float(m.geom_size[geom][0])
        if side < 0:
            return Wrap(frame, radius, shape)
        data = self.mujoco.MjData(m)
        data.qpos[:] = m.qpos0
        self.mujoco.mj_kinematics(m, data)
        inside = bool(np.linalg.norm(data.site_xpos[side] - data.geom_xpos[geom]) < radius)
        if body != m.site_bodyid[side]:
            where = f"side site {self.frames[side]!r} of another body"
            self.approximate(f"{where}: it is inside or outside as it is in the file")
        return Wrap(frame, radius, shape, self.frames[side], inside)

    def tendon_arms(self, k: int) -> dict[str, float] | None:
        """Return the arms of a tendon by joint, or None if it does not run along joints alone."""
        m = self.m
        arms: dict[str, float] = {}
        for w in range(m.tendon_adr[k], m.tendon_adr[k] + m.tendon_num[k]):
            joint = m.wrap_objid[w]
            if m.wrap_type[w] != 1 or m.jnt_type[joint] not in SINGLE:
                return None
            arms[self.joints[joint]] = arms.get(self.joints[joint], 0.0) + float(m.wrap_prm[w])
        return arms

    def add_actuator(self, k: int) -> None:
        """Add an actuator on what it acts on, with a state or without."""
        m = self.m
        lag, where = int(m.actuator_dyntype[k]), label(m.actuator(k), "actuator")
        if int(m.opt.disableactuator) >> int(m.actuator_group[k]) & 1 or self.is_off("ACTUATION"):
            self.ignore(f"{where}, which the file switches off")
            return
        if m.actuator_plugin[k] >= 0:
            self.ignore(f"{where}: what a plugin computes; pass its torques to dynamics")
            return
        arms = self.arms_of(k) if self.is_known(k) else None
        if arms is None:
            self.ignore(
                f"{where}: its kind is not known (adhesion, several controls, a state of its own "
                "beyond a lag or a muscle's); pass its torques to dynamics"
            )
            return
        if lag and m.actuator_actearly[k]:
            self.approximate(
                f"{where}: actearly, the activation of the next step, is that of the same time"
            )
        if lag == MUSCLE:
            self.builder.actuators.append(self.muscle(k, arms))
        else:
            self.builder.actuators.append(self.driven(k, arms, lag, where))
        if getattr(m, "actuator_delay", np.zeros(k + 1))[k] > 0.0:
            self.delay(k, where)
        self.commands.append(self.control_of(k))
        if hasattr(self.builder.actuators[-1], "activation_rate"):
            self.activations.append(int(m.actuator_actadr[k]))
        self.report.use("actuator")

    def delay(self, k: int, where: str) -> None:
        """Make the last actuator one whose commands arrive late."""
        samples, hold = (int(x) for x in self.m.actuator_history[k])
        actuator = self.builder.actuators.pop()
        late = Delayed(actuator, float(self.m.actuator_delay[k]), samples, DELAYED_HOLDS[hold])
        self.builder.actuators.append(late)
        self.approximate(f"{where}: its commands are late where they go through a command_history")

    def is_known(self, k: int) -> bool:
        """Return whether the law of an actuator has a counterpart here."""
        m = self.m
        laws = int(m.actuator_gaintype[k]), int(m.actuator_biastype[k]), int(m.actuator_dyntype[k])
        gain, bias = np.array(m.actuator_gainprm[k]), np.array(m.actuator_biasprm[k])
        many = getattr(m, "actuator_ctrlnum", None), getattr(m, "actuator_outnum", None)
        if any(count is not None and count[k] != 1 for count in many):
            return False
        if MUSCLE_LAW in laws[:2]:
            return laws == (MUSCLE_LAW, MUSCLE_LAW, MUSCLE) and np.array_equal(gain, bias)
        if DC_LAW in laws[:2]:  # without states and other effects: resistance and constant
            alone = not m.actuator_actnum[k] and not gain[2:].any() and not bias.any()
            return laws[:2] == (DC_LAW, DC_LAW) and alone and bool(gain[0] > 0.0)
        return laws[0] < 2 and laws[1] < 2 and laws[2] <= FILTEREXACT

    def arms_of(self, k: int) -> dict[str, float] | None:
        """Return the arms of what an actuator acts on, by name; None if that has no counterpart."""
        m, gear = self.m, np.array(self.m.actuator_gear[self.output_of(k)])
        on, (what, other) = int(m.actuator_trntype[k]), (int(i) for i in m.actuator_trnid[k])
        if on == TENDON:
            arms, name = self.tendon_arms(what), self.tendons[what]
            if name not in self.builder.tendons:
                return None
            if arms is None or "effort_lower" in self.builder.tendons[name].values:
                return {name: gear[0]}
            return {joint: gear[0] * arm for joint, arm in arms.items()}
        if on in (JOINT, IN_PARENT) and m.jnt_type[what] in SINGLE:
            return {self.joints[what]: gear[0]}
        values: dict[str, Any] = {"gear": gear}
        if on in (JOINT, IN_PARENT):
            values |= {"joint": self.joints[what], "in_parent": on == IN_PARENT}
            if m.jnt_type[what] == BALL:
                values["gear"] = np.concatenate([np.zeros(3), gear[:3]])
        elif on == ON_FRAME:
            values["frame"] = self.frames[what]
            values["reference"] = None if other < 0 else self.frames[other]
        elif on == CRANK:
            values |= {"crank": self.frames[what], "reference": self.frames[other]}
            values["rod"] = float(m.actuator_cranklength[k])
        else:
            return None
        taken = {*self.joints, *self.tendons, *self.actuators, *self.builder.transmissions}
        name = self.actuators[k]
        if name in taken - {*self.actuators}:
            name = free_name(f"{name}:transmission", taken)
        self.builder.add_transmission(name, **values)
        return {name: 1.0}

    def output_of(self, k: int) -> int:
        """Return where the output of an actuator is among those of all."""
        return int(getattr(self.m, "actuator_outadr", range(k + 1))[k])

    def control_of(self, k: int) -> int:
        """Return where the command of an actuator is among those of all."""
        return int(getattr(self.m, "actuator_ctrladr", range(k + 1))[k])

    def driven(self, k: int, arms: dict[str, float], lag: int, where: str) -> Drive | Lagged:
        """Return an actuator whose force is linear in command, length and speed; it may lag."""
        m = self.m
        if lag > FILTEREXACT:  # of a DC motor, without a state
            lag = 0
        if lag > INTEGRATOR and not m.actuator_dynprm[k][0] > 0.0:
            self.approximate(f"{where}: a lag of no time is none")
            lag = 0
        drive = self.drive(k, arms)
        if not lag:
            return drive
        # The activation takes over the range of the commands.
        constant = None if lag == INTEGRATOR else float(m.actuator_dynprm[k][0])
        inner = replace(drive, command_range=np.array([-np.inf, np.inf]))
        return Lagged(inner, constant, drive.command_range, self.range_of("act", k))

    def drive(self, k: int, arms: dict[str, float]) -> Drive:
        """Return an actuator on the sum of arms and coordinates."""
        m = self.m
        gain = np.array(m.actuator_gainprm[k][:3])
        bias = np.array(m.actuator_biasprm[k][:3]) * int(m.actuator_biastype[k] == 1)
        if m.actuator_gaintype[k] == 0:
            gain[1:] = 0.0
        elif m.actuator_gaintype[k] == DC_LAW:  # of voltage: K (u - K w) / R
            resistance, constant = gain[:2]
            gain = np.array([constant / resistance, 0.0, 0.0])
            bias = np.array([0.0, 0.0, -constant * constant / resistance])
        ranges = [self.range_of(what, k) for what in ("ctrl", "force")]
        drive = Drive(tuple(arms), np.array(list(arms.values())), gain, bias, *ranges)
        own = [
            self.builder.transmissions[name] for name in arms if name in self.builder.transmissions
        ]
        turning = [t.gear[3:] for t in own if t.kind == "joint"]
        servo = gain[0] > 0.0 and bias[1] == -gain[0]
        if turning and servo and self.m.jnt_type[self.m.actuator_trnid[k][0]] == BALL:
            return replace(drive, period=2.0 * np.pi * float(np.linalg.norm(turning[0])))
        return drive

    def muscle(self, k: int, arms: dict[str, float]) -> Muscle:
        """Return a muscle."""
        m, out = self.m, self.output_of(k)
        start, end, force, scale, low, high, top, passive, eccentric = (
            float(x) for x in m.actuator_gainprm[k][:9]
        )
        if force < 0.0:
            force = scale / max(float(m.actuator_acc0[out]), MJMINVAL)
        limits = self.range_of("ctrl", k)
        if limits[0] > 0.0 or limits[1] < 1.0:
            self.approximate(f"{label(m.actuator(k), 'actuator')}: its command is from 0 to 1")
        [(name, gear)] = arms.items()
        up, down, smoothing = (float(x) for x in m.actuator_dynprm[k][:3])
        return Muscle(
            name, force, np.array(m.actuator_lengthrange[out]), np.array([start, end]),
            np.array([low, high]), top, passive, eccentric, np.array([up, down]), smoothing,
            gear, self.range_of("force", k),
        )  # fmt: skip

    def add_keyframes(self) -> None:
        """Add keyframes: coordinates by joint, activations and commands."""
        m = self.m
        names = self.name_each("KEY", m.nkey, lambda k: f"key{k}")
        for k, name in enumerate(names):
            values: dict[str, Any] = {}
            for j, joint in enumerate(self.joints):
                kind, q0, v0 = JOINTS[m.jnt_type[j]], m.jnt_qposadr[j], m.jnt_dofadr[j]
                q, v = m.key_qpos[k][q0 : q0 + kind.nq], np.array(m.key_qvel[k][v0 : v0 + kind.nv])
                if isinstance(kind, Free):  # in axes of the body
                    v[:3] = rotation_of(q[3:]).T @ v[:3]
                values[joint] = np.array(q), v
            values[""] = m.key_act[k][self.activations], m.key_ctrl[k][self.commands]
            self.builder.keyframes[name] = values
            self.report.use("key")

    def range_of(self, what: str, k: int) -> np.ndarray:
        """Return a range of an actuator, all numbers where it has none."""
        off = what == "ctrl" and self.is_off("CLAMPCTRL")
        k = self.control_of(k) if what == "ctrl" else k
        if off or not getattr(self.m, f"actuator_{what}limited")[k]:
            return np.array([-np.inf, np.inf])
        return np.array([*map(unbounded, getattr(self.m, f"actuator_{what}range")[k].tolist())])

    # ---- equalities ----------------------------------------------------------------------

    def add_equalities(self) -> None:
        """Add what holds bodies and joints together as closures, for `constrained_dynamics`."""
        m = self.m
        off = self.is_off("EQUALITY")
        for k in range(m.neq):
            where = label(m.equality(k), "equality")
            closure = self.equality(k) if m.eq_active0[k] and not off else None
            if closure is None:
                self.ignore(where)
                continue
            soft = dataclasses.replace(closure, softness=self.softness(k))
            self.builder.closures.append(soft)
            self.report.use("equality")
            self.approximate(
                f"{where}, soft in MuJoCo, is exact, in constrained_dynamics with model.closures, "
                "and soft in soft_dynamics with them"
            )

    def softness(self, k: int) -> Softness:
        """Return how soft an equality is."""
        m = self.m
        sides = [int(m.eq_obj1id[k]), int(m.eq_obj2id[k])]
        frequency, damping = stop_of(m.eq_solref[k])
        kind = m.eq_type[k]
        if kind in (CONNECT, WELD):
            on_site = m.eq_objtype[k] == SITE
            bodies = [int(m.site_bodyid[n]) if on_site else n for n in sides]
            both = np.sum([m.body_invweight0[n] for n in bodies], axis=0)
        elif kind == COUPLED:
            both = [sum(m.dof_invweight0[m.jnt_dofadr[n]] for n in sides if n >= 0), 0.0]
        else:
            both = [sum(m.tendon_invweight0[n] for n in sides if n >= 0), 0.0]
        turning = float(m.eq_data[k][10]) if kind == WELD else 1.0
        # The last digits are MuJoCo's rounding, which differs between equal models.
        mobility = float(f"{both[0]:.12g}"), float(f"{both[1]:.12g}")
        impedance = tuple(m.eq_solimp[k].tolist())
        return Softness(frequency, damping, impedance, turning, mobility)

    def equality(self, k: int) -> Closure | Coupling | None:
        """Return the closure of one equality, or None if there is no counterpart here."""
        m = self.m
        kind, one, two, on = m.eq_type[k], m.eq_obj1id[k], m.eq_obj2id[k], m.eq_objtype[k]
        data = np.array(m.eq_data[k])
        if kind == COUPLED and m.jnt_type[one] in SINGLE:
            return self.couple(one, two, data)
        if kind == TENDONS_COUPLED:
            names = [self.tendons[n] for n in (one, two) if n >= 0]
            start = [float(m.tendon_length0[n]) for n in (one, max(two, 0))]
            if any(name not in self.builder.tendons for name in names):
                return None
            return coupling(names, start, data)
        if kind not in (CONNECT, WELD) or on not in (BODY, SITE):
            return None
        turns = kind == WELD and data[10] != 0.0
        held = "fixed" if turns else "spherical"
        if on == SITE:
            sites = [one, two] if m.site_bodyid[two] else [two, one]  # what is held comes second
            first, second = (self.frames[n] for n in sites)
            return Closure(first, second, held)
        if kind == CONNECT:
            sides = [Side(one, None, data[:3]), Side(two, None, data[3:6])]
        else:
            sides = [Side(one, rotation_of(data[6:10]), data[3:6]), Side(two, None, data[:3])]
        if sides[1].body == 0:
            sides.reverse()  # what is held comes second
        first, second = f"equality{k}:first", f"equality{k}:second"
        for name, side in zip((first, second), sides, strict=True):
            self.builder.add_frame(name, self.owner(side.body), side.rotation, side.position)
        return Closure(first, second, held)

    def couple(self, one: int, two: int, data: Vector) -> Coupling | None:
        """Return a joint held at a number, or at a straight line of another."""
        m = self.m
        start = [float(m.qpos0[m.jnt_qposadr[j]]) for j in (one, max(two, 0))]
        if two >= 0 and data[2:5].any():
            if m.jnt_type[two] not in SINGLE:
                return None
            return coupling([self.joints[one], self.joints[two]], start, data)
        if two < 0 or data[1] == 0.0:
            return Coupling({self.joints[one]: 1.0}, float(data[0]) + start[0])
        if m.jnt_type[two] not in SINGLE:
            return None
        arms = {self.joints[one]: 1.0, self.joints[two]: -float(data[1])}
        return Coupling(arms, float(data[0]) + start[0] - float(data[1]) * start[1])

    # ---- what is left out ----------------------------------------------------------------

    def report_left_out(self) -> None:
        """Report what the model has that is not in the builder."""
        m = self.m
        for count, what in LEFT_OUT.items():
            marks = int(count == "ntext" and self.marked)
            if number := int(getattr(m, count, 0)) - marks:
                self.ignore(f"{number} {what}")
        for j, name in enumerate(self.joints):
            self.report_joint(j, f"joint {name!r}")
        colliding = (m.geom_contype != 0) | (m.geom_conaffinity != 0)
        own = [np.any(getattr(m, f"geom_{key}") != usual, axis=1) for key, usual in USUAL.items()]
        if number := int(np.sum(colliding & np.any(own, axis=0))):
            self.approximate(f"friction or softness of {number} geoms: Ground and Pair have theirs")
        self.report_numbers()
        if (np.any(m.dof_frictionloss) or np.any(m.tendon_frictionloss)) and not self.is_off(
            "FRICTIONLOSS"
        ):
            smooth = "is a smooth force in dynamics and exact in contact_step"
            self.approximate(f"frictionloss, which is a constraint in MuJoCo, {smooth}")
        if (np.any(m.jnt_limited) or np.any(m.tendon_limited)) and not self.is_off("LIMIT"):
            stops = "are springs with dampers in dynamics and exact in contact_step"
            self.approximate(
                f"limits of joints and tendons, which are soft constraints in MuJoCo, {stops}"
            )

    def report_joint(self, j: int, where: str) -> None:
        """Report which numbers of a joint count otherwise here."""
        m, kind, start = self.m, self.m.jnt_type[j], self.m.jnt_qposadr[j]
        if m.jnt_limited[j] and self.is_off("LIMIT"):
            self.ignore(f"{where}: its limits, which the file switches off")
        elif m.jnt_limited[j] and m.jnt_margin[j]:
            self.approximate(f"{where}: its limits are narrower by their margin")
        if m.jnt_actfrclimited[j]:
            low, high = m.jnt_actfrcrange[j]
            larger = "" if low == -high else ", of the larger one"
            limit = f"an effort_limit{larger}, of what actuators give together"
            self.approximate(f"{where}: actuatorfrcrange is {limit}")
        if m.jnt_actgravcomp[j] and m.jnt_actfrclimited[j]:
            self.approximate(f"{where}: gravity compensation is not within its actuatorfrcrange")
        if kind != FREE:
            return
        if not np.array_equal(m.qpos0[start : start + 7], JOINTS[FREE].neutral):
            self.approximate(
                f"{where}: where its body is in the file is model.rest; neutral is at the origin"
            )
        if m.jnt_stiffness[j] and not self.is_off("SPRING"):
            pull = "pulls along the screw that leads back to rest, in MuJoCo along a line"
            self.approximate(f"{where}: its spring {pull}")

    def report_numbers(self) -> None:
        """Report which numbers of joints, tendons and actuators have no place in the model."""
        named = {"jnt": self.joints, "tendon": self.tendons, "actuator": self.actuators}
        named["dof"] = [self.joints[j] for j in self.m.dof_jntid]
        for field, what in NUMBERS.items():
            names = named[field.partition("_")[0]]
            rows = getattr(self.m, field, np.zeros(len(names)))  # younger than some of MuJoCo
            if field in ("actuator_damping", "actuator_armature"):
                key = field.partition("_")[2]
                rows = [0.0 if self.takes_from(key, a) else row for a, row in enumerate(rows)]
            lost = (name for name, row in zip(names, rows, strict=True) if np.any(row))
            for name in dict.fromkeys(lost):
                self.ignore(f"{what} {name!r}")


def coupling(names: list[str], start: list[float], data: Vector) -> Coupling:
    """Return a length held at a polynomial of another, both from where they start."""
    offset, factors = float(data[0]) + start[0], tuple(map(float, data[1:5]))
    if len(names) < 2 or not any(factors):
        return Coupling({names[0]: 1.0}, offset)
    return Coupling({names[0]: 1.0}, offset, names[1], factors, start[1])


def stop_of(solref: Vector) -> tuple[float, float]:
    """Return frequency and damping ratio of a stop for a reference of MuJoCo's solver.

    A positive one is a time constant and a damping ratio, a negative one stiffness and damping per
    inertia.
    """
    first, second = (float(x) for x in solref)
    if (first > 0.0) != (second > 0.0):  # MuJoCo takes its default for a mixed one
        first, second = 0.02, 1.0
    if first > 0.0:
        return 1.0 / (first * max(second, MJMINVAL)), second
    frequency = max(-first, MJMINVAL) ** 0.5
    return frequency, -0.5 * second / frequency


def softness_row(solref: Vector, solimp: Vector) -> Vector:
    """Return frequency, damping ratio and impedance (7,) of dry friction."""
    return np.array([*stop_of(solref), *solimp.tolist()])


def label(row: Any, what: str) -> str:
    """Return what a report calls an element: by its name, or by its number."""
    return f"{what} {row.name!r}" if row.name else f"{what} {row.id}"


def rotation_of(quaternion: ArrayLike) -> Matrix:
    """Return the matrix (3, 3), child to parent, of a quaternion."""
    return quaternion_to_dcm(np.array(quaternion, dtype=float)).T

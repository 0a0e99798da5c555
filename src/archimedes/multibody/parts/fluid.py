"""Forces of the fluid around bodies: of boxes and of ellipsoids, as in MuJoCo.

Legend: v, w are the velocity of a shape against the fluid and its angular velocity, in its own
axes; rho is the density and mu the viscosity of the fluid. Both shapes have the drag of a sphere in
slow flow (Stokes), ``3 pi D mu v`` and ``pi D^3 mu w`` for a mean diameter D, and one that grows
with the square of the speed. An ellipsoid of semi-axes a, b, c that moves along n shows the area
``A = pi sqrt((bc)^4 n_x^2 + ...) / sqrt((bc)^2 n_x^2 + ...)``; where it moves at an angle to the
normal of that area it has lift (Kutta), and where it spins, too (Magnus). Added mass has the
momentum ``rho V v`` for the volumes V, of which the part counts that turns with the body.
Source: MuJoCo documentation, "Computation", "Passive forces", "Fluid forces".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from archimedes import checks
from archimedes.multibody.parts.ranges import check_placement
from archimedes.spatial.components import cross
from archimedes.spatial.spatial_algebra import Pose
from archimedes.tree import field, replace, struct
from archimedes.typing import Scalar, Vec3, Vector

__all__ = ["Fluid", "FluidBox", "FluidEllipsoid"]

#: The least that is divided by, as in MuJoCo.
LEAST = 1e-15


class OnFrame:
    """What shapes in a fluid share: they are fixed to a frame."""

    frame: str
    rotation: Any
    position: Any

    def place(self, what: str) -> None:
        """Check where the shape is."""
        pose = check_placement(self.rotation, self.position, f"{what} of {self.frame!r}:")
        self.__dict__["rotation"], self.__dict__["position"] = pose.R, pose.p

    @property
    def at(self) -> Pose:
        """The pose of the shape in its frame."""
        return Pose(self.rotation, self.position)

    def renamed(self, prefix: str) -> Any:
        """Return the same for a frame whose name has a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        return replace(self, frame=prefix + self.frame)


@struct
class FluidBox(OnFrame):
    """A box in a fluid: drag along and about each of its axes.

    Parameters
    ----------
    frame : str
        Body or frame that it is fixed to.
    sides : array (3,)
        Lengths in m of its sides.
    rotation : array (3, 3), optional
        Rotation matrix of the box in its frame.
    position : array (3,), optional
        Position in m of its centre in its frame.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("plate", mass=1.0, inertia=[0.1, 0.1, 0.2])
    >>> b.attach("plate", joint="rail", kind="prismatic", axis=[0, 0, 1])
    >>> b.fluid = mb.Fluid(density=1000.0, shapes=[mb.FluidBox("plate", [0.2, 0.1, 0.01])])
    >>> mb.passive_torque(b.build(), np.zeros(1), np.array([2.0]))  # -rho / 2 0.02 m^2 (2 m/s)^2
    array([-40.])
    """

    frame: str = field(static=True)
    sides: Any = field(units="m")
    rotation: Any = field(default=None)
    position: Any = field(units="m", default=None)

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        self.place("FluidBox")
        sides = checks.check_vector(self.sides, 3, "FluidBox sides")
        checks.check_not_negative(sides, "FluidBox sides")
        self.__dict__["sides"] = sides

    def wrench(self, density: Scalar, viscosity: Scalar, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
        """Return force and torque on the box in its axes.

        Parameters
        ----------
        density : float
            Density of the fluid in kg/m^3.
        viscosity : float
            Viscosity of the fluid in Pa s.
        v : array (..., 3)
            Velocity of its centre in the fluid in m/s.
        w : array (..., 3)
            Angular velocity in rad/s.
        """
        x, y, z = (self.sides[..., k] for k in range(3))
        D = (x + y + z) / 3.0
        areas = np.stack([y * z, z * x, x * y], axis=-1)
        # Of a side that turns: the integral of the square of the speed over it.
        turning = np.stack([x * (y**4 + z**4), y * (z**4 + x**4), z * (x**4 + y**4)], axis=-1)
        force = -3.0 * np.pi * D * viscosity * v - 0.5 * density * areas * np.abs(v) * v
        torque = -np.pi * D**3 * viscosity * w - density / 64.0 * turning * np.abs(w) * w
        return force, torque


@struct
class FluidEllipsoid(OnFrame):
    """An ellipsoid in a fluid: drag, lift and added mass.

    Parameters
    ----------
    frame : str
        Body or frame that it is fixed to.
    semi_axes : array (3,)
        Semi-axes in m.
    rotation : array (3, 3), optional
        Rotation matrix of the ellipsoid in its frame.
    position : array (3,), optional
        Position in m of its centre in its frame.
    blunt_drag, slender_drag, angular_drag : float, optional
        Coefficients of drag: 0.5 of the area that it shows, 0.25 of the rest of its largest area,
        1.5 of turning.
    kutta_lift, magnus_lift : float, optional
        Coefficients of lift at an angle to the flow, and of spin: 1 by default.
    added_mass : array (3,), optional
        Volumes in m^3 of fluid that move with it along its axes. Zero by default.
    added_inertia : array (3,), optional
        Moments in m^5 of fluid that turn with it about its axes. Zero by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("ball", joint="rail", kind="prismatic", axis=[0, 0, 1])
    >>> b.fluid = mb.Fluid(density=1000.0, shapes=[mb.FluidEllipsoid("ball", [0.1, 0.1, 0.1])])
    >>> drag = mb.passive_torque(b.build(), np.zeros(1), np.array([2.0]))
    >>> bool(abs(drag[0] + 1000.0 * 0.5 * np.pi * 0.1**2 * 2.0**2) < 1e-12)
    True
    """

    frame: str = field(static=True)
    semi_axes: Any = field(units="m")
    rotation: Any = field(default=None)
    position: Any = field(units="m", default=None)
    blunt_drag: Any = field(units="", default=0.5)
    slender_drag: Any = field(units="", default=0.25)
    angular_drag: Any = field(units="", default=1.5)
    kutta_lift: Any = field(units="", default=1.0)
    magnus_lift: Any = field(units="", default=1.0)
    added_mass: Any = field(units="m^3", default=np.zeros(3))
    added_inertia: Any = field(units="m^5", default=np.zeros(3))

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        self.place("FluidEllipsoid")
        axes = checks.check_vector(self.semi_axes, 3, "FluidEllipsoid semi_axes")
        checks.check_positive(axes, "FluidEllipsoid semi_axes")
        self.__dict__["semi_axes"] = axes
        for name in ("added_mass", "added_inertia"):
            added = checks.check_vector(getattr(self, name), 3, f"FluidEllipsoid {name}")
            self.__dict__[name] = added

    def wrench(self, density: Scalar, viscosity: Scalar, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
        """Return force and torque on the ellipsoid in its axes.

        Parameters
        ----------
        density : float
            Density of the fluid in kg/m^3.
        viscosity : float
            Viscosity of the fluid in Pa s.
        v : array (..., 3)
            Velocity of its centre in the fluid in m/s.
        w : array (..., 3)
            Angular velocity in rad/s.
        """
        a, b, c = (self.semi_axes[..., k] for k in range(3))
        largest = np.maximum(np.maximum(a, b), c)
        least = np.minimum(np.minimum(a, b), c)
        middle = a + b + c - largest - least
        speed, D = norm(v), 2.0 / 3.0 * (a + b + c)

        # The area that it shows, and its normal, which is not of unit length.
        squares = np.stack([b * c, c * a, a * b], axis=-1) ** 2
        across = np.sum(squares * v * v, axis=-1)
        shown = np.sum(squares * squares * v * v, axis=-1)
        area = np.pi * root(shown / np.maximum(across, LEAST))
        cosine = across / np.maximum(speed * shown, LEAST)
        circulation = cross(squares * v, v) * (self.kutta_lift * density * cosine * area)[..., None]
        lift = cross(circulation, v)
        volume = 4.0 / 3.0 * np.pi * a * b * c
        magnus = self.magnus_lift * density * volume * cross(w, v)

        whole = np.pi * largest * middle
        wet = self.blunt_drag * area + self.slender_drag * (whole - area)
        drag = 3.0 * np.pi * D * viscosity + density * speed * wet

        # Turning about an axis moves the longer of the two others.
        others = np.maximum(np.stack([b, c, a], axis=-1), np.stack([c, a, b], axis=-1))
        turned = 8.0 / 15.0 * np.pi * self.semi_axes * others**4
        most = 8.0 / 15.0 * np.pi * middle * largest**4
        spin = w * (
            self.angular_drag * turned + self.slender_drag * (np.stack([most] * 3, -1) - turned)
        )
        brake = np.pi * D**3 * viscosity + density * norm(spin)

        momentum, turning = density * self.added_mass * v, density * self.added_inertia * w
        force = magnus + lift - drag[..., None] * v + cross(momentum, w)
        torque = -brake[..., None] * w + cross(momentum, v) + cross(turning, w)
        return force, torque


FluidShape: TypeAlias = FluidBox | FluidEllipsoid


@struct
class Fluid:
    """The fluid around a robot, and the shapes on which it acts.

    Its forces are among those of `passive_torque`, so `dynamics` has them.

    Parameters
    ----------
    density : float, optional
        Density in kg/m^3, 0 by default: no forces that grow with the square of speed.
    viscosity : float, optional
        Viscosity in Pa s, 0 by default.
    wind : array (3,), optional
        Velocity of the fluid in m/s, in axes of the world.
    shapes : sequence of FluidBox and FluidEllipsoid, optional
        What it acts on.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("ball", joint="rail", kind="prismatic", axis=[0, 0, 1])
    >>> b.fluid = mb.Fluid(viscosity=0.5, shapes=[mb.FluidBox("ball", [0.2, 0.2, 0.2])])
    >>> mb.passive_torque(b.build(), np.zeros(1), np.array([1.0])).round(4)  # -3 pi 0.2 m mu v
    array([-0.9425])
    """

    density: Any = field(units="kg/m^3", default=0.0)
    viscosity: Any = field(units="Pa s", default=0.0)
    wind: Any = field(units="m/s", default=np.zeros(3))
    shapes: Sequence[FluidShape] = field(default=())

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        for name in ("density", "viscosity"):
            checks.check_not_negative(getattr(self, name), f"Fluid {name}")
        self.__dict__["wind"] = checks.check_vector(self.wind, 3, "Fluid wind")
        self.__dict__["shapes"] = tuple(self.shapes)
        for shape in self.shapes:
            if not isinstance(shape, OnFrame):
                raise TypeError(f"Fluid shapes are FluidBox and FluidEllipsoid, got {shape!r:.60}")

    def with_shapes(self, shapes: Any) -> Fluid:
        """Return the same fluid around other shapes.

        Parameters
        ----------
        shapes : sequence of FluidBox and FluidEllipsoid
            What it acts on.
        """
        return replace(self, shapes=tuple(shapes))


def root(x: Scalar) -> Any:
    """Return the square root, whose derivative at zero is zero here."""
    some = x > 0.0
    return np.where(some, np.sqrt(np.where(some, x, 1.0)), 0.0)


def norm(x: Vector) -> Any:
    """Return the length of vectors (..., 3)."""
    return root(np.sum(x * x, axis=-1))

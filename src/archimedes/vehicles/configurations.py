"""What a file of parameters may hold: one typed configuration per vehicle, and its parts.

Every key is needed, so that a file says all there is to say. Values are in SI units and radians;
the files in the folder ``parameters`` name the unit of each. A configuration makes its part once
when it is read: what the part refuses is reported with the file and the key it stands under.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from archimedes.tree import StructConfig
from archimedes.vehicles.car import Car, Tyre
from archimedes.vehicles.f16 import F16, F16Aerodynamics, F16Engine
from archimedes.vehicles.multirotor import Multirotor, ring
from archimedes.vehicles.parts import MassProperties, ReactionWheels, Rotors, Thrusters
from archimedes.vehicles.parts.magnetorquers import Magnetorquers
from archimedes.vehicles.rocket import Rocket, Stage, cylindrical_stage
from archimedes.vehicles.satellite import Satellite
from archimedes.vehicles.worlds import FlatEarth, RotatingEarth

__all__ = ["CarConfig", "F16Config", "MultirotorConfig", "RocketConfig", "SatelliteConfig"]

Vector = tuple[float, float, float]
World = Literal["flat_earth", "rotating_earth"]
WORLDS = {"flat_earth": FlatEarth, "rotating_earth": RotatingEarth}


class PartConfig(StructConfig):
    """A configuration whose part is made when it is read, to check it under its own key."""

    def __post_init__(self) -> None:
        """Make the part; what it refuses becomes an error of this key."""
        if type(self) is not PartConfig:
            self.build()

    def values(self, *names: str) -> dict[str, Any]:
        """Return fields for the constructor of the part, all but `names`; parts are made."""
        fields = {n: getattr(self, n) for n in self.__dataclass_fields__ if n not in names}
        return {n: v.build() if isinstance(v, StructConfig) else v for n, v in fields.items()}


class F16AerodynamicsConfig(PartConfig):
    """Sizes that belong to the tables."""

    area: float
    span: float
    chord: float
    reference: float

    def build(self) -> F16Aerodynamics:
        """Return the aerodynamics."""
        return F16Aerodynamics(**self.values())


class F16EngineConfig(PartConfig):
    """The engine of the F-16."""

    angular_momentum: float
    lag: bool

    def build(self) -> F16Engine:
        """Return the engine."""
        return F16Engine(**self.values())


class F16Config(PartConfig, type="f16"):
    """A file of type f16."""

    mass: float
    inertia: np.ndarray
    xcg: float
    aero: F16AerodynamicsConfig
    engine: F16EngineConfig
    world: World

    def build(self) -> F16:
        """Return the aircraft."""
        return F16(**self.values("world"), world=WORLDS[self.world]())


class RotorsConfig(PartConfig):
    """Rotors around a circle."""

    count: int
    arm: float
    thrust: float
    torque: float
    inertia: float
    time_constant: float
    max_speed: float
    inflow: float
    drag: float
    density: float

    def build(self) -> Rotors:
        """Return the rotors."""
        return ring(**self.values())


class MultirotorConfig(PartConfig, type="multirotor"):
    """A file of type multirotor."""

    mass: float
    inertia: np.ndarray
    drag: Vector
    rotors: RotorsConfig
    world: World

    def build(self) -> Multirotor:
        """Return the multirotor."""
        drag = np.array(self.drag)
        return Multirotor(**self.values("world", "drag"), drag=drag, world=WORLDS[self.world]())


class WheelsConfig(PartConfig):
    """Reaction wheels."""

    axes: np.ndarray
    inertia: float
    max_torque: float
    max_momentum: float

    def build(self) -> ReactionWheels:
        """Return the wheels."""
        return ReactionWheels(**self.values())


class CoilsConfig(PartConfig):
    """Magnetorquers."""

    axes: np.ndarray
    max_dipole: float

    def build(self) -> Magnetorquers:
        """Return the coils."""
        return Magnetorquers(**self.values())


class ThrustersConfig(PartConfig):
    """Thrusters fixed to the body."""

    positions: np.ndarray
    directions: np.ndarray
    thrust: float
    specific_impulse: float

    def build(self) -> Thrusters:
        """Return the thrusters."""
        return Thrusters(**self.values())


class SatelliteConfig(PartConfig, type="satellite"):
    """A file of type satellite."""

    mass: float
    inertia: np.ndarray
    wheels: WheelsConfig
    coils: CoilsConfig
    thrusters: ThrustersConfig | None
    gravity_gradient: bool
    area: float
    drag: float
    angle: float
    omega: float

    def build(self) -> Satellite:
        """Return the satellite."""
        return Satellite(**self.values())


class StageConfig(PartConfig):
    """A cylindrical stage with its tank and engine."""

    bottom: float
    length: float
    radius: float
    dry_mass: float
    propellant: float
    thrust: float
    specific_impulse: float
    exit_area: float
    max_gimbal: float

    def build(self) -> Stage:
        """Return the stage."""
        return cylindrical_stage(**self.values())


class PayloadConfig(PartConfig):
    """What the rocket carries."""

    mass: float
    com: Vector
    inertia: np.ndarray

    def build(self) -> MassProperties:
        """Return the mass properties."""
        return MassProperties(self.mass, np.array(self.com), self.inertia)


class RocketConfig(PartConfig, type="rocket"):
    """A file of type rocket."""

    stages: list[StageConfig]
    payload: PayloadConfig
    area: float
    axial: float
    normal: float
    pressure_point: float
    world: World

    def build(self) -> Rocket:
        """Return the rocket."""
        stages = tuple(stage.build() for stage in self.stages)
        world = WORLDS[self.world]()
        return Rocket(stages, **self.values("stages", "world"), world=world)


class TyreConfig(PartConfig):
    """A tyre."""

    friction: float
    stiffness: float
    shape: float

    def build(self) -> Tyre:
        """Return the tyre."""
        return Tyre(**self.values())


class CarConfig(PartConfig, type="car"):
    """A file of type car."""

    mass: float
    inertia: np.ndarray
    front: float
    rear: float
    track: float
    height: float
    spring: float
    damper: float
    tyre: TyreConfig
    front_drive: float
    drag: float

    def build(self) -> Car:
        """Return the car."""
        return Car(**self.values())

"""A rocket of several stages: thrust that is steered, tanks that empty, stages that fall away.

Axes: body x forward along the rocket, from its tail; the state of motion is that of the centre of
mass, which moves along x as the tanks empty. Thrust carries the momentum of the exhaust, so that no
other term of the loss of mass appears (Galilean invariance); the slow motion of the centre of mass
within the body and the damping of the exhaust's turning are left out, as are slosh and bending.
Aerodynamics, tanks and tables of mass are parts that can be exchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_struct
from archimedes.environment import ecef_to_geodetic, ned
from archimedes.simulate import Event
from archimedes.spatial.components import cross
from archimedes.tree import field, replace, struct
from archimedes.typing import Scalar, Tree, Vec3
from archimedes.vehicles.parts.actuators import WORLD, check_part, limited
from archimedes.vehicles.parts.mass_properties import MassProperties, Tank, combined
from archimedes.vehicles.vehicle_folders import FolderScene, PartConfig, VehicleConfig, World
from archimedes.vehicles.worlds import FlightState, RotatingEarth, Surroundings

__all__ = [
    "OrbitGuidance",
    "Rocket",
    "RocketAerodynamics",
    "Stage",
    "cylindrical_stage",
    "two_stage_rocket",
]

STANDARD_GRAVITY = 9.80665


@struct
class Stage:
    """A stage of a rocket: structure, tank, and one engine on a gimbal.

    Parameters
    ----------
    structure : MassProperties
        Structure.
    tank : Tank
        Propellant: a `Tank`, a `MassTable`, or another object with ``capacity`` in kg and
        ``contents(mass)``, which returns `MassProperties`.
    thrust : float
        Thrust in vacuum in N.
    specific_impulse : float
        Specific impulse in vacuum in s.
    exit_area : float, optional
        Exit area of the nozzle in m^2, by which the pressure of the air reduces the thrust.
    engine : float, optional
        Position of the engine in m from the tail of the rocket.
    max_gimbal : float, optional
        Largest gimbal angle in rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import Stage
    >>> from archimedes.vehicles.parts import MassProperties, Tank
    >>> tank = Tank(capacity=9000.0, bottom=np.zeros(3), length=4.0, radius=0.5)
    >>> dry = MassProperties(900.0, np.array([3.0, 0.0, 0.0]), np.diag([200.0, 4e3, 4e3]))
    >>> stage = Stage(dry, tank, thrust=2e5, specific_impulse=300.0)
    >>> round(float(stage.flow(1.0)), 2)
    67.98
    """

    structure: MassProperties = field()
    tank: Any = field()
    thrust: Any = field(units="N")
    specific_impulse: Any = field(units="s")
    exit_area: Any = field(units="m^2", default=0.0)
    engine: Any = field(units="m", default=0.0)
    max_gimbal: Any = field(units="rad", default=0.1)

    def __post_init__(self) -> None:
        """Check sizes where they are known."""
        check_struct(self, "thrust specific_impulse", "exit_area max_gimbal")
        check_part(self.tank, "Stage.tank", ("capacity", "contents"))

    def flow(self, throttle: Scalar) -> Any:
        """Return the propellant flow in kg/s.

        Parameters
        ----------
        throttle : float
            Throttle from 0 to 1.
        """
        return throttle * self.thrust / (STANDARD_GRAVITY * self.specific_impulse)


@struct
class RocketAerodynamics:
    """Forces of the air on a slender body: one along x, one across it, acting at one point.

    Parameters
    ----------
    area : float, optional
        Area of the cross-section in m^2.
    axial : float or callable, optional
        Coefficient of the force along x: a number, or a function of the Mach number such as an
        `interpolant`.
    normal : float or callable, optional
        Coefficient of the force across x, per rad; a number or a function of the Mach number.
    pressure_point : float or callable, optional
        Distance in m from the tail at which these forces act; a number or a function of the Mach
        number.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.vehicles import RocketAerodynamics, load
    >>> drag = arc.interpolant([[0.0, 0.9, 1.1, 5.0]], [0.3, 0.35, 0.6, 0.25])
    >>> rocket = load("rocket", aero=RocketAerodynamics(area=2.5, axial=drag))
    >>> rocket.aero.area
    2.5
    """

    area: Scalar = field(units="m^2", default=2.0)
    axial: Scalar = field(units="", default=0.3)
    normal: Scalar = field(units="", default=3.0)
    pressure_point: Scalar = field(units="m", default=15.0)

    def __post_init__(self) -> None:
        """Check sizes where they are known."""
        names = [name for name in ("axial", "normal") if not callable(getattr(self, name))]
        check_struct(self, not_negative=" ".join(["area", *names]))

    def wrench(self, around: Surroundings, com: Vec3, x: Tree) -> tuple[Any, Any]:
        """Return force in N and moment about the centre of mass in N m, in body axes.

        Parameters
        ----------
        around : Surroundings
            Air, and motion relative to it.
        com : array (3,)
            Centre of mass in m from the tail.
        x : Rocket.State
            State of the rocket.
        """
        v = around.v_air_B
        axial, normal, point = (
            value(around.mach) if callable(value) else value
            for value in (self.axial, self.normal, self.pressure_point)
        )
        half = 0.5 * around.air.density * self.area * around.airspeed
        along, across = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])
        F_B = -half * (axial * v * along + normal * v * across)
        arm = along * point - com
        return F_B, cross(arm, F_B)


@struct
class Rocket(FolderScene):
    """A rocket of several stages and a payload, whose parts can be exchanged.

    Parameters
    ----------
    stages : tuple of Stage
        Stages, first to last.
    payload : MassProperties
        Payload.
    aero : RocketAerodynamics, optional
        Aerodynamics: an object with ``wrench(around, com, x)``.
    mass_tables : tuple of MassTable, optional
        Mass properties of the whole rocket, for each stage while it is the lowest one attached:
        objects with ``contents(propellant)``. By default they follow from stages and payload.
    world : FlatEarth or RotatingEarth, optional
        World with gravity, air and wind.

    Examples
    --------
    >>> from archimedes.vehicles import load
    >>> rocket = load("rocket")
    >>> len(rocket.stages)
    2
    """

    stages: tuple[Stage, ...] = field()
    payload: MassProperties = field()
    aero: Any = field(default_factory=RocketAerodynamics)
    mass_tables: tuple[Any, ...] = ()
    world: Any = field(default_factory=RotatingEarth)

    @struct
    class State:
        """Motion of the centre of mass, propellant of each stage, and which stages are attached.

        Parameters
        ----------
        motion : State
            Motion in the world.
        propellant : array (n,)
            Propellant of each stage in kg.
        attached : array (n,)
            1 for stages that are attached, else 0.
        """

        motion: Any = field()
        propellant: Any = field(units="kg")
        attached: Any = field(units="")

    @struct
    class Input:
        """Throttle from 0 to 1, and the engine's angles: nose up, and to the right.

        Parameters
        ----------
        throttle : float
            Throttle from 0 to 1.
        gimbal : array (2,), optional
            Angles of the engine in rad: nose up, and to the right.
        """

        throttle: Any = field(units="", limits=(0.0, 1.0))
        gimbal: Any = field(units="rad", limits=(-0.15, 0.15), default_factory=lambda: np.zeros(2))

    @struct
    class Output:
        """Flight state, mass, load along x, dynamic pressure.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        mass : float
            Mass in kg.
        load : float
            Acceleration along x in m/s^2, without gravity.
        dynamic_pressure : float
            Dynamic pressure in Pa.
        """

        flight: FlightState = field()
        mass: Any = field(units="kg")
        load: Any = field(units="m/s^2")
        dynamic_pressure: Any = field(units="Pa")

    def __post_init__(self) -> None:
        """Check the stages, and sizes where they are known."""
        if not self.stages:
            raise ValueError("Rocket.stages is empty: a rocket has one stage or more")
        check_part(self.aero, "Rocket.aero", ("wrench",))
        if self.mass_tables and len(self.mass_tables) != len(self.stages):
            raise ValueError(
                f"Rocket.mass_tables has {len(self.mass_tables)} tables for {len(self.stages)} "
                "stages: give one for each stage, or none"
            )
        for k, table in enumerate(self.mass_tables):
            check_part(table, f"Rocket.mass_tables[{k}]", ("contents",))
        check_part(self.world, "Rocket.world", (*WORLD, "shifted"))

    def state(self, flight: FlightState) -> Any:
        """Return the state with full tanks and all stages.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        """
        full = np.array([as_array(stage.tank.capacity) for stage in self.stages])
        return Rocket.State(self.world.state(flight), full, np.ones(len(self.stages)))

    def mass_properties(self, x: Tree) -> MassProperties:
        """Return mass, centre of mass and inertia of what is still attached.

        Parameters
        ----------
        x : State
            State of the vehicle.
        """
        if self.mass_tables:
            return self._tabulated(x)
        parts = [self.payload]
        for k, stage in enumerate(self.stages):
            for part in (stage.structure, stage.tank.contents(x.propellant[k])):
                here = x.attached[k]
                inertia = here * as_array(part.inertia)
                parts.append(MassProperties(here * part.mass, part.com, inertia))
        return combined(parts)

    def _tabulated(self, x: Tree) -> MassProperties:
        mass, com, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
        for k, here in enumerate(lowest(x.attached)):
            row = self.mass_tables[k].contents(x.propellant[k])
            mass, com = mass + here * row.mass, com + here * row.com
            inertia = inertia + here * row.inertia
        return MassProperties(mass, com, inertia)

    def firing(self, x: Tree, throttle: Scalar) -> Any:
        """Return the throttle (n,) of each stage: the lowest one attached fires while it can.

        Parameters
        ----------
        x : State
            State of the vehicle.
        throttle : float
            Throttle from 0 to 1.
        """
        return np.stack(
            [
                np.where(x.propellant[k] > 0.0, mine * throttle, 0.0)
                for k, mine in enumerate(lowest(x.attached))
            ]
        )

    def forces(self, t: Scalar, x: Tree, u: Tree) -> tuple[Any, Any]:
        """Return force and moment on the vehicle.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.

        Returns
        -------
        (array (3,), array (3,))
            Force in N without gravity, and moment in N m about the centre of mass, in body axes.
        """
        around = self.world.surroundings(t, x.motion)
        com = self.mass_properties(x).com
        F_B, M_B = self.aero.wrench(around, com, x)
        pressure = around.air.pressure
        throttles = self.firing(x, np.clip(u.throttle, 0.0, 1.0))
        for k, stage in enumerate(self.stages):
            pitch, yaw = (limited(u.gimbal[k], stage.max_gimbal) for k in range(2))
            size = np.maximum(throttles[k] * stage.thrust - pressure * stage.exit_area, 0.0)
            size = np.where(throttles[k] > 0.0, size, 0.0)
            # An engine that pushes its end down turns the nose up.
            ahead = np.stack([np.cos(pitch) * np.cos(yaw), -np.sin(yaw), np.sin(pitch)])
            push = size * ahead
            arm = np.array([1.0, 0.0, 0.0]) * stage.engine - com
            F_B, M_B = F_B + push, M_B + cross(arm, push)
        return F_B, M_B

    def dynamics(self, t: Scalar, x: Tree, u: Tree) -> Any:
        """Return the derivative of the state.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.
        """
        whole = self.mass_properties(x)
        F_B, M_B = self.forces(t, x, u)
        throttles = self.firing(x, np.clip(u.throttle, 0.0, 1.0))
        burnt = np.stack([stage.flow(throttles[k]) for k, stage in enumerate(self.stages)])
        motion = self.world.rates(t, x.motion, F_B, M_B, whole.mass, whole.inertia)
        return Rocket.State(motion, -burnt, 0.0 * x.attached)

    def outputs(self, t: Scalar, x: Tree, u: Tree) -> Any:
        """Return flight state, mass, load and dynamic pressure.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u : Input
            Inputs of the vehicle.
        """
        around, mass = self.world.surroundings(t, x.motion), self.mass_properties(x).mass
        F_B, _ = self.forces(t, x, u)
        flight, load = self.world.flight(t, x.motion), F_B[0] / mass
        return Rocket.Output(flight, mass, load, around.dynamic_pressure)

    def separate(self, x: Tree, stage: int) -> Any:
        """Return the state without a stage: the reset of a staging event.

        The rest continues with the velocity that its own centre of mass had.

        Parameters
        ----------
        x : State
            State of the vehicle.
        stage : int
            Number of the stage.
        """
        gone = np.arange(len(self.stages)) == stage
        after = Rocket.State(x.motion, x.propellant, np.where(gone, 0.0, x.attached))
        shift = self.mass_properties(after).com - self.mass_properties(x).com
        return replace(after, motion=self.world.shifted(x.motion, shift))

    def staging(self) -> tuple[Event, ...]:
        """Return events for `solve_ode`: every stage but the last falls away when it is empty."""
        return tuple(
            Event(
                # Far from zero once the stage has gone.
                lambda t, x, *args, k=k: np.where(x.attached[k] > 0.5, x.propellant[k], 1.0),
                direction=-1,
                reset=lambda t, x, *args, k=k: self.separate(x, k),
            )
            for k in range(len(self.stages) - 1)
        )


def lowest(attached: Any) -> list[Any]:
    """Return 1 for the lowest stage that is attached, and 0 for the others."""
    marks, taken = [], 0.0 * attached[0]
    for k in range(len(attached)):
        marks.append(np.where(taken > 0.0, 0.0, attached[k]))
        taken = taken + attached[k]
    return marks


def cylindrical_stage(
    bottom: Scalar,
    length: Scalar,
    radius: Scalar,
    dry_mass: Scalar,
    propellant: Scalar,
    **engine: Any,
) -> Stage:
    """Return a stage that is a thin shell around a tank, from `bottom` m up, its engine there.

    The tank leaves half a metre free at both ends; `engine` are the other fields of `Stage`.
    """
    middle = np.array([bottom + 0.5 * length, 0.0, 0.0])
    across = dry_mass * (3 * radius**2 + length**2) / 12.0
    shell = MassProperties(dry_mass, middle, np.diag([dry_mass * radius**2, across, across]))
    tank = Tank(propellant, np.array([bottom + 0.5, 0.0, 0.0]), length - 1.0, radius)
    return Stage(shell, tank, engine=bottom, **engine)


def two_stage_rocket(payload: float = 500.0, world: object | None = None) -> Rocket:
    """Return a rocket of 30 t with two stages that reaches a low orbit.

    It is made up, with typical figures: kerosene and liquid oxygen, structural ratios of 7 % and 9
    %.

    Parameters
    ----------
    payload : float, optional
        Mass of the payload in kg.
    world : FlatEarth or RotatingEarth, optional
        World with gravity, air and wind.

    Examples
    --------
    >>> from archimedes.vehicles import two_stage_rocket
    >>> len(two_stage_rocket().stages)
    2
    """
    first = cylindrical_stage(
        0.0, 14.0, 0.9, 1700.0, 22500.0, thrust=4.6e5, specific_impulse=305.0, exit_area=0.45
    )
    second = cylindrical_stage(14.0, 5.0, 0.9, 450.0, 4600.0, thrust=3.2e4, specific_impulse=340.0)
    gyration = 1.0  # radius of gyration of the payload in m
    inertia = payload * gyration**2 * np.eye(3)
    nose = MassProperties(payload, np.array([20.0, 0.0, 0.0]), inertia)
    world = RotatingEarth() if world is None else world
    aero = RocketAerodynamics(area=np.pi * 0.9**2)
    return Rocket((first, second), nose, aero, world=world)


@struct
class OrbitGuidance:
    """Guidance of a rocket on a `RotatingEarth` into an orbit, to the east.

    The first stage rises, tips by `kick` and follows its own path: a gravity turn, which keeps the
    angle of attack small. The tangent of the pitch angle of later stages falls linearly with time,
    ``tangent - tangent_rate * (t - 150)``, which is optimal over a flat Earth (Bryson and Ho,
    Applied Optimal Control, section 2.4). The engine is cut off at the desired orbital energy. The
    gimbal holds the attitude, with gains per inertia.

    Parameters
    ----------
    kick : float, optional
        Pitch-over angle in rad.
    kick_start : float, optional
        Time in s at which the pitch-over begins.
    kick_end : float, optional
        Time in s at which it ends, and the path is followed.
    tangent : float, optional
        Tangent of the pitch angle of later stages at 150 s.
    tangent_rate : float, optional
        Decrease of that tangent in 1/s.
    radius : float, optional
        Semi-major axis in m at which the engine stops.
    stiffness : float, optional
        Attitude gain in 1/s^2.
    damping : float, optional
        Rate gain in 1/s.

    Examples
    --------
    >>> from archimedes.vehicles import OrbitGuidance
    >>> guidance = OrbitGuidance()  # guidance.command(rocket, t, x) is the rocket's input
    """

    kick: Any = field(units="rad", default=0.08)
    kick_start: Any = field(units="s", default=8.0)
    kick_end: Any = field(units="s", default=20.0)
    tangent: Any = field(units="", default=0.55)
    tangent_rate: Any = field(units="1/s", default=0.0014)
    radius: Any = field(units="m", default=6.378137e6 + 400e3)
    stiffness: Any = field(units="1/s^2", default=4.0)
    damping: Any = field(units="1/s", default=3.5)

    def command(self, rocket: Rocket, t: Scalar, x: Tree) -> Any:
        """Return the inputs of the rocket.

        Parameters
        ----------
        rocket : Rocket
            The rocket.
        t : float
            Time in s.
        x : State
            State of the vehicle.
        """
        check_part(rocket.world, "OrbitGuidance.command: rocket.world", ("ellipsoid",))
        lat, lon, _ = ecef_to_geodetic(x.motion.pos, rocket.world.ellipsoid)
        local = ned(lat, lon)
        pitch = self.pitch(t, x, local.rotate(x.motion.v_E))
        wanted = np.stack([0.0 * pitch, np.cos(pitch), -np.sin(pitch)])
        wanted_B = x.motion.att.rotate(local.rotate(wanted, inverse=True))
        gimbal = self._gimbal(rocket, x, wanted_B)
        goal = -0.5 * rocket.world.ellipsoid.mu / self.radius
        return Rocket.Input(np.where(self.energy(rocket, x) < goal, 1.0, 0.0), gimbal)

    def pitch(self, t: Scalar, x: Tree, v_NED: Vec3) -> Any:
        """Return the desired pitch angle in rad above the horizon.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        v_NED : array (3,)
            Velocity in m/s relative to the ground: north, east, down.
        """
        level = np.maximum(np.hypot(v_NED[0], v_NED[1]), 1e-3)
        path = np.arctan2(-v_NED[2], level)
        tip = np.clip((t - self.kick_start) / (0.5 * (self.kick_end - self.kick_start)), 0.0, 1.0)
        rising = np.where(t < self.kick_end, 0.5 * np.pi - self.kick * tip, path)
        later = np.arctan(self.tangent - self.tangent_rate * (t - 150.0))
        return np.where(x.attached[0] > 0.0, rising, later)

    def energy(self, rocket: Rocket, x: Tree) -> Any:
        """Return the orbital energy in J/kg, of the inertial motion.

        Parameters
        ----------
        rocket : Rocket
            The rocket.
        x : State
            State of the vehicle.
        """
        motion, planet = x.motion, rocket.world.ellipsoid
        v = motion.v_E + cross(planet.omega * np.array([0.0, 0.0, 1.0]), motion.pos)
        return 0.5 * np.sum(v * v) - planet.mu / np.sqrt(np.sum(motion.pos * motion.pos))

    def _gimbal(self, rocket: Rocket, x: Tree, wanted_B: Vec3) -> Any:
        whole = rocket.mass_properties(x)
        error = np.stack([0.0 * wanted_B[0], -wanted_B[2], wanted_B[1]])  # x_B cross wanted
        moment = whole.inertia @ (self.stiffness * error - self.damping * x.motion.w_B)
        fires = rocket.firing(x, 1.0 + 0.0 * whole.mass)
        lever = sum(
            fires[k] * stage.thrust * (whole.com[0] - stage.engine)
            for k, stage in enumerate(rocket.stages)
        )
        return moment[1:] / np.maximum(lever, 1.0)


class StageConfig(PartConfig):
    """A cylindrical stage with its tank and engine."""

    makes = staticmethod(cylindrical_stage)
    bottom: float = field(units="m")
    length: float = field(units="m")
    radius: float = field(units="m")
    dry_mass: float = field(units="kg")
    propellant: float = field(units="kg")
    thrust: float = field(units="N")
    specific_impulse: float = field(units="s")
    exit_area: float = field(units="m^2")
    max_gimbal: float = field(units="rad")


class PayloadConfig(PartConfig):
    """What the rocket carries."""

    makes = MassProperties


class AerodynamicsConfig(PartConfig):
    """The air on the rocket."""

    makes = RocketAerodynamics


class RocketConfig(VehicleConfig, type="rocket"):
    """A parameter file of type rocket."""

    makes = Rocket
    stages: list[StageConfig]
    payload: PayloadConfig
    aero: AerodynamicsConfig
    world: World

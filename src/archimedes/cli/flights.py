"""A flight as a file: which vehicle, from where, with which controls, for how long.

Plain data, read with types: unknown keys, wrong types and values that cannot be are errors that
name file and key; nothing in a file is run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.errors import ArchimedesError, StructError
from archimedes.function import vmap
from archimedes.simulate import SimulationError, Trajectory
from archimedes.tree import StructConfig, field, structure
from archimedes.tree.config import in_file, in_unit
from archimedes.tree.config_files import read_data
from archimedes.typing import Scalar, Tree
from archimedes.vehicles import FlightState, OrbitGuidance, Rocket, load, trim
from archimedes.vehicles.flight_case import simulate_flight

Vector = tuple[float, float, float]
#: Samples and seconds that a file may ask for.
SAMPLES, LONGEST = 100_000, 1e7


class StartConfig(StructConfig):
    """Where it begins: latitude, longitude and angles in deg, altitude in m, velocities in m/s."""

    alt: float = field(units="m")
    v_NED: Vector = field(units="m/s")
    lat: float = field(units="deg", default=0.0)
    lon: float = field(units="deg", default=0.0)
    rpy: Vector = field(units="deg", default=(0.0, 0.0, 0.0))
    w_B: Vector = field(units="rad/s", default=(0.0, 0.0, 0.0))

    def build(self) -> FlightState:
        """Return the flight state, in rad."""
        rad = np.deg2rad
        return FlightState(
            rad(self.lat), rad(self.lon), self.alt, np.array(self.v_NED),
            rad(np.array(self.rpy)), np.array(self.w_B),
        )  # fmt: skip


class FlightConfig(StructConfig):
    """A flight: `vehicle` is a name or a file of parameters beside this one.

    Controls are held, or a rocket is steered to orbit by `guidance`, numbers of `OrbitGuidance`.
    `ground` is the altitude in m at which the flight ends, None for a flight without ground.
    """

    vehicle: str
    start: StartConfig
    duration: float = field(units="s")
    controls: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, Any] = field(default_factory=dict)
    guidance: dict[str, Any] | None = None
    ground: float | None = field(units="m", default=0.0)
    trim: bool = False
    samples: int = 601
    rtol: float = 1e-8
    title: str = ""


class Flown(NamedTuple):
    """A flight that was flown, with the input at each sample."""

    config: FlightConfig
    vehicle: Any
    inputs: Any
    trajectory: Trajectory

    @property
    def complete(self) -> bool:
        """Whether it reached its duration; if not, the trajectory's message says why."""
        return self.trajectory.status == 0


def read_flight(path: Path) -> FlightConfig:
    """Read the description of a flight."""
    data = read_data(path)
    try:
        return FlightConfig.from_dict(data)
    except StructError as error:
        raise in_file(error, path) from error


def plan_file(path: Path) -> tuple[FlightConfig, Any, Tree, Tree]:
    """Read a flight whose controls are held; return it, its vehicle, first state and input."""
    config, vehicle, inner = read_vehicle(path)
    if config.guidance is not None:
        raise ValueError("guidance steers this flight: an interactive page needs controls to move")
    x0, u, _, _ = plan_constant(config, vehicle, inner)
    return config, vehicle, x0, u


def read_vehicle(path: Path) -> tuple[FlightConfig, Any, dict[str, Any]]:
    """Read a flight; return it, its vehicle, and the other parts of the first state."""
    config = read_flight(path)
    if not (0.0 < config.duration <= LONGEST and 2 <= config.samples <= SAMPLES):
        raise ValueError(
            f"duration must be between 0 and {LONGEST:g} s, samples between 2 and {SAMPLES}"
        )
    vehicle = load(vehicle_source(config.vehicle, path))
    if not (hasattr(vehicle, "state") and hasattr(type(vehicle), "Input")):
        raise ValueError(f"a {config.vehicle} has no flight state to start from here")
    return config, vehicle, {n: as_numbers(v, f"inner.{n}") for n, v in config.inner.items()}


def fly_file(path: Path) -> Flown:
    """Read a file and fly it; every mistake in the file is an ArchimedesError or a ValueError."""
    config, vehicle, inner = read_vehicle(path)
    plan = plan_constant if config.guidance is None else plan_guided
    x0, law, steer, events = plan(config, vehicle, inner)

    def dynamics(t: Scalar, x: Tree, law: Tree) -> Any:
        return vehicle.dynamics(t, x, steer(t, x, law))

    times = np.linspace(0.0, config.duration, config.samples)
    options = {"t_eval": times, "rtol": config.rtol, "args": (law,), "events": events}
    flown = simulate_flight(vehicle, dynamics, config.duration, x0, config.ground, **options)
    if not flown.success:
        raise SimulationError(flown.message)
    if flown.status != 0:
        flown = with_last_state(flown)
    inputs = vmap(lambda t, x: steer(t, x, law))(flown.t, flown.x)
    return Flown(config, vehicle, inputs, flown)


#: How a flight is steered: its first state, a law, the input by the law, and events.
Plan = tuple[Tree, Tree, Callable[..., Any], Any]


def plan_constant(config: FlightConfig, vehicle: Any, inner: dict[str, Any]) -> Plan:
    """Hold the controls of the file, or those of steady flight."""
    u = numbers(type(vehicle).Input, config.controls, "controls")
    start = config.start.build()
    if not config.trim:
        return vehicle.state(start, **inner), u, lambda t, x, u: u, None
    steady = trim(vehicle, start, u, inner)
    if not steady.success:
        raise ValueError(steady.message)
    return steady.state, steady.input, lambda t, x, u: u, None


def plan_guided(config: FlightConfig, vehicle: Any, inner: dict[str, Any]) -> Plan:
    """Guide a rocket to orbit; its stages fall away when they are empty."""
    if not isinstance(vehicle, Rocket):
        raise ValueError(f"guidance steers a rocket, not a {config.vehicle}")
    if config.controls or config.trim:
        raise ValueError("guidance gives the controls: leave out controls and trim")
    guidance = numbers(OrbitGuidance, dict(config.guidance or {}), "guidance")
    x0 = vehicle.state(config.start.build(), **inner)
    return x0, guidance, lambda t, x, law: law.command(vehicle, t, x), vehicle.staging()


def with_last_state(flown: Trajectory) -> Trajectory:
    """Return a flight that ended at an event with its state there as the last sample."""
    last = tree.map(lambda leaf: leaf[-1:], flown.events["x_before"])
    x = tree.map(lambda leaf, end: np.concatenate([leaf, end]), flown.x, last)
    about = {name: getattr(flown, name) for name in ("status", "message", "stats", "events")}
    return Trajectory(np.append(flown.t, flown.events["t"][-1]), x, **about)


def vehicle_source(name: str, path: Path) -> Any:
    """Return a name as it is; the path of a file is taken from beside the flight."""
    if not name.lower().endswith((".yaml", ".yml", ".json")):
        return name
    file = Path(name)
    if file.is_absolute() or ".." in file.parts:
        raise ValueError(f"vehicle {name!r} must be a file beside this one, or below")
    return path.parent / file


def as_numbers(value: Any, what: str) -> np.ndarray:
    """Return finite numbers as an array, or raise an error that names them."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, got {str(value)[:200]}") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{what} holds nan or inf")
    return array


def numbers(kind: Any, values: dict[str, Any], what: str) -> Any:
    """Make an input of named numbers."""
    known = list(kind.__dataclass_fields__)
    if unknown := [name for name in values if name not in known]:
        raise ValueError(f"{what} has no {unknown[0]!r}; there are {known}")
    units = {f.name: f.metadata.get("units") for f in tree.fields(kind)}
    fields = {}
    for name, value in values.items():
        where = f"{what}.{name}"
        fields[name] = as_numbers(in_unit(value, units[name], where), where)
    try:
        value = kind(**fields)
        structure(value)
    except TypeError:
        raise ValueError(f"{what} must give {known}, got {list(values)}") from None
    return value


#: What may be wrong with a file.
MISTAKES = (ArchimedesError, ValueError, KeyError, OSError, OverflowError, RecursionError)

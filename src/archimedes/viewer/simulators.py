"""From a vehicle, a robot or a function to a model that runs in a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.environment import ConstantWind
from archimedes.multibody import DrivenState, Model, State, dynamics, rest_state
from archimedes.multibody.systems.dynamics import find_stateful
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Tree
from archimedes.viewer.controls import Control
from archimedes.viewer.explorer import Explorer
from archimedes.viewer.pulls import Pull
from archimedes.viewer.robots import start
from archimedes.viewer.simulator import Simulator

#: Frequency in Hz with which the spring at the cursor swings the whole robot, and its damping.
PULL_FREQUENCY, PULL_DAMPING = 1.5, 0.7
#: Joint torque in N m that a slider reaches, where the robot's file has no limit.
TORQUE = 20.0


def make_simulators(model: Any, x0: Any = None, **options: Any) -> dict[str, Simulator | Explorer]:
    """Return the models of an interactive page by name."""
    if not isinstance(model, Mapping):
        name = getattr(model, "name", "") if isinstance(model, Model) else ""
        if not name:
            model_or_func = getattr(model, "func", model)
            owner = getattr(model_or_func, "__self__", model_or_func)
            name = getattr(owner, "__name__", "") or type(owner).__name__
        return {name: make_simulator(model, x0, **options)}
    if x0 is not None:
        raise TypeError("view: leave out the state: the dict has one for each model")
    if not model:
        raise ValueError("view: there is no model to show: the dict is empty")
    simulators: dict[str, Simulator | Explorer] = {}
    for name, one in model.items():
        pair = one if isinstance(one, tuple) else (one, None)
        if len(pair) != 2:
            raise TypeError(f"view: {name!r} must be a model, or a pair (model, state)")
        simulators[str(name)] = make_simulator(*pair, **options)
    return simulators


def make_simulator(model: Any, x0: Any = None, **options: Any) -> Simulator | Explorer:
    """Return a model that runs in a page; a Simulator or an Explorer as it is."""
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(model, (Simulator, Explorer)):
        if x0 is not None or options:
            given = ["the state"] * (x0 is not None) + list(options)
            kind = type(model).__name__
            raise TypeError(f"view: a {kind} has it all: leave out {given[0]}")
        return model
    if isinstance(model, Model):
        return of_robot(model, x0, **options)
    if hasattr(model, "dynamics"):
        return of_vehicle(model, x0, **options)
    if not callable(model):
        raise TypeError(
            "view: an interactive page shows a vehicle, a robot, a function f(t, x, u, p), a "
            f"Simulator or an Explorer, got {type(model).__name__}"
        )
    if x0 is None:
        raise TypeError("view: give the state to start in: arc.view(f, x0, interactive=True)")
    return Simulator(model, x0, **options)


# ---- vehicles -----------------------------------------------------------------------------------


def of_vehicle(
    vehicle: Any, x0: Any = None, inputs: Any = None, parameters: Any = None, **options: Any
) -> Simulator:
    """Return a vehicle whose inputs, wind and fields can be moved."""
    if x0 is None:
        x0, first = default_start(vehicle)
        inputs = first if inputs is None else inputs
    if inputs is None:
        inputs = vehicle.idle() if hasattr(vehicle, "idle") else default_start(vehicle)[1]
    windy = hasattr(getattr(vehicle, "world", None), "wind")
    if parameters is None:
        parameters = {"wind": np.zeros(3)} if windy else None
    elif not isinstance(parameters, Mapping):
        raise TypeError("view: parameters of a vehicle are a dict of its fields and 'wind'")
    for name in parameters or {}:
        if not hasattr(vehicle, name) and not (name == "wind" and windy):
            raise ValueError(f"view: {type(vehicle).__name__} has no {name!r} to vary")

    def with_parameters(p: Tree) -> Any:
        changed = {name: value for name, value in p.items() if name != "wind"}
        if "wind" in p:
            changed["world"] = vehicle.world.replace(wind=ConstantWind(p["wind"]))
        return vehicle.replace(**changed) if changed else vehicle

    def motion(t: Scalar, x: Tree, u: Tree, p: Tree = None) -> Any:
        return (vehicle if p is None else with_parameters(p)).dynamics(t, x, u)

    if options.get("controls") is None:
        options["controls"] = vehicle_controls(vehicle, inputs, parameters or {})
    options.setdefault("actor", vehicle)
    return Simulator(motion, x0, inputs=inputs, parameters=parameters, **options)


#: Keys and axes of inputs that vehicles share: those that lower and raise them.
STICK: dict[str, dict[str, Any]] = {
    "throttle": {"keys": ("-", "+"), "axis": None},
    "elevator": {"keys": ("ArrowUp", "ArrowDown"), "axis": ~1, "returns": True},
    "aileron": {"keys": ("ArrowRight", "ArrowLeft"), "axis": ~0, "returns": True},
    "rudder": {"keys": ("e", "q"), "axis": ~2, "returns": True},
    "steer": {"keys": ("ArrowLeft", "ArrowRight"), "axis": 0, "returns": True},
    "drive": {"keys": ("ArrowDown", "ArrowUp"), "axis": ~1, "returns": True},
}
WIND = {"wind[0]": "wind from the south", "wind[1]": "wind from the west"}


def vehicle_controls(vehicle: Any, inputs: Tree, parameters: Tree) -> dict[str, Any]:
    """Return sliders for all inputs over their stops, with keys, and for wind and parameters."""
    probe = Simulator(lambda t, x, u, p: x, 0.0, inputs=inputs, parameters=parameters, actor=False)
    stops = getattr(vehicle, "stops", None)
    ends: dict[str, list[float]] = {}
    if stops is not None:
        wide = [tree.map(lambda u, v: np.broadcast_to(v, np.shape(u)), inputs, v) for v in stops]
        rows = [Simulator(lambda t, x, u: x, 0.0, inputs=v, actor=False) for v in wide]
        ends = {
            name: [float(row.rows()[1][k]) for row in rows]
            for name, (k, _) in rows[0].columns.items()
        }
    controls: dict[str, Any] = {}
    for name, (_, control) in probe.controls.items():
        if name == "wind[2]":
            continue
        if name in WIND:
            controls[name] = Control(-20.0, 20.0, label=WIND[name], units="m/s")
            continue
        low, high = ends.get(name, [control.low, control.high])
        controls[name] = Control(low, high, units=control.units, **STICK.get(name, {}))
    return controls


def default_start(vehicle: Any) -> tuple[Any, Any]:
    """Return state and inputs of the flight that comes with a vehicle."""
    start_of = getattr(vehicle, "example_start", None)
    example = None if start_of is None else start_of()
    if example is None:
        raise TypeError(
            f"view: give the state that the {type(vehicle).__name__} starts in, and its inputs: "
            "arc.view(vehicle, x0, inputs=u0, interactive=True)"
        )
    state, inputs = example
    return state, inputs


# ---- robots -------------------------------------------------------------------------------------


@struct
class RobotInput:
    """What moves a robot in a page: torques or commands, and the spring at the cursor."""

    torque: Any = field(units="N m")
    pull: Any = field()


def of_robot(model: Model, x0: Any = None, inputs: Any = None, **options: Any) -> Simulator:
    """Return a robot whose joints are driven by sliders and whose links can be dragged."""
    if "parameters" in options:
        raise TypeError(
            "view: a robot has the parameters gravity and damping here; for others write a "
            "function f(t, x, u, p) that calls multibody.dynamics, with actor=model"
        )
    state = robot_start(model) if x0 is None else x0
    stateful = find_stateful(model.actuators) if model.actuators else []
    if stateful and not isinstance(state, DrivenState):
        state = DrivenState(state.q, state.v, np.zeros(len(stateful)))
    names = tuple(link.body for link in model.links if link.body)
    mass = float(np.sum(np.asarray(model.masses)))
    w = 2.0 * np.pi * PULL_FREQUENCY
    pull = Pull(names, mass * w**2, 2.0 * PULL_DAMPING * mass * w, limit=15.0 * mass * 9.81)
    driven = list(model.actuators)
    joints = [link.v for link in model.links if not link.mimic and link.kind.nv == 1]
    count = len(driven) or len(joints)
    u0 = RobotInput(np.zeros(count), pull) if inputs is None else inputs
    if not isinstance(u0, RobotInput):
        u0 = RobotInput(np.asarray(inputs, dtype=float), pull)
    spread = np.eye(model.nv)[:, joints]
    own_gravity = np.asarray(model.gravity)

    def motion(t: Scalar, x: State, u: RobotInput, p: Tree) -> Any:
        here = tree.replace(model, gravity=p["gravity"] * own_gravity)
        forces = u.pull.forces(model, x.q, x.v)
        if driven:
            return dynamics(here, t, x, u.torque, forces, driven)
        drag = -p["damping"] * x.v[np.array(joints, dtype=int)]
        return dynamics(here, t, x, spread @ (u.torque + drag), forces)

    if options.get("controls") is None:
        options["controls"] = joint_controls(model, driven, joints)
    options.setdefault("actor", model)
    # One that floats has no ground to stand on here: it starts without weight.
    first = {"gravity": 0.0 if model.links[0].kind.nv == 6 else 1.0, "damping": 0.0}
    return Simulator(motion, state, inputs=u0, parameters=first, **options)


def robot_start(model: Model) -> State:
    """Return the robot at rest, as `view` shows it."""
    return rest_state(model, start(model))


def joint_controls(model: Model, driven: list[Any], joints: list[int]) -> dict[str, Any]:
    """Return a slider for each actuator or joint, named after it."""
    controls: dict[str, Any] = {"gravity": Control(0.0, 2.0, label="gravity (1: the model's)")}
    if driven:
        for k, actuator in enumerate(driven):
            label = getattr(actuator, "name", "") or ", ".join(actuator.joints)
            controls[f"torque[{k}]"] = Control(-1.0, 1.0, label=str(label), units="")
        return controls
    limits = np.asarray(model.effort_limits)
    names = {link.v: link.joint for link in model.links}
    for k, j in enumerate(joints):
        reach = float(limits[j]) if np.isfinite(limits[j]) and limits[j] > 0.0 else TORQUE
        controls[f"torque[{k}]"] = Control(-reach, reach, label=names[j], units="N m")
    controls["damping"] = Control(0.0, 5.0, label="damping of the joints", units="N m s")
    return controls

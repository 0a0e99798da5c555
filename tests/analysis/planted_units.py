"""Mistakes in units of kinds that happen, planted in vehicles, environment and models of our own.

A row changes one line of a module of the package, or is a model of its own. The check of the
function named there must report the line that holds `at`: where the units meet that do not fit.
Every row is one mistake, and the source without it has no finding (``test_planted_units.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.vehicles import FlatEarth, FlightState
from archimedes.vehicles.parts import Thrusters

__all__ = ["OWN", "PLANTED", "SETUPS", "Planted"]


@dataclass(frozen=True)
class Planted:
    """One mistake: what is written instead of what, and in which line it must be found."""

    name: str
    module: str
    setup: str
    before: str
    after: str
    at: str = ""

    @property
    def marked(self) -> str:
        """Text of the line that a finding must name."""
        return self.at or self.after


def flight() -> FlightState:
    """Return a motion for vehicles."""
    v, rpy, w = np.array([20.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])
    return FlightState(0.0, 0.0, 100.0, v, rpy, w)


UP = np.tile([0.0, 0.0, -1.0], (4, 1))


def multirotor(m: Any) -> tuple[Any, ...]:
    """Return the dynamics of a drone and its arguments."""
    drone = m.Multirotor(rotors=m.ring(4, 0.2, directions=UP))
    x = drone.state(flight(), np.full(4, 500.0))
    return drone.dynamics, 0.0, x, m.Multirotor.Input(np.full(4, 510.0))


def multirotor_output(m: Any) -> tuple[Any, ...]:
    """Return the outputs of a drone and its arguments."""
    drone = m.Multirotor(rotors=m.ring(4, 0.2, directions=UP))
    return drone.outputs, 0.0, drone.state(flight(), np.full(4, 500.0))


def controller(m: Any) -> tuple[Any, ...]:
    """Return the controller of a drone and its arguments."""
    drone = m.Multirotor()
    x = drone.state(flight(), np.full(4, 500.0)).motion
    args = drone, x, np.ones(3), np.ones(3), np.ones(3), 0.3
    return (m.GeometricController().wrench, *args, {"p": "m", "v": "m/s", "a": "m/s^2"})


def rotors(m: Any) -> tuple[Any, ...]:
    """Return the wrench of rotors and its arguments."""
    parts = m.Rotors(np.ones((4, 3)), np.ones(4), UP, inertia=1e-4, inflow=1e-3, drag=1e-3)
    units = {"speeds": "rad/s", "rates": "rad/s^2", "v_air_B": "m/s", "w_B": "rad/s"}
    args = np.full(4, 500.0), np.ones(4), np.ones(3), np.ones(3), 1.2
    return (parts.wrench, *args, {**units, "density": "kg/m^3"})


def feet(m: Any) -> tuple[Any, ...]:
    """Return the wrench of feet on the ground and its arguments."""
    from archimedes.spatial import Quaternion

    ground = m.GroundContact(np.ones((3, 3)))
    units = {"alt": "m", "v_B": "m/s", "w_B": "rad/s"}
    return ground.wrench, 0.5, Quaternion.identity(), np.ones(3), np.ones(3), units


def wheels(m: Any) -> tuple[Any, ...]:
    """Return the rates of reaction wheels and their arguments."""
    units = {"J_B": "kg m^2", "w_B": "rad/s", "h": "N m s", "M_B": "N m", "command": "N m"}
    parts = m.ReactionWheels(inertia=0.01, max_torque=0.1, max_momentum=1.0)
    return parts.rates, np.eye(3), np.ones(3), np.ones(3), np.ones(3), np.ones(3), units


def satellite(m: Any) -> tuple[Any, ...]:
    """Return the dynamics of a satellite with thrusters and air, and its arguments."""
    from archimedes.environment import StandardAtmosphere1976
    from archimedes.spatial import Quaternion

    jets = Thrusters(np.ones((2, 3)), np.array([[1.0, 0, 0], [0, 1.0, 0]]), np.ones(2))
    body = m.Satellite(
        mass=10.0, inertia=np.eye(3), thrusters=jets, atmosphere=StandardAtmosphere1976(), area=0.1
    )
    pos, vel = np.array([7e6, 0.0, 0.0]), np.array([0.0, 7.5e3, 0.0])
    x = m.Satellite.State(pos, vel, Quaternion.identity(), np.ones(3), np.ones(3))
    return body.dynamics, 0.0, x, m.Satellite.Input(np.ones(3), np.ones(3), np.ones(2))


def satellite_output(m: Any) -> tuple[Any, ...]:
    """Return the outputs of a satellite and its arguments."""
    dynamics, t, x, _ = satellite(m)
    return dynamics.__self__.outputs, t, x


def car(m: Any) -> tuple[Any, ...]:
    """Return the dynamics of a car and its arguments."""
    body = m.Car()
    return body.dynamics, 0.0, body.state(flight()), m.Car.Input(0.02, 300.0)


def car_output(m: Any) -> tuple[Any, ...]:
    """Return the outputs of a car and its arguments."""
    dynamics, *args = car(m)
    return (dynamics.__self__.outputs, *args)


def rocket(m: Any) -> tuple[Any, ...]:
    """Return the dynamics of a rocket and its arguments."""
    body = m.two_stage_rocket(world=FlatEarth())
    return body.dynamics, 0.0, body.state(flight()), m.Rocket.Input(1.0, np.array([0.01, 0.02]))


def rocket_output(m: Any) -> tuple[Any, ...]:
    """Return the outputs of a rocket and its arguments."""
    dynamics, *args = rocket(m)
    return (dynamics.__self__.outputs, *args)


def f16(m: Any) -> tuple[Any, ...]:
    """Return the dynamics of an F-16 and its arguments."""
    plane = m.F16(world=FlatEarth())
    return plane.dynamics, 0.0, plane.state(flight(), 20.0), m.F16.Input(0.2, 0.01, 0.02, 0.03)


def projectile(m: Any) -> tuple[Any, ...]:
    """Return the dynamics of a thrown body and its arguments."""
    ball = m.Projectile(0.4, 1e-3 * np.eye(3), area=0.04, drag=0.47, world=FlatEarth())
    return ball.dynamics, 0.0, ball.state(flight())


def gravity(m: Any) -> tuple[Any, ...]:
    """Return the attraction of a point mass and its arguments."""
    return m.PointMassGravity().__call__, np.array([7e6, 1e6, 1e6]), {"p_E": "m", "return": "m/s^2"}


def atmosphere(m: Any) -> tuple[Any, ...]:
    """Return an exponential atmosphere and its arguments."""
    return m.ExponentialAtmosphere().__call__, 1000.0, {"alt": "m"}


def shear(m: Any) -> tuple[Any, ...]:
    """Return a wind with shear and its arguments."""
    return m.LinearShear(np.ones(3), np.ones(3)).__call__, 0.0, 100.0, {"t": "s", "where": "m"}


def boundary_layer(m: Any) -> tuple[Any, ...]:
    """Return the wind over rough ground and its arguments."""
    return m.LogarithmicShear(5.0).__call__, 0.0, 100.0, {"t": "s", "where": "m"}


def gust(m: Any) -> tuple[Any, ...]:
    """Return a gust and its arguments."""
    return m.OneCosineGust(np.ones(3), 1.0, 2.0).__call__, 1.5, 100.0, {"t": "s", "where": "m"}


def own(m: Any) -> tuple[Any, ...]:
    """Return the function of a model of ours, with what it says are its arguments."""
    return m.checked


SETUPS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    f.__name__: f
    for f in (
        *(multirotor, multirotor_output, controller, rotors, feet, wheels, satellite),
        *(satellite_output, car, car_output, rocket, rocket_output, f16, projectile, gravity),
        *(atmosphere, shear, boundary_layer, gust, own),
    )
}

_V, _E = "archimedes.vehicles.", "archimedes.environment."
_DRONE, _PARTS = _V + "multirotor.multirotor", _V + "parts.effectors"
_SAT, _CAR, _ROCKET = _V + "satellite.satellite", _V + "car.car", _V + "rocket.rocket"

PLANTED = [
    # ---- a drone ---------------------------------------------------------------------
    Planted("drag linear in the speed", _DRONE, "multirotor",
            "as_array(self.drag) * np.abs(v) * v", "as_array(self.drag) * v"),
    Planted("motor without its time constant", _DRONE, "multirotor",
            "return Multirotor.State(motion, self.rotors.rates(x.speeds, u.speeds))",
            "return Multirotor.State(motion, u.speeds - x.speeds)"),
    Planted("thrust of a speed that is not squared", _DRONE, "multirotor_output",
            "self.rotors.allocation()[0] @ x.speeds**2", "self.rotors.allocation()[0] @ x.speeds"),
    Planted("velocity error without a gain", _DRONE, "controller",
            "+ self.velocity * (v - velocity)", "+ (v - velocity)"),
    Planted("position error with the gain of the velocity", _DRONE, "controller",
            "self.position * (p - x.pos)", "self.velocity * (p - x.pos)"),
    Planted("rate without a gain", _DRONE, "controller",
            "- self.rate * x.w_B", "- x.w_B"),
    Planted("gyroscopic moment without the inertia", _DRONE, "controller",
            "cross(x.w_B, J @ x.w_B)", "cross(x.w_B, x.w_B)"),
    Planted("inflow without the speed of the rotor", _PARTS, "rotors",
            "self.inflow * speeds * along", "self.inflow * along"),
    Planted("inertia times speed for a torque", _PARTS, "rotors",
            "+ self.inertia * rates)", "+ self.inertia * speeds)"),
    Planted("lever arm added to a velocity", _PARTS, "rotors",
            "at = v_air_B + cross(w_B, positions)", "at = v_air_B + positions"),
    # ---- contact and wheels ----------------------------------------------------------
    Planted("damper on the depth", _PARTS, "feet",
            "self.damping * sinking", "self.damping * depth"),
    Planted("speed not squared under a root", _PARTS, "feet",
            "+ self.slip**2)", "+ self.slip)"),
    Planted("momentum for a moment", _PARTS, "wheels",
            "M_B - cross(w_B, J_B @ w_B + h @ A) - tau @ A", "M_B - (J_B @ w_B + h @ A) - tau @ A"),
    Planted("momentum compared with a torque", _PARTS, "wheels",
            "np.abs(h) >= self.max_momentum", "np.abs(h) >= self.max_torque"),
    # ---- a satellite -----------------------------------------------------------------
    Planted("force without the mass", _SAT, "satellite",
            "x.att.rotate(F_B, inverse=True) / self.mass", "x.att.rotate(F_B, inverse=True)"),
    Planted("rotation of the Earth without the time", _SAT, "satellite",
            "earth = env.earth_attitude(self.angle + self.omega * t)\n        J_B",
            "earth = env.earth_attitude(self.angle + self.omega)\n        J_B",
            at="env.earth_attitude(self.angle + self.omega)"),
    Planted("drag force for an acceleration", _SAT, "satellite",
            "self.drag / self.mass * np.sqrt", "self.drag * np.sqrt",
            at="acceleration + self._drag(x)"),
    Planted("rate for a momentum", _SAT, "satellite_output",
            "matvec(as_array(self.inertia), x.w_B) + x.h", "x.w_B + x.h"),
    Planted("position for its derivative", _SAT, "satellite",
            "Satellite.State(x.vel, acceleration", "Satellite.State(x.pos, acceleration"),
    Planted("gravity gradient of a velocity", _SAT, "satellite",
            "env.gravity_gradient_torque(mu, x.att.rotate(x.pos), J_B)",
            "env.gravity_gradient_torque(mu, x.att.rotate(x.vel), J_B)"),
    Planted("magnetic field for a moment", _SAT, "satellite",
            "self.coils.moment(u.dipole, self._field(earth, x))", "self._field(earth, x)"),
    # ---- a car -----------------------------------------------------------------------
    Planted("damper on the travel", _CAR, "car",
            "self.damper * (v @ down)", "self.damper * sunk"),
    Planted("rotation added to a velocity", _CAR, "car",
            "v = x.v_B + cross(x.w_B, hubs)", "v = x.v_B + x.w_B + 0.0 * hubs"),
    Planted("velocity for a height", _CAR, "car", "+ x.pos[2]", "+ x.v_B[2]"),
    Planted("slip of a squared speed", _CAR, "car",
            "np.sqrt(forward**2 + 0.5**2)", "(forward**2 + 0.5**2)"),
    Planted("steering angle in degrees", _CAR, "car",
            'steer: Any = field(units="rad",', 'steer: Any = field(units="deg",',
            at="yaw + u.steer, yaw + u.steer"),
    Planted("side force for an acceleration", _CAR, "car_output",
            "F_B[1] / self.mass, load", "F_B[1], load"),
    # ---- a rocket --------------------------------------------------------------------
    Planted("pressure for a force", _ROCKET, "rocket",
            "pressure * stage.exit_area", "pressure"),
    Planted("force added to a moment", _ROCKET, "rocket",
            "M_B + cross(arm, push)", "M_B + push"),
    Planted("thrust in pounds", _ROCKET, "rocket",
            '    thrust: Any = field(units="N")', '    thrust: Any = field(units="lbf")',
            at="throttles[k] * stage.thrust - pressure"),
    Planted("area for a lever arm", _ROCKET, "rocket",
            "return F_B, cross(arm, F_B)", "return F_B, self.area * F_B",
            at="M_B + cross(arm, push)"),
    Planted("load without the mass", _ROCKET, "rocket_output", "F_B[0] / mass", "F_B[0]"),
    Planted("exit area in square centimetres", _ROCKET, "rocket",
            'exit_area: Any = field(units="m^2", default=0.0)',
            'exit_area: Any = field(units="cm^2", default=0.0)',
            at="pressure * stage.exit_area"),
    # ---- an aircraft, a ball, the air --------------------------------------------------
    Planted("momentum of the engine for its moment", _V + "f16.f16", "f16",
            "M_B - cross(x.motion.w_B, spin + 0.0 * M_B)", "M_B - (spin + 0.0 * M_B)"),
    Planted("dynamic pressure without an area", _V + "projectile", "projectile",
            "0.5 * around.air.density * self.area * speed", "0.5 * around.air.density * speed",
            at="return self.world.rates("),
    Planted("Newton's law with the square of the distance", _E + "gravity", "gravity",
            "return -(self.mu / (r2 * np.sqrt(r2)))[..., None] * p_E\n",
            "return -(self.mu / r2)[..., None] * p_E\n"),
    Planted("exponential of a length", _E + "atmosphere", "atmosphere",
            "np.exp(-z / self.scale_height)", "np.exp(-z)"),
    Planted("gradient without the height", _E + "winds", "shear",
            "v_0 + gradient * (altitude_of(where) - self.reference)[..., None]", "v_0 + gradient"),
    Planted("logarithm of a length", _E + "winds", "boundary_layer",
            "np.log(np.maximum(height, low) / self.roughness)", "np.log(np.maximum(height, low))"),
    Planted("cosine of a time", _E + "winds", "gust",
            "(as_array(t, \"t\") - self.start) / self.rise", "(as_array(t, \"t\") - self.start)",
            at="np.cos(np.pi * s)"),
]  # fmt: skip

_HEAD = """import numpy as np
import archimedes as arc


@arc.struct
class Model:
    {fields}

    def f(self, x=1.0):
        {code}


checked = (Model({values}).f, 1.0, {units})
"""


def model(fields: dict[str, str], code: str, units: dict[str, str]) -> str:
    """Return the source of a model: fields with their units, a method, units of its argument."""
    lines = "\n    ".join(f'{n}: float = arc.field(units="{u}")' for n, u in fields.items())
    values = ", ".join(["2.0"] * len(fields))
    return _HEAD.format(
        fields=lines, code=code.replace("\n", "\n        "), values=values, units=units
    )


#: Models of our own: name, source, and the text of the line where it must be found.
OWN = [
    ("impulse in pound-force seconds: the Mars Climate Orbiter",
     model({"momentum": "N s"}, "return self.momentum + x", {"x": "lbf s"}), "self.momentum + x"),
    ("altitude in km", model({"radius": "m"}, "return self.radius + x", {"x": "km"}), "+ x"),
    ("wind in knots", model({"speed": "m/s"}, "return self.speed - x", {"x": "kn"}), "- x"),
    ("rotor in rpm", model({"radius": "m", "v": "m/s"},
     "tip = self.radius * x\nreturn np.maximum(tip, self.v)", {"x": "rpm"}), "np.maximum"),
    ("sine of degrees", model({"g": "m/s^2"}, "return self.g * np.sin(x)", {"x": "deg"}), "np.sin"),
    ("mass in grams", model({"dry": "kg"}, "return self.dry + x", {"x": "g"}), "self.dry + x"),
    ("inertia in g cm^2", model({"body": "kg m^2"}, "return self.body + x", {"x": "g cm^2"}),
     "self.body + x"),
    ("step without dt", model({"v": "m/s", "dt": "s"}, "return x + self.v", {"x": "m"}),
     "x + self.v"),
    ("force added to a torque", model({"arm": "m", "force": "N"},
     "return x + self.force", {"x": "N m"}), "x + self.force"),
    ("degrees Celsius in the law of gases", model({"rho": "kg/m^3", "R": "J/(kg K)"},
     "return self.rho * self.R * x", {"x": "degC", "return": "Pa"}), "self.rho * self.R * x"),
    ("degrees Celsius added to kelvin", model({"offset": "K", "T": "K"},
     "warm = x + self.offset\nreturn np.maximum(warm, self.T)", {"x": "degC"}), "np.maximum"),
    ("area for a length in the Reynolds number", model({"rho": "kg/m^3", "S": "m^2", "mu": "Pa s"},
     "return np.log10(self.rho * x * self.S / self.mu)", {"x": "m/s"}), "np.log10"),
    ("hours for seconds", model({"a": "m/s^2", "v": "m/s"},
     "return self.v + self.a * x", {"x": "h"}), "self.v + self.a"),
    ("pressure in psi", model({"p": "Pa"}, "return self.p - x", {"x": "psi"}), "self.p - x"),
    ("momentum added to an energy", model({"m": "kg", "g": "m/s^2", "h": "m"},
     "return self.m * x + self.m * self.g * self.h", {"x": "m/s"}), "self.m * x + "),
    ("feet for metres in a table", model({"floor": "m"},
     "alt = np.maximum(x, self.floor)\nreturn np.interp(alt, [0.0, 1e4], [1.2, 0.4])",
     {"x": "ft"}), "np.maximum(x, self.floor)"),
    ("frequency per minute", model({"w": "rad/s"}, "return self.w - x", {"x": "1/min"}),
     "self.w - x"),
    ("angle compared in degrees", model({"limit": "deg"},
     "return np.where(x > self.limit, 1.0, 0.0)", {"x": "rad"}), "x > self.limit"),
]  # fmt: skip

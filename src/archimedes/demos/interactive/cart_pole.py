"""Balance a pole on a cart by mouse or keys, beside a regulator that does the same.

Equations: R. Tedrake, Underactuated Robotics, chapter 3, with the angle from upright: a cart of
mass M on a rail, a pole of mass m with its centre of mass at l above the pivot, inertia m l^2 / 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.checks import as_array
from archimedes.control import lqr
from archimedes.demos.reporting import Report
from archimedes.typing import Scalar, Tree
from archimedes.viewer import (
    Body,
    Camera,
    Control,
    Flight,
    Ground,
    Path,
    Pull,
    Scene,
    Simulator,
    View,
    box,
    cylinder,
    moved,
    sphere,
    view,
)

DT, RATE = 0.005, 0.02
CART, POLE, LENGTH, GRAVITY = 1.0, 0.2, 0.6, 9.80665
RAIL, HEIGHT, REACH = 2.4, 0.6, 30.0


@arc.struct
class CartPole:
    """A pole on a cart: position of the cart, angle of the pole from upright, and their rates."""

    color: str = arc.field(static=True, default="#3d8bd4")

    @arc.struct
    class State:
        """Position and angle, and their rates."""

        position: Any = arc.field(units="m")
        angle: Any = arc.field(units="rad")
        speed: Any = arc.field(units="m/s", default=0.0)
        rate: Any = arc.field(units="rad/s", default=0.0)

    def dynamics(self, t: Scalar, x: Any, force: Scalar, torque: Scalar = 0.0) -> Any:
        """Return the rates for a force on the cart in N and a torque on the pole in N m."""
        sin, cos = np.sin(x.angle), np.cos(x.angle)
        ml, inertia = POLE * LENGTH, POLE * LENGTH**2 * 4.0 / 3.0
        push = force + ml * x.rate**2 * sin - 0.5 * x.speed
        turn = ml * GRAVITY * sin + torque - 2e-3 * x.rate
        mass, det = CART + POLE, (CART + POLE) * inertia - (ml * cos) ** 2
        return CartPole.State(
            x.speed, x.rate, (inertia * push - ml * cos * turn) / det,
            (mass * turn - ml * cos * push) / det,
        )  # fmt: skip

    def add_to_scene(self, scene: Scene, flight: Flight) -> None:
        """Add cart and pole above a rail along y."""
        x, t = flight.trajectory.x, flight.t
        y, angle = as_array(x.position), as_array(x.angle)
        zero = 0.0 * y
        place = np.stack([zero, y, zero + HEIGHT], axis=1)
        cart = [box([0.28, 0.44, 0.18], color=self.color)]
        for side in (-0.14, 0.14):
            wheel = cylinder(0.07, 0.32, axis=[1, 0, 0], n=20, color="#2f353d")
            cart.append(moved(wheel, [0.0, side, -0.12]))
        name = f"{flight.name}: cart"
        scene.bodies.append(Body(name, cart, t, place, [1.0, 0.0, 0.0, 0.0], reach=1.0))
        # It tips towards +y: about -x.
        q = np.stack([np.cos(0.5 * angle), -np.sin(0.5 * angle), zero, zero], axis=1)
        pole = [
            moved(cylinder(0.03, 2.0 * LENGTH, color="#d7dde5"), [0.0, 0.0, LENGTH]),
            moved(sphere(0.08, 18, color=self.color), [0.0, 0.0, 2.0 * LENGTH]),
            sphere(0.05, 14, color="#2f353d"),
        ]
        look: dict[str, Any] = {"parent": name, "reach": 1.0}
        scene.bodies.append(Body(f"{flight.name}: pole", pole, t, [0.0, 0.0, 0.1], q, **look))
        scene.ground = scene.ground or Ground(0.0, cell=0.5)
        target = np.array([0.6, 0.0, 1.1])
        scene.camera = Camera("free", name, -12.0, 12.0, 6.6, target=target)


@arc.struct
class Hand:
    """What a person does: a force on the cart, or a spring at the cursor; a kick for both."""

    force: Any = arc.field(units="N", default=0.0)
    kick: Any = arc.field(units="N m", default=0.0)
    pull: Any = arc.field(default_factory=lambda: Pull(("cart",), 120.0, 14.0, limit=60.0))


@arc.struct
class Kick:
    """A kick against the pole."""

    kick: Any = arc.field(units="N m", default=0.0)


@arc.struct
class Shown:
    """What is drawn."""

    position: Any = arc.field(units="m")
    angle: Any = arc.field(units="rad")
    force: Any = arc.field(units="N")


model = CartPole()


def gains() -> np.ndarray:
    """Return the gains (4,) of the regulator from the linear model about upright."""
    x = CartPole.State(*np.zeros(4))
    flat = lambda s, u: arc.tree.ravel(model.dynamics(0.0, CartPole.State(*s), u))[0]  # noqa: E731
    zero = arc.tree.ravel(x)[0]
    A, B = arc.jac(flat, argnums=0)(zero, 0.0), arc.jac(flat, argnums=1)(zero, 0.0)
    return np.asarray(lqr(A, B[:, None], np.diag([4.0, 20.0, 1.0, 1.0]), np.eye(1) * 0.1)[0])[0]


def by_hand(t: Scalar, x: Any, u: Hand) -> Any:
    """Return the rates of the cart that a person moves."""
    at, v = np.stack([0.0 * x.position, x.position, 0.0 * x.position]), np.zeros(3)
    push = u.pull.force(
        at + u.pull.point * np.array([0.0, 1.0, 0.0]), v + [0.0, 1.0, 0.0] * x.speed
    )
    return model.dynamics(t, x, u.force + push[1], u.kick)


def regulated(t: Scalar, x: Any, force: Scalar, u: Kick, p: Tree) -> Any:
    """Return the rates of the cart that the regulator moves."""
    return model.dynamics(t, x, force, u.kick)


FALLEN = {"it fell over": arc.Event(lambda t, x, *args: np.cos(x.angle) - 0.2, -1, True)}


def page() -> View:
    """Return the page."""
    K, tipped = gains(), CartPole.State(0.0, 0.05)

    def update(t: Scalar, x: Any, force: Scalar, u: Kick, p: Tree) -> Any:
        row = np.stack([x.position, x.angle, x.speed, x.rate])
        return np.clip(-p["gain"] * (K @ row), -REACH, REACH)

    kick = Control(kind="pulse", label="kick both poles", keys="k", pulse=[(0.1, 0.5)])
    arrows = ("ArrowLeft", "ArrowRight")
    push = Control(
        -REACH, REACH, label="push your cart", keys=arrows, axis=0, returns=True, rate=0.5
    )
    options: dict[str, Any] = {"dt": DT, "t_end": 20.0, "events": FALLEN}
    hand = Simulator(
        by_hand, tipped, inputs=Hand(), actor=CartPole(), offset=(1.2, 0.0, 0.0),
        controls={"force": push, "kick": kick}, **options,
        outputs=lambda t, x, u: Shown(x.position, x.angle, u.force),
    )  # fmt: skip
    regulator = Simulator(
        regulated, tipped, inputs=Kick(), parameters={"gain": 1.0}, actor=CartPole("#e8743b"),
        sampled=arc.Sampled(update, init=0.0, dt=RATE), **options,
        controls={"kick": kick, "gain": Control(0.1, 3.0, label="gain of the regulator")},
        outputs=lambda t, x, force, u, p: Shown(x.position, x.angle, force),
    )  # fmt: skip
    note = (
        "Drag the blue cart with the mouse or use the arrow keys; the orange one has LQR at 50 Hz"
    )
    models = {"you": hand, "LQR": regulator}
    shown = view(models, title="Balance the pole", note=note, interactive=True, autoplay=False)
    for x in (0.0, 1.2):
        rail = [[x, -RAIL, HEIGHT - 0.19], [x, RAIL, HEIGHT - 0.19]]
        shown.scene.paths.append(Path(f"rail {x:g}", rail, "#5c6675"))
    return shown


def run(report: Report) -> None:
    """Let the regulator catch the pole from many angles, and check where it ends."""
    K = gains()

    def closed(t: Scalar, x: Any) -> Any:
        row = np.stack([x.position, x.angle, x.speed, x.rate])
        return model.dynamics(t, x, np.clip(-(K @ row), -REACH, REACH))

    times = np.linspace(0.0, 8.0, 401)
    title = "A pole on a cart, caught by LQR from 20 deg"
    start = CartPole.State(0.0, np.deg2rad(20.0))
    once = report.time_motion(title, 8.0, closed, start, t_eval=times)
    report.line("cart moved by up to", np.abs(once.x.position).max(), ".2f", "m")
    report.line("angle at the end", np.rad2deg(np.abs(once.x.angle[-1])), ".1e", "deg")
    report.check("the pole stands at the end", abs(once.x.angle[-1]) < 1e-3)
    report.check("the cart stays on its rail", np.abs(once.x.position).max() < RAIL)
    report.figure("balance", once, title="A pole on a cart, caught by LQR")
    report.page(view({"cart": (model, once)}, title="A pole on a cart"), "cartpole")

"""``python -m tests.multibody.closed_forms``: motions that are known, against contact and chains.

Each row of the table has a number from a closed form or from a publication, and the number that was
found. Errors of the first order in the step are half as large at half the step. ``--case tippe``
shows the rows of one case.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb

from . import bicycle

__all__ = ["FORMS", "Form"]

G = 9.81


@dataclass(frozen=True)
class Form:
    """A row: what is known, and how it is found with a step in s, or None where it needs none.

    Numbers or a function without arguments are `known`. The error is relative to the largest of
    them, or absolute where that is 0.
    """

    case: str
    quantity: str
    known: Any
    found: Callable[[Any], Any]
    within: float
    source: str
    step: float | None = None
    first_order: bool = False
    quick: bool = False

    def error(self, halved: bool = False) -> tuple[Any, float]:
        """Return what is found, and by how much it is off, also with half the step."""
        number = np.asarray(self.found(self.step / 2 if halved else self.step))
        size = np.abs(self.expected).max() or 1.0
        return number, float(np.abs(number - self.expected).max() / size)

    @property
    def expected(self) -> Any:
        """Return what is known, as numbers."""
        return np.asarray(self.known() if callable(self.known) else self.known)

    @property
    def name(self) -> str:
        """Return case and quantity."""
        return f"{self.case}: {self.quantity}"


def loose(names, mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.0, 0.0, 0.0)):
    """Return free bodies of one mass and inertia."""
    b = mb.Builder()
    for name in names:
        b.add_body(name, mass=mass, com=[*com], inertia=[*inertia])
        b.attach(name, joint=name, kind="free")
    return b.build()


def run(model, x, seconds, step, contacts, ground, **values):
    """Return the state after steps with contact."""
    move = lambda k, x: mb.contact_step(model, x, step, contacts, ground, **values)
    return arc.compile(lambda x: arc.fori_loop(0, round(seconds / step), move, x))(x)


def bisect(test, low, high, rounds=45):
    """Return the number between two below which a test is false, and above which it is true."""
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if test(middle) else (middle, high)
    return 0.5 * (low + high)


def twist(model, x, frame):
    """Return the velocity (6,) of a frame in the world's axes."""
    return np.asarray(mb.frame_twist(model, x.q, x.v, frame, "aligned"))


# ---- ball ----------------------------------------------------------------------------------------

HEIGHT, BOUNCE = 1.0, 0.8


def ball_at(t):
    """Return the height of a ball above the ground that was dropped at t = 0."""
    fall = np.sqrt(2.0 * HEIGHT / G)
    start, speed = -fall, G * fall
    while start + 2.0 * speed / G < t:
        start, speed = start + 2.0 * speed / G, BOUNCE * speed
    return speed * (t - start) - 0.5 * G * (t - start) ** 2


def dropped(step, seconds=2.0):
    model, r = loose(["ball"]), 0.1
    x = mb.rest_state(model, [0, 0, HEIGHT + r, 1, 0, 0, 0])
    end = run(model, x, seconds, step, [mb.sphere("ball", r)], mb.Ground(), restitution=BOUNCE)
    return end.q[2] - r


def impacts_by_events(_):
    model = loose(["ball"]).replace(gravity=np.array([0.0, 0.0, -G]))

    def bounce(t, x):
        return mb.State(x.q, x.v * np.array([1.0, 1.0, -BOUNCE, 1.0, 1.0, 1.0]))

    hit = arc.Event(lambda t, x: x.q[2], direction=-1, reset=bounce)
    x = mb.rest_state(model, [0, 0, HEIGHT, 1, 0, 0, 0])
    solution = arc.solve_ode(model.dynamics, (0.0, 3.0), x, events=[hit], rtol=1e-10)
    return solution.events["t"][:5]


IMPACTS = np.sqrt(2.0 * HEIGHT / G) * (1.0 + 2.0 * np.cumsum([0.0, *BOUNCE ** np.arange(1.0, 5.0)]))

# ---- on a slope ----------------------------------------------------------------------------------

MU, ANGLE, MASS, RADIUS = 0.5, 0.3, 2.0, 0.1


def on_slope(angle, shape, inertia=(0.1, 0.1, 0.1), turned=0.0):
    """Return the acceleration down a slope, as a function of the step, from rest."""
    model = loose(["body"], MASS, inertia)

    def after(angle, step, count):
        c, s = np.cos(angle), np.sin(angle)
        normal, half = np.stack([s, 0.0 * s, c]), 0.5 * angle
        lying = np.stack([np.cos(half), 0.0 * half, np.sin(half), 0.0 * half])
        if turned:  # its z axis across the slope
            a, b = np.cos(turned / 2), np.sin(turned / 2)
            lying = np.stack([a * lying[0], b * lying[0], a * lying[2], -b * lying[2]])
        x = mb.State(np.concatenate([RADIUS * normal, lying]), 0.0 * np.ones(6) * angle)
        ground = mb.Ground(normal=normal, friction=MU)
        move = lambda k, x: mb.contact_step(model, x, step, [shape], ground)
        x = arc.fori_loop(0, count, move, x)
        down = np.stack([c, 0.0 * c, -s])
        return mb.frame_twist(model, x.q, x.v, "body", "aligned")[:3] @ down / (step * count)

    return after


def slope_acceleration(shape, inertia=(0.1, 0.1, 0.1), turned=0.0, seconds=0.1):
    """Return what finds the acceleration on the slope."""

    def found(step):
        after, count = on_slope(ANGLE, shape, inertia, turned), round(seconds / step)
        return arc.compile(lambda angle: after(angle, step, count))(np.float64(ANGLE))

    return found


CRATE = mb.box("body", [0.6, 0.6, 2 * RADIUS])


def steepest_rest(_):
    """Return the slope beyond which a box begins to slide."""
    after = on_slope(ANGLE, CRATE)
    slides = arc.compile(lambda angle: after(angle, 1e-3, 1))
    return bisect(lambda angle: slides(np.float64(angle)) > 1e-7, 0.3, 0.6)


def sliding_box(step):
    angle = np.arctan(MU) + 0.1
    after, count = on_slope(angle, CRATE), round(0.2 / step)
    return arc.compile(lambda angle: after(angle, step, count))(np.float64(angle))


STEEP = np.arctan(MU) + 0.1
SOLID, HOLLOW = [0.4 * MASS * RADIUS**2] * 3, [2 / 3 * MASS * RADIUS**2] * 3
LOG = [MASS * (RADIUS**2 / 4 + 0.4**2 / 12)] * 2 + [MASS * RADIUS**2 / 2]
DOWNHILL = G * np.sin(ANGLE)

# ---- bowling ball --------------------------------------------------------------------------------

OILED, THROWN = 0.2, 5.0


@cache
def lane(step):
    """Return speed and slip (steps,) of a ball that is thrown without spin."""
    model, ball = loose(["ball"], MASS, SOLID), [mb.sphere("ball", RADIUS)]
    x = mb.State(np.array([0, 0, RADIUS, 1, 0, 0, 0]), np.array([THROWN, 0, 0, 0, 0, 0]))

    def one(x, _):
        x = mb.contact_step(model, x, step, ball, mb.Ground(friction=OILED))
        along = mb.frame_twist(model, x.q, x.v, "ball", "aligned")
        return x, np.stack([along[0], along[0] - RADIUS * along[4]])

    return arc.compile(lambda x: arc.scan(one, x, length=round(2.0 / step))[1])(x).T


def slides_for(step):
    """Return when the slip is zero: its last speeds lie on a line."""
    slip = lane(step)[1]
    sliding = np.argmax(np.abs(slip) < 1e-9)
    t = step * np.arange(1, sliding)
    return np.polynomial.Polynomial.fit(t, slip[: sliding - 1], 1).roots()[0]


# ---- Painleve's rod ------------------------------------------------------------------------------

ROD, SLANT, SLIP = 0.5, np.arctan(2.0), 1.0


@cache
def rod_kernel():
    """Return a step of a rod whose lower end slides ahead of it, as a function of mu, spin, h."""
    model = loose(["rod"], 1.0, [ROD**2 / 3] * 2 + [1e-3])
    tip = [mb.Contacts("rod", [[0.0, 0.0, -ROD]])]
    lean = 0.25 * np.pi - 0.5 * SLANT
    q = np.array([0, 0, ROD * np.sin(SLANT), np.cos(lean), 0, np.sin(lean), 0])
    R = np.asarray(mb.frame_pose(model, q, "rod").r.as_matrix())

    def after(mu, spin, h):
        # The tip moves to the left; the rod turns about y by `spin`.
        arm = ROD * np.array([-np.cos(SLANT), 0.0, -np.sin(SLANT)])
        center = np.stack([-SLIP - spin * arm[2], 0.0 * spin, spin * arm[0]])
        v = np.concatenate([R.T @ center, np.stack([0.0 * spin, spin, 0.0 * spin])])
        x = mb.contact_step(model, mb.State(q, v), h, tip, mb.Ground(friction=mu))
        turning = mb.frame_twist(model, x.q, x.v, "rod", "aligned")
        return np.stack([
            turning[0] + turning[4] * arm[2], turning[2] - turning[4] * arm[0], turning[4]
        ])  # fmt: skip

    return arc.compile(after)


def rod(mu, spin=0.0, h=1e-6):
    """Return the velocity of the tip, to the right and up, and the spin, after a step."""
    return rod_kernel()(np.float64(mu), np.float64(spin), np.float64(h))


def sliding_rod(mu):
    """Return the acceleration of the sliding tip below the critical friction."""
    s, c = np.sin(SLANT), np.cos(SLANT)
    push = G / (1 + 3 * c * c - 3 * mu * s * c)
    return push * (mu * (1 + 3 * s * s) - 3 * s * c)


# ---- Newton's cradle -----------------------------------------------------------------------------


def cradle(count, masses=None):
    """Return balls on strings that touch each other, and their pairs."""
    b = mb.Builder("cradle")
    for k in range(count):
        mass = 1.0 if masses is None else masses[k]
        b.add_body(f"ball{k}", mass=mass, com=[0, 0, -1.0], inertia=[0.0] * 3)
        b.attach(f"ball{k}", joint=f"string{k}", axis=[0, 1, 0], position=[0.2 * k, 0, 0])
    balls = [mb.sphere(f"ball{k}", 0.1, [0, 0, -1.0]) for k in range(count)]
    pairs = [mb.Pair(a, b, friction=0.0) for a, b in itertools.pairwise(balls)]
    return b.build().replace(gravity=np.zeros(3)), pairs


def collide(v, masses=None, restitution=1.0):
    """Return the speeds of the balls of a cradle, along x, after a collision."""
    model, pairs = cradle(len(v), masses)
    x = mb.State(np.zeros(len(v)), -np.array(v))
    return -mb.contact_step(model, x, 1e-6, pairs=pairs, restitution=restitution).v


# ---- tippe top -----------------------------------------------------------------------------------

TOP, OFFSET, TOP_MASS, AXIAL = 0.02, 0.3, 0.01, 0.4 * 0.01 * 0.02**2
LOW = OFFSET * TOP


def top(ratio):
    """Return a ball whose centre of mass is off its middle; its inertia across is `ratio` times."""
    return loose(["top"], TOP_MASS, [ratio * AXIAL] * 2 + [AXIAL], com=[0.0, 0.0, -LOW])


def jellett(model, x):
    """Return the constant of Jellett, which sliding friction does not change."""
    R = mb.frame_pose(model, x.q, "top").r.as_matrix()
    momentum = R @ (np.asarray(model.inertias[-1]) @ x.v[3:])
    return np.sum(momentum * (np.array([0.0, 0.0, TOP]) - LOW * R[:, 2]))


@cache
def top_kernel(ratio, friction, seconds, step):
    """Return a spin about the vertical, as a function of its rate and of the lean at its start."""
    model, ball = top(ratio), [mb.sphere("top", TOP)]

    def spun(spin, lean):
        s, c, half, zero = np.sin(lean), np.cos(lean), 0.5 * lean, 0.0 * lean
        q = np.stack([zero, zero, TOP + zero, np.cos(half), zero, np.sin(half), zero])
        # The centre of mass is at rest, and the middle of the ball goes round it.
        x = mb.State(q, spin * np.stack([zero, -LOW * s, zero, -s, zero, c]))
        move = lambda k, x: mb.contact_step(model, x, step, ball, mb.Ground(friction=friction))
        return x, arc.fori_loop(0, round(seconds / step), move, x)

    return model, arc.compile(spun)


def spun_top(ratio, spin, step, seconds=8.0, lean=0.1, friction=0.1):
    """Return its upright part, its spin about its axis, and J, at the end; and J at the start."""
    model, spun = top_kernel(ratio, friction, seconds, step)
    start, end = spun(np.float64(spin), np.float64(lean))
    up = mb.frame_pose(model, end.q, "top").r.as_matrix()[2, 2]
    return up, end.v[5], jellett(model, end), jellett(model, start)


def spin_when_inverted(step):
    """Return the spin, of what Jellett's constant allows upside down; in the top it reverses."""
    _, spin, _, constant = spun_top(1.0, 300.0, step)
    return -spin / (constant / (AXIAL * (TOP + LOW)))


LEAST_SPIN = np.sqrt(TOP_MASS * G * LOW * (1 - OFFSET) ** 2 / (AXIAL * OFFSET))

# ---- chain ---------------------------------------------------------------------------------------

LINKS, LINK = 50, 0.1


@cache
def chain():
    """Return point masses on massless links that hang from each other."""
    b = mb.Builder("chain")
    for k in range(LINKS):
        parent = f"link{k - 1}" if k else "world"
        b.add_body(f"link{k}", mass=0.2, com=[0, 0, -LINK], inertia=[0.0] * 3)
        b.attach(
            f"link{k}", parent, joint=f"pin{k}", axis=[0, 1, 0],
            position=[0, 0, -LINK if k else 0.0],
        )  # fmt: skip
    return b.build()


@cache
def modes():
    """Return frequencies (50,) in rad/s, slowest first, and the shape (50,) of the slowest one."""
    from scipy.linalg import eigh

    model = chain()
    hanging = np.zeros(LINKS)
    K = arc.jac(lambda q: mb.gravity_torque(model, q))(hanging)
    values, shapes = eigh(0.5 * (K + K.T), mb.crba(model, hanging))
    return np.sqrt(values), shapes[:, 0] / np.abs(shapes[:, 0]).max()


def laguerre():
    """Return the frequencies of 50 point masses."""
    from scipy.special import roots_laguerre

    return np.sqrt(G / LINK * roots_laguerre(LINKS)[0])


def bessel():
    """Return the slowest frequency of a chain of infinitely many links, half a link longer."""
    from scipy.special import jn_zeros

    return 0.5 * jn_zeros(0, 1)[0] * np.sqrt(G / ((LINKS + 0.5) * LINK))


def half_a_swing():
    """Return how long a chain swings from one side to the other, in s."""
    return np.pi / laguerre()[0]


@cache
def swing_kernel():
    """Return angles (50,) after steps with contact, as a function of h and how many."""
    model, shape = chain(), 1e-5 * modes()[1]
    far, tip = mb.Ground(point=[0.0, 0.0, -1e3]), [mb.sphere(f"link{LINKS - 1}", 0.01)]

    def after(step, count):
        move = lambda state: (state[0] + 1, mb.contact_step(model, state[1], step, tip, far))
        start = (0 * count, mb.State(shape, np.zeros(LINKS)))
        return arc.while_loop(lambda state: state[0] < count, move, start)[1].q

    return arc.compile(after)


def swung(step):
    """Return the angles of a chain (50,) after half a swing, of the largest one before."""
    count = round(half_a_swing() / step)
    return swing_kernel()(np.float64(half_a_swing() / count), count) / 1e-5


def swung_by_solver(_):
    """Return the same by a solver of differential equations."""
    model, x = chain(), mb.State(1e-5 * modes()[1], np.zeros(LINKS))
    solution = arc.solve_ode(model.dynamics, (0.0, half_a_swing()), x, rtol=1e-8, atol=1e-13)
    return np.asarray(solution.x.q)[-1] / 1e-5


def falling_chain(_):
    """Return the energy that a chain that is released horizontally gains in 2 s, of what it has."""
    model = chain()
    start = np.zeros(LINKS)
    start[0] = -0.5 * np.pi
    x = mb.rest_state(model, start)
    solution = arc.solve_ode(model.dynamics, (0.0, 2.0), x, rtol=1e-8, atol=1e-13)
    energies = [
        mb.kinetic_energy(model, y.q, y.v) + mb.potential_energy(model, y.q)
        for y in (x, mb.State(np.asarray(solution.x.q)[-1], np.asarray(solution.x.v)[-1]))
    ]
    return (energies[1] - energies[0]) / (np.sum(model.masses) * G * LINKS * LINK / 2)


# ---- stacks --------------------------------------------------------------------------------------

SIDE, DROP, SETTLED = 0.5, 1e-3, 0.3


@cache
def stack_kernel(masses):
    """Return heights (n,) and the deepest overlap of cubes on each other, as a function of h."""
    n = len(masses)
    b = mb.Builder("stack")
    for k, mass in enumerate(masses):
        b.add_body(f"cube{k}", mass=mass, inertia=[mass * SIDE**2 / 6] * 3)
        b.attach(f"cube{k}", joint=f"cube{k}", kind="free")
    model, cubes = b.build(), [mb.box(f"cube{k}", [SIDE] * 3) for k in range(n)]
    pairs = [mb.Pair(upper, lower) for lower, upper in itertools.pairwise(cubes)]
    start = mb.neutral(model).reshape(n, 7)
    start[:, 2] = at_rest(n) + DROP * np.arange(1, n + 1)

    def settle(h, count):
        def step(state):
            k, x, deepest = state
            x = mb.contact_step(model, x, h, cubes[:1], mb.Ground(), pairs=pairs)
            below = np.concatenate([[-0.5 * SIDE], x.q[2:-7:7]])
            return k + 1, x, np.maximum(deepest, np.max(below + SIDE - x.q[2::7]))

        state = (0 * count, mb.rest_state(model, start.ravel()), 0.0 * h)
        _, x, deepest = arc.while_loop(lambda state: state[0] < count, step, state)
        return x.q[2::7], deepest

    return arc.compile(settle)


def at_rest(n):
    """Return the heights (n,) of cubes on each other."""
    return SIDE * (np.arange(n) + 0.5)


def settled_stack(masses, step):
    """Return the heights (n,) of cubes dropped on each other, and how deep they overlapped."""
    return stack_kernel(masses)(np.float64(step), round(SETTLED / step))


# ---- all rows ------------------------------------------------------------------------------------

MEIJAARD = "Meijaard et al. 2007"
COHEN = "Cohen, Am. J. Physics 45, 1977; Bou-Rabee et al., SIAM J. Appl. Dyn. 3, 2004"
PAINLEVE = "Genot and Brogliato, Eur. J. Mech. A 18, 1999"
FORMS = [
    Form("ball", "5 times of impact, as events", IMPACTS, impacts_by_events, 1e-9,
         "sqrt(2 h / g) (1 + 2 e + 2 e^2 ...)"),
    Form("ball", "height after 3 bounces, m", ball_at(2.0), dropped, 5e-3,
         "parabolas between these times", 1e-4, True),
    Form("box on a slope", "steepest slope on which it rests, rad", np.arctan(MU), steepest_rest,
         1e-5, "atan mu"),
    Form("box on a slope", "acceleration beyond, m/s2",
         G * (np.sin(STEEP) - MU * np.cos(STEEP)), sliding_box, 1e-9, "g (sin - mu cos)", 1e-3),
    Form("rolling", "ball, m/s2", 5 / 7 * DOWNHILL,
         slope_acceleration(mb.sphere("body", RADIUS), SOLID), 1e-4, "5/7 g sin", 1e-3),
    Form("rolling", "hollow ball, m/s2", 3 / 5 * DOWNHILL,
         slope_acceleration(mb.sphere("body", RADIUS), HOLLOW), 1e-4, "3/5 g sin", 1e-3),
    Form("rolling", "cylinder, m/s2", 2 / 3 * DOWNHILL,
         slope_acceleration(mb.cylinder("body", RADIUS, 0.4), LOG, np.pi / 2), 1e-4,
         "2/3 g sin", 1e-3),
    Form("bowling ball", "time until it rolls, s", 2 * THROWN / (7 * OILED * G), slides_for, 1e-9,
         "2 v / (7 mu g)", 1e-3),
    Form("bowling ball", "speed then, m/s", 5 / 7 * THROWN, lambda step: lane(step)[0, -1], 1e-9,
         "5/7 v", 1e-3),
    Form("Painleve's rod", "critical friction at tan = 2", 4 / 3,
         lambda h: bisect(lambda mu: abs(rod(mu, h=h)[0]) < 1e-9, 1.2, 1.5), 1e-4, PAINLEVE, 1e-6),
    Form("Painleve's rod", "acceleration of its tip below, m/s2", sliding_rod(1.2),
         lambda h: (rod(1.2, h=h)[0] + SLIP) / h, 1e-4, PAINLEVE, 1e-6),
    Form("Painleve's rod", "spin when it jams above, rad/s", 0.75 * SLIP * np.sin(SLANT) / ROD,
         lambda h: -rod(1.4, h=h)[2], 1e-4, "angular momentum about the tip", 1e-6, True, True),
    Form("Newton's cradle", "1 of 5 balls", [0, 0, 0, 0, 1.3],
         lambda _: collide([1.3, 0, 0, 0, 0]), 1e-12, "as many fly off as come in"),
    Form("Newton's cradle", "2 of 5 balls", [0, 0, 0, 1.3, 1.3],
         lambda _: collide([1.3, 1.3, 0, 0, 0]), 1e-12, "as many fly off as come in"),
    Form("Newton's cradle", "3 of 5 balls", [0, 0, 1.3, 1.3, 1.3],
         lambda _: collide([1.3, 1.3, 1.3, 0, 0]), 1e-12, "as many fly off as come in"),
    Form("Newton's cradle", "1 kg on 3 kg, restitution 0.6", [-0.2, 0.4],
         lambda _: collide([1.0, 0.0], [1.0, 3.0], 0.6), 1e-12, "momentum, and parting by e"),
    Form("tippe top", "upside down after 8 s: cosine of its axis", -1.0,
         lambda h: spun_top(1.0, 300.0, h)[0], 1e-3, COHEN, 2e-5),
    Form("tippe top", "spin then, of J / (C (R + a)), reversed", 1.0, spin_when_inverted, 1e-3,
         COHEN, 2e-5),
    Form("tippe top", "Jellett's constant then, of that at the start", 1.0,
         lambda h: np.divide(*spun_top(1.0, 300.0, h)[2:]), 1e-3, "L (R up - a axis)", 2e-5, True),
    Form("tippe top", "half the least spin does not raise it", 1.0,
         lambda h: spun_top(1.0, 0.5 * LEAST_SPIN, h)[0], 1e-2, COHEN, 2e-5),
    Form("tippe top", "nor does any with A / C = 0.65 < 1 - a / R", 1.0,
         lambda h: spun_top(0.65, 300.0, h)[0], 1e-2, COHEN, 2e-5),
    Form("bicycle", "matrix M", bicycle.PUBLISHED["M"], lambda _: bicycle.linearised()["M"],
         1e-13, MEIJAARD),
    Form("bicycle", "matrix C1", bicycle.PUBLISHED["C1"], lambda _: bicycle.linearised()["C1"],
         1e-13, MEIJAARD),
    Form("bicycle", "matrix K0", bicycle.PUBLISHED["K0"], lambda _: bicycle.linearised()["K0"],
         1e-13, MEIJAARD),
    Form("bicycle", "matrix K2", bicycle.PUBLISHED["K2"], lambda _: bicycle.linearised()["K2"],
         1e-13, MEIJAARD),
    Form("bicycle", "4 eigenvalues at 5 m/s", np.sort_complex(bicycle.PUBLISHED["eigenvalues"]),
         lambda _: bicycle.eigenvalues(5.0), 1e-13, MEIJAARD),
    Form("bicycle", "stable above, m/s", bicycle.PUBLISHED["weave"],
         lambda _: bicycle.stable(bicycle.eigenvalues, 4, 5), 1e-12, MEIJAARD),
    Form("bicycle", "stable below, m/s", bicycle.PUBLISHED["capsize"],
         lambda _: bicycle.stable(bicycle.eigenvalues, 5.5, 7), 1e-12, MEIJAARD),
    Form("bicycle", "stable above, of steps with contact", bicycle.PUBLISHED["weave"],
         lambda h: bicycle.stable(lambda v: bicycle.lateral_step(v, h), 4, 5), 2e-4, MEIJAARD,
         1e-4, True),
    Form("bicycle", "stable below, of steps with contact", bicycle.PUBLISHED["capsize"],
         lambda h: bicycle.stable(lambda v: bicycle.lateral_step(v, h), 5.5, 7), 2e-4, MEIJAARD,
         1e-4, True),
    *(
        Form("bicycle", f"lean of 1 urad after 3 s at {speed} m/s, urad",
             lambda speed=speed: 1e6 * bicycle.published_ride(speed, 3.0)[0],
             lambda h, speed=speed: 1e6 * bicycle.ride(speed, 3.0, h)[0], 1e-2, MEIJAARD, 5e-4,
             True)
        for speed in (3.0, 5.0, 8.0)
    ),
    Form("chain of 50 links", "all 50 frequencies", laguerre, lambda _: modes()[0], 1e-10,
         "sqrt(g / l) times roots of Laguerre's polynomial", quick=True),
    Form("chain of 50 links", "the slowest, rad/s", bessel, lambda _: modes()[0][0], 1e-4,
         "Bessel's first zero, of n + 1/2 links", quick=True),
    Form("chain of 50 links", "angles after half a slowest swing", lambda: -modes()[1],
         swung_by_solver, 1e-8, "those before it, turned round"),
    Form("chain of 50 links", "the same in steps with contact", lambda: -modes()[1], swung, 1e-2,
         "those before it, turned round", 1e-3),
    Form("chain of 50 links", "gain of energy in 2 s of falling", 0.0, falling_chain, 1e-8,
         "conservation"),
    *(
        row
        for case, masses in (
            ("stack of 20", (1.0,) * 20),
            ("1000 kg on 4 x 1 kg", (1.0,) * 4 + (1000.0,)),
        )
        for row in (
            Form(case, "heights after it fell by 1 mm each, m", at_rest(len(masses)),
                 lambda h, masses=masses: settled_stack(masses, h)[0], 1e-9, "side (k + 1/2)",
                 2e-3),
            Form(case, "deepest overlap until then, m", 0.0,
                 lambda h, masses=masses: settled_stack(masses, h)[1], 1e-6, "none", 2e-3),
        )
    ),
]  # fmt: skip


def number(value):
    """Return numbers as text: one, or how many there are."""
    value = np.asarray(value)
    return f"{float(value):.10g}" if value.ndim == 0 else f"{value.size} numbers"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="", help="show the cases that contain this")
    chosen = parser.parse_args().case
    wrong = 0
    columns = "{:18} {:42} {:>15} {:>15} {:>9} {:>9} {:>7} {}"
    print(columns.format("case", "quantity", "known", "found", "error", "h / 2", "s", "source"))
    for form in FORMS:
        if chosen.lower() not in form.name.lower():
            continue
        begin = time.perf_counter()
        found, error = form.error()
        half = "" if form.step is None else f"{form.error(halved=True)[1]:.1e}"
        seconds = time.perf_counter() - begin
        wrong += not error <= form.within
        print(
            columns.format(
                form.case, form.quantity, number(form.expected), number(found), f"{error:.1e}",
                half, f"{seconds:.1f}", form.source + ("" if error <= form.within else "  WRONG"),
            ),
            flush=True,
        )  # fmt: skip
    print(f"{wrong} of {len(FORMS)} are off by more than they may")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Random programs whose units fit, and the same ones with one mistake.

A unit is a vector of exponents here, with foot and degree as dimensions of their own: an oracle
that knows nothing of the engine. Every statement of a program stands in a line of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["Program", "make_program"]

Unit = tuple[Fraction, ...]
#: kg, m, s, ft, deg
PLAIN: Unit = (Fraction(0),) * 5
DECLARED = {
    "kg": (1, 0, 0, 0, 0),
    "m": (0, 1, 0, 0, 0),
    "s": (0, 0, 1, 0, 0),
    "m/s": (0, 1, -1, 0, 0),
    "m/s^2": (0, 1, -2, 0, 0),
    "N": (1, 1, -2, 0, 0),
    "N m": (1, 2, -2, 0, 0),
    "kg m^2": (1, 2, 0, 0, 0),
    "1/s": (0, 0, -1, 0, 0),
    "Pa": (1, -1, -2, 0, 0),
    "ft": (0, 0, 0, 1, 0),
    "ft/s": (0, 0, -1, 1, 0),
    "deg": (0, 0, 0, 0, 1),
    "": (0, 0, 0, 0, 0),
}


def unit_of(text: str) -> Unit:
    return tuple(map(Fraction, DECLARED[text]))


def times(a: Unit, b: Unit, power: int = 1) -> Unit:
    return tuple(x + power * y for x, y in zip(a, b))


def size(unit: Unit) -> Fraction:
    return max(map(abs, unit))


@dataclass
class Program:
    """The source of a module with a function ``f``, and the line that a mistake is in (or 0)."""

    source: str
    arguments: int
    planted: int = 0
    what: str = ""


@dataclass
class Maker:
    rng: random.Random
    values: list[tuple[str, Unit]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    #: Statements that can be spoilt: number of the line, the line with a mistake, what it is.
    spoilt: list[tuple[int, str, str]] = field(default_factory=list)

    def pick(self, unit: Unit | None = None, limit: int = 3) -> tuple[str, Unit]:
        return self.rng.choice(
            [v for v in self.values if (unit is None or v[1] == unit) and size(v[1]) <= limit]
        )

    def other(self, unit: Unit) -> str | None:
        names = [name for name, mine in self.values if mine != unit]
        return self.rng.choice(names) if names else None

    def add(self, expression: str, unit: Unit, spoilt: str | None = None, what: str = "") -> None:
        name = f"v{len(self.values)}"
        self.lines.append(f"    {name} = {expression}")
        if spoilt is not None:
            self.spoilt.append((len(self.lines) - 1, f"    {name} = {spoilt}", what))
        self.values.append((name, unit))

    def statement(self) -> None:
        kinds = [self.sum, self.sum, self.product, self.quotient, self.power, self.function]
        kinds += [self.choice, self.vector, self.matrix, self.loop, self.branch, self.gradient]
        kinds += [self.system, self.helper, self.batch, self.limits, self.formula, self.angle]
        self.rng.choice(kinds)()

    def sum(self) -> None:
        a, unit = self.pick()
        b, _ = self.pick(unit)
        sign, other = self.rng.choice("+-"), self.other(unit)
        self.add(f"{a} {sign} {b}", unit, other and f"{a} {sign} {other}", "sum")

    def product(self) -> None:
        (a, u), (b, w) = self.pick(limit=2), self.pick(limit=2)
        self.add(f"{a} * {b}", times(u, w))

    def quotient(self) -> None:
        (a, u), (b, w) = self.pick(limit=2), self.pick(limit=2)
        self.add(f"{a} / {b}", times(u, w, -1))

    def power(self) -> None:
        a, u = self.pick(limit=2)
        if self.rng.random() < 0.5:
            self.add(f"{a}**2", times(u, u))
        else:
            self.add(f"np.sqrt({a})", tuple(x / 2 for x in u))

    def function(self) -> None:
        a, u = self.pick()
        b, _ = self.pick(u)
        name = self.rng.choice(["sin", "exp", "tanh", "log1p", "arctan"])
        wrong = f"np.{name}({a})" if u != PLAIN else None
        self.add(f"np.{name}({a} / {b})", PLAIN, wrong, "function")

    def angle(self) -> None:
        a, u = self.pick()
        b, _ = self.pick(u)
        other = self.other(u)
        wrong = other and f"np.arctan2({a}, {other})"
        self.add(f"np.arctan2({a}, {b})", PLAIN, wrong, "angle")

    def choice(self) -> None:
        a, u = self.pick()
        b, _ = self.pick(u)
        other = self.other(u)
        wrong = other and f"np.where({a} > {other}, {a}, {b})"
        self.add(f"np.where({a} > {b}, {a}, {b})", u, wrong, "comparison")

    def limits(self) -> None:
        a, u = self.pick()
        b, _ = self.pick(u)
        other = self.other(u)
        wrong = other and f"np.minimum(np.maximum({a}, 0.0), {other})"
        self.add(f"np.minimum(np.maximum({a}, 0.0), {b})", u, wrong, "limit")

    def vector(self) -> None:
        a, u = self.pick(limit=2)
        b, _ = self.pick(u, 2)
        other = self.other(u)
        expression, unit = self.rng.choice(
            [
                ("np.linalg.norm(np.array([{0}, {1}, {0}]))", u),
                ("np.sum(np.array([{0}, {1}]))", u),
                ("np.mean(np.stack([{0}, {1}]))", u),
                ("np.array([{0}, {1}, 0.0]) @ np.array([{0}, {1}, 1.5])", times(u, u)),
                ("np.cross(np.array([{0}, {1}, {0}]), np.array([{1}, {0}, {0}]))[2]", times(u, u)),
                ("np.max(np.array([{0}, {1}]))", u),
            ]
        )
        wrong = other and expression.format(a, other)
        self.add(expression.format(a, b), unit, wrong, "vector")

    def matrix(self) -> None:
        (a, u), (b, w) = self.pick(limit=2), self.pick(limit=2)
        c, _ = self.pick(w, 2)
        unit = times(u, w)
        self.add(f"(np.array([[{a}, {a}], [0.0, {a}]]) @ np.array([{b}, {c}]))[0]", unit)

    def loop(self) -> None:
        (a, u), (h, w) = self.pick(limit=2), self.pick(limit=2)
        wrong = f"arc.scan(lambda c, _: (c + {a} / {h}, c), {a}, length=3)[0]"
        self.add(
            f"arc.scan(lambda c, _: (c + {a} / {h} * {h}, c), {a}, length=3)[0]",
            u,
            wrong if w != PLAIN else None,
            "loop",
        )

    def branch(self) -> None:
        a, u = self.pick()
        b, _ = self.pick(u)
        other = self.other(u)
        text = "arc.cond({0} > 0.0, lambda p, q: p + q, lambda p, q: p - q, {0}, {1})"
        self.add(text.format(a, b), u, other and text.format(a, other), "branch")

    def gradient(self) -> None:
        (a, u), (k, w) = self.pick(limit=2), self.pick(limit=2)
        self.add(f"arc.grad(lambda z: 0.5 * {k} * z**2)({a})", times(u, w))

    def system(self) -> None:
        (a, u), (b, w) = self.pick(limit=2), self.pick(limit=2)
        rows = f"np.array([[{a}, 0.0], [{a}, {a}]])"
        self.add(f"np.linalg.solve({rows}, np.array([{b}, {b}]))[1]", times(w, u, -1))

    def helper(self) -> None:
        (a, u), (b, w) = self.pick(limit=2), self.pick(limit=2)
        self.add(f"helper({a}, {b})", times(u, w))

    def batch(self) -> None:
        (a, u), (b, w) = self.pick(limit=2), self.pick(limit=2)
        text = f"arc.vmap(lambda p, q: p * q)(np.array([{a}, {a}]), np.array([{b}, {b}]))[1]"
        self.add(text, times(u, w))

    def formula(self) -> None:
        (a, u), (b, w) = self.pick(limit=1), self.pick(limit=1)
        self.add(f"0.5 * {a} * {b}**2", times(u, times(w, w)))


def make_program(seed: int, length: int = 25, mistake: bool = False) -> Program:
    """Return a random program of so many statements, with one mistake on request."""
    rng = random.Random(seed)
    maker = Maker(rng)
    head = ["import numpy as np", "import archimedes as arc", "", "@arc.struct", "class Args:"]
    texts = [rng.choice(list(DECLARED)) for _ in range(6)]
    for k, text in enumerate(texts):
        head.append(f'    v{k}: float = arc.field(units="{text}")')
        maker.values.append((f"v{k}", unit_of(text)))
    head += ["", "def helper(p, q):", "    return 2.0 * p * q", "", "def f(args):"]
    head += [f"    v{k} = args.v{k}" for k in range(6)]
    while len(maker.lines) < length:
        maker.statement()
    lines, planted, what = list(maker.lines), 0, ""
    if mistake:
        while not maker.spoilt:
            maker.statement()
            lines = list(maker.lines)
        at, line, what = rng.choice(maker.spoilt)
        lines[at] = line
        planted = len(head) + at + 1
    tail = [f"    return ({', '.join(name for name, _ in maker.values)})"]
    return Program("\n".join([*head, *lines, *tail, ""]), 6, planted, what)

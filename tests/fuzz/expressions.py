"""Random expressions of a wanted shape, for the bodies of regions.

A body runs many times with values that are not known when it is written, so its expressions use
operations whose Lipschitz constant does not depend on values, and stay bounded. Where everything
is exact, discontinuous operations and products join in.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

__all__ = ["Leaf", "expression"]


@dataclass(frozen=True)
class Leaf:
    """A name that an expression may use: a body's argument or a value it closes over."""

    name: str
    shape: tuple[int, ...]
    kind: str = "f"
    exact: bool = True


FLOAT_UNARY = ("np.abs({a})", "-{a}", "np.clip({a}, -2.0, 1.5)", "0.75 * {a}", "{a} / 2.0")
FLOAT_INEXACT = ("np.sin({a})", "np.tanh({a})", "np.exp(-np.abs({a}))", "np.arctan({a})")
FLOAT_STEP = (
    "np.floor({a})",
    "{a} % 1.5",
    "np.sqrt(np.abs({a}))",
    "np.sign({a})",
    "np.where({a} > 0.5, {a}, -1.0)",
    "np.rint({a})",
)
FLOAT_BINARY = ("0.5 * ({a} + {b})", "np.maximum({a}, {b})", "0.5 * ({a} - {b})")
FLOAT_STEP_BINARY = ("np.clip({a} * {b}, -3.0, 3.0)", "np.where({a} < {b}, {a}, {b})")
INT_UNARY = ("-{a}", "{a} + 1", "{a} & 7", "np.clip({a}, -9, 9)", "{a} // 2", "{a} % 5", "~{a}")
INT_BINARY = ("{a} + {b}", "{a} - {b}", "np.maximum({a}, {b})", "{a} ^ {b}")
RANKED = ("{a}[::-1]", "np.roll({a}, 1)", "np.flip({a})", "np.sort({a}, axis=-1)")


def expression(
    rng: random.Random,
    shape: tuple[int, ...],
    kind: str,
    leaves: list[Leaf],
    exact: bool,
    multiply: bool,
) -> tuple[str, float, bool]:
    """Text of an expression with this shape and kind, its Lipschitz constant, and exactness.

    Floats come out in [-4, 4], integers in [-40, 40]; nan passes through. ``exact`` asks for exact
    operations only; ``multiply`` allows products of two values (not beside infinities: a literal
    zero times one is zero by contract).
    """
    depth = rng.choice((1, 2, 2, 3))
    text, lip, is_exact = _grow(rng, shape, kind, leaves, exact, depth, multiply)
    bound = "4.0" if kind == "f" else "40"
    return f"np.clip({text}, -{bound}, {bound})", lip, is_exact


def _grow(rng, shape, kind, leaves, exact, depth, multiply) -> tuple[str, float, bool]:
    if depth == 0:
        return _leaf(rng, shape, kind, leaves, exact)
    a, lip, is_exact = _grow(rng, shape, kind, leaves, exact, depth - 1, multiply)
    if shape and shape[0] > 0 and rng.random() < 0.15:
        return rng.choice(RANKED).format(a=_wrap(a)), lip, is_exact
    if rng.random() < 0.5:
        b, other, other_exact = _grow(rng, shape, kind, leaves, exact, depth - 1, multiply)
        table = INT_BINARY if kind == "i" else FLOAT_BINARY
        if exact and kind == "f" and rng.random() < 0.5:
            table = FLOAT_STEP_BINARY[not multiply :]
        text = rng.choice(table).format(a=_wrap(a), b=_wrap(b))
        return text, max(lip, other), is_exact and other_exact
    if kind == "i":
        return rng.choice(INT_UNARY).format(a=_wrap(a)), lip, is_exact
    if exact and rng.random() < 0.5:
        return rng.choice(FLOAT_STEP).format(a=_wrap(a)), lip, is_exact
    if not exact and rng.random() < 0.6:
        return rng.choice(FLOAT_INEXACT).format(a=_wrap(a)), lip, False
    return rng.choice(FLOAT_UNARY).format(a=_wrap(a)), lip, is_exact


def _wrap(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _leaf(rng, shape, kind, leaves, exact) -> tuple[str, float, bool]:
    usable = [v for v in leaves if v.kind == kind or (kind, v.kind) in (("f", "i"), ("f", "b"))]
    usable = [v for v in usable if (v.exact or not exact) and np.prod(v.shape) > 0]
    same = [v for v in usable if v.shape == shape and v.kind == kind]
    if same and rng.random() < 0.7:
        usable = same
    if not usable:
        constant = "2" if kind == "i" else "1.25"
        return (f"np.full({shape}, {constant})" if shape else constant), 0.0, True
    leaf = rng.choice(usable)
    text = leaf.name
    if leaf.kind != kind:
        text = f"({text} * 1.0)"
    if leaf.shape == shape:
        return text, 1.0, leaf.exact
    if not _broadcasts_to(leaf.shape, shape):
        where = ", ".join(str(rng.randrange(-n, n)) for n in leaf.shape)
        text = f"{text}[{where}]"
    text = text if shape == () else f"np.broadcast_to({text}, {shape})"
    return text, 1.0, leaf.exact


def _broadcasts_to(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    return len(small) <= len(large) and all(m in (1, n) for m, n in zip(small[::-1], large[::-1]))

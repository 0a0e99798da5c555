"""Builds one random program statement by statement, running each on plain NumPy as it goes.

Running while generating tells every statement the true shapes, dtypes and magnitudes of its
operands, so the grammar needs no shape inference: a statement that NumPy rejects is dropped, and
the values at the end are the expected results.

Each variable carries ``err``, a bound on how far another correct evaluation may be from NumPy's:
zero where only exactly rounded operations entered (the bits must then be equal), and otherwise the
bound that Lipschitz constants and unit roundoffs give (Higham 2002, section 3.3). Discontinuous
operations accept exact operands only, so one ulp never turns into a different branch.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import plain

__all__ = ["MAX_SIZE", "Builder", "Var"]

DTYPES = {np.dtype(t) for t in (np.float64, np.float32, np.int64, np.bool_)}
MAX_SIZE, MAX_MAGNITUDE, MAX_RELATIVE_ERROR = 24, 1e4, 1e-3
REJECTED = (ValueError, TypeError, IndexError, np.linalg.LinAlgError)


@dataclass
class Var:
    """A variable of the program: its NumPy value and what may be assumed of other evaluations."""

    name: str
    value: np.ndarray
    err: float
    signed: bool  # the signs of its zeros are defined
    literal: bool = False  # some of its zeros may be constants: 0 * inf is then 0, by contract

    def __post_init__(self) -> None:
        self.shape, self.ndim = self.value.shape, self.value.ndim
        self.size, self.kind = self.value.size, self.value.dtype.kind
        finite = self.value[np.isfinite(self.value)] if self.kind == "f" else self.value
        self.finite = finite.size == self.value.size
        self.mag = float(np.max(np.abs(finite), initial=0)) if self.kind != "b" else 1.0

    @property
    def exact(self) -> bool:
        return self.err == 0.0

    def vanishes_beside(self, other: Var) -> bool:
        """Whether ``self * other`` may meet a literal zero and a non-finite number."""
        return self.literal and self.has_zero and not other.finite

    @property
    def has_zero(self) -> bool:
        return bool(np.any(self.value == 0))


class Builder:
    """The program so far: its lines, its variables and the namespace they live in."""

    def __init__(self, seed: int, widest: int = MAX_SIZE) -> None:
        self.rng = random.Random(seed)
        self.np_rng = np.random.Generator(np.random.PCG64(seed))
        self.widest = widest
        self.nasty = self.rng.random() < 0.15
        self.lines: list[str] = []
        self.vars: list[Var] = []
        self.env: dict[str, Any] = {"np": np, "arc": plain}
        self.inputs: dict[str, np.ndarray] = {}
        self.count = 0
        self.lengths = self._wide_lengths() if widest > MAX_SIZE else ()

    # inputs -----------------------------------------------------------------------------------

    def _wide_lengths(self) -> tuple[int, ...]:
        """Lengths of axes of this program: few, so that arrays meet, of every magnitude."""
        long, middle = (int(top ** self.rng.random()) for top in (self.widest, self.widest**0.5))
        return (long, long, middle, middle, 1, self.rng.randrange(2, 5))

    def random_shape(self) -> tuple[int, ...]:
        sizes = (1, 2, 2, 3, 3, 4) if self.nasty or self.rng.random() < 0.96 else (0, 1, 2, 3)
        sizes = self.lengths if self.lengths and 0 not in sizes else sizes
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        while True:
            shape = tuple(self.rng.choice(sizes) for _ in range(rank))
            if np.prod(shape) <= self.widest:
                return shape

    def random_values(self, shape: tuple[int, ...], kind: str) -> np.ndarray:
        if kind == "b":
            return np.asarray(self.np_rng.random(shape) < 0.5)
        if kind == "i":
            return self.np_rng.integers(-6, 7, shape)
        values = np.asarray(self.np_rng.normal(0.0, 1.5, shape))
        if self.nasty:
            mask = self.np_rng.random(shape) < 0.25
            special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
            values = np.where(mask, special[self.np_rng.integers(0, 5, shape)], values)
        return values.astype(np.float32) if kind == "s" else values

    def add_input(self, kind: str) -> None:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.random_values(self.random_shape(), kind)
        self.env[name] = self.inputs[name].copy()
        self.vars.append(Var(name, self.inputs[name], 0.0, self.nasty))

    # choosing operands ------------------------------------------------------------------------

    def pick(self, kinds: str = "f", *, exact: bool = False, min_rank: int = 0) -> Var | None:
        """A variable, recent ones more often, of the given dtype kinds."""
        found = [
            v for v in self.vars if v.kind in kinds and v.ndim >= min_rank and not (exact and v.err)
        ]
        if not found:
            return None
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def partner(self, var: Var, kinds: str = "f", *, exact: bool = False) -> Var | None:
        """A variable that broadcasts with ``var``."""
        found = [
            v
            for v in self.vars
            if v.kind in kinds and not (exact and v.err) and broadcasts(v.shape, var.shape)
        ]
        return self.rng.choice(found) if found else None

    # emitting statements ----------------------------------------------------------------------

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def emit(
        self,
        text: str,
        operands: Sequence[Var],
        *,
        lip: float | Sequence[float] | None = 1.0,
        ulps: float = 0.0,
        scale: float = 0.0,
        signed: bool = True,
    ) -> bool:
        """Appends ``name = text`` unless NumPy rejects it or its value is of no use.

        ``lip`` bounds the sensitivity to each operand (None: discontinuous, exact operands only),
        ``ulps`` the roundoff of the operation itself relative to ``scale`` or to the result.
        """
        if lip is None and any(o.err for o in operands):
            return False
        name = self.fresh()
        err = 0.0
        if ulps or any(o.err for o in operands):
            lips = lip if isinstance(lip, Sequence) else [lip or 0.0] * len(operands)
            err = sum(L * o.err for L, o in zip(lips, operands))
            ulps = max(ulps, 1.0)
        # integer operations fold (i - i, argmax of one element): their zeros may be literals, and
        # adding a literal zero keeps -0, by contract
        literal = any(o.literal or o.kind != "f" for o in operands)
        signed = signed and not literal and all(o.signed for o in operands)
        return self.block([f"{name} = {text}"], [name], err, ulps, scale, signed, literal)

    def block(
        self,
        lines: list[str],
        names: list[str],
        err: float = 0.0,
        ulps: float = 0.0,
        scale: float = 0.0,
        signed: bool = False,
        literal: bool = True,
    ) -> bool:
        """Appends lines that define ``names``, all with the same error bound."""
        before = set(self.env)
        made = []
        try:
            exec("\n".join(lines), self.env)
        except REJECTED:
            # an ill-typed statement (shapes, casts): the grammar proposes, NumPy decides
            made = None
        for name in names if made is not None else []:
            value = np.asarray(self.env[name])
            if value.dtype not in DTYPES or value.size > self.widest or value.ndim > 5:
                made = None
                break
            var = Var(name, value, 0.0, signed, literal or value.dtype.kind != "f")
            if ulps and var.kind == "f":
                eps = float(np.finfo(value.dtype).eps)
                var.err = err + ulps * eps * max(scale, var.mag, 1e-3)
            if (
                var.mag > MAX_MAGNITUDE
                or var.err > MAX_RELATIVE_ERROR * max(1.0, var.mag)
                or not (var.finite or self.nasty)
                or (self.nasty and var.size == 0)  # its sum would be a literal zero
            ):
                made = None
                break
            made.append(var)
        if made is None:
            for name in set(self.env) - before:
                del self.env[name]
            return False
        self.lines += lines
        self.vars += made
        return True


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or m == 1 or n == 1 for m, n in zip(a[::-1], b[::-1]))

"""Trim: states and inputs at which rates and outputs are what they should be.

The search is a bounded least-squares problem in what is free: an equation for each rate and each
output that is prescribed. Where they cannot all be met, what is left has names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.operation.linearization import linearize
from archimedes.control.operation.named_numbers import NamedNumbers, entries_of, named_numbers
from archimedes.function import compile, holds_traced, jac
from archimedes.optimize.fits.fitting import least_squares

__all__ = ["OperatingPoint", "trim"]

#: The search ends where nothing changes any more.
TIGHT: dict[str, Any] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


@dataclass(frozen=True)
class OperatingPoint:
    """A state and inputs, and how well they hold.

    ``x``, ``u``, ``rates`` (dx/dt) and ``outputs`` are trees as they were given. ``residuals`` is
    what is left of each prescribed rate ("rate of NAME") and output, by name; ``at_bounds`` tells
    which unknowns are at a bound, ``message`` what cannot be balanced.
    """

    x: Any
    u: Any
    rates: Any
    outputs: Any
    residuals: dict[str, float]
    at_bounds: dict[str, float]
    success: bool
    message: str
    system: Callable[[], StateSpace]

    def linearize(self) -> StateSpace:
        """Return the linear system about this point, from the inputs to the outputs."""
        return self.system()

    def report(self) -> str:
        """Return what is left and what is at a bound, one line for each.

        >>> point = trim(lambda t, x, u: u - 2.0 * x, 1.0, 0.0, bounds={"u": (0.0, 1.0)},
        ...              fixed="x")
        >>> print(point.report())
        not balanced: rate of x is left at -1 (u is at its bound 1); widen bounds, free more, or \
start nearer
          rate of x                  -1
          u                        at its bound 1
        """
        lines = [self.message]
        lines += [f"  {name:<20} {value:>+8.3g}" for name, value in self.residuals.items()]
        lines += [f"  {name:<24} at its bound {v:.6g}" for name, v in self.at_bounds.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Condition:
    """A named number of rates or outputs, and where it should lie."""

    name: str
    place: int
    low: float
    high: float


def trim(
    dynamics: Callable[..., Any],
    x: Any,
    u: Any = None,
    outputs: Callable[..., Any] | None = None,
    *,
    free: Any = None,
    fixed: Any = (),
    rates: Mapping[str, Any] | None = None,
    targets: Mapping[str, Any] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    t: float = 0.0,
    args: tuple[Any, ...] = (),
    through: Sequence[tuple[Any, ...]] = (),
    tol: float = 1e-9,
) -> OperatingPoint:
    """Find the point nearby at which rates vanish and outputs are what they should be.

    ``dynamics(t, x, u, *args)`` and ``outputs(t, x, u, *args)`` are those of `linearize`; ``x``
    and ``u`` are trees to start from. Numbers are called by their path in them: "alpha", "v_B[0]";
    "v_B" is all of v_B, "x.NAME" and "u.NAME" tell states and inputs of one name apart.

    - ``free`` names the unknowns (by default all states and inputs), ``fixed`` those that are not.
    - ``rates`` prescribes rates: a number, a pair (lower, upper), or None where a rate may be
      anything; all others are zero.
    - ``targets`` prescribes outputs likewise; all others may be anything.
    - ``bounds`` limits unknowns, by name: pairs (lower, upper).
    - ``through`` are ``args`` to trim for on the way to ``args``, where that is too far.

    Nothing raises where no such point exists: ``success`` is False and ``message`` names what is
    left (above ``tol``, in the units of the rates and outputs).

    >>> level = lambda t, x, u: {"speed": u["thrust"] - 0.1 * x["speed"] ** 2}
    >>> point = trim(level, {"speed": 10.0}, {"thrust": 0.0}, fixed="speed")
    >>> round(float(point.u["thrust"]), 9)
    10.0
    """
    if holds_traced(tree.leaves((x, u, args))):
        raise TypeError(
            "trim runs on numbers, and was given a value of a function that is being recorded: "
            "call it outside, or solve the rates with arc.root, which can be recorded"
        )
    given = () if u is None else (u,)
    known = _Known(named_numbers(x, "x"), named_numbers(() if u is None else u, "u"))
    start = np.asarray(np.concatenate([known.x.vector, known.u.vector]))
    if not np.all(np.isfinite(start)):
        k = int(np.argmin(np.isfinite(start)))
        raise ValueError(f"trim: {known.full[k]} starts at {start[k]}: give x and u finite numbers")
    seen = None if outputs is None else named_numbers(outputs(t, x, *given, *args), "y")
    moving, (low, high) = _moving(known, free, fixed), _limits(known, bounds)
    wanted = _conditions(known, seen, rates, targets)

    def split(z: Any) -> tuple[Any, ...]:
        """Return x, and u where there is one, of the numbers that are free."""
        full = np.array(start)
        full[moving] = z
        x = known.x.unravel(full[: known.n])
        return (x, known.u.unravel(full[known.n :])) if given else (x,)

    def values(z: Any, args: Any) -> Any:
        at = split(z)
        rows = [tree.ravel(dynamics(t, *at, *args))[0] * 1.0]
        if outputs is not None:
            rows.append(tree.ravel(outputs(t, *at, *args))[0] * 1.0)
        return np.concatenate(rows)[[c.place for c in wanted]]

    balance = _Balance(values, wanted, low[moving], high[moving])
    z = np.clip(start[moving], low[moving], high[moving])
    for given_args in (*through, args):
        z = balance.search(z, given_args)
    error = balance.left(z, args)
    at_bound = (z <= balance.low) | (z >= balance.high)
    stuck = {known.full[k]: float(v) for k, v, on in zip(moving, z, at_bound) if on}
    now = split(z)
    residuals = {c.name: float(v) for c, v in zip(wanted, error)}
    success = bool(np.all(np.abs(error) <= tol))
    reached = {} if success else balance.reached(z, args)
    with np.errstate(all="ignore"):  # the message says where numbers are not finite
        rates_now = dynamics(t, *now, *args)
        outputs_now = None if outputs is None else outputs(t, *now, *args)
    x, u = now if given else (now[0], None)
    return OperatingPoint(
        x=x,
        u=u,
        rates=rates_now,
        outputs=outputs_now,
        residuals=residuals,
        at_bounds=stuck,
        success=success,
        message="balanced" if success else _message(residuals, stuck, tol, reached),
        system=lambda: linearize(dynamics, x, u, outputs, t=t, args=args),
    )


class _Balance:
    """The least-squares problem: an equation for each condition.

    A condition with room between its edges has a slack: an unknown between them that it equals.
    Rows are divided by their slopes, so that units do not decide what is met first. Recorded once.
    """

    def __init__(self, values: Any, wanted: list[_Condition], low: Any, high: Any) -> None:
        self.wanted, self.low, self.high = wanted, low, high
        self.edges = np.array([c.low for c in wanted]), np.array([c.high for c in wanted])
        self.loose = loose = self.edges[0] < self.edges[1]
        count, fixed = len(low), np.where(loose, 0.0, self.edges[0])
        self.fixed = fixed

        def misfit(zs: Any, args: Any) -> Any:
            aims = np.array(fixed)
            aims[loose] = zs[count:]
            return values(zs[:count], args) - aims

        self.misfit, self.slopes = compile(misfit), jac(misfit)

    def values(self, z: Any, args: Any) -> np.ndarray:
        """Return the numbers that the conditions are about."""
        none = np.zeros(np.count_nonzero(self.loose))
        return np.asarray(self.misfit(np.concatenate([z, none]), args)) + self.fixed

    def left(self, z: Any, args: Any) -> np.ndarray:
        """Return what is left of each condition."""
        found = self.values(z, args)
        return found - np.clip(found, *self.edges)

    def rows(self, z: Any, args: Any) -> np.ndarray:
        """Return the slopes of the conditions in z."""
        none = np.zeros(np.count_nonzero(self.loose))
        whole = np.asarray(self.slopes(np.concatenate([z, none]), args))
        return whole[:, : len(z)]

    def reached(self, z: Any, args: Any) -> dict[str, bool]:
        """Tell which conditions anything that is free changes."""
        return {c.name: bool(np.any(r != 0.0)) for c, r in zip(self.wanted, self.rows(z, args))}

    def search(self, z: Any, args: Any) -> Any:
        """Return the solution within bounds; equal bounds take an unknown out."""
        values, rows = self.values(z, args), self.rows(z, args)
        low = np.concatenate([self.low, self.edges[0][self.loose]])
        high = np.concatenate([self.high, self.edges[1][self.loose]])
        held, open_ = np.clip(np.concatenate([z, values[self.loose]]), low, high), low < high
        if not np.all(np.isfinite(values)) or not np.all(np.isfinite(rows)) or not np.any(open_):
            return z
        size = np.linalg.norm(rows * np.maximum(np.abs(z), 1.0), axis=1)
        weights = 2.0 ** -np.round(np.log2(np.where(size > 0.0, size, 1.0)))

        def whole(v: Any) -> np.ndarray:
            full = np.array(held)
            full[open_] = v
            return full

        found = least_squares(
            lambda v: weights * self.misfit(whole(v), args),
            held[open_],
            jac=lambda v: weights[:, None] * self.slopes(whole(v), args)[:, open_],
            bounds=(low[open_], high[open_]),
            **TIGHT,
        )
        return whole(found.x)[: len(z)]


class _Known:
    """Names of states and inputs; where both have one, it needs its "x." or "u."."""

    def __init__(self, x: NamedNumbers, u: NamedNumbers) -> None:
        self.x, self.u, self.n = x, u, len(x.names)
        both = set(x.names) & set(u.names)
        self.full = tuple(
            f"{root}.{name}" if name in both else name
            for root, part in (("x", x), ("u", u))
            for name in part.names
        )

    def entries(self, wanted: Any, what: str) -> list[int]:
        found: set[int] = set()
        for name in (wanted,) if isinstance(wanted, str) else wanted:
            for root, part, first in (("x", self.x, 0), ("u", self.u, self.n)):
                if name == root and name not in self.full:  # all states, or all inputs
                    found.update(range(first, first + len(part.names)))
                    break
                inside = name.removeprefix(f"{root}.")
                if inside != name:
                    found.update(first + k for k in entries_of([inside], part.names, what))
                    break
            else:
                found.update(entries_of([name], self.full, what))
        return sorted(found)


def _moving(known: _Known, free: Any, fixed: Any) -> np.ndarray:
    every = range(len(known.full)) if free is None else known.entries(free, "free")
    held = known.entries(fixed, "fixed")
    moving = np.array([k for k in every if k not in held], dtype=int)
    if moving.size == 0:
        raise ValueError("trim: nothing is free; name fewer states and inputs in fixed")
    return moving


def _limits(known: _Known, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(len(known.full), -np.inf), np.full(len(known.full), np.inf)
    for name, pair in (bounds or {}).items():
        places = known.entries([name], "bounds")
        low[places], high[places] = _pair(pair, f"bounds[{name!r}]")
    return low, high


def _pair(given: Any, what: str) -> tuple[float, float]:
    pair = given if isinstance(given, (tuple, list)) else (given, given)
    values = np.asarray([np.nan if v is None else v for v in pair], dtype=float)
    if values.shape != (2,):
        raise ValueError(f"{what} must be a number or a pair (lower, upper), got {given!r}")
    low = -np.inf if pair[0] is None else float(values[0])
    high = np.inf if pair[1] is None else float(values[1])
    if not low <= high:
        raise ValueError(f"{what} is crossed or nan: lower {low}, upper {high}")
    return low, high


def _conditions(known: _Known, seen: NamedNumbers | None, rates: Any, targets: Any) -> Any:
    """Return the conditions on rates, then on outputs."""
    wanted: dict[int, tuple[float, float] | None] = dict.fromkeys(range(known.n), (0.0, 0.0))
    for name, value in (rates or {}).items():
        for k in known.entries([name], "rates"):
            if k >= known.n:
                raise ValueError(f"rates names {name!r}, which is an input: inputs have no rates")
            wanted[k] = None if value is None else _pair(value, f"rates[{name!r}]")
    found = [
        _Condition(f"rate of {known.full[k]}", k, *edges)
        for k, edges in wanted.items()
        if edges is not None
    ]
    if targets and seen is None:
        raise ValueError("targets prescribes outputs: give the function outputs too")
    for name, value in (targets or {}).items():
        assert seen is not None
        for k in entries_of([name], seen.names, "targets"):
            low, high = _pair(value, f"targets[{name!r}]")
            found.append(_Condition(seen.names[k], known.n + k, low, high))
    if not found:
        raise ValueError("trim: nothing is prescribed; give rates or targets")
    return found


def _message(
    residuals: dict[str, float], stuck: dict[str, float], tol: float, reached: dict[str, bool]
) -> str:
    """Say what is left, the largest first, and why, where that can be seen."""
    if not all(np.isfinite(v) for v in residuals.values()):
        bad = next(k for k, v in residuals.items() if not np.isfinite(v))
        return f"not balanced: {bad} is {residuals[bad]}; start where the model is defined"
    worst = sorted(residuals, key=lambda k: -abs(residuals[k]))
    texts = []
    for name in [k for k in worst if abs(residuals[k]) > tol][:4]:
        why = "" if reached[name] else ", and nothing that is free changes it"
        texts.append(f"{name} is left at {residuals[name]:.3g}{why}")
    held = ", ".join(f"{name} is at its bound {v:.6g}" for name, v in stuck.items())
    return (
        f"not balanced: {'; '.join(texts)}{f' ({held})' if held else ''}; widen bounds, free more, "
        "or start nearer"
    )

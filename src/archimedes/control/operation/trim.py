"""What a trim is given by name: what is free, within which bounds, and what is prescribed.

A model's rates and outputs as functions of some of its numbers, recorded once.

The search for a balance: bounded least squares, and words for what is left.

Trim: states and inputs at which rates and outputs are what they should be.

The search is a bounded least-squares problem in what is free: an equation for each rate and each
output that is prescribed. Where they cannot all be met, what is left has names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.operation.linearization import linearize
from archimedes.control.operation.named_numbers import NamedNumbers, entries_of, named_numbers
from archimedes.function import jac
from archimedes.function.recording_store import Current, compile_frozen, find_or_make, form_of
from archimedes.optimize import least_squares

__all__ = [
    "Balance",
    "Condition",
    "Known",
    "Model",
    "ModelFunctions",
    "OperatingPoint",
    "conditions_of",
    "limits_of",
    "message_of",
    "moving_numbers",
    "trim",
]


@dataclass(frozen=True)
class Condition:
    """A named number of rates or outputs, and where it should lie."""

    name: str
    place: int
    low: float
    high: float


class Known:
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
        """Return where names lie among states and inputs; "x" and "u" are all of them."""
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


def moving_numbers(known: Known, free: Any, fixed: Any) -> np.ndarray:
    """Return where the unknowns lie among states and inputs."""
    every = range(len(known.full)) if free is None else known.entries(free, "free")
    held = known.entries(fixed, "fixed")
    moving = np.array([k for k in every if k not in held], dtype=int)
    if moving.size == 0:
        raise ValueError("trim: nothing is free; name fewer states and inputs in fixed")
    return moving


def limits_of(known: Known, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of all states and inputs, by their names."""
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


def conditions_of(known: Known, seen: NamedNumbers | None, rates: Any, targets: Any) -> Any:
    """Return the conditions on rates, then on outputs."""
    wanted: dict[int, tuple[float, float] | None] = dict.fromkeys(range(known.n), (0.0, 0.0))
    for name, value in (rates or {}).items():
        for k in known.entries([name], "rates"):
            if k >= known.n:
                raise ValueError(f"rates names {name!r}, which is an input: inputs have no rates")
            wanted[k] = None if value is None else _pair(value, f"rates[{name!r}]")
    found = [
        Condition(f"rate of {known.full[k]}", k, *edges)
        for k, edges in wanted.items()
        if edges is not None
    ]
    if targets and seen is None:
        raise ValueError("targets prescribes outputs: give the function outputs too")
    for name, value in (targets or {}).items():
        assert seen is not None
        for k in entries_of([name], seen.names, "targets"):
            low, high = _pair(value, f"targets[{name!r}]")
            found.append(Condition(seen.names[k], known.n + k, low, high))
    if not found:
        raise ValueError("trim: nothing is prescribed; give rates or targets")
    return found


@dataclass(frozen=True)
class ModelFunctions:
    """What is left of conditions, as a function of what is free; ``split`` is the way back.

    ``parts`` are the recorded functions, which all models of the same content share; what is not
    free (``start``) and the time are arguments of theirs.
    """

    parts: tuple[Any, Any]
    start: np.ndarray
    moving: np.ndarray
    unravel: Callable[[Any], Any]
    t: Any

    def misfit(self, zs: Any, aims: Any, args: Any) -> Any:
        """Return the numbers of the conditions less ``aims``; slacks follow the unknowns in zs."""
        return self.parts[0](zs, self.start, aims, self.t, args)

    def slopes(self, zs: Any, aims: Any, args: Any) -> Any:
        """Return the derivatives of ``misfit`` in zs."""
        return self.parts[1](zs, self.start, aims, self.t, args)

    def split(self, z: Any) -> Any:
        """Return x and u (or None) for numbers of what is free."""
        full = np.array(self.start)
        full[self.moving] = z
        return self.unravel(full)


class Model:
    """Functions of states and inputs, with or without the latter."""

    def __init__(
        self, dynamics: Any, outputs: Any, x: Any, u: Any, args: tuple[Any, ...], t: Any
    ) -> None:
        self.given, self.t, self.driven = (dynamics, outputs), float(t), u is not None
        self.form = (form_of((x, u)), form_of(args))
        numbers = tree.map(lambda leaf: np.asarray(leaf) * 1.0, (x, u if self.driven else ()))
        self._unravel = tree.ravel(numbers)[1]
        self._recorded = find_or_make("rates and outputs", self.given, self.form, self._functions)

    def _functions(self, current: Current) -> tuple[Any, ...]:
        def rates(t: Any, x: Any, u: Any, args: Any) -> Any:
            return current.functions[0](t, x, *((u,) if driven else ()), *args)

        def seen(t: Any, x: Any, u: Any, args: Any) -> Any:
            return current.functions[1](t, x, *((u,) if driven else ()), *args)

        driven = self.driven
        return tuple(
            compile_frozen(call, (current,), call.__name__)
            for call, given in zip((rates, seen), self.given)
            if given is not None
        )

    def split(self, full: Any) -> tuple[Any, Any]:
        """Return x and u (or None) for all their numbers."""
        x, u = self._unravel(full)
        return x, u if self.driven else None

    def rates(self, x: Any, u: Any, args: Any) -> Any:
        """Return dx/dt."""
        return self._recorded[0](self.t, x, u, args)

    def seen(self, x: Any, u: Any, args: Any) -> Any:
        """Return the outputs."""
        return self._recorded[1](self.t, x, u, args)

    def functions(
        self, start: np.ndarray, moving: np.ndarray, wanted: Sequence[Condition]
    ) -> ModelFunctions:
        """Return what is left of conditions where the numbers at ``moving`` are free."""
        places = [c.place for c in wanted]
        loose = np.array([c.low < c.high for c in wanted])
        driven, unravel, count = self.driven, self._unravel, len(moving)
        recorded = self._recorded

        def misfit(zs: Any, start: Any, aims: Any, t: Any, args: Any) -> Any:
            full, goals = np.array(start), np.array(aims)
            full[moving] = zs[:count]
            goals[loose] = zs[count:]
            x, u = unravel(full)
            values = [call(t, x, u if driven else None, args) for call in recorded]
            return np.concatenate([tree.ravel(v)[0] * 1.0 for v in values])[places] - goals

        def make(current: Current) -> tuple[Any, Any]:
            made = compile_frozen(misfit, name="misfit")
            return made, jac(made)

        settings = (self.form, tuple(moving.tolist()), tuple(places), tuple(loose.tolist()))
        parts = find_or_make("conditions", self.given, settings, make)
        return ModelFunctions(parts, start, moving, self.split, self.t)


#: The search ends where nothing changes any more.
TIGHT: dict[str, Any] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


class Balance:
    """The least-squares problem: an equation for each condition.

    A condition with room between its edges has a slack: an unknown between them that it equals.
    Rows are divided by their slopes, so that units do not decide what is met first.
    """

    def __init__(
        self, functions: ModelFunctions, wanted: list[Condition], low: Any, high: Any
    ) -> None:
        self.functions, self.wanted, self.low, self.high = functions, wanted, low, high
        self.edges = np.array([c.low for c in wanted]), np.array([c.high for c in wanted])
        self.loose = self.edges[0] < self.edges[1]
        #: Where the conditions without room should lie.
        self.aims = np.where(self.loose, 0.0, self.edges[0])

    def misfit(self, zs: Any, args: Any) -> np.ndarray:
        """Return what is left of each equation for unknowns and slacks."""
        return np.asarray(self.functions.misfit(zs, self.aims, args))

    def slopes(self, zs: Any, args: Any) -> np.ndarray:
        """Return the derivatives of ``misfit``."""
        return np.asarray(self.functions.slopes(zs, self.aims, args))

    def values(self, z: Any, args: Any) -> np.ndarray:
        """Return the numbers that the conditions are about."""
        none = np.zeros(np.count_nonzero(self.loose))
        return self.misfit(np.concatenate([z, none]), args) + self.aims

    def left(self, z: Any, args: Any) -> np.ndarray:
        """Return what is left of each condition."""
        found = self.values(z, args)
        return found - np.clip(found, *self.edges)

    def rows(self, z: Any, args: Any) -> np.ndarray:
        """Return the slopes of the conditions in z."""
        none = np.zeros(np.count_nonzero(self.loose))
        return self.slopes(np.concatenate([z, none]), args)[:, : len(z)]

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
        power = -np.round(np.log2(np.where(size > 0.0, size, 1.0)))
        weights = np.ldexp(1.0, power.astype(int))

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


def message_of(
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


@dataclass(frozen=True)
class OperatingPoint:
    """A steady state with its inputs, as `trim` finds it.

    Parameters
    ----------
    x : tree
        State.
    u : tree
        Inputs.
    rates : tree
        dx/dt at the point.
    outputs : tree
        Outputs at the point.
    residuals : dict
        What is left of each prescribed rate (``"rate of NAME"``) and output, by name.
    at_bounds : dict
        Unknowns that are at a bound, with their values.
    success : bool
        Whether all prescribed rates and outputs are met.
    message : str
        What cannot be balanced.
    system : callable
        Function that returns the linearization about the point.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import control
    >>> swing = lambda t, x, u: np.array([x[1], u[0] - np.sin(x[0])])
    >>> held = control.trim(swing, np.array([0.5, 0.0]), np.zeros(1), free=["u[0]"])
    >>> held.success, held.u.round(6), held.rates.round(9) + 0.0
    (True, array([0.479426]), array([0., 0.]))
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
    """Find a nearby operating point with vanishing rates and prescribed outputs.

    Nothing is raised if there is no such point: ``success`` of the result is False, and ``message``
    names what is left.

    Parameters
    ----------
    dynamics : callable
        Function ``dynamics(t, x, u, *args)`` that returns dx/dt with the structure of x.
    x : tree
        State to start from. Its numbers are named by their paths: ``"alpha"``, ``"v_B[0]"``;
        ``"v_B"`` is all of v_B, and ``"x.NAME"`` and ``"u.NAME"`` tell states and inputs of the
        same name apart.
    u : tree, optional
        Inputs to start from.
    outputs : callable, optional
        Function ``outputs(t, x, u, *args)`` that returns any tree of numbers.
    free : str or sequence of str, optional
        Names of the unknowns. By default all states and inputs.
    fixed : str or sequence of str, optional
        Names of states and inputs that are not unknowns.
    rates : mapping, optional
        Prescribed rates by name: a number, a pair (lower, upper), or None if the rate may have any
        value. All others are zero.
    targets : mapping, optional
        Prescribed outputs by name, likewise. All others may have any value.
    bounds : mapping, optional
        Limits of unknowns by name: pairs (lower, upper).
    t : float, optional
        Time in s, 0 by default.
    args : tuple, optional
        Further arguments of the functions.
    through : sequence of tuple, optional
        Values of `args` to trim for on the way, if `args` is too far from where the search starts.
    tol : float, optional
        Largest residual of a solution, in the units of the rates and outputs.

    Examples
    --------
    >>> level = lambda t, x, u: {"speed": u["thrust"] - 0.1 * x["speed"] ** 2}
    >>> point = trim(level, {"speed": 10.0}, {"thrust": 0.0}, fixed="speed")
    >>> round(float(point.u["thrust"]), 9)
    10.0
    """
    if is_traced(x, u, args):
        raise TypeError(
            "trim runs on numbers, and was given a value of a function that is being recorded: "
            "call it outside, or solve the rates with arc.root, which can be recorded"
        )
    known, start = _known_numbers(x, u)
    model = Model(dynamics, outputs, x, u, args, t)
    # Numbers of the kind that the search has, so that outputs are recorded once.
    seen = None if outputs is None else named_numbers(model.seen(*model.split(start), args), "y")
    moving = moving_numbers(known, free, fixed)
    low, high = (edge[moving] for edge in limits_of(known, bounds))
    wanted = conditions_of(known, seen, rates, targets)
    functions = model.functions(start, moving, wanted)
    balance = Balance(functions, wanted, low, high)
    z = np.clip(start[moving], low, high)
    before = None
    for given in (*through, args):
        found = balance.search(z, given)
        if before is not None and np.any(np.abs(balance.left(found, given)) > tol):
            # A model that jumps (an engine's lag, a table's edge) can hold the search on one side:
            # it starts again from where the last two balances point to.
            ahead = balance.search(np.clip(2.0 * z - before, low, high), given)
            misses = [np.linalg.norm(balance.left(p, given)) for p in (found, ahead)]
            found = ahead if misses[1] < misses[0] else found
        before, z = z, found
    error = balance.left(z, args)
    residuals = {c.name: float(v) for c, v in zip(wanted, error)}
    stuck = {known.full[k]: float(v) for k, v in zip(moving, z)}
    stuck = {k: v for (k, v), on in zip(stuck.items(), (z <= low) | (z >= high)) if on}
    success = bool(np.all(np.abs(error) <= tol))
    reached = {} if success else balance.reached(z, args)
    x, u = functions.split(z)
    with np.errstate(all="ignore"):  # the message says where numbers are not finite
        now = (model.rates(x, u, args), None if outputs is None else model.seen(x, u, args))
    return OperatingPoint(
        x=x,
        u=u,
        rates=now[0],
        outputs=now[1],
        residuals=residuals,
        at_bounds=stuck,
        success=success,
        message="balanced" if success else message_of(residuals, stuck, tol, reached),
        system=lambda: linearize(dynamics, x, u, outputs, t=t, args=args),
    )


def _known_numbers(x: Any, u: Any) -> tuple[Known, np.ndarray]:
    """Return the names of states and inputs, and where the search starts."""
    known = Known(named_numbers(x, "x"), named_numbers(() if u is None else u, "u"))
    start = np.asarray(np.concatenate([known.x.vector, known.u.vector]))
    if not np.all(np.isfinite(start)):
        k = int(np.argmin(np.isfinite(start)))
        raise ValueError(f"trim: {known.full[k]} starts at {start[k]}: give x and u finite numbers")
    return known, start

"""Trim: states and inputs at which rates and outputs are what they should be.

The search is a bounded least-squares problem in what is free: an equation for each rate and each
output that is prescribed. Where they cannot all be met, what is left has names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_limits, is_traced
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.operation import linearization
from archimedes.control.operation.linearization import NamedNumbers, find_entries, name_numbers
from archimedes.display import Readable
from archimedes.function import jac
from archimedes.function.recording_store import Current, compile_frozen, find_or_make, form_of
from archimedes.optimize import least_squares
from archimedes.typing import Array, Scalar, Tree

__all__ = ["OperatingPoint", "trim"]

#: The search ends where nothing changes any more.
TIGHT: dict[str, Any] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}

Names = str | Iterable[str]


@dataclass(frozen=True, repr=False)
class OperatingPoint(Readable):
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

    x: Tree
    u: Tree
    rates: Tree
    outputs: Tree
    residuals: dict[str, float]
    at_bounds: dict[str, float]
    success: bool
    message: str
    system: Callable[[], StateSpace] = field(repr=False)

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
    x: Tree,
    u: Tree = None,
    outputs: Callable[..., Any] | None = None,
    *,
    free: Names | None = None,
    fixed: Names = (),
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
    known = _Names(name_numbers(x, "x"), name_numbers(() if u is None else u, "u"))
    start = np.asarray(np.concatenate([known.x.vector, known.u.vector]))
    if not np.all(np.isfinite(start)):
        k = int(np.argmin(np.isfinite(start)))
        raise ValueError(f"trim: {known.full[k]} starts at {start[k]}: give x and u finite numbers")
    model = _Model((dynamics, outputs), x, u, args, t)
    # Numbers of the kind that the search has, so that outputs are recorded once.
    example = None if outputs is None else model.recorded[1](t * 1.0, *model.split(start), args)
    y = None if outputs is None else name_numbers(example, "y")
    unknowns = known.find_unknowns(free, fixed)
    low, high = (edge[unknowns] for edge in known.read_bounds(bounds))
    conditions = _read_conditions(known, y, rates, targets)
    balance = _Balance(model, start, unknowns, conditions, low, high)
    z = np.clip(start[unknowns], low, high)
    before = None
    for arguments in (*through, args):
        point = balance.search(z, arguments)
        if before is not None and np.any(np.abs(balance.residuals(point, arguments)) > tol):
            # A model that jumps (an engine's lag, a table's edge) can hold the search on one side:
            # it starts again from where the last two balances point to.
            ahead = balance.search(np.clip(2.0 * z - before, low, high), arguments)
            misses = [np.linalg.norm(balance.residuals(p, arguments)) for p in (point, ahead)]
            point = ahead if misses[1] < misses[0] else point
        before, z = z, point
    error = balance.residuals(z, args)
    residuals = {c.name: float(v) for c, v in zip(balance.conditions, error)}
    on_bounds = np.flatnonzero((z <= low) | (z >= high))
    at_bounds = {known.full[unknowns[k]]: float(z[k]) for k in on_bounds}
    success = bool(np.all(np.abs(error) <= tol))
    full = np.array(start)
    full[unknowns] = z
    x, u = model.split(full)
    with np.errstate(all="ignore"):  # the message says where numbers are not finite
        values = model.evaluate(x, u, args)
    return OperatingPoint(
        x=x,
        u=u,
        rates=values[0],
        outputs=values[1] if outputs is not None else None,
        residuals=residuals,
        at_bounds=at_bounds,
        success=success,
        message="balanced" if success else balance.describe(z, args, residuals, at_bounds, tol),
        system=lambda: linearization.linearize(dynamics, x, u, outputs, t=t, args=args),
    )


class _Names:
    """Names of states and inputs; where both have one, it needs its "x." or "u."."""

    def __init__(self, x: NamedNumbers, u: NamedNumbers) -> None:
        self.x, self.u, self.n = x, u, len(x.names)
        both = set(x.names) & set(u.names)
        every = [("x", name) for name in x.names] + [("u", name) for name in u.names]
        self.full = tuple(f"{root}.{name}" if name in both else name for root, name in every)

    def find(self, names: Names, what: str) -> list[int]:
        """Return where names are among states and inputs; "x" and "u" are all of them."""
        entries: set[int] = set()
        for name in (names,) if isinstance(names, str) else names:
            root, _, inside = name.partition(".")
            if root not in ("x", "u") or name in self.full:
                entries.update(find_entries([name], self.full, what))
                continue
            part, first = (self.x, 0) if root == "x" else (self.u, self.n)
            own = find_entries([inside], part.names, what) if inside else range(len(part.names))
            entries.update(first + k for k in own)
        return sorted(entries)

    def find_unknowns(self, free: Names | None, fixed: Names) -> np.ndarray:
        """Return where the unknowns are among states and inputs."""
        every = range(len(self.full)) if free is None else self.find(free, "free")
        held = self.find(fixed, "fixed")
        unknowns = np.array([k for k in every if k not in held], dtype=int)
        if unknowns.size == 0:
            raise ValueError("trim: nothing is free; name fewer states and inputs in fixed")
        return unknowns

    def read_bounds(self, bounds: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of all states and inputs, by their names."""
        low, high = np.full(len(self.full), -np.inf), np.full(len(self.full), np.inf)
        for name, pair in (bounds or {}).items():
            entries = self.find([name], "bounds")
            low[entries], high[entries] = _read_pair(pair, f"bounds[{name!r}]")
        return low, high


class _Condition(NamedTuple):
    """A named number of rates, then outputs, and where it should lie."""

    name: str
    entry: int
    low: float
    high: float


def _read_pair(value: Any, what: str) -> tuple[float, float]:
    """Return a number, or a pair (lower, upper), as a pair; None is no limit."""
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"{what} must be a number or a pair (lower, upper), got {value!r}")
    low, high = (float(m if v is None else v) for v, m in zip(pair, (-np.inf, np.inf)))
    check_limits(low, high, what)
    return low, high


def _read_conditions(
    known: _Names,
    y: NamedNumbers | None,
    rates: Mapping[str, Any] | None,
    targets: Mapping[str, Any] | None,
) -> list[_Condition]:
    """Return the conditions on rates, then on outputs."""
    wanted: dict[int, tuple[float, float] | None] = dict.fromkeys(range(known.n), (0.0, 0.0))
    for name, value in (rates or {}).items():
        for k in known.find([name], "rates"):
            if k >= known.n:
                raise ValueError(f"rates names {name!r}, which is an input: inputs have no rates")
            wanted[k] = None if value is None else _read_pair(value, f"rates[{name!r}]")
    named = ((f"rate of {known.full[k]}", k, pair) for k, pair in wanted.items())
    conditions = [_Condition(name, k, *pair) for name, k, pair in named if pair is not None]
    for name, value in (targets or {}).items():
        if y is None:
            raise ValueError("targets prescribes outputs: give the function outputs too")
        for k in find_entries([name], y.names, "targets"):
            pair = _read_pair(value, f"targets[{name!r}]")
            conditions.append(_Condition(y.names[k], known.n + k, *pair))
    if not conditions:
        raise ValueError("trim: nothing is prescribed; give rates or targets")
    return conditions


class _Model:
    """Rates and outputs as functions of states and inputs, recorded once."""

    def __init__(
        self,
        functions: tuple[Callable[..., Any] | None, ...],
        x: Tree,
        u: Tree,
        args: tuple[Any, ...],
        t: Scalar,
    ) -> None:
        self.functions, self.t, self.driven = functions, float(t), u is not None
        self.form = (form_of((x, u)), form_of(args))
        numbers = tree.map(lambda leaf: np.asarray(leaf) * 1.0, (x, u if self.driven else ()))
        self.unravel = tree.ravel(numbers)[1]
        self.recorded = find_or_make("rates and outputs", functions, self.form, self._record)

    def _record(self, current: Current) -> tuple[Callable[..., Any], ...]:
        def make(k: int) -> Callable[..., Any]:
            def call(t: Scalar, x: Tree, u: Tree, args: tuple[Any, ...]) -> Any:
                return current.functions[k](t, x, *((u,) if driven else ()), *args)

            return compile_frozen(call, (current,), ("rates", "outputs")[k])

        driven = self.driven
        return tuple(make(k) for k, function in enumerate(self.functions) if function is not None)

    def split(self, full: Array) -> tuple[Tree, Tree]:
        """Return x and u (or None) for all their numbers."""
        x, u = self.unravel(full)
        return x, u if self.driven else None

    def evaluate(self, x: Tree, u: Tree, args: tuple[Any, ...]) -> list[Tree]:
        """Return dx/dt and, if there are any, the outputs."""
        return [call(self.t, x, u, args) for call in self.recorded]


class _Balance:
    """The least-squares problem: an equation for each condition.

    A condition with room between its limits has a slack: an unknown between them that it equals.
    Rows are divided by their slopes, so that units do not decide what is met first. What is not
    free (``start``) and the time are arguments of the recorded functions, which all models of the
    same content share.
    """

    def __init__(
        self,
        model: _Model,
        start: np.ndarray,
        unknowns: np.ndarray,
        conditions: list[_Condition],
        low: np.ndarray,
        high: np.ndarray,
    ) -> None:
        self.model, self.start, self.conditions = model, start, conditions
        self.low, self.high = low, high
        self.limits = np.array([c.low for c in conditions]), np.array([c.high for c in conditions])
        self.loose = self.limits[0] < self.limits[1]
        #: Where the conditions without room should lie.
        self.aims = np.where(self.loose, 0.0, self.limits[0])
        entries, loose, count = [c.entry for c in conditions], self.loose, len(unknowns)
        recorded, split = model.recorded, model.split

        def misfit(zs: Array, start: Array, aims: Array, t: Scalar, args: tuple[Any, ...]) -> Array:
            full, goals = np.array(start), np.array(aims)
            full[unknowns] = zs[:count]
            goals[loose] = zs[count:]
            values = [call(t, *split(full), args) for call in recorded]
            return np.concatenate([tree.ravel(v)[0] * 1.0 for v in values])[entries] - goals

        def make(_: Current) -> tuple[Callable[..., Any], Callable[..., Any]]:
            function = compile_frozen(misfit, name="misfit")
            return function, jac(function)

        settings = (model.form, tuple(unknowns.tolist()), tuple(entries), tuple(loose.tolist()))
        self._functions = find_or_make("conditions", model.functions, settings, make)

    def misfit(self, zs: np.ndarray, args: tuple[Any, ...], derivative: int = 0) -> np.ndarray:
        """Return what is left of each equation for unknowns and slacks, or its derivatives."""
        function = self._functions[derivative]
        return np.asarray(function(zs, self.start, self.aims, self.model.t, args))

    def _without_slacks(self, z: np.ndarray) -> np.ndarray:
        return np.concatenate([z, np.zeros(np.count_nonzero(self.loose))])

    def values(self, z: np.ndarray, args: tuple[Any, ...]) -> np.ndarray:
        """Return the numbers that the conditions are about."""
        return self.misfit(self._without_slacks(z), args) + self.aims

    def residuals(self, z: np.ndarray, args: tuple[Any, ...]) -> np.ndarray:
        """Return what is left of each condition."""
        values = self.values(z, args)
        return values - np.clip(values, *self.limits)

    def rows(self, z: np.ndarray, args: tuple[Any, ...]) -> np.ndarray:
        """Return the slopes of the conditions in z."""
        return self.misfit(self._without_slacks(z), args, 1)[:, : len(z)]

    def search(self, z: np.ndarray, args: tuple[Any, ...]) -> np.ndarray:
        """Return the solution within bounds; equal bounds take an unknown out."""
        values, rows = self.values(z, args), self.rows(z, args)
        low = np.concatenate([self.low, self.limits[0][self.loose]])
        high = np.concatenate([self.high, self.limits[1][self.loose]])
        held, open_ = np.clip(np.concatenate([z, values[self.loose]]), low, high), low < high
        if not np.all(np.isfinite(values)) or not np.all(np.isfinite(rows)) or not np.any(open_):
            return z
        size = np.linalg.norm(rows * np.maximum(np.abs(z), 1.0), axis=1)
        weights = np.exp2(-np.round(np.log2(np.where(size > 0.0, size, 1.0))))

        def whole(v: np.ndarray) -> np.ndarray:
            full = np.array(held)
            full[open_] = v
            return full

        def misfit(v: np.ndarray) -> np.ndarray:
            return weights * self.misfit(whole(v), args)

        def slopes(v: np.ndarray) -> np.ndarray:
            return weights[:, None] * self.misfit(whole(v), args, 1)[:, open_]

        bounds = (low[open_], high[open_])
        fit = least_squares(misfit, held[open_], jac=slopes, bounds=bounds, **TIGHT)
        return whole(fit.x)[: len(z)]

    def describe(
        self,
        z: np.ndarray,
        args: tuple[Any, ...],
        residuals: dict[str, float],
        at_bounds: dict[str, float],
        tol: float,
    ) -> str:
        """Say what is left, the largest first, and why, where that can be seen."""
        for name, value in residuals.items():
            if not np.isfinite(value):
                return f"not balanced: {name} is {value}; start where the model is defined"
        rows = self.rows(z, args)
        idle = {c.name for c, row in zip(self.conditions, rows) if not row.any()}
        worst = sorted(residuals, key=lambda k: -abs(residuals[k]))
        texts = []
        for name in [k for k in worst if abs(residuals[k]) > tol][:4]:
            why = ", and nothing that is free changes it" if name in idle else ""
            texts.append(f"{name} is left at {residuals[name]:.3g}{why}")
        held = ", ".join(f"{name} is at its bound {v:.6g}" for name, v in at_bounds.items())
        left = f"{'; '.join(texts)}{f' ({held})' if held else ''}"
        return f"not balanced: {left}; widen bounds, free more, or start nearer"

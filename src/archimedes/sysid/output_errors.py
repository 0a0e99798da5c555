"""Output-error fits: the model runs by itself, and its outputs are compared with measured ones.

With several segments each begins with a state of its own, and equations join them (multiple
shooting): models that are unstable, or far from the data at first, stay near them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_hold, check_whole
from archimedes.control.matrix_checks import matrix, real_numbers, signal_rows
from archimedes.errors import ShapeDtypeError
from archimedes.function import compile, scan, vmap
from archimedes.sysid.fit_results import Fit
from archimedes.sysid.timeseries import Timeseries
from archimedes.sysid.weighted_fits import (
    Problem,
    Unknowns,
    check_given,
    check_held,
    make_fit,
    solve,
)

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["multiple_shooting", "output_error"]


def output_error(
    dynamics: Callable[..., Any],
    outputs: Callable[..., Any],
    data: Timeseries | Sequence[Timeseries],
    p_guess: Tree,
    x0: Tree,
    *,
    bounds: Tree = None,
    estimate_x0: bool = False,
    discrete: bool = False,
    hold: str | None = None,
    substeps: int = 2,
    segments: int = 1,
    weights: ArrayLike | None = None,
    states: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit the parameters of dx/dt = dynamics(t, x, u, p), y = outputs(t, x, u, p) to data.

    The times need not be evenly spaced, and outputs that are nan are left out. The covariance holds
    if the measurement errors are white, which `Fit.tests` checks.

    Parameters
    ----------
    dynamics : callable
        Model ``dynamics(t, x, u, p)`` that returns dx/dt; with `discrete`, the state at the next
        sample. Scalars u and y are vectors (1,).
    outputs : callable
        Function ``outputs(t, x, u, p)`` that returns what is measured.
    data : Timeseries or list of Timeseries
        Measured data, from one experiment or from several.
    p_guess : tree
        Parameters to start from.
    x0 : array, tree or list of them
        State at the first sample. With several experiments a list of states has one for each; one
        state holds for all.
    bounds : (tree, tree), optional
        Lower and upper limits of the parameters. Equal limits fix a number. None by default.
    estimate_x0 : bool, optional
        Fit `x0` as well. False by default.
    discrete : bool, optional
        Whether `dynamics` returns the state at the next sample. False by default.
    hold : {"zoh", "foh"}, optional
        How the inputs go on between the samples: held, or linear. The data know it
        (``data.hold``, the default); another word than theirs is an error.
    substeps : int, optional
        Number of Runge-Kutta steps of order 4 between two samples, 2 by default.
    segments : int, optional
        Number of segments that each begin with a state of their own, 1 by default.
    weights : array (p,), optional
        Weights of the outputs: the inverse of their standard deviations. By default they are
        estimated in a second pass.
    states : array (nx, N) or list of them, optional
        Guess of the states along the data, for several segments; a list for several experiments.
    options : mapping, optional
        Options of `least_squares`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.sysid import Timeseries, output_error
    >>> ts = np.linspace(0.0, 2.0, 41)
    >>> data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    >>> lag = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
    >>> guess = {"gain": 1.0, "rate": 1.0}
    >>> found = output_error(lag, lambda t, x, u, p: x, data, guess, np.zeros(1))
    >>> round(float(found.p["rate"]), 4)
    3.0
    """
    experiments, x0s = check_given(data, p_guess, x0)
    hold = _check_hold(experiments[0], hold, discrete)
    substeps, segments = check_whole(substeps, "substeps", 1), int(segments)
    most = min(map(len, experiments)) - 1
    if not 1 <= segments <= most:
        raise ValueError(f"segments must be between 1 and {most}, got {segments}")
    unknowns = Unknowns(p_guess, x0s, bounds, segments, estimate_x0)
    rows = len(experiments[0].ys)
    model = _Model(dynamics, outputs, unknowns, rows, discrete, hold, substeps)
    pieces = [_Pieces(one, segments) for one in experiments]
    if states is not None:
        start = unknowns.states(unknowns.start)  # a view
        for k, guess in enumerate(states if isinstance(data, list | tuple) else [states]):
            along = signal_rows(guess, "states", len(experiments[k])).T
            matrix(along, "states", None, unknowns.nx)
            start[k, 1:] = along[:: pieces[k].length][1:segments]

    def residuals(z: Array, weights: ArrayLike | None) -> Any:
        p, starts = unknowns.parameters(z), unknowns.states(z)
        left = [
            np.where(one.measured, (one.ys - one.run(model, p, starts[k])[0]) * weights, 0.0)
            for k, one in enumerate(pieces)
        ]
        return np.concatenate([np.reshape(part, (-1,)) for part in left])

    def jumps(z: Array) -> Any:
        p, starts = unknowns.parameters(z), unknowns.states(z)
        ends = [one.run(model, p, starts[k])[1] for k, one in enumerate(pieces)]
        return np.reshape(np.stack(ends)[:, :-1] - starts[:, 1:], (-1,))

    def predict(p: Tree, x0: Tree, other: Timeseries) -> np.ndarray:
        return _Pieces(other, 1).predictions(model, p, tree.ravel(x0)[0] * 1.0)

    joints = jumps if segments > 1 else None
    problem = Problem(residuals, joints, unknowns.start, unknowns.lower, unknowns.upper)
    chosen = _noise_weights(problem, pieces, options) if weights is None else weights
    solved = solve(problem, _check_weights(chosen, rows), options)
    return make_fit(unknowns, problem, solved, data, predict)


def _check_hold(data: Timeseries, hold: str | None, discrete: bool) -> str:
    """Return the hold of the data; raise where the model would use another one."""
    if hold is not None:
        check_hold(hold)
        if hold != data.hold and len(data.us):
            raise ValueError(
                f"hold={hold!r}, but the inputs of data go on with data.hold={data.hold!r} between "
                f"the samples: leave hold out or, if the data were described wrongly, write "
                f"data.replace(hold={hold!r})"
            )
    if discrete:
        check_held(data, "a discrete model")
    return data.hold


def _check_weights(values: ArrayLike, rows: int) -> np.ndarray:
    weights = np.asarray(real_numbers(values, "weights"))
    if weights.shape not in ((), (rows,)):
        raise ShapeDtypeError(f"weights must be a number or ({rows},), got {weights.shape}")
    if not np.all(weights > 0.0):
        raise ValueError(f"weights must be positive, got {weights}")
    return weights + np.zeros(rows)


def _noise_weights(
    problem: Problem, pieces: list[_Pieces], options: Mapping[str, Any] | None
) -> np.ndarray:
    """Return one over the noise of each output, as a fit with equal weights leaves it."""
    spread = np.nanstd(np.concatenate([one.data.ys for one in pieces], axis=1), axis=1)
    first = 1.0 / np.where(spread > 0.0, spread, 1.0)
    solved = solve(problem, first, options)
    left = np.reshape(solved.residuals, (-1, len(first))) / first
    count = np.maximum(sum(one.measured.sum(axis=(0, 1)) for one in pieces), 1)
    noise = np.sqrt(np.sum(left**2, axis=0) / count)
    # An output that fits to the last digit counts as if its noise were a millionth of its size.
    return 1.0 / np.maximum(noise, 1e-6 / first)


def multiple_shooting(
    dynamics: Callable[..., Any],
    outputs: Callable[..., Any],
    data: Timeseries | Sequence[Timeseries],
    p_guess: Tree,
    x0: Tree,
    *,
    segments: int = 10,
    **more: Any,
) -> Fit:
    """Fit as `output_error` does, in segments that each begin with a state of their own.

    Use it for models that are unstable or chaotic, or if the guess is far from the data.

    Parameters
    ----------
    dynamics : callable
        Model ``dynamics(t, x, u, p)`` that returns dx/dt.
    outputs : callable
        Function ``outputs(t, x, u, p)`` that returns what is measured.
    data : Timeseries or list of Timeseries
        Measured data, from one experiment or from several.
    p_guess : tree
        Parameters to start from.
    x0 : array, tree or list of them
        State at the first sample. With several experiments a list of states has one for each; one
        state holds for all.
    segments : int, optional
        Number of segments, 10 by default.
    **more
        Further options of `output_error`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.sysid import Timeseries, multiple_shooting
    >>> ts = np.linspace(0.0, 2.0, 41)
    >>> data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    >>> lag = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
    >>> model = lag, lambda t, x, u, p: x
    >>> found = multiple_shooting(*model, data, {"gain": 1.0, "rate": 1.0}, np.zeros(1), segments=4)
    >>> round(float(found.p["rate"]), 4)
    3.0
    """
    return output_error(dynamics, outputs, data, p_guess, x0, segments=segments, **more)


@dataclass
class _Model:
    """One step between samples, and the outputs, on vectors."""

    dynamics: Callable[..., Any]
    outputs: Callable[..., Any]
    unknowns: Unknowns
    rows: int
    discrete: bool
    hold: str
    substeps: int

    def rate(self, t: Scalar, x: Array, u: Array, p: Tree) -> Any:
        slope = tree.ravel(self.dynamics(t, self.unknowns.x.unravel(x), u, p))[0] * 1.0
        if slope.shape != (nx := self.unknowns.nx,):
            raise ShapeDtypeError(
                f"dynamics returns {slope.shape[0]} numbers for a state of {nx}: it must return "
                "the structure of x0"
            )
        return slope

    def measure(self, t: Scalar, x: Array, u: Array, p: Tree) -> Any:
        numbers = tree.ravel(self.outputs(t, self.unknowns.x.unravel(x), u, p))[0] * 1.0
        if numbers.shape != (self.rows,):
            raise ShapeDtypeError(
                f"outputs returns {numbers.shape[0]} numbers, ys of data has {self.rows} rows"
            )
        return numbers

    def ahead(self, x: Array, sample: Tree, p: Tree) -> Any:
        """Return the state at the next sample."""
        t, end, u, later = sample
        if self.discrete:
            return self.rate(t, x, u, p)
        h = (end - t) / self.substeps

        def input(part: Scalar) -> Any:
            return u if self.hold == "zoh" else u + part * (later - u)

        for k in range(self.substeps):
            at, now = k / self.substeps, t + k * h
            mid, last = at + 0.5 / self.substeps, at + 1.0 / self.substeps
            k1 = self.rate(now, x, input(at), p)
            k2 = self.rate(now + 0.5 * h, x + 0.5 * h * k1, input(mid), p)
            k3 = self.rate(now + 0.5 * h, x + 0.5 * h * k2, input(mid), p)
            k4 = self.rate(now + h, x + h * k3, input(last), p)
            x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x


class _Pieces:
    """The data in segments of one length, filled up with steps that are not seen."""

    def __init__(self, data: Timeseries, segments: int) -> None:
        count = len(data) - 1  # steps
        self.length = -(-count // segments)
        self.segments = -(-count // self.length)
        if self.segments != segments:  # the last ones would be empty
            raise ValueError(
                f"segments={segments} does not cut {count} steps into parts of one length; "
                f"{self.segments} does"
            )
        self.count, self.data = count, data
        pad = self.length * segments - count
        # A step of no length at the end changes nothing.
        ts = np.concatenate([data.ts, np.full(pad, data.ts[-1])])
        us = np.concatenate([data.us, np.tile(data.us[:, -1:], pad)], axis=1).T
        ys = np.concatenate([data.ys, np.full((len(data.ys), pad), np.nan)], axis=1).T
        shape = (segments, self.length)
        self.steps = tuple(
            np.reshape(part, (*shape, *part.shape[1:]))
            for part in (ts[:-1], ts[1:], us[:-1], us[1:])
        )
        # Outputs are seen at the ends of steps, and at the first sample.
        first = np.full((segments, 1, ys.shape[1]), np.nan)
        first[0, 0] = ys[0]
        later = np.reshape(ys[1:], (*shape, ys.shape[1]))
        whole = np.concatenate([first, later], axis=1)
        self.measured = np.isfinite(whole)
        self.ys = np.where(self.measured, whole, 0.0)

    def run(self, model: _Model, p: Tree, starts: Array) -> tuple[Any, Any]:
        """Return outputs (segments, length + 1, rows) and the states at the ends."""

        def segment(x: Array, steps: Tree, p: Tree) -> Any:
            def move(x: Array, sample: Tree) -> Any:
                moved = model.ahead(x, sample, p)
                return moved, model.measure(sample[1], moved, sample[3], p)

            begin = model.measure(steps[0][0], x, steps[2][0], p)
            end, ys = scan(move, x, steps)
            return np.concatenate([begin[None], ys]), end

        return vmap(segment, in_axes=(0, 0, None))(starts, self.steps, p)

    def predictions(self, model: _Model, p: Tree, x0: Tree) -> np.ndarray:
        """Return outputs (rows, N) of one run."""
        ys, _ = compile(lambda p, x: self.run(model, p, x[None]))(p, x0)
        return np.asarray(ys)[0, : self.count + 1].T

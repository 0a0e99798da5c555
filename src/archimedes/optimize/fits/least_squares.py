"""``least_squares`` and ``lm_solve``: fits with exact Jacobians and trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable, check_choice, check_positive, check_whole
from archimedes.function import jac as jacobian
from archimedes.function.recording_store import Current, compile_frozen, find_or_make, form_of
from archimedes.optimize.fits.levenberg_marquardt import (
    LOSSES,
    LMStatus,
    Report,
    Residuals,
    Search,
    StopLimits,
    check_plain,
)
from archimedes.optimize.problems.results import Ended, Multipliers
from archimedes.optimize.problems.unknowns import as_vector, check_start, name_number, read_limits
from archimedes.portable_numpy import matmul
from archimedes.typing import Array, Tree

__all__ = ["LMResult", "least_squares", "lm_solve"]

_OPTIONS = (
    *("tol", "maxiter", "maxtime", "ftol", "xtol", "gtol"),
    *("max_nfev", "damping", "loss", "f_scale", "jac", "diag", "nprint", "log_level"),
)
#: Names of methods: our own, under two names, and those of SciPy that may lead the way.
_OWN, _SCIPY = ("hess-lm", "lm"), ("trf", "dogbox")


@dataclass(frozen=True, repr=False)
class LMResult(Ended):
    """The solution of a least-squares problem, with the names of SciPy's result.

    Parameters
    ----------
    x : tree
        Solution, with the structure of x0.
    cost : float
        Half the sum of squares.
    fun : array (m,)
        Residuals.
    jac : array (m, n)
        Jacobian at x, in the order of ``tree.ravel``.
    grad : array (n,)
        Gradient at x.
    status : LMStatus
        Why the iteration ended.
    nfev : int
        Number of evaluations.
    njev : int
        Number of Jacobians.
    nit : int
        Number of iterations.
    active_mask : array (n,)
        -1 where x is at its lower bound, 1 at its upper bound, else 0.
    history : tuple of dict, optional
        The accepted steps: ``"iteration"``, ``"cost"`` after it, ``"grad_norm"`` (largest entry of
        the gradient), ``"step_norm"``, ``"damping"`` and ``"nfev"``.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.optimize import lm_solve
    >>> fit = lm_solve(lambda x: np.stack([x[0] - 1.0, 2.0 * x[0] - 2.0]), [0.0])
    >>> fit.success, fit.x, round(fit.cost, 12), fit.jac.tolist()
    (True, array([1.]), 0.0, [[1.0], [2.0]])
    """

    x: Tree
    cost: float
    fun: np.ndarray
    jac: np.ndarray
    grad: np.ndarray
    status: LMStatus
    nfev: int
    njev: int
    nit: int
    active_mask: np.ndarray
    history: tuple[dict[str, Any], ...] = ()

    @property
    def iterations(self) -> int:
        """What results of other solvers call ``nit``."""
        return self.nit

    @property
    def multipliers(self) -> Multipliers:
        """Those of the bounds, as a tree like x: positive at upper ones, negative at lower ones."""
        return Multipliers(None, tree.ravel(self.x)[1](np.where(self.active_mask, -self.grad, 0.0)))

    def __repr__(self) -> str:
        effort = f"cost = {self.cost:.10g} after {self.nit} iterations, {self.nfev} evaluations"
        return self._outcome(effort, self.x)

    def covariance(self) -> np.ndarray:
        """Return the covariance (n, n) of x: s^2 (J^T J)^-1, s^2 = sum of squares / (m - n).

        It is that of a fit to data whose errors are independent and of equal size. A direction
        that no residual depends on has an infinite variance: that raises ValueError.
        """
        m, n = self.jac.shape
        if m <= n:
            raise ValueError(f"covariance: {m} residuals for {n} unknowns leave none for the noise")
        if np.linalg.matrix_rank(self.jac) < n:
            raise ValueError(
                "covariance: the residuals do not determine all unknowns (the Jacobian's rank is "
                f"{np.linalg.matrix_rank(self.jac)} of {n}); fix some, or add data"
            )
        r = np.linalg.qr(self.jac, mode="r")
        inverse = np.linalg.inv(r)
        return np.asarray(2.0 * self.cost / (m - n) * inverse @ inverse.T)


def lm_solve(
    func: Callable[..., Any],
    x0: Tree,
    args: Any = (),
    *,
    bounds: Any = None,
    ftol: float = 1e-10,
    xtol: float = 1e-10,
    gtol: float = 1e-10,
    max_nfev: int | None = None,
    maxiter: int | None = None,
    maxtime: float | None = None,
    damping: float = 1e-3,
    loss: str = "linear",
    f_scale: float = 1.0,
    jac: Callable[..., Any] | None = None,
    diag: Any = None,
    nprint: int = 0,
    log_level: int | None = None,
) -> LMResult:
    """Minimize the sum of squares of residuals by the Levenberg-Marquardt method.

    Wrong arguments raise an error; what the numbers do is in ``status`` of the result. Ctrl-C
    returns the best point so far.

    Parameters
    ----------
    func : callable
        Residuals ``func(x, *args)``, any tree of numbers.
    x0 : float, array or tree
        Starting point.
    args : tuple, optional
        Further arguments of the functions.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    ftol : float, optional
        Relative change of the cost at which the iteration ends.
    xtol : float, optional
        Relative change of x at which it ends.
    gtol : float, optional
        Cosine of the angle between the residuals and each column of their Jacobian at which it
        ends, as in MINPACK, so that a flat region is not taken for a minimum.
    max_nfev : int, optional
        Largest number of evaluations, by default 100 for each unknown.
    maxiter : int, optional
        Largest number of iterations.
    maxtime : float, optional
        Longest time in s.
    damping : float, optional
        First damping of the steps.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}, optional
        All but ``"linear"`` give residuals above `f_scale` less weight.
    f_scale : float, optional
        Size of residuals that are no outliers.
    jac : callable, optional
        Jacobian (m, n) of a function of arrays, if it has been made already.
    diag : float, array or tree like x0, optional
        Scales of the unknowns, positive, as in MINPACK: a large one means short steps. By default
        the largest sizes of the Jacobian's columns so far.
    nprint : int, optional
        Print a line every so many iterations. 0 by default: print nothing.
    log_level : int, optional
        Log these lines (every one if `nprint` is 0) at this level to the logger
        ``"archimedes.optimize"`` instead of printing them: ``log_level=logging.INFO``.

    Examples
    --------
    >>> rosenbrock = lambda x: np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    >>> lm_solve(rosenbrock, [-1.2, 1.0]).x
    array([1., 1.])
    """
    problem, start, unravel = _read_problem(func, x0, args, bounds, loss, f_scale, jac)
    stop = StopLimits.read(100 * start.size if max_nfev is None else max_nfev, maxiter, maxtime)
    scales = None if diag is None else as_vector(diag, unravel(start), 1.0, "diag")
    if scales is not None:
        check_positive(scales, "diag")
    report = Report(check_whole(nprint, "nprint", 0) or int(log_level is not None), log_level)
    tolerances = (ftol, xtol, gtol)
    search = Search(problem, start, tolerances, stop, damping, diag=scales, report=report)
    status = search.run()
    x = search.x
    return LMResult(
        x=unravel(x),
        cost=search.cost,
        fun=search.raw[0],
        jac=search.raw[1],
        grad=matmul(search.J.T, search.r),
        status=status,
        nfev=problem.nfev,
        njev=problem.njev,
        nit=len(search.history),
        active_mask=np.where(x <= problem.lower, -1, np.where(x >= problem.upper, 1, 0)),
        history=tuple(search.history),
    )


def _read_problem(
    func: Callable[..., Any],
    x0: Tree,
    args: Any = (),
    bounds: Any = None,
    loss: str = "linear",
    f_scale: float = 1.0,
    jac: Callable[..., Any] | None = None,
) -> tuple[Residuals, np.ndarray, Callable[[Array], Tree]]:
    """Return the residuals as functions of a vector, the start, and how to make a tree of it."""
    remedy = "write least_squares(f, x0), not least_squares(f(x0), x0)"
    check_callable(func, "func", "(x, *args)", remedy)
    args = args if isinstance(args, tuple) else (args,)
    check_plain((x0, args))
    if isinstance(x0, (list, tuple)) and all(isinstance(x, (int, float)) for x in x0):
        x0 = np.array(x0, dtype=float)
    start, unravel = tree.ravel(tree.map(lambda leaf: np.asarray(leaf) * 1.0, x0))
    check_start(x0, start)
    lower, upper = read_limits(bounds, x0, "bounds")
    outside = np.flatnonzero((start < lower) | (start > upper))
    if outside.size:
        k = int(outside[0])
        limits = f"[{lower[k]:.6g}, {upper[k]:.6g}]"
        raise ValueError(f"{name_number(x0, k, 'x0')} is {start[k]:.6g}, not in {limits}")
    functions = _record(func, start, unravel) if jac is None else (func, jac)
    check_choice(loss, "loss", LOSSES)
    check_positive(f_scale, "f_scale")
    problem = Residuals(*functions, args, lower, upper, LOSSES[loss], float(f_scale))
    return problem, start, unravel


def _record(
    func: Callable[..., Any], start: np.ndarray, unravel: Callable[[Array], Tree]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the residuals as a function of a vector, and their Jacobian."""

    def make(current: Current) -> tuple[Callable[..., Any], Callable[..., Any]]:
        def residuals(x: Array, *args: Any) -> Array:
            return tree.ravel(current.functions[0](unravel(x), *args))[0] * 1.0

        name = getattr(func, "__name__", "residuals")
        recorded = compile_frozen(residuals, (current,), name)
        return recorded, jacobian(recorded)

    return find_or_make("residuals", (func,), form_of(unravel(start)), make)


def least_squares(
    func: Callable[..., Any],
    x0: Tree,
    args: Any = (),
    bounds: Any = None,
    method: str = "hess-lm",
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> LMResult:
    """Minimize the sum of squares of residuals, as :func:`lm_solve` does.

    Parameters
    ----------
    func : callable
        Residuals ``func(x, *args)``, any tree of numbers.
    x0 : float, array or tree
        Starting point.
    args : tuple, optional
        Further arguments of the functions.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    method : {"hess-lm", "lm", "trf", "dogbox"}, optional
        The first two names stand for the Levenberg-Marquardt method. With ``"trf"`` or
        ``"dogbox"``, SciPy's methods of these names lead the way, with exact Jacobians, and
        Levenberg-Marquardt steps finish and check what they found.
    options : mapping, optional
        Options: ``tol`` (for all of ftol, xtol, gtol), ``maxiter``, ``maxtime`` (s), ``max_nfev``,
        ``damping``, and for data with outliers ``loss`` ("soft_l1", "huber", "cauchy", "arctan")
        and ``f_scale``, as in SciPy.
    **more
        The same options by name.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.array([0.0, 1.0, 2.0, 3.0])
    >>> misfit = lambda p, y: p["a"] + p["b"] * t - y
    >>> fit = least_squares(misfit, {"a": 0.0, "b": 0.0}, (1 + 2 * t,))
    >>> round(float(fit.x["b"]), 6), fit.success
    (2.0, True)
    """
    # "hess-lm" is the name that users of the original type.
    remedy = "for SciPy's, write scipy.optimize.least_squares(f, x0, jac=arc.jac(f), method=...)"
    check_choice(method, "least_squares: method", (*_OWN, *_SCIPY), remedy)
    chosen = {**(options or {}), **more}
    for name in chosen:
        check_choice(name, "least_squares: option", _OPTIONS, error=TypeError)
    tol = chosen.pop("tol", None)
    if tol is not None:
        chosen = {**dict.fromkeys(("ftol", "xtol", "gtol"), tol), **chosen}
    if method in _OWN:
        return lm_solve(func, x0, args, bounds=bounds, **chosen)
    x0, nfev, njev = _follow_scipy(method, (func, x0, args, bounds), chosen)
    found = lm_solve(func, x0, args, bounds=bounds, **chosen)
    return replace(found, nfev=found.nfev + nfev, njev=found.njev + njev)


def _follow_scipy(
    method: str, given: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[Tree, int, int]:
    """Return the point that a method of SciPy finds, and how often it called the functions."""
    from scipy import optimize as scipy_optimize

    solve: Any = scipy_optimize.least_squares
    own = {name: options[name] for name in ("loss", "f_scale", "jac") if name in options}
    problem, start, unravel = _read_problem(*given, **own)
    free = problem.lower < problem.upper  # SciPy takes no unknown that is held

    def fill(z: np.ndarray) -> np.ndarray:
        x = start.copy()
        x[free] = z
        return x

    first = problem.value(start)
    if not (np.any(free) and first.size and np.all(np.isfinite(first))):
        return unravel(start), problem.nfev, problem.njev
    stops = ("ftol", "xtol", "gtol", "max_nfev")
    settings = {name: options[name] for name in stops if name in options}
    found = solve(
        lambda z: problem.value(fill(z)),
        start[free],
        jac=lambda z: problem.slope(fill(z))[:, free],
        bounds=(problem.lower[free], problem.upper[free]),
        method=method,
        loss=options.get("loss", "linear"),
        f_scale=problem.f_scale,
        **settings,
    )
    # "trf" stays inside: what it calls active is put on its bound, where steps know about it.
    ends = np.where(found.active_mask < 0, problem.lower[free], problem.upper[free])
    x = fill(np.where(found.active_mask == 0, found.x, ends))
    return unravel(x), problem.nfev, problem.njev

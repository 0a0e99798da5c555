"""``solve_dae``: differential-algebraic equations F(t, x, xdot) = 0.

Rodas5P solves small ones of the form M xdot = f(t, x) in a native kernel, the multistep formulas of
``solves/bdf.py`` solve all others; SUNDIALS' IDA can be asked for. A start must satisfy the
equations; derivatives that are not given are computed from them.

Two things are read off the recording of F: which states are algebraic (F does not use their
derivatives), and whether F is M xdot - f(t, x) with a matrix M of numbers and parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice
from archimedes.errors import ArchimedesError
from archimedes.function import Compiled, jac, sparsity
from archimedes.function.dependencies.states import fingerprint
from archimedes.function.leaf_specs import describe_leaves
from archimedes.function.recording_store import Current, store
from archimedes.graph.derivatives.rules import LINEAR, PARTIALS
from archimedes.graph.ops import TABLE
from archimedes.graph.program import Graph
from archimedes.records import record
from archimedes.simulate.methods.method_table import MOST_STEPS, Derivative
from archimedes.simulate.methods.rosenbrock import RODAS5P, WithMass
from archimedes.simulate.problem import argument_checks
from archimedes.simulate.problem.state_layout import Args, Layout, as_state, layout_of
from archimedes.simulate.solves import initial_value_problem as ivp
from archimedes.simulate.solves.bdf import ImplicitEquations, solve_equations
from archimedes.simulate.solves.collectors import Result, Samples
from archimedes.simulate.solves.driver import monitor_of
from archimedes.simulate.solves.kernel_runs import Instances
from archimedes.simulate.solves.sundials import solve_residual
from archimedes.simulate.sparse.sparse_jacobians import CompressedPencil, SparsePencil
from archimedes.simulate.statuses import Status, message_of
from archimedes.simulate.stepping.solve_kernels import Kernels, kernels_for, native
from archimedes.simulate.stepping.trial_step import Plan
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.symbolic.core.trace import is_tracing

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["InconsistentStart", "solve_dae"]

#: Operations whose values show in their derivatives, unlike those of a floor, say.
_SMOOTH = {*PARTIALS, *LINEAR} - {"copysign", "fmod"}


class Form(NamedTuple):
    """``algebraic`` (n,): whose derivatives F does not use; ``linear``: F is M xdot - f(t, x)."""

    algebraic: np.ndarray
    linear: bool


@record
class MassPlan(Plan):
    """A plan for M xdot = f(t, x)."""

    mass: Callable[..., Any] = NotImplemented

    def derivative(self, args: Args) -> Derivative:
        """Return f(t, x), with M, for these arguments."""
        return WithMass(
            lambda t, x: self.func(t, x, args),
            lambda t, x: self.mass(t, x, args),
        )


class _Functions:
    """F and its derivatives, compiled; ``key`` tells it from others."""

    def __init__(self, current: Current, layout: Layout, key: Hashable) -> None:
        def flat(t: Scalar, x: Array, xdot: Array, args: Args) -> Any:
            (func,) = current.functions
            result = func(t, layout.unpack(x), layout.unpack(xdot), *args)
            if layout.is_array and isinstance(result, (list, tuple)):
                result = np.stack(result)
            vector, _ = tree.ravel(result)
            if vector.shape != (layout.size,):
                raise ValueError(
                    f"the residual has {vector.size} equations for the {layout.size} numbers of "
                    "the state: a DAE needs as many"
                )
            return vector

        self.current, self.flat, self.layout, self.key = current, flat, layout, key
        self.residual = native(flat, "residual", (current,))
        #: What is known of F with arguments of one kind: its form and its sparse derivatives.
        self.known: dict[Hashable, Any] = {}

    def keep(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """Return what is kept under a key, making it if needed."""
        if key not in self.known:
            self.known[key] = build()
        return self.known[key]

    def kernels(self) -> Kernels:
        """Return the kernels of the equations as M xdot = f(t, x)."""
        return kernels_for((self.key, "mass"), self._plan)

    def _plan(self) -> MassPlan:
        def right(t: Scalar, x: Array, args: Args) -> Any:
            return -self.flat(t, x, np.zeros(self.layout.size), args)

        def mass(t: Scalar, x: Array, args: Args) -> Any:
            return jac(self.flat, argnums=2)(t, x, np.zeros(self.layout.size), args)

        return MassPlan(ivp.share_code(right), self.layout, RODAS5P, mass=mass)


def _kind_of(args: Args) -> Hashable:
    """Return what recordings depend on: the structure of arguments, shapes and types."""
    leaves, treedef = tree.flatten(args)
    return treedef, describe_leaves(leaves, treedef, ["args"])


def _is_smooth(graph: Graph, inputs: Iterable[int]) -> bool:
    """Return whether everything computed from these inputs shows in its derivatives."""
    reached = set(inputs)
    for node in graph.live():
        region = graph.regions.get(node)
        used = graph.operands(node) if region is None else region.inputs.tolist()
        if not reached.isdisjoint(used):
            if region is not None or TABLE[graph.op[node]].name not in _SMOOTH:
                return False
            reached.add(node)
    return True


class Residual:
    """F and its derivatives for given arguments."""

    def __init__(self, functions: _Functions, args: Args) -> None:
        self.functions, self.args, self._kind = functions, args, _kind_of(args)

    def __call__(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        """Return F, (n,)."""
        return self.functions.residual(t, x, xdot, self.args)

    def _sparse_form(self, t: float, x: np.ndarray) -> CompressedPencil:
        def build() -> CompressedPencil:
            compiled = partial(native, watch=(self.functions.current,))
            point = (t, x, np.zeros(x.size), self.args)
            return CompressedPencil(self.functions.residual, compiled, point)

        return self.functions.keep(("pencil", self._kind), build)

    def pencil(self, t: float, x: np.ndarray, xdot: np.ndarray) -> SparsePencil:
        """Return dF/dx and dF/dxdot, sparse."""
        return self._sparse_form(t, x).at(t, x, xdot, self.args)

    def linearize(
        self, t: float, x: Array, xdot: Array
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F (n,), dF/dx and dF/dxdot (n, n)."""
        return self(t, x, xdot), *self.pencil(t, x, xdot).dense()

    def by_time(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        """Return dF/dt, (n,)."""
        return self._sparse_form(t, x).by_time(t, x, xdot, self.args)

    def form(self, t: float, x: np.ndarray) -> Form:
        """Return what form F has."""
        return self.functions.keep(("form", self._kind), lambda: self._read_form(t, x))

    def _read_form(self, t: float, x: np.ndarray) -> Form:
        flat, point = self.functions.flat, (t, x, np.zeros(x.size), self.args)
        used = sparsity(flat, argnums=2)(*point).toarray().any(axis=0)
        # M must not depend on t, x and xdot; nor, by a branch say, on xdot what else is in F.
        mass = Compiled(jac(flat, argnums=2)).graph(*point)
        last = 1 + 2 * x.size
        fixed = set(mass.live()).isdisjoint(mass.inputs[:last])
        whole = self.functions.residual.graph(*point)
        return Form(~used, fixed and _is_smooth(whole, whole.inputs[1 + x.size : last]))


def residual_of(func: Callable[..., Any], layout: Layout, args: Args) -> Residual:
    """Return F for these arguments, with functions kept from earlier calls if possible.

    >>> from archimedes.simulate.problem.state_layout import layout_of
    >>> x = np.array([1.0, 0.5])
    >>> F = residual_of(lambda t, x, v: np.stack([v[0] - x[1], x[0] - x[1] ** 2]), layout_of(x), ())
    >>> F.form(0.0, x)
    Form(algebraic=array([False,  True]), linear=True)
    """
    key = (fingerprint(func), layout)
    functions = store.find(
        ("residual", key), (func,), lambda current: _Functions(current, layout, key)
    )
    return Residual(functions, args)


#: A start is consistent if a Newton step from it moves no number by more than this, relative to
#: its size (or to 1 where it is small).
CONSISTENT = 1e-6
NEWTON_STEPS = 20
#: Numbers in a state up to which Rodas5P is the default: it takes long to compile for large ones.
SMALL = 32


_INDEX = (
    "; for equations of an index above 1 it does so at once: differentiate their constraints in "
    "time until algebraic states can be solved for"
)


class InconsistentStart(ArchimedesError, ValueError):
    """The initial values of a DAE do not satisfy its equations.

    >>> import archimedes as arc
    >>> try:
    ...     arc.solve_dae(lambda t, x, xdot: x - 1.0, (0.0, 1.0), 2.0)
    ... except arc.InconsistentStart as error:
    ...     print(type(error).__name__)
    InconsistentStart
    """


def _solve_start(
    residual: Residual, t: float, x: Array, xdot: Array, correct: bool
) -> tuple[Any, Any]:
    """Solve F = 0 for the derivatives of differential states and, to ``correct``, algebraic ones.

    Gauss-Newton, as there may be more equations than unknowns; returns x and xdot.
    """
    algebraic, linear = residual.form(t, x)
    free = algebraic & correct
    for _ in range(1 if linear and not correct else NEWTON_STEPS):
        value, by_x, by_xdot = residual.linearize(t, x, xdot)
        unknown = np.concatenate([by_xdot[:, ~algebraic], by_x[:, free]], axis=1)
        if not (np.isfinite(value).all() and np.isfinite(unknown).all()):
            raise InconsistentStart(
                f"solve_dae: the residual is nan or infinite at the start: F = {value}"
            )
        step = np.linalg.lstsq(unknown, -value, rcond=None)[0]
        count = int((~algebraic).sum())
        x, xdot = x.copy(), xdot.copy()
        xdot[~algebraic] += step[:count]
        x[free] += step[count:]
        sizes = 1.0 + np.abs(np.concatenate([xdot[~algebraic], x[free]]))
        if np.all(np.abs(step) <= 1e-13 * sizes):
            break
    return x, xdot


def _check_consistent(residual: Residual, t: float, x: Array, xdot: Array, correct: bool) -> None:
    """Raise where F is not zero, judged by how far Newton's method would move the state."""
    value, by_x, by_xdot = residual.linearize(t, x, xdot)
    size = np.abs(by_x) @ (1.0 + np.abs(x)) + np.abs(by_xdot) @ (1.0 + np.abs(xdot))
    part = np.abs(value) / np.where(size > 0.0, size, 1.0)
    worst = int(np.argmax(np.where(np.isfinite(part), part, np.inf)))
    if not part[worst] <= CONSISTENT:
        remedy = (
            "no algebraic values near these satisfy it: give a better x0"
            if correct
            else "give values that satisfy it, or write correct=True to have algebraic states and "
            "derivatives computed from the others"
        )
        raise InconsistentStart(
            f"solve_dae: the start is inconsistent: equation {worst} of the residual is "
            f"{value[worst]:.6g}, not 0, at t = {t:.17g}: {remedy}"
        )


def solve_dae(
    residual: Callable[..., Any],
    t_span: Sequence[float],
    x0: Tree,
    xdot0: Tree = None,
    *,
    method: str | None = None,
    t_eval: ArrayLike | None = None,
    args: Args = (),
    rtol: Tree = ivp.RTOL,
    atol: Tree = ivp.ATOL,
    correct: bool = False,
    first_step: float | None = None,
    max_step: float = np.inf,
    max_steps: int | None = None,
    progress: bool | Callable[[float, float], None] | None = None,
) -> Trajectory:
    """Solve the differential-algebraic equations of index 1 ``residual(t, x, xdot, *args) = 0``.

    Parameters
    ----------
    residual : callable
        Function ``residual(t, x, xdot, *args)``, which returns an array or tree with as many
        numbers as the state has. States whose derivatives it does not use are algebraic.
    t_span : (float, float)
        Start and end time.
    x0 : float, array or tree
        State at the start.
    xdot0 : array or tree, optional
        Derivatives at the start. By default they are computed.
    method : {"bdf", "rodas5p", "ida"}, optional
        ``"bdf"``: backward differentiation formulas of variable order and step size, with sparse
        systems. ``"rodas5p"``: Rosenbrock method for residuals ``M @ xdot - f(t, x)``, written in
        any way, with a matrix M (singular or not) that depends only on `args`; the default for
        these in states of up to 32 numbers. ``"ida"``: the solver of SUNDIALS, in the extra
        "sundials". ``"bdf"`` is the default in all other cases.
    t_eval : array_like (m,), optional
        Times at which the state is wanted. By default the times of the steps.
    args : tuple, optional
        Further arguments of the functions.
    rtol : float or tree, optional
        Relative tolerance.
    atol : float or tree, optional
        Absolute tolerance.
    correct : bool, optional
        Compute consistent algebraic states from those of `x0` as a first guess, and keep the
        differential ones. False by default.
    first_step : float, optional
        Step size that is tried first.
    max_step : float, optional
        Largest step size allowed.
    max_steps : int, optional
        Largest number of steps allowed.
    progress : bool or callable, optional
        True shows a progress bar. A function is called with the fraction done (0 to 1) and the
        time.

    Returns
    -------
    Trajectory
        That of :func:`solve_ode`. ``"bdf"`` and ``"ida"`` keep no interpolants.

    Examples
    --------
    >>> def circle(t, x, xdot):
    ...     return np.stack([xdot[0] + x[1], x[0] ** 2 + x[1] ** 2 - 1.0])
    >>> traj = solve_dae(circle, (0.0, 1.0), [0.0, 1.0])
    >>> bool(abs(traj.x[-1][0] + np.sin(1.0)) < 1e-6)
    True
    """
    argument_checks.refuse_traced(t_span, x0, args, t_eval, xdot0)
    start, end = argument_checks.check_span(t_span, x0)
    state = as_state(x0)
    layout = layout_of(state)
    x = argument_checks.check_state(state, layout)
    arguments = argument_checks.check_args(args)
    steps = (None, first_step, max_step, max_steps)
    options = ivp.Options(None, None, rtol, atol, *steps, project=False)
    setup = options.setup(layout, start, end)
    times = None if t_eval is None else argument_checks.check_times(t_eval, start, end)
    equations = residual_of(residual, layout, arguments)
    if is_tracing():
        argument_checks.refuse_traced(equations(start, x, np.zeros(layout.size)))
    method = _choose_method(method, equations.form(start, x).linear, layout.size)
    xdot = _derivatives(xdot0, layout)
    if xdot0 is None or correct:
        x, xdot = _solve_start(equations, start, x, xdot, correct)
    _check_consistent(equations, start, x, xdot, correct)
    limit = options.step_limit(ivp.MAX_STEPS if method == "rodas5p" else MOST_STEPS)
    if method == "rodas5p":
        instances = Instances(1, x[None], arguments, alone=True)
        kernels = equations.functions.kernels()
        return ivp.Problem(kernels, setup, instances, limit).solve(t_eval, progress=progress)
    with monitor_of(progress) as monitor:
        result = _DRIVES[method](equations, xdot, Samples(setup, x, times, limit, monitor))
    return _trajectory(result, layout, limit)


def _differentiate(residual: Residual, t: float, x: Array, xdot: Array) -> tuple[Any, Any]:
    """Return first and second derivatives of the state at a consistent start.

    They are solved for in d/dt F(t, x, xdot) = 0, which has the first derivatives of algebraic
    states and the second ones of all others. Second derivatives of algebraic states remain zero.
    """
    algebraic = residual.form(t, x).algebraic
    known = np.where(algebraic, 0.0, xdot)
    _, by_x, by_xdot = residual.linearize(t, x, known)
    rest = residual.by_time(t, x, known) + by_x @ known
    unknowns = np.linalg.lstsq(np.where(algebraic, by_x, by_xdot), -rest, rcond=None)[0]
    return np.where(algebraic, unknowns, xdot), np.where(algebraic, 0.0, unknowns)


def _by_bdf(equations: Residual, xdot: np.ndarray, samples: Samples) -> Result:
    """Solve with the multistep formulas of this package."""
    slopes = _differentiate(equations, float(samples.setup.t_start), samples.x0, xdot)
    return solve_equations(ImplicitEquations(equations, equations.pencil, *slopes), samples)


def _by_ida(equations: Residual, xdot: np.ndarray, samples: Samples) -> Result:
    """Solve with IDA."""

    def jacobian(t: float, x: np.ndarray, xdot: np.ndarray, c: float) -> np.ndarray:
        by_x, by_xdot = equations.pencil(t, np.array(x), np.array(xdot)).dense()
        return by_x + c * by_xdot

    algebraic = equations.form(samples.setup.t_start, samples.x0).algebraic
    return solve_residual(equations, jacobian, algebraic, xdot, samples)


#: Methods with loops of their own, beside Rodas5P.
_DRIVES = {"bdf": _by_bdf, "ida": _by_ida}


def _trajectory(result: Result, layout: Layout, limit: int) -> Trajectory:
    status, count = result.status[0], result.lengths[0]
    message = message_of(status, float(result.run.t), limit, stiff=True)
    return Trajectory(
        result.t[0],
        layout.unpack(result.x[0], (count,)),
        status=status,
        message=message + _INDEX if status == Status.STEP_UNDERFLOW else message,
        stats=result.stats,
    )


def _choose_method(method: str | None, linear: bool, size: int) -> str:
    """Return the method; Rodas5P needs equations linear in the derivatives."""
    if method is None:
        return "rodas5p" if linear and size <= SMALL else "bdf"
    check_choice(method, "solve_dae: method", ("rodas5p", *_DRIVES))
    if method == "rodas5p" and not linear:
        raise ValueError(
            "solve_dae: method='rodas5p' solves M @ xdot = f(t, x) with a matrix M that depends on "
            "args only; this residual has another form: write method='bdf'"
        )
    return method


def _derivatives(xdot0: Tree, layout: Layout) -> np.ndarray:
    if xdot0 is None:
        return np.zeros(layout.size)
    state = as_state(xdot0)
    own = layout_of(state)
    if own != layout:
        raise ValueError(
            f"xdot0 must have the structure and shapes of x0: it has {own.shapes}, x0 has "
            f"{layout.shapes}"
        )
    return layout.pack(state).astype(np.float64)

"""Checks of what users give to a solver; each error names the argument and the remedy."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends.protocol import Backend
from archimedes.backends.registry import AUTO, backend_of, device_backend
from archimedes.checks import is_traced
from archimedes.errors import ShapeDtypeError, refer_to
from archimedes.simulate.problem.state_layout import Args, Layout
from archimedes.symbolic.core.trace import is_tracing, trace_error

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree

#: Leaves that no device owns.
_PLAIN = (int, float, str, np.ndarray, np.generic)


def refuse_traced(*values: Any) -> None:
    """Raise where a solve is driven from Python but its values are being recorded."""
    if is_tracing() and is_traced(values):
        raise trace_error(
            "solve_ode and solve_dae return a Trajectory, which has as many entries as the values "
            "ask for, and here the values are traced",
            "Use arc.odeint(func, t_span, x0, t_eval=..., args=...), which becomes part of the "
            "recording; its full_output=True returns the status too." + refer_to("trajectory"),
        )


def refuse_device_arrays(**arguments: Any) -> None:
    """Raise for arrays of a device: a single solve is driven from here, with NumPy's."""
    for name, value in arguments.items():
        if type(value) is np.ndarray or value is None or (type(value) is tuple and not value):
            continue  # most of the time
        for leaf in tree.leaves(value):
            home = None if isinstance(leaf, _PLAIN) else backend_of(leaf)
            if home is not None:
                raise ShapeDtypeError(
                    f"{name} holds a {home.arrays.kind} array, and a single solve takes NumPy's: "
                    "move it here, or give a batch (in_axes=0), which is solved where it lies"
                )


def home_of_arrays(backend: str | None, **arguments: Any) -> Backend | None:
    """Return the backend whose arrays a batch is given in, None for NumPy's.

    ``backend`` is what the user asked for.
    """
    leaves, names = [], []
    for name, value in arguments.items():
        flat, treedef = tree.flatten(value)
        leaves += flat
        names += treedef.paths(name)
    if not any(backend_of(leaf) for leaf in leaves if not isinstance(leaf, _PLAIN)):
        return None
    home = device_backend(leaves, names)
    if home is not None and home.arrays.module() is None:
        raise ShapeDtypeError(
            f"the batch lies in {home.arrays.kind} arrays, and solvers take NumPy's: move them "
            f"here and say backend={home.name!r}, which runs the solves there"
        )
    if home is not None and backend not in (None, AUTO, home.name):
        raise ShapeDtypeError(
            f"backend={backend!r}, but the batch lies in {home.arrays.kind} arrays, which backend "
            f"{home.name!r} takes: {home.arrays.remedy or 'move them'}, or leave backend= out"
        )
    return home


def check_span(t_span: Any, x0: Tree) -> tuple[Any, Any]:
    """Return the ends of a time span, floats or traced; ``x0`` tells if the two were swapped."""
    if type(t_span) is not tuple or list(map(type, t_span)) != [float, float]:
        check_pair(t_span, x0)
        if is_traced(*t_span):
            first, last = (e if is_traced(e) else _finite(e, t_span) for e in t_span)
            return first, last
    start, end = (_finite(e, t_span) for e in t_span)
    if start == end:
        raise ValueError(f"t_span = ({start}, {end}) is empty: start and end are equal")
    return start, end


#: How solvers are called, and what ``integrator`` returns.
_ORDER = "the order is (func, t_span, x0), as in SciPy's solve_ivp"
INTEGRATOR_ORDER = "the order is solve(x0, t_span, *args)"


def check_pair(t_span: Any, x0: Tree, order: str = _ORDER) -> None:
    """Refuse what is not a pair of numbers, and a pair where x0 looks more like the span.

    States are written as arrays or lists, spans as tuples: where it is the other way round a
    state of two numbers would pass for a span, and the solve for the one that was meant.
    """
    pair = isinstance(t_span, _KINDS) or hasattr(t_span, "shape")
    if not pair or np.shape(t_span) != (2,) or not _are_numbers(t_span):
        shown = repr(t_span) if tree.is_leaf(t_span) or pair else f"a {type(t_span).__name__}"
        message = f"t_span must be a pair (start, end) of numbers, got {shown}: {order}"
        raise ValueError(message + refer_to("order"))
    if _kind(x0) < _kind(t_span) and np.shape(x0) == (2,) and _are_numbers(x0):
        message = (
            f"t_span = {t_span!r} and x0 = {x0!r} look swapped: {order}. If they are right, write "
            "the span as a tuple (start, end), or the state as np.array(x0)"
        )
        raise ValueError(message + refer_to("order"))


#: From what a span is usually written as to what a state is.
_KINDS = (tuple, list, np.ndarray)


def _kind(value: Any) -> int:
    return _KINDS.index(type(value)) if type(value) in _KINDS else len(_KINDS)


def _are_numbers(values: Tree) -> bool:
    kinds = {np.dtype(getattr(v, "dtype", None) or np.asarray(v).dtype).kind for v in values}
    return kinds <= set("iuf")


def _finite(end: Scalar, t_span: Any) -> float:
    if not math.isfinite(end):
        raise ValueError(f"t_span = ({', '.join(map(str, t_span))}) must be finite")
    return float(end)


def check_times(t_eval: ArrayLike, start: float, end: float) -> np.ndarray:
    """Return output times: within the span, in its direction."""
    # Kernels read times one after the other in memory.
    times = np.ascontiguousarray(t_eval, dtype=np.float64)
    if np.ndim(t_eval) == 0 or times.ndim != 1:
        raise ValueError(f"t_eval must have shape (m,), got {np.shape(t_eval)}")
    low, high = min(start, end), max(start, end)
    early, late = (times[:-1], times[1:]) if end > start else (times[1:], times[:-1])
    # Sorted times lie in the span if the first and the last do; nan is never sorted.
    ends = times[:1].tolist() + times[-1:].tolist()
    if all(low <= t <= high for t in ends) and np.count_nonzero(early <= late) == len(early):
        return times
    if not np.isfinite(times).all():
        raise ValueError("t_eval must be finite")
    outside = (times < low) | (times > high)
    if outside.any():
        message = f"t_eval holds {times[outside][0]:.17g}, which is outside t_span = "
        raise ValueError(f"{message}({start}, {end})" + refer_to("outputs"))
    at = int(np.argmax(early > late))
    message = (
        f"t_eval must be sorted in the direction of t_span: t_eval[{at}] = {times[at]:.17g} "
        f"comes before t_eval[{at + 1}] = {times[at + 1]:.17g}"
    )
    raise ValueError(message + refer_to("outputs"))


def in_order(times: Array, start: Scalar, end: Scalar) -> Any:
    """Return which times (m,) a solve can return: in the span, and not before an earlier one.

    >>> in_order(np.array([0.5, 0.2, 2.0]), 0.0, 1.0)
    array([ True, False, False])
    """
    direction = np.where(end >= start, 1.0, -1.0)
    along = direction * (times - start)
    furthest = np.maximum.accumulate(np.where(np.isnan(along), -np.inf, along))
    return (along >= np.maximum(furthest, 0.0)) & (along <= direction * (end - start))


def check_state(x0: Tree, layout: Layout) -> np.ndarray:
    """Return a state as a vector (n,); one that is nan or infinite is refused, naming the leaf."""
    x = layout.pack(x0)
    if np.count_nonzero(np.isfinite(x)) == x.size:
        return x if x.dtype == np.float64 else x.astype(np.float64)
    leaves = zip(layout.treedef.paths("x0"), tree.leaves(x0))
    path, leaf = next(pair for pair in leaves if not np.isfinite(pair[1]).all())
    raise ValueError(f"{path} is nan or infinite: {leaf!r}")


def check_tolerances(rtol: Array, atol: Array) -> None:
    """Refuse tolerances that no step could meet."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not (np.isfinite(value).all() and (value >= 0.0).all()):
            raise ValueError(f"{name} must be finite and not negative")
    if not ((rtol > 0.0) | (atol > 0.0)).all():
        raise ValueError("rtol and atol must not both be zero")


def check_step(name: str, value: Any) -> float:
    """Return a step size, which must be positive."""
    if not float(value) > 0.0:
        raise ValueError(f"{name} = {value!r} must be positive")
    return float(value)


def check_args(args: Args) -> tuple[Any, ...]:
    """Return the further arguments of the function as a tuple."""
    if args is None:
        return ()
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def static_positions(
    func: Callable[..., Any], static_argnames: str | Sequence[str] | None, count: int
) -> list[int]:
    """Return which of the ``count`` further arguments of func(t, x, *args) are static."""
    names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames or ())
    if not names:
        return []
    known = list(inspect.signature(func).parameters)
    for name in names:
        if name not in known[2 : 2 + count]:
            raise ValueError(
                f"static_argnames: {name!r} is not among the arguments {known[2 : 2 + count]} that "
                "args gives"
            )
    return [known.index(name) - 2 for name in names]

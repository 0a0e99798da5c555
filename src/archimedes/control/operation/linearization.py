"""The linear system of small motions about a point, with names and units, and its regulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable
from archimedes.control.linear.regulators import dlqr, lqr
from archimedes.control.linear.state_space import StateSpace
from archimedes.display import Readable
from archimedes.errors import ShapeDtypeError
from archimedes.function import jac
from archimedes.function.recording_store import Current, compile_frozen, find_or_make, form_of
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.tree import struct
from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["LQRDesign", "linearize", "lqr_design"]


class NamedNumbers(NamedTuple):
    """A tree as a vector (n,), the way back, and the names and units of its entries."""

    vector: Array
    unravel: Callable[[Array], Tree]
    names: tuple[str, ...]
    units: tuple[str, ...]


def name_numbers(value: Tree, root: str) -> NamedNumbers:
    """Take a tree of numbers apart; one array or number is called by the name of its root.

    >>> name_numbers({"speed": 3.0, "wind": np.zeros(2)}, "x").names
    ('speed', 'wind[0]', 'wind[1]')
    """
    leaves, treedef = tree.flatten(value)
    kinds = [getattr(leaf, "dtype", np.asarray(leaf).dtype).kind for leaf in leaves]
    if any(kind not in "fiu" for kind in kinds):
        raise ShapeDtypeError(f"{root} must hold real numbers, got {value!r}")
    vector, unravel = tree.ravel(treedef.unflatten([leaf * 1.0 for leaf in leaves]))
    columns = tree_columns(value, 0, root, prefix=False)
    names, units = (tuple(getattr(c, k) for c in columns) for k in ("name", "units"))
    return NamedNumbers(vector, unravel, names, units)


def find_entries(names: str | Iterable[str], known: tuple[str, ...], what: str) -> list[int]:
    """Return where names are among the known ones; a name also stands for all that is in it.

    >>> find_entries(["wind"], ("speed", "wind[0]", "wind[1]"), "free")
    [1, 2]
    """
    entries: set[int] = set()
    for name in (names,) if isinstance(names, str) else names:
        inside = (f"{name}.", f"{name}[")
        matches = [k for k, own in enumerate(known) if own == name or own.startswith(inside)]
        if not matches:
            raise ValueError(f"{what} names {name!r}, which is not among {', '.join(known)}")
        entries.update(matches)
    return sorted(entries)


def linearize(
    dynamics: Callable[..., Any],
    x: Tree,
    u: Tree = None,
    outputs: Callable[..., Any] | None = None,
    *,
    t: Scalar = 0.0,
    args: tuple[Any, ...] = (),
    dt: Scalar | None = None,
) -> StateSpace:
    """Return the linear system of small motions about an operating point.

    The derivatives are exact, and are themselves differentiable with respect to x, u and args.
    States, inputs and outputs have the names and units of the structs.

    Parameters
    ----------
    dynamics : callable
        Function ``dynamics(t, x, u, *args)`` that returns dx/dt with the structure of x. With `dt`
        it returns the next state. Without `u` it is called as ``dynamics(t, x, *args)``.
    x : tree
        State of the operating point.
    u : tree, optional
        Inputs of the operating point.
    outputs : callable, optional
        Function ``outputs(t, x, u, *args)`` that returns any tree of numbers. By default the
        outputs are the states.
    t : float, optional
        Time in s, 0 by default.
    args : tuple, optional
        Further arguments of the functions.
    dt : float, optional
        Length of a step in s if `dynamics` returns the next state. None, the default, for
        continuous time.

    Examples
    --------
    >>> swing = lambda t, x, u: {"angle": x["speed"], "speed": u - np.sin(x["angle"])}
    >>> system = linearize(swing, {"angle": np.pi, "speed": 0.0}, 0.0)
    >>> system.states, system.A.round(6)
    (('angle', 'speed'), array([[0., 1.],
           [1., 0.]]))
    """
    check_callable(dynamics, "dynamics", "(t, x, u, *args)")
    xs, us = name_numbers(x, "x"), name_numbers(() if u is None else u, "u")
    n, m = xs.vector.shape[0], us.vector.shape[0]
    driven, states, controls = u is not None, xs.unravel, us.unravel
    z = np.concatenate([xs.vector, us.vector])

    def differentiate(function: Callable[..., Any]) -> Array:
        def make(current: Current) -> Callable[..., Any]:
            def flat(z: Array, t: Scalar, args: tuple[Any, ...]) -> Array:
                point = (states(z[:n]), *((controls(z[n:]),) if driven else ()))
                return tree.ravel(current.functions[0](t, *point, *args))[0] * 1.0

            name = getattr(function, "__name__", "function")
            return jac(compile_frozen(flat, (current,), name))

        return find_or_make("linearize", (function,), form_of((x, u)), make)(z, t, args)

    AB = differentiate(dynamics)
    if AB.shape[0] != n:
        raise ShapeDtypeError(
            f"dynamics returns {AB.shape[0]} numbers for a state of {n}: it must return dx/dt with "
            "the structure of x"
        )
    if outputs is None:
        CD, ys = np.eye(n, n + m), xs
    else:
        example = outputs(t, x, *(() if u is None else (u,)), *args)
        CD, ys = differentiate(outputs), name_numbers(example, "y")
    parts = {"state": xs, "input": us, "output": ys}
    texts = {f"{kind}s": part.names for kind, part in parts.items()}
    texts |= {f"{kind}_units": part.units for kind, part in parts.items()}
    return StateSpace(AB[:, :n], AB[:, n:], CD[:, :n], CD[:, n:], dt, **texts)


@struct
class LQRDesign(Readable):
    """A regulator about an operating point: u = u0 - K (x - x0).

    Parameters
    ----------
    K : array (m, n)
        Gain.
    X : array (n, n)
        Cost matrix: the cost from x is x'Xx.
    x : tree
        State of the operating point.
    u : tree
        Inputs of the operating point.
    system : StateSpace
        The linear system that it was designed for.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import control
    >>> swing = lambda t, x, u: np.array([x[1], u[0] - np.sin(x[0])])
    >>> design = control.lqr_design(swing, np.zeros(2), np.zeros(1), Q=np.eye(2), R=np.eye(1))
    >>> design.K.round(4), design.system.A.round(4).tolist()
    (array([[0.4142, 1.3522]]), [[0.0, 1.0], [-1.0, 0.0]])
    """

    K: Array
    X: Array
    x: Tree
    u: Tree
    system: StateSpace

    def step(self, state: Tree, input: Tree) -> tuple[Tree, Tree]:
        """Return the state, which is not used, and u with the structure of ``self.u``.

        Parameters
        ----------
        state : tree
            State of the block. It has none, so that any value will do, and is returned.
        input : tree
            State of the plant, with the structure of ``self.x``.
        """
        u, back = tree.ravel(self.u)
        away = tree.ravel(input)[0] - tree.ravel(self.x)[0]
        return state, back(u - self.K @ away)


def lqr_design(
    dynamics: Callable[..., Any],
    x: Tree,
    u: Tree,
    Q: ArrayLike,
    R: ArrayLike,
    N: ArrayLike | None = None,
    *,
    dt: Scalar | None = None,
    t: Scalar = 0.0,
    args: tuple[Any, ...] = (),
) -> LQRDesign:
    """Linearize a model about an operating point and design a regulator for it.

    It works inside compiled functions, so that :func:`vmap` designs for many operating points at
    once.

    Parameters
    ----------
    dynamics : callable
        Function ``dynamics(t, x, u, *args)`` that returns dx/dt with the structure of x.
    x : tree
        State of the operating point.
    u : tree
        Inputs of the operating point.
    Q : array (n, n) or (n,)
        Weights of the states: a matrix, or its diagonal.
    R : array (m, m) or (m,)
        Weights of the inputs: a matrix, or its diagonal.
    N : array (n, m), optional
        Weights of the products of states and inputs. None by default.
    dt : float, optional
        Length of a step in s, for a regulator whose inputs are held over the steps. None, the
        default, for continuous time.
    t : float, optional
        Time in s, 0 by default.
    args : tuple, optional
        Further arguments of the functions.

    Examples
    --------
    >>> design = lqr_design(lambda t, x, u: np.array([x[1], u[0] + np.sin(x[0])]),
    ...                     np.zeros(2), np.zeros(1), [1.0, 1.0], [1.0])
    >>> design.K.round(4)
    array([[2.4142, 2.4142]])
    """
    system = linearize(dynamics, x, u, t=t, args=args)
    Q, R = (np.diag(M) if np.ndim(M) == 1 else M for M in (Q, R))
    if dt is None:
        K, X = lqr(system.A, system.B, Q, R, N)
    else:
        system = system.discretize(dt)
        K, X = dlqr(system.A, system.B, Q, R, N)
    return LQRDesign(K, X, x, u, system)

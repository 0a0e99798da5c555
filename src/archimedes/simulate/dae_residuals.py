"""F(t, x, xdot) of a DAE on flat vectors: compiled, with its derivatives and its form.

Read off the recording are which states are algebraic (F does not use their derivatives) and
whether F is M xdot - f(t, x) with a matrix M of numbers and parameters: such equations have
kernels of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.backends.registry import AUTO, get_backend
from archimedes.function import Compiled, jac, sparsity
from archimedes.function.identity.states import fingerprint
from archimedes.function.identity.store import Current, store
from archimedes.function.leaf_specs import describe_leaves
from archimedes.graph.derivatives.rules import LINEAR, PARTIALS
from archimedes.graph.ops import TABLE
from archimedes.graph.program import Graph
from archimedes.lazy_dataclasses import lazy_dataclass
from archimedes.simulate.methods.method_table import Derivative
from archimedes.simulate.methods.rosenbrock import RODAS5P, WithMass
from archimedes.simulate.problem.state_layout import Layout
from archimedes.simulate.solves.prepared_model import shared
from archimedes.simulate.sparse.pencils import CompressedPencil, SparsePencil
from archimedes.simulate.stepping.run_state import Plan
from archimedes.simulate.stepping.solve_kernels import Kernels, kernels_for, native

__all__ = ["Residual", "residual_of"]


#: Operations whose values show in their derivatives, unlike those of a floor, say.
_SMOOTH = {*PARTIALS, *LINEAR} - {"copysign", "fmod"}


class Form(NamedTuple):
    """``algebraic`` (n,): whose derivatives F does not use; ``linear``: F is M xdot - f(t, x)."""

    algebraic: np.ndarray
    linear: bool


@lazy_dataclass(frozen=True)
class MassPlan(Plan):
    """A plan for M xdot = f(t, x)."""

    mass: Callable[..., Any] = NotImplemented

    def derivative(self, args: tuple[Any, ...]) -> Derivative:
        """Return f(t, x), with M, for these arguments."""
        return WithMass(
            lambda t, x: self.func(t, x, args),
            lambda t, x: self.mass(t, x, args),
        )


class _Functions:
    """F and its derivatives, compiled; ``key`` tells it from others."""

    def __init__(self, func: Callable[..., Any], layout: Layout, key: Hashable) -> None:
        #: Replaced by others of the same content, so that an object that changes is not read.
        self.current = current = Current((func,))

        def flat(t: Any, x: Any, xdot: Any, args: Any) -> Any:
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

        self.flat, self.layout, self.key = flat, layout, key
        self.residual = native(flat, "residual", (current,))
        self.forms: dict[Hashable, Form] = {}
        self.pencils: dict[Hashable, CompressedPencil] = {}

    def form(self, t: float, x: np.ndarray, args: tuple[Any, ...]) -> Form:
        """Return what form F has with arguments like these."""
        key = _kind_of(args)
        found = self.forms.get(key)
        if found is None:
            found = self.forms[key] = self._form(t, x, args)
        return found

    def pencil(self, t: float, x: np.ndarray, args: tuple[Any, ...]) -> CompressedPencil:
        """Return the sparse derivatives of F with arguments like these."""
        key = _kind_of(args)
        found = self.pencils.get(key)
        if found is None:
            compiled = partial(native, watch=(self.current,))
            found = self.pencils[key] = CompressedPencil(
                self.residual,
                compiled,
                (t, x, np.zeros(x.size), args),
                get_backend(AUTO).block_factors(),
            )
        return found

    def _form(self, t: float, x: np.ndarray, args: tuple[Any, ...]) -> Form:
        point = (t, x, np.zeros(x.size), args)
        used = sparsity(self.flat, argnums=2)(*point).toarray().any(axis=0)
        # M must not depend on t, x and xdot; nor, by a branch say, on xdot what else is in F.
        mass = Compiled(jac(self.flat, argnums=2)).graph(*point)
        last = 1 + 2 * x.size
        fixed = set(mass.live()).isdisjoint(mass.inputs[:last])
        whole = self.residual.graph(*point)
        return Form(~used, fixed and _is_smooth(whole, whole.inputs[1 + x.size : last]))

    def kernels(self) -> Kernels:
        """Return the kernels of the equations as M xdot = f(t, x)."""
        return kernels_for((self.key, "mass"), self._plan)

    def _plan(self) -> MassPlan:
        def right(t: Any, x: Any, args: Any) -> Any:
            return -self.flat(t, x, np.zeros(self.layout.size), args)

        def mass(t: Any, x: Any, args: Any) -> Any:
            return jac(self.flat, argnums=2)(t, x, np.zeros(self.layout.size), args)

        return MassPlan(shared(right), self.layout, RODAS5P, mass=mass)


def _kind_of(args: tuple[Any, ...]) -> Hashable:
    """Return what recordings depend on: the structure of arguments, shapes and types."""
    leaves, treedef = tree.flatten(args)
    return treedef, describe_leaves(leaves, treedef, ["args"])


def _is_smooth(graph: Graph, inputs: Iterable[int]) -> bool:
    """Tell whether nothing is computed from these inputs that their derivatives do not show."""
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

    def __init__(self, functions: _Functions, args: tuple[Any, ...]) -> None:
        self.functions = functions
        self.args = args

    def __call__(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        """Return F, (n,)."""
        return self.functions.residual(t, x, xdot, self.args)

    def pencil(self, t: float, x: np.ndarray, xdot: np.ndarray) -> SparsePencil:
        """Return dF/dx and dF/dxdot, sparse."""
        return self.functions.pencil(t, x, self.args).at(t, x, xdot, self.args)

    def linearised(self, t: float, x: Any, xdot: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F (n,), dF/dx and dF/dxdot (n, n)."""
        return self(t, x, xdot), *self.pencil(t, x, xdot).dense()

    def by_time(self, t: float, x: np.ndarray, xdot: np.ndarray) -> np.ndarray:
        """Return dF/dt, (n,)."""
        return self.functions.pencil(t, x, self.args).by_time(t, x, xdot, self.args)

    def form(self, t: float, x: np.ndarray) -> Form:
        """Return what form F has."""
        return self.functions.form(t, x, self.args)

    def kernels(self) -> Kernels:
        """Return the kernels of a ``linear`` form."""
        return self.functions.kernels()


def residual_of(func: Callable[..., Any], layout: Layout, args: tuple[Any, ...]) -> Residual:
    """Return F for these arguments, with functions kept from earlier calls if possible.

    >>> from archimedes.simulate.problem.state_layout import layout_of
    >>> x = np.array([1.0, 0.5])
    >>> F = residual_of(lambda t, x, v: np.stack([v[0] - x[1], x[0] - x[1] ** 2]), layout_of(x), ())
    >>> F.form(0.0, x)
    Form(algebraic=array([False,  True]), linear=True)
    """
    key = (fingerprint(func), layout)

    def renew(functions: _Functions) -> None:
        functions.current.functions = (func,)

    make = lambda: _Functions(func, layout, key)  # noqa: E731
    return Residual(store.find(("residual", key), func, make, renew), args)

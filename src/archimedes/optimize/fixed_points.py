"""``fixed_point``: x = func(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError
from archimedes.function import array, root
from archimedes.function.implicit_functions import is_row_of_numbers
from archimedes.typing import Tree

__all__ = ["fixed_point"]


def fixed_point(
    func: Callable[..., Any],
    x0: Tree,
    args: Any = (),
    tol: float | None = None,
    max_steps: int | None = None,
    *,
    method: str = "newton",
    bounds: Any = None,
    full_output: bool = False,
) -> Any:
    """Return x with ``func(x, *args) = x``.

    It is the :func:`root` of the difference: it also finds points from which plain iteration
    diverges, works inside compiled functions, and is differentiable with respect to `args`.

    Parameters
    ----------
    func : callable
        Function ``func(x, *args)`` that returns a tree like x.
    x0 : float, array or tree
        Starting point.
    args : tuple, optional
        Further arguments of the functions.
    tol : float, optional
        Tolerance at which the iteration ends.
    max_steps : int, optional
        Largest number of iterations.
    method : {"newton", "hybr", "lm"}, optional
        The solver, as in :func:`implicit`.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    full_output : bool, optional
        Return a pair, x and a :class:`RootInfo`, and do not raise. False by default.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(fixed_point(np.cos, 1.0)), 9)
    0.739085133
    """
    args = args if isinstance(args, tuple) else (args,)

    def difference(x: Tree, *args: Any) -> Tree:
        value = func(x, *args)
        value = array(value) if is_row_of_numbers(value) else value
        shapes = [[np.shape(leaf) for leaf in tree.leaves(v)] for v in (value, x)]
        if tree.structure(value) != tree.structure(x) or shapes[0] != shapes[1]:
            raise ShapeDtypeError(
                f"fixed_point: func must return what x0 is, structure and shapes: it returns "
                f"{tree.structure(value)!r} of shapes {shapes[0]}, x0 is "
                f"{tree.structure(x)!r} of shapes {shapes[1]}"
            )
        return tree.map(lambda new, old: new - old, value, x)

    difference.__name__ = getattr(func, "__name__", "fixed_point")
    more = {"max_steps": max_steps, "bounds": bounds, "full_output": full_output}
    return root(difference, x0, args, method=method, tol=tol, **more)

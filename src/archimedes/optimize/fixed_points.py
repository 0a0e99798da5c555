"""``fixed_point``: x = func(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError
from archimedes.function import array, root
from archimedes.function.implicit_functions import is_row_of_numbers

__all__ = ["fixed_point"]


def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    tol: float | None = None,
    max_steps: int | None = None,
    *,
    method: str = "newton",
    bounds: Any = None,
    full_output: bool = False,
) -> Any:
    """Return x with ``func(x, *args) = x``, any tree of numbers, from ``x0``.

    It is :func:`root` of the difference, with its methods: it also finds points that plain
    iteration runs away from, works in recorded code, and has derivatives in ``args``.

    >>> import numpy as np
    >>> round(float(fixed_point(np.cos, 1.0)), 9)
    0.739085133
    """
    given = args if isinstance(args, tuple) else (args,)

    def difference(x: Any, *args: Any) -> Any:
        found = func(x, *args)
        found = array(found) if is_row_of_numbers(found) else found
        shapes = [[np.shape(leaf) for leaf in tree.leaves(value)] for value in (found, x)]
        if tree.structure(found) != tree.structure(x) or shapes[0] != shapes[1]:
            raise ShapeDtypeError(
                f"fixed_point: func must return what x0 is, structure and shapes: it returns "
                f"{tree.structure(found)!r} of shapes {shapes[0]}, x0 is "
                f"{tree.structure(x)!r} of shapes {shapes[1]}"
            )
        return tree.map(lambda new, old: new - old, found, x)

    difference.__name__ = getattr(func, "__name__", "fixed_point")
    more = {"max_steps": max_steps, "bounds": bounds, "full_output": full_output}
    return root(difference, x0, given, method=method, tol=tol, **more)

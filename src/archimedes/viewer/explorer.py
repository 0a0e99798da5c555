"""A function of sliders whose results are curves: a page draws them anew when a slider moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import as_array, check_callable
from archimedes.display import Readable, for_reading
from archimedes.simulate.trajectory.columns import LeafLabel, component_names, label_leaves
from archimedes.typing import Array, Tree
from archimedes.viewer.controls import choose_controls
from archimedes.viewer.simulator import MOST_LINES, Row, as_floats

__all__ = ["Explorer"]


class Explorer(Readable):
    """A function of parameters that returns curves, for an interactive page.

    Each slider moves a parameter; whenever one moves, the function is evaluated in the page, by the
    program recorded here, and its curves are drawn anew.

    Parameters
    ----------
    func : callable
        ``func(p)``, which returns a pair: the abscissa (m,) and a struct or dict of curves over it,
        (m,) for a chart of one line or (m, k) for one of k lines.
    parameters : tree
        Parameters at the start.
    controls : mapping, optional
        What moves, as in `Simulator`. By default each of the first parameters has a slider.
    x : str, optional
        Name and unit of the abscissa.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.viewer import Explorer, view
    >>> t = np.linspace(0.0, 10.0, 101)
    >>> def response(p):
    ...     return t, {"angle": np.exp(-p["damping"] * t) * np.cos(t)}
    >>> page = view(Explorer(response, {"damping": 0.2}, controls={"damping": (0.0, 1.0)}),
    ...             interactive=True, title="A damped oscillation")
    >>> page
    View('A damped oscillation': response, interactive)
    """

    def __init__(
        self,
        func: Callable[[Any], Any],
        parameters: Tree,
        *,
        controls: Mapping[str, Any] | None = None,
        x: str = "time (s)",
    ) -> None:
        check_callable(func, "Explorer: func", "func(p)")
        parameters = as_floats(parameters)
        self.func, self.parameters, self.x = func, parameters, x
        self.row = Row(parameters, "p")
        values = np.asarray(self.row.pack(parameters), dtype=float)
        self.controls = choose_controls(controls, self.row.columns, values, self.row.bools)
        first = func(parameters)
        if not (isinstance(first, tuple) and len(first) == 2 and np.ndim(first[0]) == 1):
            raise ValueError(
                "Explorer: func must return a pair, the abscissa (m,) and curves over it: "
                f"return x, {{'name': y}}; got {type(first).__name__}"
            )
        leaves = [np.asarray(as_array(leaf)) for leaf in tree.leaves(first)]
        wrong = [
            leaf.shape for leaf in leaves if leaf.shape[:1] != leaves[0].shape or leaf.ndim > 2
        ]
        if wrong:
            raise ValueError(
                f"Explorer: curves over {len(leaves[0])} points have shapes ({len(leaves[0])},) or "
                f"({len(leaves[0])}, k), got {wrong[0]}"
            )
        self.shapes = [leaf.shape for leaf in leaves]
        curves = label_leaves(tree.structure(first[1]), "y", prefix=False)
        self.labels = [LeafLabel(x, ""), *curves]

    def rows(self) -> tuple[None, Array]:
        """Return the row of the controls, with nothing for a state."""
        return None, np.asarray(self.row.pack(self.parameters), dtype=float)

    def curves(self, c: Array) -> Any:
        """Return all curves one after the other, line by line, as a page draws them.

        Parameters
        ----------
        c : array (m,)
            Row of the controls.
        """
        parts = []
        for leaf, label in zip(tree.leaves(self.func(self.row.unpack(c))), self.labels):
            shown, _ = for_reading(as_array(leaf), label.units)
            parts.append(np.reshape(np.transpose(shown), (-1,)))
        return np.concatenate(parts)

    def charts(self, which: int) -> list[dict[str, Any]]:
        """Return the charts of the page: where the points of each line are.

        Parameters
        ----------
        which : int
            Number of the explorer in the page.
        """
        count, at, charts = self.shapes[0][0], self.shapes[0][0], []
        for shape, label in zip(self.shapes[1:], self.labels[1:]):
            lines = shape[1] if len(shape) == 2 else 1
            starts = [at + k * count for k in range(min(lines, MOST_LINES))]
            at += lines * count
            names = component_names("", shape[1:])[: len(starts)] if len(shape) == 2 else [""]
            _, unit = for_reading(np.zeros(1), label.units)
            chart = {"title": title_of(label.name), "units": unit, "labels": names, "lines": []}
            charts.append(
                {**chart, "explorer": which, "count": count, "starts": starts, "axis": self.x}
            )
        return charts

    def __repr__(self) -> str:
        return f"Explorer({getattr(self.func, '__qualname__', 'function')})"


def title_of(name: str) -> str:
    """Return the name of a leaf as a person reads it: a key of a dict is the key."""
    inner = name.removeprefix("y['").removesuffix("']")
    return inner.replace("_", " ")

"""A function of sliders whose results are curves: a page draws them anew when a slider moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_callable
from archimedes.display import Readable, for_reading
from archimedes.simulate.trajectory.columns import component_names
from archimedes.typing import Array, Tree
from archimedes.viewer.controls import choose_controls
from archimedes.viewer.simulator import MOST_LINES, Row, as_floats, lines_of

__all__ = ["Explorer"]


class Explorer(Readable):
    """A function of parameters that returns curves, for an interactive page.

    Each slider moves a parameter; whenever one moves, the function is evaluated in the page, by the
    program recorded here, and its curves are drawn anew.

    Parameters
    ----------
    func : callable
        ``func(p)``, which returns a pair: the abscissa (m,) and a struct or dict of curves over it,
        (m,) for a chart of one line or (m, k) for one of k lines. A dict within the dict is one
        chart, whose lines have the names in it.
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
        self.count = len(first[0])
        self.groups: list[tuple[str, str, list[str]]] = []
        for title, units, lines in lines_of(first[1], "y"):
            labels: list[str] = []
            for label, leaf in lines:
                shape = np.shape(leaf)
                if shape[:1] != (self.count,) or len(shape) > 2:
                    raise ValueError(
                        f"Explorer: curves over {self.count} points have shapes ({self.count},) or "
                        f"({self.count}, k), got {shape} for {title!r}"
                    )
                labels += [f"{label}{part}" for part in component_names("", shape[1:])]
            self.groups.append((title, for_reading(np.zeros(1), units)[1], labels))

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
        x, curves = self.func(self.row.unpack(c))
        parts = [as_array(x)]
        for _, units, lines in lines_of(curves, "y"):
            for _, leaf in lines:
                shown, _ = for_reading(as_array(leaf), units)
                parts.append(np.reshape(np.transpose(shown), (-1,)))
        return np.concatenate(parts)

    def charts(self, which: int) -> list[dict[str, Any]]:
        """Return the charts of the page: where the points of each line are.

        Parameters
        ----------
        which : int
            Number of the explorer in the page.
        """
        charts, at = [], self.count
        for title, units, labels in self.groups:
            starts = [at + k * self.count for k in range(len(labels))]
            at += len(labels) * self.count
            chart = {"title": title, "units": units, "labels": labels[:MOST_LINES], "lines": []}
            place = {"explorer": which, "count": self.count, "starts": starts[:MOST_LINES]}
            charts.append({**chart, **place, "axis": self.x})
        return charts

    def __repr__(self) -> str:
        return f"Explorer({getattr(self.func, '__qualname__', 'function')})"

"""What every plot begins and ends with: theme, figure, title, file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from archimedes.simulate.trajectory.exports import require
from archimedes.viz.themes import current_theme, matplotlib_settings

__all__ = ["sheet"]


@contextmanager
def sheet(size: tuple[float, float], title: str | None = None, file: Any = None) -> Iterator[Any]:
    """Give a figure of a size in inches to draw on, in the current theme; then title and save it.

    In a notebook, and where it is saved, the figure is closed: a notebook shows what a function
    returns, and an open figure would be shown twice; files by the hundred would keep as many open.
    What is returned can be drawn on and saved as before.
    """
    matplotlib = require("matplotlib", None, "plot")
    pyplot = require("matplotlib.pyplot", None, "plot")
    with matplotlib.rc_context(dict(matplotlib_settings(current_theme()))):
        figure = pyplot.figure(figsize=size, layout="constrained")
        yield figure
        if title is not None:
            figure.suptitle(title)
        if file is not None:
            figure.savefig(file)
    if file is not None or "inline" in matplotlib.get_backend():
        pyplot.close(figure)

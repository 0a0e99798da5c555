"""How plots look: one table of matplotlib settings per theme, and the figure of every plot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from archimedes.checks import check_choice
from archimedes.simulate.trajectory.exports import require
from archimedes.viz.windows import watch

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

__all__ = ["THEMES", "set_theme"]

Axes: TypeAlias = "matplotlib.axes.Axes"
Figure: TypeAlias = "matplotlib.figure.Figure"
#: Where a figure is saved, if anywhere.
File = str | PathLike[str] | None

# Colours that people with any form of colour vision can tell apart, from M. Okabe and K. Ito,
# Color Universal Design, 2008; on dark ground the same hues, lighter.
LIGHT_CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#444444")
DARK_CYCLE = ("#62b6f0", "#ff9a4d", "#4fd6a8", "#f0a3cc", "#f0d04d", "#b7b7ff", "#dddddd")

#: What all themes have in common.
STYLE = Path(__file__).with_name("style.mplstyle")


def ground(background: str, ink: str, faint: str, grid: str) -> dict[str, Any]:
    """Return the settings that give a figure its ground, its ink and its grid."""
    return {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), background),
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), ink),
        **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), ink),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), faint),
        "grid.color": grid,
    }


#: Colours of the lines and settings of each theme; an entry of one's own may be added.
THEMES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "light": (LIGHT_CYCLE, ground("#ffffff", "#222222", "#888888", "#e6e6e6")),
    "dark": (DARK_CYCLE, ground("#16181d", "#e8e8e8", "#8a8f98", "#2c3038")),
}

#: The theme that `plot` uses.
_current = "light"


def matplotlib_settings(theme: str) -> dict[str, Any]:
    """Return the settings of a theme, as `matplotlib.rc_context` takes them."""
    shared = require("matplotlib", None, "plot").rc_params_from_file(STYLE, False, False)
    cycler = require("cycler", None, "plot").cycler
    colours, settings = THEMES[theme]
    return {**shared, **settings, "axes.prop_cycle": cycler(color=list(colours))}


def set_theme(theme: str = "light") -> None:
    """Choose the colours of plots from now on.

    They hold for `plot` and for one's own matplotlib figures.

    Parameters
    ----------
    theme : {"light", "dark"}, optional
        Colours.

    Examples
    --------
    >>> set_theme("light")
    """
    global _current
    check_choice(theme, "set_theme: theme", THEMES)
    settings = matplotlib_settings(theme)
    require("matplotlib", None, "set_theme").rcParams.update(settings)
    _current = theme


def keep_colors(figure: Figure) -> None:
    """Give lines the colours of the current theme: "C0" would be looked up when they are drawn."""
    colors = require("matplotlib.colors", None, "plot")
    for line in figure.findobj(require("matplotlib.lines", None, "plot").Line2D):
        line.set_color(colors.to_rgba(line.get_color()))


@contextmanager
def sheet(
    size: tuple[float, float],
    title: str | None = None,
    file: File = None,
    rows: int = 1,
    columns: int = 1,
    **panels: Any,
) -> Iterator[tuple[Figure, Any]]:
    """Give a figure of a size in inches and its axes, in the current theme; then title and save it.

    `panels` are further options of `Figure.subplots`. One row and column give single axes.

    A figure that is saved is closed: files by the hundred would keep as many open. What is returned
    can be drawn on and saved as before.
    """
    matplotlib = require("matplotlib", None, "plot")
    pyplot = require("matplotlib.pyplot", None, "plot")
    with matplotlib.rc_context(matplotlib_settings(_current)):
        figure = pyplot.figure(figsize=size, layout="constrained")
        watch(figure)
        yield figure, figure.subplots(rows, columns, **panels)
        keep_colors(figure)
        if title is not None:
            figure.suptitle(title)
        if file is not None:
            figure.savefig(file)
    if file is not None:
        pyplot.close(figure)

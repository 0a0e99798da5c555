"""How plots look: one table of matplotlib settings per theme, and the figure of every plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from archimedes.simulate.trajectory.exports import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["THEMES", "set_theme"]

#: Where a figure is saved, if anywhere.
File = str | PathLike[str] | None

# Colours that people with any form of colour vision can tell apart, from M. Okabe and K. Ito,
# Color Universal Design, 2008; on dark ground the same hues, lighter.
LIGHT_CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#444444")
DARK_CYCLE = ("#62b6f0", "#ff9a4d", "#4fd6a8", "#f0a3cc", "#f0d04d", "#b7b7ff", "#dddddd")

SHARED: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.labelsize": 10,
    "font.size": 9.5,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.5,
    "savefig.dpi": 150,
    "figure.dpi": 100,
}


def ground(background: str, ink: str, faint: str, grid: str) -> dict[str, Any]:
    """Return the settings that give a figure its ground, its ink and its grid."""
    return {
        "figure.facecolor": background,
        "axes.facecolor": background,
        "savefig.facecolor": background,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "axes.edgecolor": faint,
        "xtick.color": faint,
        "ytick.color": faint,
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "grid.color": grid,
    }


#: Colours of the lines and settings of each theme; an entry of one's own may be added.
THEMES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "light": (LIGHT_CYCLE, ground("#ffffff", "#222222", "#888888", "#e6e6e6")),
    "dark": (DARK_CYCLE, ground("#16181d", "#e8e8e8", "#8a8f98", "#2c3038")),
}

_current = "light"


def current_theme() -> str:
    """Return the name of the theme that `plot` uses."""
    return _current


def matplotlib_settings(theme: str) -> Mapping[str, Any]:
    """Return the settings of a theme, as `matplotlib.rc_context` takes them."""
    cycler = require("cycler", None, "plot").cycler
    colours, settings = THEMES[theme]
    return {**SHARED, **settings, "axes.prop_cycle": cycler(color=list(colours))}


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
    if theme not in THEMES:
        raise ValueError(f"set_theme: no theme {theme!r}; there are {sorted(THEMES)}")
    settings = matplotlib_settings(theme)
    require("matplotlib", None, "set_theme").rcParams.update(settings)
    _current = theme


@contextmanager
def sheet(
    size: tuple[float, float], title: str | None = None, file: File = None
) -> Iterator[Figure]:
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

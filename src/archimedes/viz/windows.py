"""Plots on the screen: windows of scripts, cells of notebooks, and a word where there are neither.

matplotlib draws a figure when a window, a file or a notebook asks for it, and tells so by an
event. A figure that was never drawn was never seen.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from archimedes.simulate.trajectory.exports import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["show"]

#: Figures that nobody has seen yet.
_unseen: WeakSet[Figure] = WeakSet()

#: Tools that run other people's code.
TOOLS = frozenset({"pytest", "IPython"})
#: Backends of matplotlib that only write files.
NO_WINDOWS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")
SAVE = 'save it with arc.plot(..., file="plot.png")'


def watch(figure: Figure) -> None:
    """Note that a figure has not been seen, until it is drawn.

    In a notebook a figure that has been drawn is closed: otherwise matplotlib would show it once
    more at the end of the cell.
    """
    inline = "inline" in require("matplotlib", None, "plot").get_backend()

    def seen(event: Any) -> None:
        _unseen.discard(figure)
        if inline:
            require("matplotlib.pyplot", None, "plot").close(figure)

    figure.canvas.mpl_connect("draw_event", seen)
    # Python forgets the file of a script before it comes to its end.
    if hasattr(sys.modules.get("__main__"), "__file__") and not sys.flags.interactive:
        atexit.unregister(say_unseen)
        atexit.register(say_unseen)
    _unseen.add(figure)


def open_unseen() -> int:
    """Return how many figures are open that were neither shown nor saved."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return sum(pyplot.fignum_exists(f.number) for f in _unseen) if pyplot else 0


def say_unseen() -> None:
    """At the end of a script, say how to see the plots that it made and did not show."""
    # Somebody who chose a backend, or a tool that runs the script, knows what becomes of plots.
    chosen = "MPLBACKEND" in os.environ or TOOLS & sys.modules.keys()
    count = open_unseen()
    if count and not chosen:
        plots = "a plot was" if count == 1 else f"{count} plots were"
        how = SAVE if without_windows() else f"call arc.show() at the end of the script, or {SAVE}"
        print(f"archimedes: {plots} made but not shown: {how}", file=sys.stderr)


def without_windows() -> str:
    """Return the name of matplotlib's backend if it has no windows, else nothing."""
    backend = str(require("matplotlib", None, "show").get_backend())
    return backend if backend.lower() in NO_WINDOWS else ""


def show(block: bool = True) -> None:
    """Show all open plots in windows.

    A script waits here until the windows are closed. Where no window can be opened (on a server,
    or with matplotlib's backend "agg") a line on stderr says so. A notebook shows plots by itself.

    Parameters
    ----------
    block : bool, optional
        Wait until all windows are closed. True by default.

    Examples
    --------
    >>> import archimedes as arc
    >>> import numpy as np
    >>> figure = arc.plot(arc.Trajectory(np.arange(3.0), {"height": np.zeros(3)}))
    >>> arc.show()  # doctest: +SKIP
    """
    pyplot = require("matplotlib.pyplot", None, "show")
    if not pyplot.get_fignums():
        print("archimedes: no plot is open (those saved by file= are closed)", file=sys.stderr)
    elif backend := without_windows():
        _unseen.clear()
        remark = f"no window can be opened here, since matplotlib uses {backend!r}: {SAVE}"
        print(f"archimedes: {remark}", file=sys.stderr)
    else:
        pyplot.show(block=block)

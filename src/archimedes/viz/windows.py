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

HOW = 'call arc.show() at the end of the script, or save it: arc.plot(..., file="plot.png")'


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
    if not _unseen:
        atexit.unregister(say_unseen)
        atexit.register(say_unseen)
    _unseen.add(figure)


def open_unseen() -> int:
    """Return how many figures are open that were neither shown nor saved."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return sum(pyplot.fignum_exists(f.number) for f in _unseen) if pyplot else 0


def say_unseen() -> None:
    """At the end of a script, say how to see the plots that it made and did not show."""
    script = hasattr(sys.modules.get("__main__"), "__file__") and not sys.flags.interactive
    # Somebody who chose a backend, or a tool that runs the script, knows what becomes of plots.
    chosen = "MPLBACKEND" in os.environ or {"pytest", "IPython"} & sys.modules.keys()
    count = open_unseen()
    if script and not chosen and count:
        plots = "1 plot was" if count == 1 else f"{count} plots were"
        print(f"archimedes: {plots} made but not shown: {HOW}", file=sys.stderr)


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
    matplotlib = require("matplotlib", None, "show")
    pyplot = require("matplotlib.pyplot", None, "show")
    backend = str(matplotlib.get_backend())
    if not pyplot.get_fignums():
        print("archimedes: there is no open plot to show", file=sys.stderr)
    elif backend.lower() in NO_WINDOWS:
        _unseen.clear()
        print(
            f"archimedes: no window can be opened here (matplotlib uses {backend!r}); save plots "
            'by arc.plot(..., file="plot.png")',
            file=sys.stderr,
        )
    else:
        pyplot.show(block=block)


#: Backends of matplotlib that only write files.
NO_WINDOWS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")

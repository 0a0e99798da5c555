"""Eigenvalues in the complex plane: modes of a condition, and how they move with a parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.control import ModeTable, StateSpace, modes
from archimedes.typing import ArrayLike
from archimedes.viz.themes import Axes, Figure, File, sheet

__all__ = ["plot_modes", "plot_root_locus"]

#: Damping ratios whose lines are drawn.
DAMPING = (0.1, 0.3, 0.5, 0.7, 0.9)


def plot_modes(
    system: StateSpace | ModeTable | ArrayLike,
    *,
    dt: float | None = None,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot the poles of a linear system.

    Rays are lines of equal damping, circles of equal natural frequency. Modes of aircraft have
    their names (see `modes`), others those of the states in which they are seen most. Discrete
    systems are shown by their equivalent in continuous time.

    Parameters
    ----------
    system : StateSpace, ModeTable or array (n, n)
        The system, its modes, or its state matrix A.
    dt : float, optional
        Length of a step in s, for the matrix of a discrete system.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = plot_modes(np.array([[0.0, 1.0], [-4.0, -0.4]]))
    >>> figure.axes[0].get_xlabel()
    'real part (1/s)'
    """
    named = isinstance(system, (ModeTable, StateSpace))
    table = system if isinstance(system, ModeTable) else modes(system, dt)
    poles = np.array([m.pole for m in table], dtype=complex)
    if not len(poles):
        raise ValueError("plot_modes: this system has no states, hence no modes")
    both = np.concatenate([poles, poles.conj()])
    with sheet((7.0, 5.2), title, file) as (figure, axes):
        for color, some in (("C0", both.real < 1e-9), ("C1", both.real >= 1e-9)):
            axes.plot(both.real[some], both.imag[some], "x", markersize=8, mew=2, color=color)
        draw_plane(axes, both)
        if named:
            label_modes(axes, table)
    return figure


def label_modes(axes: Axes, table: ModeTable) -> None:
    """Write its name, or where it is seen most, beside each mode; those at one place share."""
    size = max(m.frequency for m in table) or 1.0
    spots: dict[tuple[int, int], tuple[complex, list[str]]] = {}
    for mode in table:
        at = (round(mode.pole.real / (0.06 * size)), round(mode.pole.imag / (0.06 * size)))
        names = spots.setdefault(at, (mode.pole, []))[1]
        of_mode = (mode.name,) if mode.name else mode.main_states[:2]
        names += [name for name in of_mode if name not in names]
    style: dict[str, Any] = {"xytext": (6, 7), "textcoords": "offset points"}
    for pole, names in spots.values():
        text = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        axes.annotate(text, (pole.real, pole.imag), fontsize="small", **style)


def draw_plane(axes: Axes, values: np.ndarray) -> None:
    """Draw axes, rays of damping and circles of frequency behind eigenvalues."""
    reach = 1.12 * (float(np.abs(values).max()) or 1.0)
    left = min(-0.25 * reach, 1.15 * float(values.real.min()))
    right = max(0.12 * reach, 1.3 * float(values.real.max()))
    top = max(0.3 * reach, 1.2 * float(values.imag.max()))
    faint: dict[str, Any] = {"color": "0.6", "linewidth": 0.7, "zorder": 0}
    small: dict[str, Any] = {"fontsize": "x-small", "color": "0.5"}
    axes.axhline(0.0, **faint)
    axes.axvline(0.0, **faint)
    for zeta in DAMPING:
        slope = np.sqrt(1.0 - zeta**2) / zeta
        x = max(min(left, -1e-12), -top / slope)
        for sign in (1.0, -1.0):
            axes.plot([0.0, x], [0.0, -sign * slope * x], linestyle=(0, (2, 3)), **faint)
        at = (0.95 * x, -0.95 * slope * x)
        axes.annotate(f"{zeta:g}", at, ha="center", va="bottom", **small)
    angle = np.linspace(0.5 * np.pi, 1.5 * np.pi, 100)
    power = 10.0 ** np.floor(np.log10(reach))
    step = next(s * power for s in (0.2, 0.5, 1.0, 2.0) if s * power >= reach / 5.0)
    for w in np.arange(step, 2.0 * reach, step):
        axes.plot(w * np.cos(angle), w * np.sin(angle), linestyle=(0, (1, 3)), **faint)
        if w < top:
            axes.annotate(f"{w:g} rad/s", (0.0, w), **small)
    axes.set_xlim(left, right)
    axes.set_ylim(-top, top)
    axes.set_xlabel("real part (1/s)")
    axes.set_ylabel("imaginary part (rad/s)")
    axes.grid(visible=False)


def plot_root_locus(
    system: Callable[[Any], Any],
    values: ArrayLike,
    *,
    name: str = "parameter",
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot how the eigenvalues of a matrix move as a value changes.

    The first value is marked by a circle, the last by a cross, and the colour shows the values in
    between.

    Parameters
    ----------
    system : callable
        Function of the value that returns a matrix A (n, n).
    values : array
        Values to go through.
    name : str, optional
        Name of the value.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = plot_root_locus(lambda k: [[0.0, 1.0], [-k, -1.0]], np.linspace(0.0, 4.0, 50))
    >>> len(figure.axes)
    2
    """
    points = np.asarray(values, dtype=float)
    if points.ndim != 1 or len(points) < 2:
        raise ValueError(f"plot_root_locus: values must be (n,), n >= 2, got {points.shape}")
    paths = follow_eigenvalues([np.linalg.eigvals(matrix_of(system(v))) for v in points])
    with sheet((7.4, 5.2), title, file) as (figure, axes):
        colors = np.broadcast_to(points[:, None], paths.shape)
        seen = axes.scatter(paths.real, paths.imag, c=colors, s=7, cmap="viridis")
        axes.plot(paths[0].real, paths[0].imag, "o", color="C1", mfc="none", label=f"{points[0]:g}")
        axes.plot(paths[-1].real, paths[-1].imag, "x", color="C1", mew=2, label=f"{points[-1]:g}")
        draw_plane(axes, paths.ravel())
        axes.legend(title=name, loc="upper left")
        figure.colorbar(seen, ax=axes, label=name, pad=0.01)
    return figure


def matrix_of(system: StateSpace | ArrayLike) -> np.ndarray:
    """Return the matrix A (n, n) of a system or an array."""
    A = np.asarray(getattr(system, "A", system), dtype=float)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"plot_root_locus: system(value) must be a matrix (n, n), got {A.shape}")
    if not np.all(np.isfinite(A)):
        raise ValueError("plot_root_locus: system(value) holds nan or inf")
    return A


def follow_eigenvalues(steps: list[np.ndarray]) -> np.ndarray:
    """Return eigenvalues (k, n) ordered so that each column goes on from the one before."""
    from scipy.optimize import linear_sum_assignment

    rows = [steps[0]]
    for values in steps[1:]:
        _, order = linear_sum_assignment(np.abs(rows[-1][:, None] - values))
        rows.append(values[order])
    return np.stack(rows)

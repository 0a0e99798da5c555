"""Pictures of linear systems: Bode, Nyquist, Nichols, singular values, poles and zeros, steps.

Every function takes one system, a list, or a dict of names and systems; a list of systems as an
entry of a dict is an uncertain system, which is drawn as a band.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.control import (
    Response,
    StateSpace,
    TransferFunction,
    frequency_response,
    impulse_response,
    margins,
    poles,
    ss,
    step_response,
    zeros,
)
from archimedes.control.linear.time_response import default_times
from archimedes.viz.modes import draw_plane, follow_eigenvalues
from archimedes.viz.themes import File, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archimedes.typing import ArrayLike

__all__ = [
    "plot_bode",
    "plot_locus_of_gain",
    "plot_nichols",
    "plot_nyquist",
    "plot_poles_and_zeros",
    "plot_response",
    "plot_singular_values",
]

System = StateSpace | TransferFunction
#: A system, a list of them, or names and systems.
Systems = Any
#: Points of a curve over frequency.
POINTS = 800


def name_systems(systems: Systems) -> dict[str, list[System]]:
    """Return systems by name; those of an uncertain one together."""
    if isinstance(systems, Mapping):
        named = dict(systems)
    elif isinstance(systems, Sequence):
        named = {f"system {k + 1}": one for k, one in enumerate(systems)}
    else:
        named = {"": systems}
    groups = {
        name: list(one) if isinstance(one, Sequence) else [one] for name, one in named.items()
    }
    for name, group in groups.items():
        for one in group:
            if not isinstance(one, (StateSpace, TransferFunction)):
                raise TypeError(
                    f"plot: {name or 'system'!r} must be a StateSpace or a TransferFunction, got "
                    f"{type(one).__name__}"
                )
    return groups


def choose_frequencies(systems: Sequence[System], omega: ArrayLike | None) -> np.ndarray:
    """Return frequencies that show what poles and zeros do, two decades beyond them."""
    if omega is not None:
        return np.asarray(omega, dtype=float)
    rates, fastest = [], np.inf
    for system in systems:
        values = np.concatenate([np.asarray(poles(system)), np.asarray(zeros(system))])
        if system.dt is not None:
            fastest = min(fastest, np.pi / float(system.dt))
            with np.errstate(divide="ignore"):
                values = np.log(values.astype(complex)) / float(system.dt)
        size = np.abs(values)
        rates += [w for w in size if 1e-8 < w < 1e8 and np.isfinite(w)]
    low, high = (min(rates), max(rates)) if rates else (1.0, 1.0)
    low, high = 10.0 ** np.floor(np.log10(low) - 1.0), 10.0 ** np.ceil(np.log10(high) + 1.0)
    high = min(high, fastest)
    grid = np.logspace(np.log10(min(low, 0.01 * high)), np.log10(high), POINTS)
    # Lightly damped modes get points of their own.
    near = [w * (1.0 + d) for w in rates for d in np.linspace(-0.02, 0.02, 21)]
    return np.unique(np.concatenate([grid, [w for w in near if grid[0] <= w <= high]]))


def responses(group: Sequence[System], omega: np.ndarray) -> np.ndarray:
    """Return the values (systems, p, m, N) of some systems."""
    return np.stack([frequency_response(ss(one), omega).values for one in group])


def draw_band(axes: Axes, x: np.ndarray, values: np.ndarray, label: str, color: str) -> None:
    """Draw the median of some curves (k, N), and the band that they fill."""
    axes.plot(x, np.median(values, axis=0), color=color, label=label or None)
    if len(values) > 1:
        axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2, lw=0)


def channel_name(system: System, i: int, j: int) -> str:
    """Return "u to y" for a system with several channels."""
    several = system.ninputs * system.noutputs > 1
    return f"{system.inputs[j]} to {system.outputs[i]}" if several else ""


def each_channel(groups: dict[str, list[System]]) -> list[tuple[str, list[System], int, int, str]]:
    """Return name, systems, output, input and colour of all curves."""
    curves = []
    for name, group in groups.items():
        for i in range(group[0].noutputs):
            for j in range(group[0].ninputs):
                label = ", ".join(part for part in (name, channel_name(group[0], i, j)) if part)
                curves.append((label, group, i, j, f"C{len(curves) % 7}"))
    return curves


def plot_bode(
    systems: Systems,
    omega: ArrayLike | None = None,
    *,
    margin: bool = True,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot magnitude and phase over frequency.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, list or dict
        What to plot; a dict gives names, and a list in it is drawn as a band.
    omega : array (N,), optional
        Frequencies in rad/s. Chosen from poles and zeros by default.
    margin : bool, optional
        Mark the gain and phase margin of a single loop with one input and one output.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> figure = plot_bode(tf([1.0], [1.0, 1.0, 0.0]))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['magnitude (dB)', 'phase (deg)']
    """
    groups = name_systems(systems)
    every = [one for group in groups.values() for one in group]
    w = choose_frequencies(every, omega)
    with sheet((7.6, 5.4), title, file, 2, sharex=True) as (figure, (above, below)):
        for label, group, i, j, color in each_channel(groups):
            values = responses(group, w)[:, i, j]
            with np.errstate(divide="ignore"):
                draw_band(above, w, 20.0 * np.log10(np.abs(values)), label, color)
            draw_band(below, w, np.rad2deg(unwrap_phase(values)), "", color)
        above.set_xscale("log")
        single = len(every) == 1 and every[0].ninputs == every[0].noutputs == 1
        if margin and single:
            mark_margins(above, below, every[0], w)
        for one in every[:1]:
            if one.dt is not None:
                for axes in (above, below):
                    axes.axvline(np.pi / float(one.dt), color="0.6", linewidth=0.8)
        above.set_ylabel("magnitude (dB)")
        below.set_ylabel("phase (deg)")
        below.set_xlabel("frequency (rad/s)")
        below.yaxis.set_major_locator(_degrees())
        if above.get_legend_handles_labels()[1]:
            above.legend()
    return figure


def _degrees() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(6, steps=[1, 1.5, 3, 4.5, 9, 10])


def unwrap_phase(values: np.ndarray) -> np.ndarray:
    """Return phases along the last axis without jumps, beginning between -270 and 90 deg."""
    phase = np.unwrap(np.angle(values), axis=-1)
    first = phase[..., :1]
    return phase - 2.0 * np.pi * np.ceil((first - np.pi / 2.0) / (2.0 * np.pi))


def mark_margins(above: Axes, below: Axes, loop: System, omega: np.ndarray) -> None:
    """Mark the margins of a loop on its Bode plot."""
    found = margins(ss(loop))
    faint: dict[str, Any] = {"color": "0.45", "linewidth": 1.0, "linestyle": (0, (3, 2))}
    below.axhline(-180.0, **faint)
    above.axhline(0.0, **faint)
    notes = []
    if omega[0] < found.gain_frequency < omega[-1]:
        depth = -20.0 * np.log10(found.gain)
        above.plot([found.gain_frequency] * 2, [0.0, depth], color="C1", linewidth=2.0)
        notes.append(f"gain margin {-depth:.3g} dB at {found.gain_frequency:.3g} rad/s")
    if omega[0] < found.phase_frequency < omega[-1]:
        value = frequency_response(ss(loop), omega).values[0, 0]
        phase = np.rad2deg(np.interp(found.phase_frequency, omega, unwrap_phase(value)))
        near = -180.0 + 360.0 * np.round((phase + 180.0) / 360.0)
        below.plot([found.phase_frequency] * 2, [near, phase], color="C1", linewidth=2.0)
        notes.append(
            f"phase margin {np.rad2deg(found.phase):.3g} deg at {found.phase_frequency:.3g} rad/s"
        )
    text = "; ".join(notes) + ("" if found.stable else "; the closed loop is unstable")
    if text:
        above.set_title(text.removeprefix("; "), fontsize="medium", fontweight="normal")


def plot_singular_values(
    systems: Systems,
    omega: ArrayLike | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot the singular values of frequency responses.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, list or dict
        What to plot.
    omega : array (N,), optional
        Frequencies in rad/s. Chosen from poles and zeros by default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> plot_singular_values(tf([1.0], [1.0, 1.0])).axes[0].get_ylabel()
    'singular values (dB)'
    """
    groups = name_systems(systems)
    w = choose_frequencies([one for group in groups.values() for one in group], omega)
    with sheet((7.6, 4.2), title, file) as (figure, axes):
        for k, (name, group) in enumerate(groups.items()):
            values = np.linalg.svd(np.moveaxis(responses(group, w), -1, 1), compute_uv=False)
            for which in range(values.shape[-1]):
                with np.errstate(divide="ignore"):
                    decibels = 20.0 * np.log10(values[..., which])
                draw_band(axes, w, decibels, name if not which else "", f"C{k % 7}")
        axes.set_xscale("log")
        axes.set_xlabel("frequency (rad/s)")
        axes.set_ylabel("singular values (dB)")
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
    return figure


def _plot_plane(
    systems: Systems,
    omega: ArrayLike | None,
    size: tuple[float, float],
    title: str | None,
    file: File,
    draw: Callable[[Axes, np.ndarray, str, str], None],
    finish: Callable[[Axes, list[np.ndarray]], None],
) -> Figure:
    """Draw curves of complex values, one for each channel with one input and one output."""
    groups = name_systems(systems)
    w = choose_frequencies([one for group in groups.values() for one in group], omega)
    with sheet(size, title, file) as (figure, axes):
        curves = []
        for label, group, i, j, color in each_channel(groups):
            for k, value in enumerate(responses(group, w)[:, i, j]):
                draw(axes, value, "" if k else label, color)
                curves.append(value)
        finish(axes, curves)
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
    return figure


def plot_nyquist(
    systems: Systems,
    omega: ArrayLike | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot frequency responses in the complex plane, with the point -1.

    Solid for positive frequencies, dashed for negative ones. The circle around -1 is where the
    sensitivity is 2.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, list or dict
        What to plot.
    omega : array (N,), optional
        Frequencies in rad/s. Chosen from poles and zeros by default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> plot_nyquist(tf([2.0], [1.0, 2.0, 1.0])).axes[0].get_xlabel()
    'real part'
    """

    def draw(axes: Axes, value: np.ndarray, label: str, color: str) -> None:
        axes.plot(value.real, value.imag, color=color, label=label or None)
        axes.plot(value.real, -value.imag, color=color, linestyle=(0, (4, 2)), linewidth=0.9)
        inside = np.abs(value) < 5.0
        if inside.any():
            k = int(np.flatnonzero(inside)[len(np.flatnonzero(inside)) // 3])
            if 0 < k < len(value) - 1:
                step = value[k + 1] - value[k]
                axes.annotate(
                    "",
                    (value[k].real + step.real, value[k].imag + step.imag),
                    (value[k].real, value[k].imag),
                    arrowprops={"arrowstyle": "-|>", "color": color},
                )

    def finish(axes: Axes, curves: list[np.ndarray]) -> None:
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        axes.plot(-1.0 + 0.5 * np.cos(angle), 0.5 * np.sin(angle), color="0.6", linewidth=0.8)
        axes.plot(np.cos(angle), np.sin(angle), color="0.75", linewidth=0.7, linestyle=(0, (1, 2)))
        axes.plot([-1.0], [0.0], "+", color="C1", markersize=10, markeredgewidth=2)
        every = np.concatenate(curves)
        near = every[np.abs(every) < max(5.0, np.quantile(np.abs(every), 0.02) * 1.2)]
        points = np.concatenate([near, near.conj(), [-1.6, 0.4]])
        room = 0.08 * max(np.ptp(points.real), np.ptp(points.imag), 1.0)
        axes.set_xlim(points.real.min() - room, points.real.max() + room)
        axes.set_ylim(points.imag.min() - room, points.imag.max() + room)
        axes.set_aspect("equal", adjustable="box")
        axes.set_xlabel("real part")
        axes.set_ylabel("imaginary part")

    return _plot_plane(systems, omega, (6.0, 5.6), title, file, draw, finish)


def plot_nichols(
    systems: Systems,
    omega: ArrayLike | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot gain over phase, with lines of equal closed-loop gain.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, list or dict
        What to plot.
    omega : array (N,), optional
        Frequencies in rad/s. Chosen from poles and zeros by default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> plot_nichols(tf([2.0], [1.0, 2.0, 1.0])).axes[0].get_xlabel()
    'phase (deg)'
    """

    def draw(axes: Axes, value: np.ndarray, label: str, color: str) -> None:
        with np.errstate(divide="ignore"):
            decibels = 20.0 * np.log10(np.abs(value))
        axes.plot(np.rad2deg(unwrap_phase(value)), decibels, color=color, label=label or None)

    def finish(axes: Axes, curves: list[np.ndarray]) -> None:
        phases = np.rad2deg(np.concatenate([unwrap_phase(c) for c in curves]))
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, -60.0), min(high, 60.0))
        left = 360.0 * np.floor(phases.min() / 360.0)
        for center in np.arange(left, phases.max() + 1.0, 360.0):
            angle = np.linspace(1e-3, 2.0 * np.pi - 1e-3, 400)
            for db in (12.0, 6.0, 3.0, 1.0, 0.0, -1.0, -3.0, -6.0, -12.0, -20.0):
                closed = 10.0 ** (db / 20.0) * np.exp(1j * angle)
                loop = closed / (1.0 - closed)
                with np.errstate(divide="ignore"):
                    gain = 20.0 * np.log10(np.abs(loop))
                phase = np.rad2deg(np.angle(loop)) % 360.0 + center
                # Lines above 0 dB are closed; the others go from side to side.
                order = np.arange(len(phase)) if db > 0.0 else np.argsort(phase)
                axes.plot(phase[order], gain[order], color="0.8", linewidth=0.6, zorder=0)
                axes.annotate(
                    f"{db:g} dB",
                    (phase[order][0], gain[order][0]),
                    fontsize="xx-small",
                    color="0.55",
                    annotation_clip=True,
                )
            axes.plot([center + 180.0], [0.0], "+", color="C1", markersize=10, mew=2)
        axes.set_xlim(max(left, phases.min() - 30.0), phases.max() + 30.0)
        axes.set_xlabel("phase (deg)")
        axes.set_ylabel("magnitude (dB)")
        axes.grid(visible=False)

    return _plot_plane(systems, omega, (7.0, 5.4), title, file, draw, finish)


def plot_poles_and_zeros(
    systems: Systems, *, title: str | None = None, file: File = None
) -> Figure:
    """Plot poles as crosses and zeros as circles.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, list or dict
        What to plot. Discrete systems are shown with the unit circle.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> plot_poles_and_zeros(tf([1.0, 2.0], [1.0, 2.0, 5.0])).axes[0].get_xlabel()
    'real part (1/s)'
    """
    groups = name_systems(systems)
    with sheet((6.6, 5.2), title, file) as (figure, axes):
        every = []
        for k, (name, group) in enumerate(groups.items()):
            for values, marker, label in (
                (np.concatenate([np.asarray(poles(s)) for s in group]), "x", name),
                (np.concatenate([np.asarray(zeros(s)) for s in group]), "o", ""),
            ):
                axes.plot(
                    values.real,
                    values.imag,
                    marker,
                    color=f"C{k % 7}",
                    markersize=8,
                    markeredgewidth=1.8,
                    markerfacecolor="none",
                    label=label or None,
                )
                every.append(values)
        draw_complex_plane(axes, np.concatenate(every), next(iter(groups.values()))[0].dt)
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
    return figure


def draw_complex_plane(axes: Axes, values: np.ndarray, dt: Any) -> None:
    """Draw what stands behind poles: rays of damping, or the unit circle."""
    if dt is None:
        draw_plane(axes, np.concatenate([values, [0.0j]]))
        return
    angle = np.linspace(0.0, 2.0 * np.pi, 300)
    axes.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=0.8, zorder=0)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("real part")
    axes.set_ylabel("imaginary part")


def plot_locus_of_gain(
    system: System,
    gains: ArrayLike | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot the root locus: the poles of the closed loop as its gain grows.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        Loop with one input and one output, closed with negative feedback.
    gains : array (k,), optional
        Gains. Chosen from the loop by default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> plot_locus_of_gain(tf([1.0], [1.0, 3.0, 2.0, 0.0])).axes[0].get_xlabel()
    'real part (1/s)'
    """
    from archimedes.control import root_locus

    points, paths = root_locus(system, gains)
    paths = follow_eigenvalues(list(paths))
    with sheet((7.0, 5.4), title, file) as (figure, axes):
        for k in range(paths.shape[1]):
            axes.plot(paths[:, k].real, paths[:, k].imag, color=f"C{k % 7}")
        start, end = np.asarray(poles(system)), np.asarray(zeros(system))
        axes.plot(start.real, start.imag, "x", color="0.3", markersize=8, markeredgewidth=1.8)
        axes.plot(end.real, end.imag, "o", color="0.3", markersize=8, markerfacecolor="none")
        marks = np.concatenate([start, end, [0.0j]])
        reach = 2.5 * max(1e-9, np.abs(marks).max())
        shown = paths[np.abs(paths) <= reach]
        draw_complex_plane(axes, np.concatenate([shown, marks]), system.dt)
        text = f"gain {points[0]:.3g} to {points[-1]:.3g}"
        axes.set_title(text, fontsize="medium", fontweight="normal")
    return figure


def plot_response(
    systems: Systems,
    kind: str = "step",
    t: ArrayLike | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot step or impulse responses, with a panel for each channel.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, Response, list or dict
        What to plot. Systems in one figure must have the same inputs and outputs.
    kind : {"step", "impulse"}, optional
        Which response.
    t : array (N,), optional
        Times in s. Chosen from the slowest system by default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> plot_response(tf([1.0], [1.0, 1.0])).axes[0].get_xlabel()
    'time (s)'
    """
    if isinstance(systems, Response):
        return _draw_responses({"": [systems]}, title, file)
    if kind not in ("step", "impulse"):
        raise ValueError(f"plot: kind={kind!r} is not one of 'step', 'impulse'")
    respond = step_response if kind == "step" else impulse_response
    groups = name_systems(systems)
    every = [ss(one) for group in groups.values() for one in group]
    if t is None and all(one.dt is None for one in every):
        t = max((default_times(one)[0] for one in every), key=lambda times: times[-1])
    drawn = {name: [respond(one, t) for one in group] for name, group in groups.items()}
    return _draw_responses(drawn, title, file)


def _draw_responses(groups: dict[str, list[Response]], title: str | None, file: File) -> Figure:
    first = next(iter(groups.values()))[0]
    y = first.y if first.y.ndim == 3 else first.y[..., None]
    p, m = y.shape[1:]
    size = (3.2 + 3.2 * m if m > 1 else 7.0, 1.2 + 2.2 * p)
    with sheet(size, title, file, p, m, sharex=True, squeeze=False) as (figure, panels):
        for k, (name, group) in enumerate(groups.items()):
            for i in range(p):
                for j in range(m):
                    values = np.stack([np.reshape(r.y, (len(r.t), p, m))[:, i, j] for r in group])
                    draw_band(panels[i, j], group[0].t, values, name, f"C{k % 7}")
        for i in range(p):
            for j in range(m):
                units = first.output_units[i] if first.output_units else ""
                panels[i, j].set_ylabel(first.outputs[i] + (f" ({units})" if units else ""))
                if m > 1 and not i:
                    panels[i, j].set_title(f"from {first.inputs[j]}")
        for axes in panels[-1]:
            axes.set_xlabel("time (s)")
        if panels[0, 0].get_legend_handles_labels()[1]:
            panels[0, 0].legend()
    return figure

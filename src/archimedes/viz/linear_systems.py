"""Pictures of linear systems: Bode, Nyquist, Nichols, singular values, poles and zeros, steps.

Every function takes one system, a list, or a dict of names and systems. Systems of an uncertain
plant are drawn as a band: a batch (what `vmap` returns), a list as an entry of a dict, or a list of
more than `SEVERAL` systems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice
from archimedes.control import (
    DelaySystem,
    FrequencyResponse,
    Response,
    StateSpace,
    TransferFunction,
    frequency_response,
    impulse_response,
    margins,
    poles,
    root_locus,
    ss,
    step_response,
    zeros,
)
from archimedes.control.linear.time_response import default_times
from archimedes.display import axis_label, for_reading
from archimedes.viz.modes import draw_plane, follow_eigenvalues, plot_modes
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
    "plot_systems",
]

System = StateSpace | TransferFunction | DelaySystem
#: A system, a list of them, or names and systems.
Systems = Any
#: Points of a curve over frequency.
POINTS = 800
#: A list of more systems is that of an uncertain one.
SEVERAL = 8
#: What can be drawn of systems.
SYSTEMS = (StateSpace, TransferFunction, DelaySystem, Response, FrequencyResponse)


def are_systems(what: Any) -> bool:
    """Return whether something is a list or dict of what `plot_systems` draws."""
    if isinstance(what, Mapping):
        what = list(what.values())
    if not isinstance(what, (list, tuple)) or not what:
        return False
    return all(isinstance(one, SYSTEMS) or are_systems(one) for one in what)


def split_batch(one: Any) -> list[Any]:
    """Return the systems of a batch, which have a leading axis more."""
    if isinstance(one, (list, tuple)):
        return [part for each in one for part in split_batch(each)]
    plant = getattr(one, "plant", one)
    if isinstance(plant, StateSpace):
        axes = np.ndim(plant.A) - 2
    else:
        axes = np.ndim(plant.num[0][0]) - 1 if isinstance(plant, TransferFunction) else 0
    if axes <= 0:
        return [one]
    count = len(tree.leaves(one)[0])
    return [tree.map(lambda leaf, k=k: leaf[k], one) for k in range(count)]


def name_systems(systems: Systems, kinds: tuple[type, ...] = ()) -> dict[str, list[Any]]:
    """Return systems by name; those of an uncertain one together."""
    if isinstance(systems, Mapping):
        named = dict(systems)
    elif isinstance(systems, (list, tuple)) and len(systems) <= SEVERAL:
        named = {f"system {k + 1}": one for k, one in enumerate(systems)}
    else:
        named = {"": systems}
    for name, one in named.items():
        for each in one if isinstance(one, (list, tuple)) else [one]:
            if not isinstance(each, kinds or SYSTEMS[:3]):
                raise TypeError(
                    f"plot: {name or 'system'!r} must be a StateSpace, a TransferFunction or a "
                    f"DelaySystem, got {type(each).__name__}"
                )
    groups = {name: split_batch(one) for name, one in named.items()}
    for group in groups.values():
        shapes = {(len(one.outputs), len(one.inputs)) for one in group}
        if len(shapes) > 1:
            raise ValueError(
                f"plot: the systems of a band must have as many outputs and inputs, got {shapes}"
            )
    return groups


def choose_frequencies(systems: Sequence[Any], omega: ArrayLike | None) -> np.ndarray:
    """Return frequencies that show what poles and zeros do, two decades beyond them."""
    if omega is not None:
        return np.asarray(omega, dtype=float)
    rates, fastest = [], np.inf
    for system in systems:
        if isinstance(system, DelaySystem):
            values = np.append(poles(system.plant), 1.0 / system.delays)
            fastest = min(fastest, 10.0 * np.abs(values).max())
        else:
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
    # Lightly damped modes get points of their own, and so do the turns of delays.
    near = [w * (1.0 + d) for w in rates[:200] for d in np.linspace(-0.02, 0.02, 21)]
    if any(isinstance(system, DelaySystem) for system in systems):
        near += list(np.linspace(grid[0], high, 4 * POINTS))
    return np.unique(np.concatenate([grid, [w for w in near if grid[0] <= w <= high]]))


def responses(group: Sequence[System], omega: np.ndarray) -> np.ndarray:
    """Return the values (systems, p, m, N) of some systems."""
    return np.stack([frequency_response(one, omega).values for one in group])


def draw_band(
    axes: Axes, x: np.ndarray, values: np.ndarray, label: str, color: str, **style: Any
) -> None:
    """Draw the median of some curves (k, N), and the band that they fill."""
    axes.plot(x, np.median(values, axis=0), color=color, label=label or None, **style)
    if len(values) > 1:
        step: Any = "post" if style else None
        low, high = values.min(axis=0), values.max(axis=0)
        axes.fill_between(x, low, high, color=color, alpha=0.2, lw=0, step=step)


def signal_name(system: Any, kind: str, k: int) -> str:
    """Return the name and unit of a signal; nothing for the only one if it has no name."""
    names, units = getattr(system, f"{kind}s"), getattr(system, f"{kind}_units", ())
    if len(names) == 1 and names[0] in ("u[0]", "y[0]"):
        return ""
    return axis_label(names[k], units[k] if units else "")


def channel_name(system: Any, i: int, j: int) -> str:
    """Return "u to y" for a system with several channels, or with names."""
    pair = signal_name(system, "input", j), signal_name(system, "output", i)
    if len(system.inputs) * len(system.outputs) == 1 and not any(pair):
        return ""
    return f"{pair[0] or 'input'} to {pair[1] or 'output'}"


def each_channel(groups: dict[str, list[Any]]) -> list[tuple[str, list[Any], int, int, str]]:
    """Return name, systems, output, input and colour of all curves."""
    curves: list[tuple[str, list[Any], int, int, str]] = []
    single = all(len(g[0].inputs) * len(g[0].outputs) == 1 for g in groups.values())
    for name, group in groups.items():
        first = group[0]
        for i in range(len(first.outputs)):
            for j in range(len(first.inputs)):
                channel = "" if name and single else channel_name(first, i, j)
                label = ", ".join(part for part in (name, channel) if part)
                curves.append((label, group, i, j, color_of(len(curves))))
    return curves


def color_of(k: int) -> str:
    """Return a colour of the theme, whichever one is in force when the figure is shown."""
    from matplotlib.colors import to_hex

    return to_hex(f"C{k % 7}")


def add_legend(axes: Axes) -> None:
    """Draw a legend where there is something to name."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend()


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
    systems : StateSpace, TransferFunction, DelaySystem, FrequencyResponse, list or dict
        What to plot; a dict gives names, and a batch or a list in it is drawn as a band.
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
    groups = name_systems(systems, (*SYSTEMS[:3], FrequencyResponse))
    every = [one for group in groups.values() for one in group]
    known = [one for one in every if not isinstance(one, FrequencyResponse)]
    w = choose_frequencies(known, omega) if known else np.ones(1)
    with sheet((7.6, 5.4), title, file, 2, sharex=True) as (figure, (above, below)):
        for label, group, i, j, color in each_channel(groups):
            measured = isinstance(group[0], FrequencyResponse)
            at = np.asarray(group[0].omega) if measured else w
            values = np.stack([one.values for one in group]) if measured else responses(group, w)
            with np.errstate(divide="ignore"):
                draw_band(above, at, 20.0 * np.log10(np.abs(values[:, i, j])), label, color)
            draw_band(below, at, np.rad2deg(unwrap_phase(values[:, i, j])), "", color)
        above.set_xscale("log")
        if margin and len(every) == len(known) == 1 and each_channel(groups)[1:] == []:
            mark_margins(above, below, known[0], w)
        for dt in {float(one.dt) for one in known if one.dt is not None}:
            for axes in (above, below):
                axes.axvline(np.pi / dt, color="0.6", linewidth=0.8)
        above.set_ylabel("magnitude (dB)")
        below.set_ylabel("phase (deg)")
        below.set_xlabel("frequency (rad/s)")
        below.yaxis.set_major_locator(_degrees())
        add_legend(above)
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
    found = margins(loop)
    faint: dict[str, Any] = {"color": "0.45", "linewidth": 1.0, "linestyle": (0, (3, 2))}
    below.axhline(-180.0, **faint)
    above.axhline(0.0, **faint)
    notes = []
    if omega[0] < found.gain_frequency < omega[-1]:
        depth = -20.0 * np.log10(found.gain)
        above.plot([found.gain_frequency] * 2, [0.0, depth], color=color_of(1), linewidth=2.0)
        notes.append(f"gain margin {-depth:.3g} dB at {found.gain_frequency:.3g} rad/s")
    if omega[0] < found.phase_frequency < omega[-1]:
        value = frequency_response(loop, omega).values[0, 0]
        phase = np.rad2deg(np.interp(found.phase_frequency, omega, unwrap_phase(value)))
        near = -180.0 + 360.0 * np.round((phase + 180.0) / 360.0)
        below.plot([found.phase_frequency] * 2, [near, phase], color=color_of(1), linewidth=2.0)
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
                draw_band(axes, w, decibels, name if not which else "", color_of(k))
        axes.set_xscale("log")
        axes.set_xlabel("frequency (rad/s)")
        axes.set_ylabel("singular values (dB)")
        add_legend(axes)
    return figure


def _plot_plane(
    systems: Systems,
    omega: ArrayLike | None,
    size: tuple[float, float],
    title: str | None,
    file: File,
    draw: Callable[[Axes, np.ndarray, str, dict[str, Any]], None],
    finish: Callable[[Axes, list[np.ndarray]], None],
) -> Figure:
    """Draw curves of complex values, one for each channel with one input and one output."""
    groups = name_systems(systems)
    w = choose_frequencies([one for group in groups.values() for one in group], omega)
    with sheet(size, title, file) as (figure, axes):
        curves = []
        for label, group, i, j, color in each_channel(groups):
            style = {"color": color} | ({"alpha": 0.25, "linewidth": 0.8} if group[1:] else {})
            for k, value in enumerate(responses(group, w)[:, i, j]):
                draw(axes, value, "" if k else label, style)
                curves.append(value)
        finish(axes, curves)
        add_legend(axes)
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

    def draw(axes: Axes, value: np.ndarray, label: str, style: dict[str, Any]) -> None:
        axes.plot(value.real, value.imag, label=label or None, **style)
        thin = style | {"linestyle": (0, (4, 2)), "linewidth": 0.8}
        axes.plot(value.real, -value.imag, **thin)
        near = np.flatnonzero((np.abs(value) < 2.5) & (np.abs(value) > 0.3))
        if len(near) and "alpha" not in style:
            k = int(near[len(near) // 2])
            ends = [(v.real, v.imag) for v in value[k : k + 2]]
            if len(ends) == 2:
                arrow = {"arrowstyle": "-|>", "color": style["color"], "mutation_scale": 14}
                axes.annotate("", ends[1], ends[0], arrowprops=arrow)

    def finish(axes: Axes, curves: list[np.ndarray]) -> None:
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        axes.plot(-1.0 + 0.5 * np.cos(angle), 0.5 * np.sin(angle), color="0.6", linewidth=0.8)
        axes.plot(np.cos(angle), np.sin(angle), color="0.75", linewidth=0.7, linestyle=(0, (1, 2)))
        axes.plot([-1.0], [0.0], "+", color=color_of(1), markersize=10, markeredgewidth=2)
        # All of the curves, or what is near -1 where they go far away.
        every = np.concatenate([*curves, *(c.conj() for c in curves), [-1.6, 1.0, 1.1j, -1.1j]])
        every = every[np.isfinite(every)]
        if np.abs(every).max() > 8.0:
            every = every[np.abs(every) <= 3.0]
        room = 0.53 * max(np.ptp(every.real), np.ptp(every.imag))
        for limit, part in ((axes.set_xlim, every.real), (axes.set_ylim, every.imag)):
            center = 0.5 * (part.min() + part.max())
            limit(center - room, center + room)
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

    def draw(axes: Axes, value: np.ndarray, label: str, style: dict[str, Any]) -> None:
        with np.errstate(divide="ignore"):
            decibels = 20.0 * np.log10(np.abs(value))
        axes.plot(np.rad2deg(unwrap_phase(value)), decibels, label=label or None, **style)

    def finish(axes: Axes, curves: list[np.ndarray]) -> None:
        shown = [np.rad2deg(unwrap_phase(c))[np.abs(c) > 1e-3] for c in curves]
        phases = np.concatenate([*shown, [-180.0]])
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
            axes.plot([center + 180.0], [0.0], "+", color=color_of(1), markersize=10, mew=2)
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
                size, faint = (8, 1.0) if len(group) == 1 else (5, 0.4)
                axes.plot(
                    values.real,
                    values.imag,
                    marker,
                    color=color_of(k),
                    markersize=size,
                    markeredgewidth=1.8,
                    markerfacecolor="none",
                    alpha=faint,
                    label=label or None,
                )
                every.append(values)
        draw_complex_plane(axes, np.concatenate(every), next(iter(groups.values()))[0].dt)
        add_legend(axes)
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
    systems: Systems,
    gains: ArrayLike | None = None,
    *,
    title: str | None = None,
    file: File = None,
) -> Figure:
    """Plot the root locus: the poles of the closed loop as its gain grows.

    Crosses are the poles of the open loop, circles its zeros. Where a branch enters the unstable
    half of the plane, the gain is written beside it.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, list or dict
        Loops with one input and one output, closed with negative feedback.
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
    groups = name_systems(systems)
    loops = [(name, one) for name, group in groups.items() for one in group]
    with sheet((7.0, 5.4), title, file) as (figure, axes):
        shown = [np.zeros(1, dtype=complex)]
        marks: dict[str, Any] = {"color": "0.3", "markersize": 8, "markeredgewidth": 1.8}
        for k, (name, loop) in enumerate(loops):
            points, paths = root_locus(loop, gains)
            paths = follow_eigenvalues(list(paths))
            for branch in range(paths.shape[1]):
                color = color_of(branch if len(loops) == 1 else k)
                label = name if name and not branch else None
                axes.plot(paths[:, branch].real, paths[:, branch].imag, color=color, label=label)
                mark_instability(axes, points, paths[:, branch], loop.dt)
            start, end = np.asarray(poles(loop)), np.asarray(zeros(loop))
            axes.plot(start.real, start.imag, "x", **marks)
            axes.plot(end.real, end.imag, "o", markerfacecolor="none", **marks)
            ends = np.concatenate([start, end])
            reach = 2.0 * max(1e-9, np.abs(ends).max(initial=0.0))
            shown += [ends, paths[np.abs(paths) <= reach]]
        draw_complex_plane(axes, np.concatenate(shown), loops[0][1].dt)
        add_legend(axes)
    return figure


def mark_instability(axes: Axes, gains: np.ndarray, path: np.ndarray, dt: Any) -> None:
    """Write the gain at which a branch in the upper half becomes unstable."""
    outside = path.real if dt is None else np.abs(path) - 1.0
    size = np.abs(path).max()
    for k in np.flatnonzero((outside[:-1] < -1e-9 * size) & (outside[1:] >= 0.0)):
        if path[k].imag < 0.0:
            continue
        part = -outside[k] / (outside[k + 1] - outside[k])
        gain, at = (v[k] + part * (v[k + 1] - v[k]) for v in (gains, path))
        axes.plot([at.real], [at.imag], ".", color="0.3", markersize=7)
        text: dict[str, Any] = {
            "xytext": (7, -4),
            "textcoords": "offset points",
            "fontsize": "small",
        }
        axes.annotate(f"gain {gain:.3g}", (at.real, at.imag), **text)


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
    check_choice(kind, "plot: kind", RESPONSES)
    if _holds(systems, Response):
        return _draw_responses(name_systems(systems, (Response,)), title, file)
    respond = RESPONSES[kind]
    groups = name_systems(systems)
    if t is None and all(one.dt is None for group in groups.values() for one in group):
        # As long as the slowest system takes; of a band, one in the middle.
        spans = [
            np.median([default_times(_without_delays(one))[0][-1] for one in group])
            for group in groups.values()
        ]
        t = np.linspace(0.0, max(spans), 1001)
    drawn = {name: [respond(one, t) for one in group] for name, group in groups.items()}
    return _draw_responses(drawn, title, file)


#: What `plot_response` draws.
RESPONSES: dict[str, Callable[..., Response]] = {
    "step": step_response,
    "impulse": impulse_response,
}


def _without_delays(system: Any) -> StateSpace:
    return system.pade(1) if isinstance(system, DelaySystem) else ss(system)


def _holds(systems: Any, kind: type) -> bool:
    """Return whether something is of a kind, or a list or dict of such."""
    if isinstance(systems, Mapping):
        systems = list(systems.values())
    if isinstance(systems, (list, tuple)):
        return all(_holds(one, kind) for one in systems)
    return isinstance(systems, kind)


def _draw_responses(groups: dict[str, list[Response]], title: str | None, file: File) -> Figure:
    first = next(iter(groups.values()))[0]
    p, m = first.columns().shape[1:]
    size = (3.2 + 3.2 * m if m > 1 else 7.0, 1.2 + 2.2 * p)
    with sheet(size, title, file, p, m, sharex=True, squeeze=False) as (figure, panels):
        for i in range(p):
            units = first.output_units[i] if first.output_units else ""
            for j in range(m):
                axes = panels[i, j]
                shown = units
                for k, (name, group) in enumerate(groups.items()):
                    values = np.stack([r.columns()[:, i, j] for r in group])
                    values, shown = for_reading(values, units)
                    style: dict[str, Any] = {}
                    if first.discrete:
                        style["drawstyle"] = "steps-post"
                    draw_band(axes, group[0].t, values, name, color_of(k), **style)
                label = signal_name(first, "output", i) and first.outputs[i]
                axes.set_ylabel(axis_label(label or "output", shown))
                cause = signal_name(first, "input", j)
                if cause and not i and first.kind in RESPONSES:
                    axes.set_title(f"{first.kind} of {cause}", fontsize="medium")
        for axes in panels[-1]:
            axes.set_xlabel("time (s)")
        add_legend(panels[0, 0])
    return figure


def plot_systems(
    systems: Systems,
    kind: str | None = None,
    *args: Any,
    title: str | None = None,
    file: File = None,
    **options: Any,
) -> Figure:
    """Plot linear systems: ``arc.plot(system, kind="bode")``.

    Parameters
    ----------
    systems : StateSpace, TransferFunction, DelaySystem, list or dict
        What to plot: one system, several in a list, or a dict of names and systems. A batch of
        systems, as `vmap` returns it, a list in a dict, or a list of more than 8 systems is an
        uncertain system, and drawn as a band.
    kind : str, optional
        ``"modes"``, ``"bode"``, ``"nyquist"``, ``"nichols"``, ``"rlocus"``, ``"pzmap"``,
        ``"step"``, ``"impulse"`` or ``"singular_values"`` (``"sigma"``). By default the modes of
        one `StateSpace`, and the Bode plot of anything else.
    *args
        Frequencies in rad/s, gains of the root locus, or times in s; chosen from the systems by
        default.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.
    **options
        Options of the function that plots: ``margin=False`` for Bode plots.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> slow, fast = tf([1.0], [2.0, 1.0]), tf([1.0], [1.0, 1.0])
    >>> figure = plot_systems({"slow": slow, "fast": fast}, "step")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['slow', 'fast']
    """
    if kind is None:
        named = isinstance(systems, StateSpace) and np.ndim(systems.A) == 2 and systems.nstates
        kind = "modes" if named else "step" if _holds(systems, Response) else "bode"
    check_choice(kind, "plot: kind", KINDS)
    return KINDS[kind](systems, *args, title=title, file=file, **options)


def _plot_kind(kind: str) -> Callable[..., Figure]:
    def draw(systems: Systems, *args: Any, **options: Any) -> Figure:
        return plot_response(systems, kind, *args, **options)

    return draw


#: Who draws which picture of a system.
KINDS: dict[str, Callable[..., Figure]] = {
    "modes": plot_modes,
    "bode": plot_bode,
    "nyquist": plot_nyquist,
    "nichols": plot_nichols,
    "rlocus": plot_locus_of_gain,
    "root_locus": plot_locus_of_gain,
    "pzmap": plot_poles_and_zeros,
    "step": _plot_kind("step"),
    "impulse": _plot_kind("impulse"),
    "singular_values": plot_singular_values,
    "sigma": plot_singular_values,
}

"""Names of the modes of aircraft, found by which states take part in them.

A mode is longitudinal or lateral by the larger sum of the participations of such states. Then:

| motion | mode | name |
|---|---|---|
| lateral | the faster pair | Dutch roll |
| | another pair | lateral phugoid |
| | the fastest real pole | roll |
| | the slowest real pole | spiral |
| | a real pole that is nearly all heading | heading |
| longitudinal | where the pitch rate takes part most: a pair, or a real pole | short period |
| | another pair, if weakly damped | phugoid |
| | another pair that is well damped (relaxed stability) | third oscillatory |
| | a real pole that grows, where the short period is real | pitch divergence |
| | a real pole that is nearly all altitude | altitude |

States are known by the names that `vehicles.linearize` and textbooks give them. Velocities to the
north and east are not counted: which motion they belong to depends on the course. Modes of other
states, such as those of an engine, have no name.

Sources of the words: MIL-F-8785C; B. Stevens, F. Lewis, E. Johnson, *Aircraft Control and
Simulation*, 3rd edition, sections 4.2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

__all__ = ["flight_mode_names"]

LONGITUDINAL = frozenset({"alt", "h", "u", "V", "VT", "w", "alpha", "v_D", "pitch", "theta", "q"})
LATERAL = frozenset({"v", "beta", "roll", "phi", "yaw", "psi", "p", "r"})
#: A mode of which other states have more than this is not one of flight.
OTHERS = 0.6
#: Share of one state from which a mode is a mere integral: of the heading, of the climb.
NEARLY_ALL = 0.7
#: Damping ratio that separates a phugoid from the third oscillatory mode.
WEAK = 0.5


class _Mode(Protocol):
    @property
    def pole(self) -> complex: ...
    @property
    def participation(self) -> dict[str, float]: ...
    @property
    def damping(self) -> float: ...


def flight_mode_names(modes: Sequence[_Mode]) -> list[str]:
    """Return the name of each mode of a flying vehicle, "" for those without one.

    Parameters
    ----------
    modes : sequence of Mode
        All modes of a system. If its states are not those of flight, none has a name.
    """
    states = {name for mode in modes for name in mode.participation}
    names = [""] * len(modes)
    families: tuple[list[int], list[int]] = ([], [])
    for k, mode in enumerate(modes):
        along, aside = _share(mode, LONGITUDINAL), _share(mode, LATERAL)
        if max(along, aside) > 1.0 - OTHERS:
            families[aside > along].append(k)
    if "q" in states and states & {"alpha", "w", "v_D"}:
        _name_longitudinal(modes, families[0], names)
    if {"p", "r"} <= states and states & {"beta", "v", "roll", "phi"}:
        _name_lateral(modes, families[1], names)
    return names


def _share(mode: _Mode, states: Iterable[str]) -> float:
    return sum(mode.participation.get(name, 0.0) for name in states)


def _take_integral(
    modes: Sequence[_Mode], family: list[int], names: list[str], states: tuple[str, ...], name: str
) -> tuple[list[int], list[int]]:
    """Name the mode that is nearly all one state; return the other pairs and real poles."""
    for k in family:
        if not modes[k].pole.imag and _share(modes[k], states) > NEARLY_ALL:
            names[k] = name
    rest = sorted((k for k in family if not names[k]), key=lambda k: -abs(modes[k].pole))
    return [k for k in rest if modes[k].pole.imag], [k for k in rest if not modes[k].pole.imag]


def _name_lateral(modes: Sequence[_Mode], family: list[int], names: list[str]) -> None:
    pairs, real = _take_integral(modes, family, names, ("yaw", "psi"), "heading")
    for k in pairs:
        names[k] = "Dutch roll" if k == pairs[0] else "lateral phugoid"
    if len(real) > 1:
        names[real[0]], names[real[-1]] = "roll", "spiral"
    elif real:
        names[real[0]] = "roll" if _share(modes[real[0]], ("p",)) > 0.5 else "spiral"


def _name_longitudinal(modes: Sequence[_Mode], family: list[int], names: list[str]) -> None:
    pairs, real = _take_integral(modes, family, names, ("alt", "h"), "altitude")
    if not pairs and not real:
        return
    short = max((*pairs, *real), key=lambda k: _share(modes[k], ("q",)))
    names[short] = "short period"
    for k in pairs:
        if k != short:
            names[k] = "phugoid" if modes[k].damping < WEAK else "third oscillatory"
    for k in real:
        if k != short and short in pairs:
            names[k] = "phugoid"
        elif k != short:
            names[k] = "pitch divergence" if modes[k].pole.real > 0.0 else "short period"

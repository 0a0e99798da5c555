"""Random numbers drawn while a function was recorded: generators whose state has changed.

Other threads may draw from the same generators meanwhile. A changed state therefore has the
recording repeated, with Python reporting each line of this thread: a draw of the function's own
shows up on the same line each time. See docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from archimedes.errors import TraceError
from archimedes.function.identity.data_places import GeneratorPlace
from archimedes.function.identity.places import Place
from archimedes.symbolic.core.trace import attempt
from archimedes.symbolic.core.user_frames import frame_line, is_user_code
from archimedes.symbolic.recorded.nondeterminism import REMEDY, module_generators, refusal

__all__ = ["refuse_draws", "shared_generators"]


def shared_generators() -> list[GeneratorPlace]:
    """Return the states of the generators that ``np.random`` and ``random`` draw from."""
    return [GeneratorPlace(name, value) for name, value in module_generators()]


def refuse_draws(changed: Sequence[Place], replay: Callable[[], Any]) -> list[Place]:
    """Refuse draws that a function made itself; return the changes that are none.

    ``replay`` records the function once more.
    """
    for place in changed:
        if isinstance(place, GeneratorPlace):
            line = _repeated_line(place, replay)
            if line is not None:
                for other in changed:
                    other.restore()
                kind = type(place.value).__name__
                what = refusal(f"{place.path} ({kind})").replace("was called", "was drawn from")
                raise TraceError(f"{what}, at\n  {line}\n{REMEDY}")
    return [place for place in changed if not isinstance(place, GeneratorPlace)]


def _repeated_line(place: GeneratorPlace, replay: Callable[[], Any]) -> str | None:
    """Return the line on which the function moves a generator each time; None if it does not."""
    reached = place.fresh()
    line = _drawing_line(place, replay)
    if line is not None:
        return line if _drawing_line(place, replay) == line else None
    if not reached.same():
        return None  # another thread goes on drawing
    # Setting a state, with a seed, shows only where there was another.
    place.restore()
    line = _drawing_line(place, replay)
    reached.restore()
    return line


def _drawing_line(place: GeneratorPlace, replay: Callable[[], Any]) -> str | None:
    """Return the line of a user's code on which a generator moves as the function is recorded."""
    state = place.read(place.value)
    line = found = None

    def look(frame: FrameType | None) -> None:
        nonlocal state, line, found
        if found is None:
            now = place.read(place.value)
            if now != state:
                found = line
            state = now
            line = None if frame is None else frame_line(frame)

    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        if not is_user_code(frame):
            return None
        look(frame)
        return step

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        outer: FrameType | None = frame
        if event == "return":
            outer = frame.f_back
            while outer is not None and not is_user_code(outer):
                outer = outer.f_back
        look(outer)
        return step

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        # The recording succeeded before: what goes wrong now has been drawn otherwise.
        with attempt(), contextlib.suppress(Exception):
            replay()
    finally:
        sys.settrace(before)
    look(None)
    return found

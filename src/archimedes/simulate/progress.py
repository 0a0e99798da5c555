"""Telling how far a solve has got."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Monitor = Callable[[float, float], None]


def monitor_of(progress: bool | Monitor | None) -> AbstractContextManager[Monitor | None]:
    """Return what a driver calls with (part done, time): a user's function, or a tqdm bar.

    >>> with monitor_of(None) as monitor:
    ...     print(monitor)
    None
    """
    if progress is None or progress is False:
        return nullcontext()
    return _bar() if progress is True else nullcontext(progress)


@contextmanager
def _bar() -> Iterator[Monitor]:
    from tqdm.auto import tqdm

    with tqdm(total=1.0, bar_format="{l_bar}{bar}| {elapsed}<{remaining}, {postfix}") as bar:

        def show(part: float, t: float) -> None:
            bar.set_postfix_str(f"t = {t:.6g}", refresh=False)
            bar.update(min(part, 1.0) - bar.n)

        yield show

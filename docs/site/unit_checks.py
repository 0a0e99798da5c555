"""Checks the units of what pages and examples record while they run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["units_checked"]

#: Pages that show mistakes on purpose.
MISTAKES = ("errors.md", "units.md")


@contextlib.contextmanager
def units_checked(path: Path) -> Iterator[list[str]]:
    """Check every function of a file that is recorded in the block; yield what was checked.

    Functions that cannot be recorded with the arguments of their first call are listed with the
    reason. A finding is an error.
    """
    from archimedes.analysis.observed_calls import watch_calls
    from archimedes.analysis.units.checking import check_units

    told: list[str] = []
    with watch_calls(str(path)) as calls:
        yield told
    found = []
    for call in calls if path.name not in MISTAKES else ():
        try:
            report = check_units(call.function)(*call.positional)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            told.append(f"{call.name}: not checked, {type(error).__name__}: {reason}")
            continue
        told.append(f"{call.name}: checked")
        found += map(str, report)
    if found:
        raise AssertionError("units do not fit:\n" + "\n".join(found))

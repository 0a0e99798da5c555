"""Entries of the catalogue, and how each is judged.

An entry is a script that takes ``run`` and returns what it saw::

    @entry("mutable state")
    def a_gain_that_changes(run):
        class Gain:
            k = 2.0

        gain = Gain()
        f = run(lambda x: gain.k * x)
        first = f(3.0)
        gain.k = 5.0
        return first, f(3.0)

Eagerly, ``run`` gives the function back; recorded, it is ``arc.compile`` (or what the entry
asks for with ``through=``, such as ``lambda f, backend: arc.vmap(f)``). Values must be the same
in structure, shape, dtype and number. Where the honest answer is an error::

    @entry("branches", error=TraceError, says=["arc.cond"])
    def a_branch_on_a_value(run):
        return run(lambda x: x if x > 0 else -x)(np.array(2.0))

the recorded script must raise it; its message holds every text of ``says`` and, unless
``line=False`` (errors about an argument), the name of the file that holds the user's line.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree

__all__ = ["BACKENDS", "Entry", "catalogue", "check", "eager_value", "entry"]

BACKENDS = ("interpreter", "llvm")
_found: list[Entry] = []


def compiled(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """Record a function: what ``run`` is unless an entry says otherwise."""
    return arc.compile(function, backend=backend)


@dataclass(frozen=True)
class Entry:
    """One form of misuse; see the module's text."""

    script: Callable[[Callable[..., Any]], Any]
    group: str
    through: Callable[[Callable[..., Any], str], Callable[..., Any]] = compiled
    error: type[Exception] | None = None
    eager_error: type[Exception] | None = None
    says: tuple[str, ...] = ()
    line: bool = True
    dtypes: bool = True
    rtol: float = 1e-12

    @property
    def name(self) -> str:
        """The script's name, with its group."""
        return f"{self.group}: {self.script.__name__.replace('_', ' ')}"

    @property
    def file(self) -> str:
        """The file of the script, as errors name it."""
        return Path(self.script.__code__.co_filename).name


def entry(
    group: str,
    *,
    through: Callable[[Callable[..., Any], str], Callable[..., Any]] = compiled,
    error: type[Exception] | None = None,
    eager_error: type[Exception] | None = None,
    says: Sequence[str] = (),
    line: bool = True,
    dtypes: bool = True,
    rtol: float = 1e-12,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """List a script in the catalogue.

    ``eager_error`` is raised by the eager script (plain NumPy refuses too); ``dtypes=False``
    compares numbers only (Python and NumPy scalars are taken as equal in any case).
    """
    if error is not None and not says:
        raise ValueError("an entry with an error says which texts teach the remedy: says=[...]")

    def listed(script: Callable[..., Any]) -> Callable[..., Any]:
        made = Entry(script, group, through, error, eager_error, tuple(says), line, dtypes, rtol)
        _found.append(made)
        return script

    return listed


def catalogue() -> list[Entry]:
    """Return all entries, from every ``entries_*.py`` beside this file."""
    folder = Path(__file__).parent
    for module in sorted(m.name for m in pkgutil.iter_modules([str(folder)])):
        if module.startswith("entries_"):
            importlib.import_module(f"tests.misuse.{module}")
    return list(_found)


def eager_value(item: Entry) -> Any:
    """Run an entry eagerly and return its value, or None where NumPy refuses as it says."""
    expected, refused = _run(item, lambda function: function)
    if item.eager_error is not None:
        assert isinstance(refused, item.eager_error), f"eager: {refused!r}"
    elif refused is not None:
        raise refused
    return expected


def check(item: Entry, backend: str, expected: Any) -> str:
    """Run an entry recorded, compare, and return what came of it in one line."""
    value, error = _run(item, lambda function: item.through(function, backend))
    if item.error is None:
        if error is not None:
            raise error
        _compare(expected, value, item)
        return "same value"
    assert error is not None, f"recorded: no error, but {value!r} (eager: {expected!r})"
    assert isinstance(error, item.error), f"recorded: {error!r}"
    message = str(error)
    missing = [text for text in item.says if text not in message]
    if item.line and item.file not in message:
        missing.append(f"the line ({item.file})")
    assert not missing, f"the message lacks {missing}: {message}"
    return f"{type(error).__name__}: {message.splitlines()[0]}"


def _run(item: Entry, run: Callable[..., Any]) -> tuple[Any, Exception | None]:
    try:
        return item.script(run), None
    except Exception as error:
        return None, error


def _compare(expected: Any, value: Any, item: Entry) -> None:
    wanted, structure = tree.flatten(expected)
    got, made = tree.flatten(value)
    assert structure == made, f"structure {made}, eager {structure}"
    for a, b in zip(wanted, got):
        x, y = np.asarray(a), np.asarray(b)
        assert x.shape == y.shape, f"shape {y.shape}, eager {x.shape}"
        if item.dtypes:
            assert x.dtype == y.dtype, f"dtype {y.dtype}, eager {x.dtype}"
        if x.dtype.kind in "fc":
            np.testing.assert_allclose(y, x, rtol=item.rtol, atol=1e-300)
        else:
            np.testing.assert_array_equal(y, x)

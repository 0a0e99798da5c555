"""What a conformance form is, and the list of all of them.

A form is a NumPy function with concrete arguments; every argument is traced when it is compiled.
Most forms are one expression over the sample names of ``samples.py`` and are named by their text:
``"np.sin(x)"`` is the function ``lambda x: np.sin(x)`` called with sample ``x``. Programs of
several statements are functions whose parameters carry sample names.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .samples import SAMPLES

__all__ = ["Form", "Tolerance", "forms", "programs_of", "sample_names"]


@dataclass(frozen=True)
class Tolerance:
    """How far a traced float may be from the eager one.

    ``ulps`` counts machine epsilons of the result's dtype, relative to the value itself or, when
    ``scaled``, to the largest magnitude in the result (sums and linear algebra lose small entries
    to large ones). Zero means the same bits, signs of zeros included.
    """

    ulps: float = 0.0
    scaled: bool = False


EXACT = Tolerance()
ELEMENTARY = Tolerance(6.0)
SUMS = Tolerance(32.0, scaled=True)
LINALG = Tolerance(1000.0, scaled=True)


@dataclass(frozen=True)
class Form:
    """One NumPy form: ``fn(*args)`` eager is the truth of ``compile(fn)(*args)``."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    group: str
    tolerance: Tolerance

    def call_args(self) -> tuple[Any, ...]:
        """Fresh copies, because a form may write into its arguments."""
        return tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in self.args)


def sample_names(text: str) -> list[str]:
    """The sample names an expression uses, in the order of their first appearance."""
    used = [n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)]
    return [name for name in dict.fromkeys(used) if name in SAMPLES]


def forms(group: str, tolerance: Tolerance, rows: str | Iterable[Callable[..., Any]]) -> list[Form]:
    """Forms of one group, from lines of text or from functions.

    >>> [form.name for form in forms("demo", EXACT, "x + 1\\nx * s")]
    ['x + 1', 'x * s']
    """
    made = []
    for row in rows.splitlines() if isinstance(rows, str) else rows:
        if callable(row):
            names, fn, name = list(inspect.signature(row).parameters), row, row.__name__
        elif row.strip() and not row.startswith("#"):
            name, names = row.strip(), sample_names(row.strip())
            fn = eval(f"lambda {', '.join(names)}: {name}", {"np": np})
        else:
            continue
        made.append(Form(name, fn, tuple(SAMPLES[n] for n in names), group, tolerance))
    return made


def programs_of(
    namespace: dict[str, Any], without: Iterable[Callable[..., Any]] = ()
) -> list[Callable[..., Any]]:
    """The functions that a module defines, in their order, except those given."""
    mine = [v for v in namespace.values() if inspect.isfunction(v)]
    return [v for v in mine if v.__module__ == namespace["__name__"] and v not in without]

"""How long the program of a NumPy form is, on samples stretched to any size."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import archimedes as arc
from archimedes.graph import Graph
from tests.conformance.forms import Form
from tests.conformance.samples import SAMPLES

__all__ = ["code_size", "sizes", "stretched"]


def stretched(name: str, n: int, m: int) -> Any:
    """Return a sample with n elements for its 5 or 7, and m rows and columns for its 3 or 4."""
    sample = SAMPLES[name]
    shape = {5: n, 7: n, 4: m + 1, 3: m, 2: 2}
    full_shape = tuple(shape[k] for k in np.shape(sample))
    if not full_shape:
        return sample
    values = np.resize(sample, full_shape)
    if values.dtype.kind == "f":
        # No ties: those of a sample repeated would be special cases.
        values = values * (1 + np.arange(values.size).reshape(full_shape) / (1000 * values.size))
        values = values.astype(sample.dtype)
    if name in "ASE":
        values = values + 4 * m * np.eye(m)
    if name == "S":
        values = values + values.T
    return values


def code_size(graph: Graph) -> int:
    """Return the nodes of a program and of its bodies, and what its regions read and copy."""
    total = 0
    for i in graph.live():
        total += 1
        region = graph.regions.get(i)
        if region is not None:
            total += len(region.inputs) + len(getattr(region, "moves", ()))
            total += sum(map(code_size, region.bodies))
    return total


def sizes(form: Form, names: list[str], small: Any, large: Any) -> tuple[int, int] | None:
    """Return the lengths of a form's program at two sizes; None where NumPy does not take them."""
    found = []
    for n, m in (small, large):
        args = [stretched(name, n, m) for name in names]
        if not _works(form.fn, args):
            return None
        found.append(code_size(arc.compile(form.fn).recording(*args).blocks))
    return found[0], found[1]


def _works(function: Callable[..., Any], args: list[Any]) -> bool:
    """Tell whether NumPy itself takes arguments of these sizes."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in args))
        except (ValueError, IndexError, TypeError, np.linalg.LinAlgError):
            return False
    return True

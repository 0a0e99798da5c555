"""All results whose bits are compared, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from . import models, programs, solves
from .result import Result

__all__ = ["GROUPS", "results"]

GROUPS: dict[str, Callable[[], Iterator[Result]]] = {
    "programs": programs.catalogue,
    "ops": programs.operations,
    "spatial": models.attitudes,
    "environment": models.surroundings,
    "f16": models.aircraft,
    "vehicles": models.vehicles,
    "robot": models.robots,
    "solves": solves.simulations,
    "minima": solves.minima,
    "filters": solves.filters,
    "draws": solves.draws,
}


def results(names: Sequence[str] = ()) -> Iterator[Result]:
    """Return the results whose names begin like one of these; all if there are none."""
    for group, made in GROUPS.items():
        if not names or any(name.split("/")[0] == group for name in names):
            for result in made():
                name = f"{group}/{result.name}"
                if not names or name.startswith(tuple(names)):
                    yield Result(name, result.ways)

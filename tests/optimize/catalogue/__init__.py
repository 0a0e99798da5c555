"""The catalogue of published nonlinear programs with known minima, by name."""

from __future__ import annotations

from tests.optimize.catalogue import cutest, hock_schittkowski, min_max, more_garbow_hillstrom
from tests.optimize.catalogue.problem import Problem

__all__ = ["PROBLEMS", "Problem"]

PROBLEMS: dict[str, Problem] = {
    **{f"HS{number}": problem for number, problem in hock_schittkowski.PROBLEMS.items()},
    **more_garbow_hillstrom.PROBLEMS,
    **min_max.PROBLEMS,
    **cutest.PROBLEMS,
}

"""Methods with a loop of their own, beside the kernels: what they are, what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.errors import ArchimedesError
from archimedes.simulate.methods.method_table import Method, Step
from archimedes.simulate.solves.collectors import Result
from archimedes.simulate.stepping.solve_kernels import Kernels

__all__ = ["MOST_STEPS", "method_outside", "refuse_events"]

#: Steps of a solve, unless ``max_steps`` says more: made in Python they take some 0.2 ms each, and
#: one that chatters at a switch should end within the patience of whoever waits for it.
MOST_STEPS = 100_000


def refuse_events(kernels: Kernels, name: str) -> None:
    """Raise where a solve is to watch for events."""
    if kernels.plan.events is not None:
        raise ArchimedesError(
            f"method={name!r} has no events: use a built-in method, for stiff systems "
            "method='rodas5p'"
        )


def _outside(name: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise ArchimedesError(
            f"method={name!r} runs outside the kernels, in solve_ode on numbers only: inside "
            "recorded functions, derivatives and batches use method='rodas5p'"
        )

    return refuse


def method_outside(name: str, drive: Callable[..., Result]) -> Method:
    """Return the description of a method whose ``drive`` makes all its steps."""
    refuse: Callable[..., Any] = _outside(name)
    step: Callable[..., Step] = refuse
    return Method(
        name=name,
        order=5,
        error_order=5,
        dense_order=0,
        dense_degree=0,
        start=refuse,
        step=step,
        dense=refuse,
        stiff=True,
        drive=drive,
        most_steps=MOST_STEPS,
    )

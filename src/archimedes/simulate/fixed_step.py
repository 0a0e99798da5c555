"""``discretize``: a continuous model as a step function of fixed length."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from archimedes.checks import check_whole
from archimedes.function import Compiled, fori_loop
from archimedes.graph.program import origins
from archimedes.simulate.methods.method_table import Method
from archimedes.simulate.problem import argument_checks, state_layout
from archimedes.simulate.solves.initial_value_problem import find_method
from archimedes.simulate.stepping.trial_step import Plan

if TYPE_CHECKING:
    from archimedes.typing import Scalar, Tree

__all__ = ["discretize"]


def discretize(
    func: Callable[..., Any] | None = None,
    dt: float | None = None,
    method: str | Method = "rk4",
    n_steps: int = 1,
    name: str | None = None,
    *,
    static_argnames: str | Sequence[str] | None = None,
    project: bool = True,
    check_units: bool = False,
) -> Any:
    """Turn ``dx/dt = func(t, x, *args)`` into a step function ``step(t, x, *args)``.

    Parameters
    ----------
    func : callable, optional
        The model, as in :func:`solve_ode`. Without it, `discretize` returns a decorator.
    dt : float
        Length of the step, in the unit of time. The arguments are held constant over it.
    method : str, optional
        Name of the integration method, ``"rk4"`` by default.
    n_steps : int, optional
        Number of equal integration steps that `dt` is divided into, 1 by default.
    name : str, optional
        Name of the function in messages.
    static_argnames : str or sequence of str, optional
        Names of arguments that are part of the compiled program.
    project : bool, optional
        Normalize quaternions and other structs with a method ``normalize()`` after each step. True
        by default.
    check_units : bool, optional
        Check the units of the model when the step is first called with arguments of a kind, as
        :func:`solve_ode` does, and raise UnitsError where they do not fit. False by default.

    Returns
    -------
    Compiled
        ``step(t, x, *args)``, which returns the state at ``t + dt`` with the structure of ``x``.

    Examples
    --------
    >>> step = discretize(lambda t, x, u: u - x, dt=0.1)
    >>> round(float(step(0.0, 1.0, 0.0)), 7)
    0.9048375
    """
    if func is None:
        options: dict[str, Any] = {"static_argnames": static_argnames, "project": project}
        options["check_units"] = check_units
        return lambda func: discretize(func, dt, method, n_steps, name, **options)
    if dt is None:
        raise ValueError("discretize: give the length of a step, dt=...")
    n_steps = check_whole(n_steps, "discretize: n_steps", 1)
    state_layout.check_time_first(func)
    h = argument_checks.check_step("dt", dt) / n_steps
    chosen = find_method(method)
    derivative = (
        func if isinstance(func, Compiled) else Compiled(func, static_argnames=static_argnames)
    )

    def step(t: Scalar, x: Tree, *args: Any) -> Any:
        if check_units and origins.kind is None:
            from archimedes.analysis.units.rates import check_rates

            check_rates(func, t, x, args, static_argnames).raise_if_any()
        state = state_layout.as_state(x)
        layout = state_layout.layout_of(state)
        projection = state_layout.projection(layout) if project else None
        plan = Plan(derivative, layout, chosen, projection)
        f = plan.derivative(args)

        def one(k: Scalar, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            now, memory = carry
            result = chosen.step(f, t + k * h, now, h, memory)
            if plan.project is None:
                return result.x, result.memory
            new = plan.project(result.x)
            return new, chosen.start(f, t + (k + 1) * h, new)

        flat = layout.pack(state)
        if origins.kind is not None:  # a check of units: only those of the state count
            from archimedes.analysis.units.rates import require_rates

            return layout.unpack(require_rates(f, t, flat))
        carry = (flat, chosen.start(f, t, flat))
        last, _ = one(0, carry) if n_steps == 1 else fori_loop(0, n_steps, one, carry)
        return layout.unpack(last)

    title = name or f"discretize_{derivative.name}"
    step.__name__ = title
    step.__signature__ = inspect.signature(func)  # type: ignore[attr-defined]
    return Compiled(step, name=title, static_argnames=static_argnames, watch=(derivative,))

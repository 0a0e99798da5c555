"""Functions whose generated C is compared, with CasADi's versions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import archimedes as arc
from benchmarks.kernels_peers import casadi_function
from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

__all__ = ["Case", "cases"]

STEPS = 100


def body_rate(x, F_B, M_B, m, J_B):
    return rigid_body(x, F_B, M_B, m, J_B)


def body_step(x, F_B, M_B, m, J_B):
    return x + 0.01 * rigid_body(x, F_B, M_B, m, J_B)


def body_steps(x, F_B, M_B, m, J_B):
    return arc.scan(lambda c, _: (body_step(c, F_B, M_B, m, J_B), None), x, length=STEPS)[0]


_ARM = arm()


def arm_acceleration(q, qd, tau):
    return articulated_body(_ARM, q, qd, tau)


def filter_step(state, sample):
    """A second-order section in transposed direct form II, a low-pass at a tenth of the rate."""
    y = 0.0675 * sample + state[0]
    s0 = 0.1349 * sample + 1.1430 * y + state[1]
    return np.array([s0, 0.0675 * sample - 0.4128 * y]), y


def filter_steps(state, samples):
    return arc.scan(filter_step, state, samples)


def _filter_flat(state, sample):
    after, y = filter_step(state, sample)
    return np.concatenate([after, y[None]])


def _casadi_of(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    graph = arc.compile(function).graph(*args)
    return casadi_function(graph, [np.size(a) for a in args])


def _unrolled_body(args: Sequence[Any]) -> Any:
    import casadi as ca

    step = _casadi_of(body_step, args)
    given = [ca.SX.sym(f"x{k}", np.size(a)) for k, a in enumerate(args)]
    x = given[0]
    for _ in range(STEPS):
        x = step(x, *given[1:])
    return ca.Function("model", given, [x])


def _called_body(args: Sequence[Any]) -> Any:
    import casadi as ca

    step = _casadi_of(body_step, args)
    given = [ca.MX.sym(f"x{k}", np.size(a)) for k, a in enumerate(args)]
    x = given[0]
    for _ in range(STEPS):
        x = step(x, *given[1:])
    return ca.Function("model", given, [x])


def _filter_casadi(kind: str) -> Callable[[Sequence[Any]], Any]:
    def make(args: Sequence[Any]) -> Any:
        import casadi as ca

        symbol = ca.SX if kind == "unrolled" else ca.MX
        step = _casadi_of(_filter_flat, (args[0], args[1][0]))
        state, samples = symbol.sym("state", 2), symbol.sym("samples", STEPS)
        x, ys = state, []
        for k in range(STEPS):
            after = step(x, samples[k])
            x, y = after[:2], after[2]
            ys.append(y)
        return ca.Function("model", [state, samples], [ca.vertcat(x, *ys)])

    return make


@dataclass(frozen=True)
class Case:
    """A function, a point, and makers of CasADi's versions: one graph, or calls of a step."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    casadi: dict[str, Callable[[Sequence[Any]], Any]]
    batch: int


def _straight(function: Callable[..., Any]) -> dict[str, Callable[[Sequence[Any]], Any]]:
    return {"straight line": lambda args: _casadi_of(function, args)}


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(0)
    body = rigid_body_point(rng)
    joints = tuple(rng.normal(size=7) for _ in range(3))
    samples = (np.zeros(2), rng.normal(size=STEPS))
    return {
        "6-dof rate": Case(body_rate, body, _straight(body_rate), 200),
        "7-joint ABA": Case(arm_acceleration, joints, _straight(arm_acceleration), 100),
        f"{STEPS} steps, 6-dof": Case(
            body_steps, body, {"unrolled": _unrolled_body, "calls": _called_body}, 4
        ),
        f"{STEPS} steps, filter": Case(
            filter_steps,
            samples,
            {"unrolled": _filter_casadi("unrolled"), "calls": _filter_casadi("calls")},
            20,
        ),
    }

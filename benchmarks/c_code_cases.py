"""Functions whose generated C is compared, with CasADi's versions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import archimedes as arc
from benchmarks.kernels_peers import casadi_function
from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

__all__ = ["Case", "cases"]

STEPS = 100
#: Steps that a function of CasADi's nested form makes; ``Function.mapaccum`` takes ten as well.
INNER = 10


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


def _repeated(step: Any, args: Sequence[Any], count: int, symbol: Any) -> Any:
    """Apply a step to the first argument several times: one graph (SX), or calls of it (MX)."""
    import casadi as ca

    given = [symbol.sym(f"x{k}", np.size(a)) for k, a in enumerate(args)]
    x = given[0]
    for _ in range(count):
        x = step(x, *given[1:])
    return ca.Function("model", given, [x])


def _filtered(step: Any, count: int, width: int, symbol: Any) -> Any:
    """Filter several blocks of samples, one after the other: state and outputs."""
    import casadi as ca

    state, samples = symbol.sym("state", 2), symbol.sym("samples", count * width)
    x, outputs = state, []
    for k in range(count):
        x, y = step(x, samples[k * width : (k + 1) * width])
        outputs.append(y)
    return ca.Function("model", [state, samples], [x, ca.vertcat(*outputs)])


def _joined(function: Any) -> Any:
    """Join the results of a function of state and samples, as a function of one result."""
    import casadi as ca

    given = [ca.MX.sym(f"x{k}", function.size1_in(k)) for k in range(2)]
    return ca.Function("model", given, [ca.vertcat(*function(*given))])


def _body_casadi(args: Sequence[Any], kind: str) -> Any:
    import casadi as ca

    step = _casadi_of(body_step, args)
    if kind == "nested calls":
        return _repeated(_repeated(step, args, INNER, ca.MX), args, STEPS // INNER, ca.MX)
    return _repeated(step, args, STEPS, ca.SX if kind == "unrolled" else ca.MX)


def _filter_casadi(args: Sequence[Any], kind: str) -> Any:
    import casadi as ca

    flat = _casadi_of(_filter_flat, (args[0], args[1][0]))
    state, sample = ca.SX.sym("state", 2), ca.SX.sym("sample")
    after = flat(state, sample)
    step = ca.Function("step", [state, sample], [after[:2], after[2]])
    if kind == "nested calls":
        inner = _filtered(step, INNER, 1, ca.MX)
        return _joined(_filtered(inner, STEPS // INNER, INNER, ca.MX))
    if kind == "calls":
        return _joined(_filtered(step, STEPS, 1, ca.MX))
    return _joined(_filtered(step, STEPS, 1, ca.SX))


@dataclass(frozen=True)
class Case:
    """A function, a point, and makers of CasADi's versions: one graph, or calls of a step.

    CasADi has no loops of this kind. ``Function.fold`` and ``Function.mapaccum`` nest functions
    that call the step as well, and copy more: what they give is larger than ``nested calls``.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    casadi: dict[str, Callable[[Sequence[Any]], Any]]
    batch: int


def _straight(function: Callable[..., Any]) -> dict[str, Callable[[Sequence[Any]], Any]]:
    return {"straight line": lambda args: _casadi_of(function, args)}


def _looped(make: Callable[..., Any]) -> dict[str, Callable[[Sequence[Any]], Any]]:
    return {kind: partial(make, kind=kind) for kind in ("unrolled", "calls", "nested calls")}


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(0)
    body = rigid_body_point(rng)
    joints = tuple(rng.normal(size=7) for _ in range(3))
    samples = (np.zeros(2), rng.normal(size=STEPS))
    return {
        "6-dof rate": Case(body_rate, body, _straight(body_rate), 200),
        "7-joint ABA": Case(arm_acceleration, joints, _straight(arm_acceleration), 100),
        f"{STEPS} steps, 6-dof": Case(body_steps, body, _looped(_body_casadi), 4),
        f"{STEPS} steps, filter": Case(filter_steps, samples, _looped(_filter_casadi), 20),
    }

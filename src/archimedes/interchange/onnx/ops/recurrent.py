"""Recurrent networks: RNN, GRU and LSTM, as scans over their steps.

Legend: X (steps, batch, inputs); W, R, B weights of inputs, of the hidden state, and biases, one
for each direction; h the hidden state and c the cell, (batch, hidden).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import scan
from archimedes.interchange.onnx.ops.elementwise import hard_sigmoid, sigmoid, softplus
from archimedes.interchange.onnx.ops.shapes import reverse_steps
from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


#: Activations by name in lower case, with the defaults of alpha and beta.
_ACTIVATIONS: dict[str, tuple[Callable[[Any, Any, Any], Any], Any, Any]] = {
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0.0))), 1.0, None),
    "hardsigmoid": (hard_sigmoid, 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, None),
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: sigmoid(x), None, None),
    "softplus": (lambda x, a, b: softplus(x), None, None),
    "softsign": (lambda x, a, b: x / (1.0 + np.abs(x)), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, np.zeros((), x.dtype)), 1.0, None),
}


def _activations(node: Node, defaults: list[str], directions: int) -> list[list[Any]]:
    """Return the activations of each direction; alphas and betas go to those that have some."""
    names = [str(n).lower() for n in node.get("activations", defaults * directions)]
    if len(names) != len(defaults) * directions or any(n not in _ACTIVATIONS for n in names):
        raise node.error(f"activations={names}")
    alphas, betas = list(node.get("activation_alpha", [])), list(node.get("activation_beta", []))
    functions: list[Any] = []
    for name in names:
        function, alpha, beta = _ACTIVATIONS[name]
        alpha = alphas.pop(0) if alpha is not None and alphas else alpha
        beta = betas.pop(0) if beta is not None and betas else beta
        functions.append(lambda x, f=function, a=alpha, b=beta: f(x, a, b))
    return [functions[k : k + len(defaults)] for k in range(0, len(names), len(defaults))]


def _run(
    node: Node, cell: Callable[..., Any], gates: int, states: int, inputs: tuple[Any, ...]
) -> Any:
    """Return the outputs of all steps, and the last states, of all directions.

    ``cell(f, xw, states, (r, rb), p, limit)`` returns the next states from the activations ``f``,
    the part of the gates that the inputs give, weights R and their bias, the peepholes, and the
    limit of what goes into activations.
    """
    every: list[Any] = [*inputs, *[None] * (8 - len(inputs))]
    x, w, r, b, lengths, *rest = every
    first_states, peepholes = rest[:states], rest[states] if len(rest) > states else None
    layout = node.get("layout", 0)
    if layout:
        x = np.swapaxes(x, 0, 1)
        first_states = [s if s is None else np.swapaxes(s, 0, 1) for s in first_states]
    steps, batch = np.shape(x)[:2]
    directions, hidden = np.shape(r)[0], np.shape(r)[2]
    way = node.get("direction", "forward")
    if directions != (2 if way == "bidirectional" else 1) or hidden < 1:
        raise node.error(f"weights R of shape {np.shape(r)} with direction {way!r}")
    if np.shape(w) != (directions, gates * hidden, np.shape(x)[2]):
        raise node.error(f"weights W of shape {np.shape(w)} for inputs {np.shape(x)}")
    if np.shape(r) != (directions, gates * hidden, hidden):
        raise node.error(f"weights R of shape {np.shape(r)}")
    defaults = ["sigmoid", "tanh", "tanh"] if gates == 4 else ["sigmoid", "tanh"]
    functions = _activations(node, ["tanh"] if gates == 1 else defaults, directions)
    node.limit((steps, batch, directions * gates * hidden))
    limit = node.get("clip")
    ys, lasts = [], []
    for d in range(directions):
        backwards = way == "reverse" or d == 1
        sequence = reverse_steps(x, lengths) if backwards else x
        bias = np.zeros(2 * gates * hidden, x.dtype) if b is None else b[d]
        given = sequence @ w[d].T + bias[: gates * hidden]
        start = tuple(
            np.zeros((batch, hidden), x.dtype) if s is None else s[d] for s in first_states
        )
        weights = (r[d].T, bias[gates * hidden :])
        peephole = None if peepholes is None else peepholes[d]

        def step(carry: Any, now: Array, f: Any = functions[d], weights: Any = weights) -> Any:
            k, old = carry
            new = cell(f, now, old, weights, peephole, limit)  # noqa: B023
            out = new[0]
            if lengths is not None:
                active = (k < lengths)[:, None]
                new = tuple(np.where(active, a, o) for a, o in zip(new, old))
                out = np.where(active, out, np.zeros((), x.dtype))
            return (k + 1, new), out

        (_, last), out = scan(step, (np.zeros((), np.int64), start), given)
        ys.append(reverse_steps(out, lengths) if backwards else out)
        lasts.append(last)
    y = np.stack(ys, axis=1)
    final = [np.stack([last[k] for last in lasts]) for k in range(states)]
    if layout:
        y = np.transpose(y, (2, 0, 1, 3))
        final = [np.swapaxes(s, 0, 1) for s in final]
    return (y, *final)


def _limited(x: Array, limit: float | None) -> Any:
    return x if limit is None else np.clip(x, -limit, limit)


@op("RNN")
def rnn(node: Node, *inputs: Array) -> Any:
    """Return a simple recurrent network."""

    def cell(f: Any, xw: Array, old: Any, weights: Any, p: Any, limit: float | None) -> Any:
        (h,), (r, rb) = old, weights
        return (f[0](_limited(xw + h @ r + rb, limit)),)

    return _run(node, cell, 1, 1, inputs)


@op("GRU")
def gru(node: Node, *inputs: Array) -> Any:
    """Return gated recurrent units: gates z (update), r (reset) and the new state h."""
    before = bool(node.get("linear_before_reset", 0))

    def cell(f: Any, xw: Array, old: Any, weights: Any, p: Any, limit: float | None) -> Any:
        (h,), (r, rb) = old, weights
        n = np.shape(h)[-1]
        gates = _limited(xw[:, : 2 * n] + h @ r[:, : 2 * n] + rb[: 2 * n], limit)
        update, reset = f[0](gates[:, :n]), f[0](gates[:, n:])
        if before:
            inner = reset * (h @ r[:, 2 * n :] + rb[2 * n :])
        else:
            inner = (reset * h) @ r[:, 2 * n :] + rb[2 * n :]
        new = f[1](_limited(xw[:, 2 * n :] + inner, limit))
        return ((1.0 - update) * new + update * h,)

    return _run(node, cell, 3, 1, inputs)


@op("LSTM")
def lstm(node: Node, *inputs: Array) -> Any:
    """Return long short-term memory: gates i (input), o (output), f (forget) and the cell c."""
    coupled = bool(node.get("input_forget", 0))

    def cell(f: Any, xw: Array, old: Any, weights: Any, p: Any, limit: float | None) -> Any:
        (h, c), (r, rb) = old, weights
        n = np.shape(h)[-1]
        i, o, forget, new = ((xw + h @ r + rb)[:, k * n : (k + 1) * n] for k in range(4))
        if p is not None:
            i, forget = i + p[:n] * c, forget + p[2 * n :] * c
        i = f[0](_limited(i, limit))
        forget = 1.0 - i if coupled else f[0](_limited(forget, limit))
        c = forget * c + i * f[1](_limited(new, limit))
        if p is not None:
            o = o + p[n : 2 * n] * c
        return f[0](_limited(o, limit)) * f[2](c), c

    return _run(node, cell, 4, 2, inputs)

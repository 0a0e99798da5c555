"""``python -m benchmarks.falsification_network``: train the network of the levitated magnet.

Data: the plant under currents that are held for 0.1 to 1 s, sampled every 0.01 s, as the published
example has it. The network ``y(k + 5) = f(past) + g(past) u(k)`` is fitted by the method of
Levenberg and Marquardt.
"""

from __future__ import annotations

import json

import numpy as np

import archimedes as arc
from benchmarks.falsification_models import (
    AHEAD,
    NN_SAMPLE,
    NN_STEP,
    WEIGHTS,
    advance_magnet,
    scale_current,
    scale_position,
)

SAMPLES, NEURONS, STEPS = 6_000, 9, 300


def measure(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return currents and positions at the samples, of a magnet that is pushed at random."""
    rng = np.random.default_rng(seed)
    currents: list[float] = []
    while len(currents) < SAMPLES:
        currents += [rng.uniform(0.9, 2.9)] * int(rng.integers(10, 100))
    inner = round(NN_SAMPLE / NN_STEP)

    def step(carry, current):
        y, v = carry
        for _ in range(inner):
            y, v = advance_magnet(y, v, current, NN_STEP)
        stopped = y < 0.05
        y, v = np.where(stopped, 0.05, y), np.where(stopped, np.maximum(v, 0.0), v)
        return (y, v), y

    u = np.array(currents[:SAMPLES])
    _, y = arc.compile(lambda u: arc.scan(step, (0.5, 0.0), u))(u)
    return u, np.r_[0.5, y]


def train(seed: int = 0) -> dict[str, np.ndarray]:
    """Return the weights that fit the data best."""
    u, y = measure(seed)
    i, p = scale_current(u), scale_position(y)
    # past: y(k), y(k - 1), u(k - 1), u(k - 2); then u(k), held, and y(k + AHEAD)
    k = np.arange(2, len(u) - AHEAD)
    k = k[np.all([u[k + j] == u[k] for j in range(AHEAD)], axis=0)]
    past = np.stack([p[k], p[k - 1], i[k - 1], i[k - 2]])
    now, after = i[k], p[k + AHEAD]
    rng = np.random.default_rng(seed + 1)
    hidden = np.r_[past, np.ones((1, past.shape[1]))]
    inner = 0.5 * rng.normal(size=(2, NEURONS, 5))  # weights and bias of both layers
    outer = 0.3 * rng.normal(size=(2, NEURONS + 1))
    factor = np.stack([np.ones_like(now), now])  # f + g u

    def evaluate(inner, outer):
        h = np.tanh(inner @ hidden)
        out = np.concatenate([h, np.ones((2, 1, h.shape[2]))], axis=1)
        error = ((outer[:, None] @ out)[:, 0] * factor).sum(axis=0) - after
        slope = outer[:, :-1, None] * (1.0 - h**2) * factor[:, None]
        columns = np.einsum("ljn,in->ljin", slope, hidden).reshape(-1, len(now))
        return error, np.r_[columns, (out * factor[:, None]).reshape(-1, len(now))]

    error, jacobian = evaluate(inner, outer)
    damping = 1.0
    for _ in range(STEPS):  # Levenberg-Marquardt
        normal = jacobian @ jacobian.T
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-9), jacobian @ error)
        tried = (
            inner - step[: inner.size].reshape(inner.shape),
            outer - step[inner.size :].reshape(outer.shape),
        )
        new_error, new_jacobian = evaluate(*tried)
        better = new_error @ new_error < error @ error
        damping *= 0.3 if better else 4.0
        if better:
            (inner, outer), error, jacobian = tried, new_error, new_jacobian
    print(f"error of prediction: {2.25 * np.sqrt(np.mean(error**2)):.2e}")
    weights = {}
    for k, name in enumerate("fg"):
        weights[f"{name}_in"], weights[f"{name}_bias"] = inner[k, :, :4], inner[k, :, 4]
        weights[f"{name}_out"], weights[f"{name}_end"] = outer[k, :-1], outer[k, -1]
    return weights


if __name__ == "__main__":
    found = {name: value.tolist() for name, value in train().items()}
    WEIGHTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")

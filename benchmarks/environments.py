"""Steps of environments for reinforcement learning, against Gymnasium's own vector environments.

All are timed in one process, in turns: CartPole-v1 as one kernel here, as Gymnasium's NumPy program
for many carts (``CartPoleVectorEnv``), and as its general way, one environment after the other
(``SyncVectorEnv``). Actions are random and the same for all; episodes begin anew in the next step.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES, ROUNDS = 3, 5
COUNTS = (1, 64, 4096)
#: Seconds that each environment is stepped for, in each round.
TURN = 0.2
KINDS = {
    "one": "`to_gymnasium_vector`",
    "numpy": "Gymnasium, NumPy for many",
    "sync": "Gymnasium, `SyncVectorEnv`",
}


def _make(kind: str, count: int) -> Any:
    """Return a vector environment."""
    import gymnasium

    from archimedes.interchange.environments import cart_pole

    if kind == "one":
        return cart_pole().to_gymnasium_vector(count, threads=1)
    mode = {"numpy": "vector_entry_point", "sync": "sync"}[kind]
    return gymnasium.make_vec("CartPole-v1", num_envs=count, vectorization_mode=mode)


def _rate(env: Any, actions: np.ndarray) -> float:
    """Return steps of single instances per second."""
    begin, calls = time.perf_counter(), 0
    while (took := time.perf_counter() - begin) < TURN:
        env.step(actions[calls % len(actions)])
        calls += 1
    return calls * actions.shape[1] / took


def measure() -> dict[str, float]:
    """Return the best steps per second of several rounds."""
    best: dict[str, float] = {}
    for count in COUNTS:
        actions = np.random.default_rng(0).integers(0, 2, size=(64, count))
        environments = {kind: _make(kind, count) for kind in KINDS}
        for env in environments.values():
            env.reset(seed=0)
            _rate(env, actions)
        for _ in range(ROUNDS):
            for kind, env in environments.items():
                key = f"{count} {kind}"
                best[key] = max(best.get(key, 0.0), _rate(env, actions))
    return best


def tables() -> list[Table]:
    """Return the table of rates and their ratios."""
    figures = medians(in_processes("benchmarks.environments", "measure", PROCESSES))
    rows = []
    for count in COUNTS:
        own = figures[f"{count} one"]
        others = [figures[f"{count} {kind}"] for kind in ("numpy", "sync")]
        rates = [f"{rate:.2e}" for rate in (own, *others)]
        rows.append([f"{count:,}", *rates, *(f"{own / other:.1f}" for other in others)])
    note = (
        "Steps of single instances per second in one thread, in turns in one process, the best of "
        f"{ROUNDS} rounds, medians of {PROCESSES} processes. `CartPole-v1` with random actions; "
        "episodes begin anew in the next step."
    )
    columns = ["instances", *KINDS.values(), "ratio to NumPy", "ratio to `SyncVectorEnv`"]
    return [Table("Environments for reinforcement learning", columns, rows, note)]

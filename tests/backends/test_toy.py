"""A language of its own through the shared lowering: every op and region, with the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.interpreter import run

from ..programs.random_graphs import random_graph
from ..programs.values import assert_bits, samples
from .toy import build


@pytest.mark.parametrize("part", [1000, 7])
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, part: int):
    g = random_graph(seed)
    function = build(g, part)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        values = [samples(d, 1, rng)[0] for d in g.input_dtypes]
        for got, want in zip(function(*values), run(g, values)):
            assert_bits(np.asarray(got), np.asarray(want), f"seed {seed}")


def test_a_backend_takes_150_lines():
    text = (Path(__file__).parent / "toy.py").read_text()
    assert len(text.splitlines()) <= 150

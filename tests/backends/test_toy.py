"""A language of its own through the shared lowering: every op and region, with the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends import registry
from archimedes.backends.interpreter import run
from archimedes.backends.leaves import put_values, values_in
from archimedes.backends.protocol import Backend, Kernel

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


def test_a_backend_takes_165_lines():
    text = (Path(__file__).parent / "toy.py").read_text()
    assert len(text.splitlines()) <= 165


# ---- as a backend ------------------------------------------------------------------------------


class PythonKernel(Kernel):
    sources = ("python",)

    def __init__(self, program):
        self.function = build(program.graph)
        self.kinds = program.graph.input_dtypes, program.graph.output_dtypes

    def source(self, kind):
        return self.function.__wrapped__.source

    def call(self, inputs, outputs):
        given, made = self.kinds
        put_values(self.function(*values_in(inputs, given)), made, outputs)

    def call_batch(self, inputs, batched, outputs, count, threads=None):
        for k in range(count):
            row = [x[k] if many else x for x, many in zip(inputs, batched)]
            self.call(row, [out[k : k + 1] for out in outputs])


class Python(Backend):
    name = "python"

    def build(self, program):
        return PythonKernel(program)


@pytest.fixture
def python():
    yield registry.register(Python()).name
    registry.unregister("python")


def pendulum(t, x, k):
    return np.array([x[1], -k * np.sin(x[0])])


def settled(x):
    """A loop, a branch, an equation and a table."""
    y = arc.fori_loop(0, 5, lambda i, y: y + np.cos(y) / (i + 1), x)
    z = arc.cond(np.sum(y) > 1.0, lambda v: v * 2.0, lambda v: v - 1.0, y)
    A = np.array([[3.0, 1.0, 0.0], [1.0, y[0], 0.5], [0.0, 0.5, 2.0]])
    return np.linalg.solve(A, z), np.interp(z, [0.0, 1.0, 2.0], [0.3, 0.1, 0.7])


def test_functions_run_in_the_language(python):
    f, g = arc.compile(settled, backend=python), arc.compile(settled, backend="interpreter")
    x = np.array([0.3, -1.2, 0.7])
    for got, want in zip(f(x), g(x)):
        assert_bits(got, want)
    slopes = [arc.jac(h)(x)[0] for h in (f, g)]
    assert_bits(*slopes)
    rows = np.random.default_rng(0).normal(size=(4, 3))
    for got, want in zip(arc.vmap(f)(rows), arc.vmap(g)(rows)):
        assert_bits(got, want)
    assert "def main(a0, a1, a2):" in f.source("python", x)


def test_a_solve_runs_in_the_language(python):
    ends = [
        arc.odeint(pendulum, (0.0, 0.4), np.array([0.5, 0.0]), args=(2.0,), backend=backend)
        for backend in (python, "interpreter")
    ]
    assert_bits(*ends)

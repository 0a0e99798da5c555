"""Long bodies of loops in stages: what is computed, with the bits of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.interpreter import evaluate
from archimedes.backends.llvm.lowering.nests import loop_fission, loop_vectorize, vector_plans
from archimedes.graph import F64, Graph
from archimedes.graph.expand import expand
from archimedes.graph.ops import CODES


def bell(x, y):
    return np.exp(-x * x) + np.tanh(y) * x


def several(x, y):
    z = np.exp(x) * y
    inside = (z > 0.5) & (y < 1.0)
    return np.where(inside, np.log1p(z * z), np.expm1(y)), z, inside, x


def whole(x, y):
    k = (x * 100.0).astype(np.int64) % 7
    return np.tanh(x) * k + np.exp(y), k


def grid(x, y):
    return np.tanh(x[:30, None] + y[None, :]) * np.exp(-x[:30, None])


PROGRAMS = (bell, several, whole, grid)
#: No multiple of lanes, chunks or both; one chunk and a bit.
SIZES = (1000, 1024, 1151, 2063)


def given(n: int, dtype: str = "float64") -> list[np.ndarray]:
    x, y = np.random.default_rng(n).normal(0.0, 2.0, (2, n)).astype(dtype)
    x[:8], y[5:9] = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, 5e-324, 700.0], np.inf
    return [x, y]


@pytest.fixture
def written(monkeypatch):
    """Return the number of stages of each loop that is written in stages."""
    found = []

    def write(nest, *args):
        found.append(len(loop_fission.stages_of(nest.region.body, nest.wanted)))
        loop_fission.write_stages(nest, *args)

    monkeypatch.setattr(loop_vectorize, "write_stages", write)
    # Also on a CPU that looks further ahead.
    monkeypatch.setattr(vector_plans.Target, "registers", property(lambda _: 16))
    monkeypatch.setattr(vector_plans, "MANY", 1000)
    return found


def check(f, args, **options) -> None:
    with np.errstate(all="ignore"):
        expected = arc.compile(f, backend="interpreter", **options)(*args)
        found = arc.compile(f, backend="llvm", **options)(*args)
    both = (expected, found) if isinstance(found, tuple) else ((expected,), (found,))
    for a, b in zip(*both, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            kept = ~np.isnan(a)
            assert (np.signbit(a) == np.signbit(b))[kept].all()


@pytest.mark.long_cases("*-1024", "*-2063", "grid-1151")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_same_bits(f, n, written, monkeypatch, tmp_path):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    check(f, given(n))
    assert max(written) > 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_single_precision_fused_and_over_threads(written, monkeypatch, tmp_path):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("ARCHIMEDES_THREADS", "2")
    check(bell, [np.where(np.isfinite(x), x, 1.0) for x in given(1151, "float32")])
    check(bell, given(1151), numerics="fast")
    check(lambda x, y: np.tanh(x + y), given((1 << 19) + 3))
    assert len(written) == 3


def test_stages_of_a_body_compute_what_it_does():
    g = Graph()
    x, y = g.add_inputs(F64, 2).tolist()
    up = g.emit(CODES["tanh"], g.emit(CODES["add"], x, y))
    g.outputs = [g.emit(CODES["exp"], up), up, g.emit(CODES["lt"], x, up), x]
    body = expand(g)
    parts = loop_fission.stages_of(body, [0, 1, 2, 3])
    assert len(parts) > 2
    assert max(len(part.takes) for part in parts) <= 8
    rng = np.random.default_rng(0)
    columns = list(rng.normal(size=(2, 50)))
    kept: dict[int, np.ndarray] = {}
    for part in parts:
        results = evaluate(part.graph, [*columns, *(kept[i] for i in part.takes)])
        kept |= dict(zip(part.gives, results))
    for expected, i in zip(evaluate(body, columns), parts[-1].gives, strict=True):
        np.testing.assert_array_equal(kept[i], expected)


def test_short_bodies_few_points_and_sums_stay_whole(written):
    x = np.ones(900)
    arc.compile(lambda x: np.tanh(x), backend="llvm")(x)
    arc.compile(lambda x: x * x + 1.0, backend="llvm")(np.ones(5000))
    arc.compile(lambda x: np.sum(np.tanh(x)), backend="llvm")(np.ones(5000))
    assert not written


def test_long_bodies_over_few_points_stay_whole(written, monkeypatch):
    monkeypatch.setattr(vector_plans, "MANY", 10_000)
    x = np.linspace(0.0, 2.0, 2000)
    check(bell, [x, x])
    assert not written
    check(lambda x: np.tanh(x), [x])
    assert len(written) == 1

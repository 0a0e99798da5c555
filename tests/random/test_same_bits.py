"""Every draw gives the same bits eagerly, interpreted, compiled, in lanes, threads and C."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

from ..c.checking import Bundle
from ..programs.program import Program

KEYS = arc.random.split(arc.random.key(99), 37)
MEAN, COV = (
    np.array([1.0, -2.0, 0.5]),
    np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 4.0]]),
)

DRAWS = {
    "bits": lambda key: arc.random.bits(key, 3),
    "uniform": lambda key: arc.random.uniform(key, (2, 3), low=-2.0, high=5.0),
    "wide": lambda key: arc.random.uniform(key, 41),
    "single": lambda key: arc.random.uniform(key, 5, dtype=np.float32),
    "normal": lambda key: arc.random.normal(key, 9, mean=1.0, std=3.0),
    "one": lambda key: arc.random.normal(key),
    "normal32": lambda key: arc.random.normal(key, 3, dtype=np.float32),
    "exponential": lambda key: arc.random.exponential(key, 6, scale=0.3),
    "integers": lambda key: arc.random.integers(key, -7, 2**61, shape=5),
    "dice": lambda key: arc.random.integers(key, np.array([1, 10]), np.array([7, 21])),
    "bernoulli": lambda key: arc.random.bernoulli(key, 0.3, 5),
    "choice": lambda key: arc.random.choice(key, np.arange(6.0), 4, p=[1, 2, 3, 0, 2, 1]),
    "even": lambda key: arc.random.choice(key, np.eye(3), 4),
    "without": lambda key: arc.random.choice(key, 9, 4, replace=False),
    "weighted": lambda key: arc.random.choice(key, 5, 3, replace=False, p=[1, 2, 3, 4, 5]),
    "permutation": lambda key: arc.random.permutation(key, 20),
    "rows": lambda key: arc.random.permutation(key, np.arange(12.0).reshape(6, 2)),
    "multivariate": lambda key: arc.random.multivariate_normal(key, MEAN, COV, 4),
    "split": lambda key: arc.random.split(key, 5),
    "fold_in": lambda key: arc.random.fold_in(key, np.arange(3)),
}


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", DRAWS)
def test_backends(name):
    draw = DRAWS[name]
    eager = [draw(key) for key in KEYS]
    for backend in ("interpreter", "llvm"):
        compiled = arc.compile(draw, backend=backend)
        same(compiled(KEYS[0]), eager[0])
        same(compiled(KEYS[1]), eager[1])
    same(arc.vmap(arc.compile(draw, backend="llvm"))(KEYS), np.stack(eager))


@pytest.mark.parametrize("name", ["normal", "wide", "integers"])
def test_threads(name):
    keys = arc.random.split(arc.random.key(1), 1000)
    draw = arc.compile(DRAWS[name], backend="llvm")
    same(arc.vmap(draw, threads=2)(keys), arc.vmap(draw, threads=1)(keys))


def test_interpreted_batches():
    interpreted = arc.vmap(arc.compile(DRAWS["normal"], backend="interpreter"))(KEYS)
    same(interpreted, np.stack([DRAWS["normal"](key) for key in KEYS]))


@pytest.mark.long_cases("float")
@pytest.mark.parametrize("float_type", ["double", "float"])
def test_c(tmp_path, float_type):
    columns = [np.ascontiguousarray(KEYS[:, 0]), np.ascontiguousarray(KEYS[:, 1])]
    cases = [Program(n, arc.compile(d).graph(KEYS[0]), columns) for n, d in DRAWS.items()]
    Bundle(cases, float_type).check(tmp_path, "gcc", "-O2")


def test_a_key_carried_by_scan():
    def walk(key):
        def step(carry, _):
            key, x = carry
            key, mine = arc.random.split(key)
            x = x + arc.random.normal(mine)
            return (key, x), x

        return arc.scan(step, (key, 0.0), length=8)[1]

    eager = np.stack([walk(key) for key in KEYS[:5]])
    for backend in ("interpreter", "llvm"):
        same(arc.compile(walk, backend=backend)(KEYS[0]), eager[0])
    same(arc.vmap(walk)(KEYS[:5]), eager)


def test_a_key_in_a_struct():
    @arc.struct
    class Sensor:
        key: np.ndarray
        std: float

    def read(sensor, t):
        return arc.random.normal(arc.random.fold_in(sensor.key, t), 3, std=sensor.std)

    sensor = Sensor(arc.random.key(4), 0.1)
    same(arc.compile(read)(sensor, 17), read(sensor, 17))
    assert not (read(sensor, 17) == read(sensor, 18)).any()


def test_wide_draws_are_maps():
    """The program grows by a few nodes per number, not by a generator per number."""
    for draw, limit in ((arc.random.uniform, 8), (arc.random.normal, 8), (arc.random.bits, 5)):
        graph = arc.compile(lambda key, draw=draw: draw(key, 1000)).graph(KEYS[0])
        assert len(graph) < 1000 * limit, draw.__name__
    graph = arc.compile(lambda key: arc.random.permutation(key, 200)).graph(KEYS[0])
    assert len(graph) < 200 * 20

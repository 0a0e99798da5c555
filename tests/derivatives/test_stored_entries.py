"""Derivatives' programs on disk: another process reads what the first one made, with its bits."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends import code_cache
from archimedes.function.derivatives import sparse
from archimedes.graph.passes import copy_into, inline, prune
from archimedes.graph.program import Graph


def chain(x, k=1.0):
    """More than 200 operations, with signed zeros, infinite and repeated numbers among them."""
    y = x
    for j in range(12):
        y = np.sin(y) * np.roll(y, 1) + (-0.0 if j % 2 else 0.3 * k)
    return np.concatenate([y, [np.minimum(y[0], np.inf), 2.0]])


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "1")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    made = []
    original = sparse._differentiate

    def counted(*args):
        made.append(args)
        return original(*args)

    monkeypatch.setattr(sparse, "_differentiate", counted)
    return made


def functions():
    """Return derivatives as a new process has them, which knows no recording."""
    total = lambda x: np.sum(chain(x) ** 2)
    slope = arc.jac(lambda x: chain(x), sparse=True)
    return slope, arc.hess(total, sparse=True), arc.hess(total, sparse=True).lower


def test_read_again_it_is_the_same(on_disk):
    x = np.linspace(-1.0, 2.0, 7)
    first = [(f.values(x), f.pattern(x), f.colors(x)) for f in functions()]
    assert len(on_disk) == 3
    for f, (values, pattern, colors) in zip(functions(), first):
        np.testing.assert_array_equal(f.values(x), values)
        again = f.pattern(x)
        np.testing.assert_array_equal(again.rows, pattern.rows)
        np.testing.assert_array_equal(again.columns, pattern.columns)
        assert (again.shape, f.colors(x)) == (pattern.shape, colors)
        assert again.rows.dtype == pattern.rows.dtype == np.int64
    assert len(on_disk) == 3


def test_other_programs_are_other_files(on_disk):
    x = np.linspace(-1.0, 2.0, 7)
    for k in (1.0, 2.0):
        slope = arc.jac(lambda x, k=k: chain(x, k), sparse=True)
        dense = arc.jac(lambda x, k=k: chain(x, k))(x)
        np.testing.assert_array_equal(slope(x).toarray(), dense)
    assert len(on_disk) == 2


def test_a_damaged_file_is_made_anew(on_disk, tmp_path):
    x = np.linspace(-1.0, 2.0, 7)
    slope = functions()[0]
    values = slope.values(x)
    for path in tmp_path.rglob("*.o"):
        path.write_bytes(path.read_bytes()[:-9])
    np.testing.assert_array_equal(functions()[0].values(x), values)
    assert len(on_disk) == 2


def test_regions_and_short_programs_are_not_kept(on_disk, tmp_path):
    arc.jac(lambda x: x**2, sparse=True).values(np.ones(3))
    looped = lambda x: arc.scan(lambda c, k: (np.sin(c), c), x, length=50)[0]
    arc.jac(looped, sparse=True).values(np.ones(3))
    assert len(on_disk) == 2
    assert not list(tmp_path.rglob("*.o"))


def test_without_a_cache(monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "0")
    assert code_cache.cache_folder() is None
    x = np.linspace(-1.0, 2.0, 7)
    dense = arc.jac(lambda x: chain(x))(x)
    np.testing.assert_array_equal(functions()[0](x).toarray(), dense)


def test_a_program_copied_whole_is_the_one_copied_node_by_node():
    source = arc.compile(lambda x, unused: chain(x)).recording(np.ones(5), 1.0).graph
    whole, one_by_one = Graph(), Graph()
    for graph in (whole, one_by_one):
        for dtype in source.input_dtypes:
            graph.input(dtype)
    whole.outputs = inline(whole, source, whole.inputs)
    to = copy_into(one_by_one, source, one_by_one.inputs, source.live())
    one_by_one.outputs = [to[i] for i in source.outputs]
    assert whole.digest() == one_by_one.digest() == prune(whole).digest()
    assert whole.const(0.3) == one_by_one.const(0.3)
    count = len(whole)
    assert inline(whole, source, whole.inputs) == whole.outputs
    assert len(whole) == count

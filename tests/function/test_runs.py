"""``over_runs``: sorted items, each with the first row that is not before it."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.batching.sorted_items import over_runs

WIDTH = 3


def moved(row, item):
    """A function of both; ``row[1] * row[2]`` does not depend on the item."""
    return np.stack([row[1] * row[2] + item, item - row[0]])


def expected(rows, items, sign, places, done, results):
    """The same, item by item."""
    for k, place in enumerate(places):
        for j in range(done[k], len(items)):
            fitting = [row for row in rows[k] if sign * row[0] >= sign * items[j]]
            if not fitting:
                break
            row = fitting[0]
            results[place, j] = row[1] * row[2] + items[j], items[j] - row[0]
            done[k] = j + 1


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_against_item_by_item(backend, sign, count):
    rng = np.random.default_rng(count)
    rows = rng.standard_normal((4, 5, WIDTH))
    rows[:, :, 0] = sign * np.sort(rng.uniform(0.0, 1.0, (4, 5)), axis=1)
    rows[1, 2, 0] = rows[1, 1, 0]  # a row without items
    rows[2, :, 0] = sign * 2.0  # all items in the first row
    items = sign * np.sort(rng.uniform(0.0, 1.1, count))
    if count > 50:
        items[50] = rows[0, 3, 0]  # exactly at a row's key
        items = sign * np.sort(sign * items)
    places = np.array([2, 0, 3, 5])
    fill = over_runs(arc.compile(moved, backend=backend), WIDTH)
    done, wanted_done = (np.array([0, 3, 0, 1]).clip(0, count) for _ in range(2))
    results, wanted = (np.full((6, count, 2), 7.0) for _ in range(2))
    fill.bound(0, items, sign, results)(rows, places, done)
    expected(rows, items, sign, places, wanted_done, wanted)
    assert done.tolist() == wanted_done.tolist()
    for place, reached in zip(places, done):
        assert np.array_equal(results[place, :reached], wanted[place, :reached])
    assert (results[[1, 4]] == 7.0).all()


def test_a_sequence_goes_on_where_it_was():
    rows = np.ones((1, 4, WIDTH))
    rows[0, :, 0] = [1.0, 2.0, 3.0, 4.0]
    items = np.linspace(0.0, 4.0, 41)
    fill = over_runs(arc.compile(moved, backend="llvm"), WIDTH)
    here = np.array([0])
    done, results = np.array([0]), np.zeros((1, 41, 2))
    fill.bound(0, items, 1.0, results)(rows, here, done)
    step, apart = np.array([0]), np.zeros((1, 41, 2))
    for k in range(4):
        fill.bound(0, items, 1.0, apart)(rows[:, k : k + 1].copy(), here, step)
    assert done.tolist() == step.tolist() == [41]
    assert np.array_equal(results, apart)


def test_arrays_of_another_kind():
    rows, items, here = np.ones((1, 4, WIDTH)), np.ones(3), np.array([0])
    fill = over_runs(arc.compile(moved, backend="llvm"), WIDTH)
    with pytest.raises(ValueError, match="run array 1 must be C-contiguous int64, not int32"):
        fill.bound(0, items, 1.0, np.zeros((1, 3, 2)))(rows, here.astype(np.int32), here)
    with pytest.raises(ValueError, match="run array 1 must have 6 items, not 9"):
        fill.bound(0, items, 1.0, np.zeros((1, 3, 3)))(rows, here, here)
    with pytest.raises(ValueError, match="run array 0 must be C-contiguous float64"):
        fill.bound(0, items, 1.0, np.zeros((1, 3, 2)))(rows[:, ::2], here, here)

"""Indexing, views and in-place programs on random shapes do what NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import archimedes as arc

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)
FEW = settings(max_examples=120, deadline=None)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """An array whose elements all differ, so that a misplaced one shows."""
    return np.arange(float(np.prod(shape))).reshape(shape) + 0.5


@st.composite
def static_keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """A key of any kind: basic, integer arrays, a mask, or arrays beside slices and newaxis."""
    kind = draw(st.sampled_from(["basic", "arrays", "mask", "mixed"]))
    if kind == "basic":
        return draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=7))
    if kind == "arrays":
        return draw(hnp.integer_array_indices(shape))
    if kind == "mask":
        axes = draw(st.integers(1, len(shape)))
        return draw(hnp.arrays(bool, shape[:axes]))
    common = draw(hnp.array_shapes(max_dims=2, max_side=3))
    parts: list[Any] = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        array = hnp.arrays(np.int64, common, elements=st.integers(-n, n - 1))
        parts.append(draw(st.one_of(array, st.slices(n), st.integers(-n, n - 1))))
        if draw(st.booleans()):
            parts.append(None)
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return tuple(parts)


@st.composite
def reads(draw: Any) -> tuple[tuple[int, ...], Any]:
    shape = draw(SHAPES)
    return shape, draw(static_keys(shape))


def agree(function: Any, *args: Any) -> None:
    want = function(*(np.copy(a) for a in args))
    got = arc.compile(function)(*(np.copy(a) for a in args))
    for left, right in zip(want, got, strict=True):
        np.testing.assert_array_equal(right, left)
        assert np.shape(right) == np.shape(left)


@FEW
@given(reads())
def test_static_keys_read_as_numpy_does(case) -> None:
    shape, key = case
    agree(lambda x: (x[key],), numbered(shape))


@FEW
@given(reads(), st.booleans())
def test_static_keys_write_as_numpy_does(case, whole) -> None:
    shape, key = case

    def write(x):
        y = x.copy()
        chosen = y[key]
        y[key] = -(chosen if whole else x.ravel()[0])
        return x, y, chosen

    agree(write, numbered(shape))


@st.composite
def traced_reads(draw: Any) -> tuple[tuple[int, ...], list[Any], list[np.ndarray]]:
    """A key in which some integers and index arrays come as arguments (marked by their number)."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    common = draw(hnp.array_shapes(max_dims=2, max_side=3))
    key: list[Any] = []
    given_indices: list[np.ndarray] = []
    for n in shape[: draw(st.integers(1, len(shape)))]:
        index = st.one_of(
            hnp.arrays(np.int64, common, elements=st.integers(-n, n - 1)),
            st.integers(-n, n - 1).map(np.int64),
        )
        if not given_indices or draw(st.booleans()):
            key.append(("argument", len(given_indices)))
            given_indices.append(draw(index))
        else:
            key.append(draw(st.one_of(index, st.slices(n))))
        if draw(st.booleans()):
            key.append(None)
    if draw(st.booleans()):
        key.append(Ellipsis)
    return shape, key, given_indices


def fill_in(key: list[Any], indices: Any) -> tuple[Any, ...]:
    return tuple(indices[p[1]] if isinstance(p, tuple) else p for p in key)


@FEW
@given(traced_reads())
def test_traced_keys_read_as_numpy_does(case) -> None:
    shape, key, indices = case
    agree(lambda x, *given: (x[fill_in(key, given)],), numbered(shape), *indices)


@FEW
@given(traced_reads())
def test_traced_keys_write_as_numpy_does(case) -> None:
    shape, key, indices = case
    values = -numbered(np.shape(numbered(shape)[fill_in(key, indices)]))

    def write(x, values, *given):
        x[fill_in(key, given)] = values
        return (x,)

    agree(write, numbered(shape), values, *indices)


#: Ways from an array to another: some are views, some are copies, some depend on memory order.
STEPS: dict[str, Any] = {
    "slice": lambda a: a[1:],
    "reversed": lambda a: a[::-1],
    "every other": lambda a: a[::2],
    "row": lambda a: a[0] if a.ndim > 1 else a,
    "last axis": lambda a: a[..., 0] if a.ndim > 1 else a[:2],
    "fancy": lambda a: a[[0, -1]],
    "transpose": lambda a: a.T,
    "swap": lambda a: a.swapaxes(0, -1),
    "ravel": lambda a: a.ravel(),
    "flatten": lambda a: a.flatten(),
    "reshape": lambda a: a.reshape(-1),
    "split": lambda a: a.reshape(a.shape[0], -1),
    "newaxis": lambda a: a[None],
    "squeeze": lambda a: np.squeeze(a[None]),
    "plus one": lambda a: a + 1.0,
    "where": lambda a: np.where(a > 3, a, -a),
    "zeros like": lambda a: np.zeros_like(a),
    "copy": lambda a: a.copy(),
    "np.copy": lambda a: np.copy(a),
    "np.array": lambda a: np.array(a),
    "asarray": lambda a: np.asarray(a),
    "flip": lambda a: np.flip(a),
    "moveaxis": lambda a: np.moveaxis(a, 0, -1),
    "broadcast": lambda a: np.atleast_2d(a),
    "diagonal": lambda a: a.reshape(-1)[:4].reshape(-1, 1),
    "sum of one": lambda a: a[:1].sum(axis=0) if a.ndim > 1 else a.copy(),
    "view": lambda a: a.view(),
}


def write_first(a, value):
    a[0] = value


def write_all(a, value):
    a[...] = value


def add_in_place(a, value):
    a += value


def scale_in_place(a, value):
    a *= value


def write_where(a, value):
    a[a > value] = value


def write_last(a, value):
    a[..., -1] = value


def write_flat(a, value):
    a.flat[0] = value


def sort_in_place(a, value):
    a.sort()


def fill(a, value):
    a.fill(value)


def out_argument(a, value):
    np.add(a, value, out=a)


WRITES = [
    write_first,
    write_all,
    add_in_place,
    scale_in_place,
    write_where,
    write_last,
    write_flat,
    sort_in_place,
    fill,
    out_argument,
]


@st.composite
def programs(draw: Any) -> list[tuple[Any, ...]]:
    lines: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, 9))):
        source = draw(st.integers(0, 9))
        if draw(st.booleans()):
            lines.append(("step", draw(st.sampled_from(sorted(STEPS))), source))
        else:
            number = draw(st.sampled_from([-3.5, 0.0, 2.25, 7.0]))
            lines.append(("write", draw(st.sampled_from(WRITES)), source, number))
    return lines


@settings(max_examples=300, deadline=None)
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=3), programs())
def test_writes_show_through_the_same_views_as_in_numpy(shape, program) -> None:
    def run(x):
        arrays = [x]
        for line in program:
            chosen = arrays[line[2] % len(arrays)]
            if line[0] == "step":
                made = STEPS[line[1]](chosen)
                if np.size(made) and np.ndim(made):
                    arrays.append(made)
            else:
                line[1](chosen, line[3])
        return arrays

    agree(run, numbered(shape))

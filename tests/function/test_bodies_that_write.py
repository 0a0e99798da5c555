"""Bodies of loops and branches may write to what they are given: nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc


def add_in_place(carry, x):
    carry += x
    return carry, carry


def write_to_slice(carry, x):
    x *= 2.0
    return carry + x[0], x


def one_array_twice(carry, x):
    a, b = carry
    a += x
    return (a, a), b + 0.0


def increase(x):
    x += 1.0
    return x


def increase_two(x):
    a, b = x
    a += 1.0
    return a, a + b


C = np.array([1.0, 2.0])
XS = np.arange(6.0).reshape(3, 2)
PROGRAMS = {
    "scan": lambda c, xs: arc.scan(add_in_place, c, xs),
    "scan slices": lambda c, xs: arc.scan(write_to_slice, c[0], xs),
    "scan aliases": lambda c, xs: arc.scan(one_array_twice, (c, c), xs),
    "while_loop": lambda c, xs: arc.while_loop(lambda x: x[0] < 5.0, increase, c),
    "fori_loop": lambda c, xs: arc.fori_loop(0, 3, lambda i, x: increase(x), c),
    "fori_loop aliases": lambda c, xs: arc.fori_loop(0, 3, lambda i, x: increase_two(x), (c, c)),
    "cond": lambda c, xs: arc.cond(c[0] > 0.0, increase, np.negative, c),
    "cond known": lambda c, xs: arc.cond(True, increase, np.negative, c),
    "switch": lambda c, xs: arc.switch(1, [np.negative, increase], c),
    "vmap": lambda c, xs: arc.vmap(increase)(xs),
    "order of slices": lambda c, xs: arc.scan(
        lambda s, x: (s, x.ravel("K")), 0.0, xs.T.reshape(1, 2, 3)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bodies_write_to_copies(name) -> None:
    def program(c, xs):
        result = PROGRAMS[name](c, xs)
        return result, c, xs

    c, xs = C.copy(), XS.copy()
    eager = program(c, xs)
    assert c.tolist() == C.tolist()
    assert xs.tolist() == XS.tolist()
    for backend in ("interpreter", "llvm"):
        recorded = arc.compile(program, backend=backend)(C, XS)
        for a, b in zip(arc.tree.leaves(eager), arc.tree.leaves(recorded)):
            np.testing.assert_array_equal(a, b)


def test_scan_keeps_every_row() -> None:
    carry = np.zeros(2)
    last, rows = arc.scan(add_in_place, carry, np.ones((3, 2)))
    assert rows.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert last.tolist() == [3.0, 3.0]
    assert carry.tolist() == [0.0, 0.0]

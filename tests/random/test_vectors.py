"""The generator against Random123's published vectors and an implementation of its own."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.random.keys import random_words, threefry

#: Random123, kat_vectors, "threefry2x64 20": counter, key, result.
PUBLISHED = [
    (
        "0000000000000000 0000000000000000",
        "0000000000000000 0000000000000000",
        "c2b6e3a8c2c69865 6f81ed42f350084d",
    ),
    (
        "ffffffffffffffff ffffffffffffffff",
        "ffffffffffffffff ffffffffffffffff",
        "e02cb7c4d95d277a d06633d0893b8b68",
    ),
    (
        "243f6a8885a308d3 13198a2e03707344",
        "a4093822299f31d0 082efa98ec4e6c89",
        "263c7d30bb0f0af1 56be8361d3311526",
    ),
]


def signed(text):
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint64).view(np.int64)


def reference(key, counter):
    """Threefry-2x64-20 in Python's own integers, after the paper."""
    full = 2**64 - 1
    k = [int(w) & full for w in key]
    k.append(0x1BD11BDAA9FC1A22 ^ k[0] ^ k[1])
    x = [(int(c) + w) & full for c, w in zip(counter, k)]
    for r in range(20):
        turn = (16, 42, 12, 31, 16, 32, 24, 21)[r % 8]
        x[0] = (x[0] + x[1]) & full
        x[1] = ((x[1] << turn | x[1] >> (64 - turn)) & full) ^ x[0]
        if r % 4 == 3:
            s = r // 4 + 1
            x = [(x[0] + k[s % 3]) & full, (x[1] + k[(s + 1) % 3] + s) & full]
    return np.array(x, dtype=np.uint64).view(np.int64)


@pytest.mark.parametrize(("counter", "key", "expected"), PUBLISHED)
@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_published_vectors(counter, key, expected, backend):
    words = [*signed(key), *signed(counter)]
    compiled = arc.compile(lambda *w: np.stack(threefry(*w)), backend=backend)
    assert (compiled(*words) == signed(expected)).all()
    eager = threefry(*(np.array([w]) for w in words))
    assert (np.concatenate(eager) == signed(expected)).all()
    assert (reference(signed(key), signed(counter)) == signed(expected)).all()


def test_what_each_function_counts():
    """Block i of a draw has counter (i, 0), of a split (i, 1), of fold_in (i, 2)."""
    key = arc.random.key(0x0123456789ABCDEF_FEDCBA9876543210)
    assert [int(w) % 2**64 for w in key] == [0xFEDCBA9876543210, 0x0123456789ABCDEF]
    for i in (0, 1, 5):
        assert (random_words(key, (12,)).reshape(6, 2)[i] == reference(key, (i, 0))).all()
        assert (arc.random.split(key, 6)[i] == reference(key, (i, 1))).all()
        assert (arc.random.fold_in(key, i) == reference(key, (i, 2))).all()
    assert (arc.random.fold_in(key, -3) == reference(key, (-3, 2))).all()


def test_uniform_numbers_are_the_upper_bits_of_words():
    key = arc.random.key(3)
    words = arc.random.bits(key, 1000).view(np.uint64)
    expected = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53  # as NumPy makes them
    assert (arc.random.uniform(key, 1000) == expected).all()
    single = (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    drawn = arc.random.uniform(key, 1000, dtype=np.float32)
    assert drawn.dtype == np.float32
    assert (drawn == single).all()


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_traced_seeds_are_those_of_python_ints(seed):
    assert (arc.compile(arc.random.key)(np.int64(seed)) == arc.random.key(seed)).all()


def test_integers_are_scaled_words_of_128_bits():
    key = arc.random.key(11)
    words = arc.random.bits(key, (200, 2)).view(np.uint64)
    numbers = [int(a) + (int(b) << 64) for a, b in words]
    for low, high in ((0, 1), (-5, 1000), (-(2**63), 2**63 - 1), (0, 2**40 + 7)):
        expected = [low + (w * (high - low) >> 128) for w in numbers]
        assert arc.random.integers(key, low, high, 200).tolist() == expected


def test_shorter_draws_begin_longer_ones():
    key = arc.random.key(5)
    for draw in (arc.random.uniform, arc.random.normal, arc.random.exponential, arc.random.bits):
        assert (draw(key, (3, 7)).ravel() == draw(key, 30)[:21]).all()
        assert draw(key, ()) == draw(key, 1)[0]
        assert draw(key, (0, 3)).shape == (0, 3)

"""Random expressions of numbers, scalars and arrays are promoted as Python and NumPy do it."""

from __future__ import annotations

import pytest

from tests.long_parameters import long_after

from .numbers import ARGUMENTS, BINARY, UNARY, check_numbers, expressions


@pytest.mark.parametrize("first", long_after(4, range(0, 400, 10)))
def test_expressions_have_the_types_and_bits_of_python_and_numpy(first: int) -> None:
    reports = [text for seed in range(first, first + 10) for text in check_numbers(seed)]
    assert not "\n".join(reports)


@pytest.mark.parametrize("seed", long_after(3, range(1000, 1020)))
def test_so_they_have_in_native_code(seed: int) -> None:
    assert not "\n".join(check_numbers(seed, backend="llvm"))


def test_expressions_are_varied() -> None:
    texts = "\n".join(text for seed in range(60) for text in expressions(seed, 40)[1])
    for part in (*UNARY, *BINARY):
        assert part.split("{")[0].strip("(") in texts
    assert all(name in texts for name in ARGUMENTS)
    kinds = {type(v).__name__ for seed in range(20) for v in expressions(seed, 40)[2]}
    assert kinds >= {"float", "int", "bool", "float64", "float32", "int64", "ndarray"}


def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from archimedes.symbolic.core.scalars import SymbolicNumber

    monkeypatch.setattr(SymbolicNumber, "weak", False)  # numbers that widen arrays
    assert any("float32" in text for seed in range(6) for text in check_numbers(seed))

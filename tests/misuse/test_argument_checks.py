"""The checks that all packages share: what passes, and what the messages say."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import checks


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: checks.check_choice("a", "f: kind", ("b", "c")), ValueError, "f: kind='a' is not"),
        (lambda: checks.check_choice(1, "n", {2: 0}, "take 2", KeyError), KeyError, "2; take 2"),
        (lambda: checks.check_callable(1, "f", "(t, x)"), TypeError, r"function \(t, x\), got int"),
        (lambda: checks.check_callable(1, "f", remedy="write f"), TypeError, "got int: write f"),
        (lambda: checks.check_whole(1.5, "n"), TypeError, "n must be a whole number, got 1.5"),
        (lambda: checks.check_whole(True, "n", 0), TypeError, "at least 0, got True"),
        (lambda: checks.check_whole(-1, "n", 0), ValueError, "at least 0, got -1"),
        (lambda: checks.check_limits(2.0, 1.0, "u"), ValueError, "u: lower limit above upper"),
        (lambda: checks.check_limits(np.nan, 1.0, "u"), ValueError, "u: a limit is nan"),
        (lambda: checks.check_increasing([1.0], "t"), ValueError, r"at least 2 numbers.*\(1,\)"),
        (lambda: checks.check_increasing([0.0, np.inf], "t"), ValueError, "t must be finite"),
        (lambda: checks.check_increasing([0.0, 0.0], "t"), ValueError, "t must increase strictly"),
        (lambda: checks.check_shape(np.ones(3), "w", (), (2,)), ValueError, r"\(\) or \(2,\), got"),
    ],
)
def test_message(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_good_values_pass():
    checks.check_choice("b", "kind", "abc")
    checks.check_callable(len, "f")
    checks.check_limits([0.0, 1.0], [1.0, 1.0], "u")
    checks.check_shape(np.ones(3), "w", (), (3,))
    assert checks.check_whole(np.int64(2), "n", 1) == 2
    assert checks.check_increasing([0, 1], "t").dtype == float


def test_traced_values_pass_and_their_shapes_are_checked():
    @arc.compile
    def f(low, times):
        checks.check_limits(low, -1.0, "u")
        checks.check_increasing(times, "t")
        with pytest.raises(ValueError, match="at least 3"):
            checks.check_increasing(times, "t", 3)
        return low + times[0]

    assert f(1.0, np.array([2.0, 1.0])) == 3.0

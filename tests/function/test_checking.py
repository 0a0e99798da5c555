"""``f.check``: the checks of values that recordings leave out."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.spatial import Quaternion


def falling(mass, force):
    if isinstance(mass, float) and type(mass) is float and mass <= 0:
        raise ValueError(f"mass must be positive, got {mass}")
    return force / mass


def test_a_check_that_a_recording_leaves_out() -> None:
    """The issue's own: a negative mass."""
    f = arc.compile(falling)
    assert f(-2.0, 4.0) == -2.0
    found = f.check(-2.0, 4.0)
    assert not found and not found.ok
    assert "ValueError: mass must be positive, got -2.0" in str(found)
    assert "test_checking.py" in str(found)
    with pytest.raises(ValueError, match="mass"):
        found.raise_errors()
    assert f.check(2.0, 4.0).ok and f.check(2.0, 4.0).result == 2.0
    f.check(2.0, 4.0).raise_errors()


def test_an_improper_matrix() -> None:
    """The issue's own."""
    f = arc.compile(lambda R, v: Quaternion.from_matrix(R).rotate(v))
    mirror = np.diag([1.0, 1.0, -1.0])
    f(mirror, np.ones(3))
    assert "ValueError" in str(f.check(mirror, np.ones(3)))
    assert f.check(np.eye(3), np.ones(3)).ok


def test_warnings_and_differences() -> None:
    f = arc.compile(lambda x: np.log(x))
    (found,) = f.check(np.array([1.0, 0.0])).findings
    assert found.kind == "warning" and "divide by zero" in found.text
    outside = arc.compile(lambda x, i: x[i])
    assert f.check(np.ones(2)).ok
    assert "IndexError" in str(outside.check(np.arange(3.0), 7))
    zero = arc.compile(lambda x: 0 * x)  # a literal zero, see docs/recording.md
    with np.errstate(all="ignore"):
        assert [f.kind for f in zero.check(np.array(np.inf)).findings] == ["warning", "difference"]


def test_arguments_stay_as_they_are() -> None:
    def f(x):
        x[0] = 5.0
        return x

    x = np.zeros(2)
    assert arc.compile(f).check(x).ok
    assert x[0] == 0.0


def test_every_instance_of_a_batch() -> None:
    def f(m, g):
        if not hasattr(m, "ids") and m < 0:
            raise ValueError("negative")
        return m * g

    found = arc.vmap(f, in_axes=(0, None)).check(np.array([1.0, -1.0, 2.0, -3.0]), 9.81)
    assert [f.instance for f in found.findings] == [1, 3]
    assert "[3] error: ValueError: negative" in str(found)


def test_methods_can_be_checked() -> None:
    @arc.struct
    class Body:
        mass: float

        @arc.compile
        def rate(self, force):
            return force / self.mass

    assert "ZeroDivisionError" in str(Body(0.0).rate.check(1.0))

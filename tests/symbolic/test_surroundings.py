"""What a recording does to its surroundings: modules imported meanwhile, errors at its start."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest

import archimedes as arc
from archimedes.symbolic import is_tracing
from archimedes.symbolic.recorded import numpy_overrides


def test_a_module_of_numpy_is_first_imported_while_recording():
    """``numpy.ma`` reads the texts of functions, and keeps the functions, as it is imported."""
    code = """
import sys, numpy as np, archimedes as arc
def f(x):
    import numpy.ma
    return np.clip(x, 0.0, 1.0) * 2.0
assert "numpy.ma" not in sys.modules
assert float(arc.compile(f)(0.25)) == 0.5
assert np.ma.clip(np.ma.array([-1.0, 3.0]), 0.0, 1.0).tolist() == [0.0, 1.0]
assert np.clip.__doc__.lstrip().startswith("Clip")
print("ok")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


class _LoadsWhenLookedAt(types.ModuleType):
    def __getattribute__(self, name):
        raise ImportError(f"{name} is looked at")


def test_modules_that_load_lazily_stay_as_they_are(monkeypatch):
    monkeypatch.setitem(sys.modules, "a_lazy_module", _LoadsWhenLookedAt("a_lazy_module"))
    assert float(arc.compile(lambda x: np.sin(x))(0.5)) == np.sin(0.5)


def test_an_error_at_the_start_leaves_nothing_behind(monkeypatch):
    def fails():
        raise MemoryError("no room")

    monkeypatch.setattr(numpy_overrides, "install", fails)
    with pytest.raises(MemoryError, match="no room"):
        arc.compile(lambda x: x + 1.0)(1.0)
    assert not is_tracing()
    monkeypatch.undo()
    assert float(arc.compile(lambda x: x + 1.0)(1.0)) == 2.0

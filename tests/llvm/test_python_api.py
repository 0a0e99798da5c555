"""Where native code calls CPython's C API, and what that package is made of."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.python_api.c_api import NEWEST, is_supported

#: What says no, each by itself.
REASONS = {
    "the switch": ("environ", {"ARCHIMEDES_PYTHON_API": "0"}),
    "PyPy": ("implementation", SimpleNamespace(name="pypy")),
    "a free-threaded build": ("version", "3.14.7 free-threading build (main)"),
    "the next CPython": ("version_info", (3, NEWEST[1] + 1, 0)),
    "another order of bytes": ("byteorder", "big"),
}


@pytest.fixture
def known(monkeypatch):
    """A CPython on which the C API is called, whichever runs the tests."""
    monkeypatch.delenv("ARCHIMEDES_PYTHON_API", raising=False)
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="cpython"))
    monkeypatch.setattr(sys, "version", "3.13.0 (main)")
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    monkeypatch.setattr(sys, "byteorder", "little")


def test_a_known_cpython_is_supported(known):
    assert is_supported.__wrapped__()


@pytest.mark.parametrize("reason", REASONS)
def test_where_python_is_plain(known, monkeypatch, reason):
    name, value = REASONS[reason]
    if name == "environ":
        for variable, text in value.items():
            monkeypatch.setenv(variable, text)
    else:
        monkeypatch.setattr(sys, name, value)
    assert not is_supported.__wrapped__()


PLAIN = """
import ctypes, sys
del ctypes.pythonapi
import numpy as np
import archimedes as arc
from archimedes.optimize import minimize
f = arc.compile(lambda x: np.sin(x) + x[0], backend="llvm")
for _ in range(6):
    y = f(np.arange(3.0))
assert not f._shortcuts
print(y.tobytes().hex())
print(minimize(lambda x: np.sum((x - 2.0) ** 2), np.zeros(2), method="ipm").x.round(6).tolist())
"""


def test_the_plain_path_does_without_the_c_api(monkeypatch):
    """As on an interpreter whose ctypes has no ``pythonapi``."""
    monkeypatch.setenv("ARCHIMEDES_PYTHON_API", "0")
    command = [sys.executable, "-c", PLAIN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    want = arc.compile(lambda x: np.sin(x) + x[0], backend="interpreter")(np.arange(3.0))
    assert bytes.fromhex(done.stdout.split()[0]) == want.tobytes()
    assert done.stdout.splitlines()[1] == "[2.0, 2.0]"

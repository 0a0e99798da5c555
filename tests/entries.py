"""Tests of direct entries, which only some interpreters have (``ARCHIMEDES_PYTHON_API``)."""

from __future__ import annotations

import pytest

from archimedes.backends.llvm.python_api.c_api import supported

__all__ = ["needs_entries", "supported"]

needs_entries = pytest.mark.skipif(
    not supported(), reason="native code does not call the C API here: no direct entries"
)

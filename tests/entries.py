"""Tests of direct entries, which only some interpreters have (``ARCHIMEDES_PYTHON_API``)."""

from __future__ import annotations

import pytest

from archimedes.backends.llvm.python_api.c_api import is_supported

__all__ = ["is_supported", "needs_entries"]

needs_entries = pytest.mark.skipif(
    not is_supported(), reason="native code does not call the C API here: no direct entries"
)

"""Marks for tests that need compilers and emulators.

Without the programs such a test is skipped and says what to install (``.ci/install-tools``). With
``ARCHIMEDES_REQUIRE_TOOLS=1``, as in ``.ci/run``, it runs and fails.
"""

from __future__ import annotations

import os

import pytest

from archimedes.embedded.boards import missing_tools
from archimedes.system.programs import install_hint

REQUIRED = os.environ.get("ARCHIMEDES_REQUIRE_TOOLS", "0") not in ("", "0")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark a test that runs these programs."""
    missing = missing_tools(programs)
    hints = sorted({install_hint(name) for name in missing})
    reason = f"needs {' and '.join(missing)}: .ci/install-tools, or {' and '.join(hints)}"
    return pytest.mark.skipif(bool(missing) and not REQUIRED, reason=reason)

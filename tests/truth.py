"""Where published data lie that the project does not carry: ``../shared/truth`` beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

TRUTH = Path(__file__).resolve().parents[2] / "shared" / "truth"
needs_truth = pytest.mark.skipif(
    not TRUTH.is_dir(), reason="the published data are not beside the project (../shared/truth)"
)

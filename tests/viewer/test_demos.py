"""Every demonstration passes its own checks and leaves a page."""

from __future__ import annotations

import pytest

from archimedes.demos import DEMOS, run_demo
from tests.long_parameters import long_but

#: The first run is flown by test_browser.py, the tumbling body by tests/cli.
OTHERS = [name for name in DEMOS if name not in ("f16", "t-handle")]


@pytest.mark.long_cases("arm")
@pytest.mark.parametrize("name", long_but(["arm"], OTHERS))
def test_demonstration(name, tmp_path):
    report = run_demo(name, tmp_path, 20, quiet=True)
    if DEMOS[name].live:
        assert 100_000 < (tmp_path / f"{name}_live.html").stat().st_size < 2_000_000
    assert report.good, report.checks
    assert (tmp_path / f"{name}.html").stat().st_size < 3_000_000
    assert any(f.suffix == ".png" for f in report.files)


def test_unknown_names(tmp_path):
    with pytest.raises(ValueError, match="no demo 'dance'; there are f16"):
        run_demo("dance", tmp_path)

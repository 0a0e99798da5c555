"""The Python blocks of every page run, one after the other."""

from __future__ import annotations

import sys

import matplotlib
import pytest
from matplotlib import pyplot

from .pages import PAGES, run_blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "page", None)  # put back afterwards
    matplotlib.use("agg")
    run_blocks(page)
    pyplot.close("all")

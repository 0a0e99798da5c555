"""The Python blocks of every page run, one after the other."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in WRITTEN if BLOCK.search(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    text = page.read_text("utf-8")
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for found in BLOCK.finditer(text):
        # Blank lines in front keep the line numbers of the page in tracebacks.
        blank = "\n" * text.count("\n", 0, found.start(1))
        code = compile(blank + found[1], str(page), "exec", dont_inherit=True)
        exec(code, module.__dict__)
    pyplot.close("all")

"""Runs the Python blocks of every page, one after the other: ``python -m tests.quality.pages``.

Needs what the README's first command installs, and nothing else.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import types
from pathlib import Path

__all__ = ["PAGES", "run_blocks"]

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in WRITTEN if BLOCK.search(page.read_text("utf-8"))]


def run_blocks(page: Path) -> None:
    """Run the blocks of a page as one module, in the current folder."""
    text = page.read_text("utf-8")
    module = types.ModuleType("page")
    sys.modules["page"] = module
    for found in BLOCK.finditer(text):
        # Blank lines in front keep the line numbers of the page in tracebacks.
        blank = "\n" * text.count("\n", 0, found.start(1))
        code = compile(blank + found[1], str(page), "exec", dont_inherit=True)
        exec(code, module.__dict__)


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            run_blocks(page)
            os.chdir(ROOT)
        print(f"{page.relative_to(ROOT)}: all blocks run")

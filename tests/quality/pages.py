"""Runs the Python blocks of every page, and every example: ``python -m tests.quality.pages``.

Needs what the README's first command installs, and nothing else; blocks that say ``needs=`` are
left out where that is missing. What they print and draw is kept in ``build/pages`` for the site.
"""

from __future__ import annotations

from docs.site.block_runs import run_blocks
from docs.site.kept_outputs import run_all
from docs.site.page_blocks import PAGES, ROOT

__all__ = ["PAGES", "ROOT", "run_blocks"]

if __name__ == "__main__":
    run_all()

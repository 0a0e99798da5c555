"""Builds the documentation: ``python -m docs.build``; its first page is build/docs/index.html.

Runs the pages and examples whose outputs are not kept (see ``docs/site/kept_outputs.py``), writes
the sources of the site into ``build/docs_source`` and has Sphinx make HTML of them, offline, with
warnings as errors. Needs ``pip install -e ".[docs]"``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time

from docs.site.kept_outputs import run_all
from docs.site.page_blocks import ROOT
from docs.site.sources import write_sources

__all__ = ["main"]

SOURCE, SITE = ROOT / "build" / "docs_source", ROOT / "build" / "docs"
DOCTREES = ROOT / "build" / "docs_doctrees"


def main(arguments: list[str] | None = None) -> int:
    """Build the site and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.build", description=__doc__)
    parser.add_argument("--stale", action="store_true", help="take outputs of an older package")
    parser.add_argument("--jobs", default="auto", help="processes of Sphinx (default: auto)")
    chosen = parser.parse_args(arguments)
    from sphinx.cmd.build import main as sphinx

    begun = time.perf_counter()
    outputs = run_all(stale=chosen.stale)
    ran = time.perf_counter()
    write_sources(SOURCE, outputs)
    # Sphinx reads what has changed, and writes every page: none of an earlier build is left.
    shutil.rmtree(SITE, ignore_errors=True)
    options = ["-b", "html", "-W", "--keep-going", "-q", "-j", chosen.jobs, "-d", str(DOCTREES)]
    status = sphinx([*options, "-c", str(ROOT / "docs"), str(SOURCE), str(SITE)])
    done = time.perf_counter()
    print(f"blocks {ran - begun:.0f} s, site {done - ran:.0f} s: {SITE / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())

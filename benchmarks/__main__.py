"""``python -m benchmarks [--write] [module ...]``: measure, and write benchmarks/RESULTS.md.

Without names all modules are measured and the page is written; with names their tables are
printed, and with ``--write`` take the place of the old ones on the page.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.report import RESULTS, page, replaced


def collect(names: list[str]) -> list[benchmarks.report.Table]:
    """Tables of the named modules, or of all that have some."""
    found = names or sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__))
    tables = []
    for name in found:
        if name == "__main__":
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        if hasattr(module, "tables"):
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            tables.extend(module.tables())
    return tables


def main(names: list[str]) -> None:
    """Measure; print, and write the page, or the tables of the modules that were asked for."""
    write = "--write" in names
    names = [name for name in names if name != "--write"]
    tables = collect(names)
    text = page(tables)
    print(text)
    if not names:
        RESULTS.write_text(text, encoding="utf-8")
    elif write:
        RESULTS.write_text(replaced(RESULTS.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

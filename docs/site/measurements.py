"""The page on performance: the measurements in ``benchmarks/RESULTS.md``."""

from __future__ import annotations

import re

__all__ = ["performance_page"]

OPENING = """# Performance

How long things take, measured against other programs that do the same work in the same run, with
the results compared first. Every table is written by a program:

```
pip install -e ".[test,bench]" && python -m benchmarks
```

Figures are those of the machine described first. Ratios carry over to other machines better than
times do. What is slower here than elsewhere is in the tables as well; see also
[limits](../docs/limits.md).
"""


#: Tables of one row per point: a picture shows them, the file has them.
LONG_TABLES = ("Work and precision: all points",)
SECTION = re.compile(r"^## (.*)\n", re.MULTILINE)
ROWS = re.compile(r"(^\|.*\n?)+", re.MULTILINE)


def performance_page(results: str) -> str:
    """Return the page, from the text of RESULTS.md."""
    _, *parts = SECTION.split(results)
    sections = zip(parts[::2], parts[1::2])
    return OPENING + "".join(f"\n## {title}\n{_readable(title, text)}" for title, text in sections)


def _readable(title: str, text: str) -> str:
    """Leave out long tables; keep numbers such as 1e-9 in one line."""
    if title in LONG_TABLES:
        text = ROWS.sub("All points are in benchmarks/RESULTS.md.\n", text, count=1)
    return re.sub(r"(?<=\de)-(?=\d)", "\N{NON-BREAKING HYPHEN}", text)

"""The page on performance: the measurements in ``benchmarks/RESULTS.md``."""

from __future__ import annotations

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


def performance_page(results: str) -> str:
    """Return the page, from the text of RESULTS.md."""
    _, _, tables = results.partition("\n## ")
    return f"{OPENING}\n## {tables}"

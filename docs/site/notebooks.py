"""Notebooks of pages: the text between blocks as Markdown cells, blocks as code with outputs."""

from __future__ import annotations

import json
import re
from typing import Any

from docs.site.page_blocks import blocks_of

__all__ = ["notebook"]

#: What only the site understands.
DIRECTIVE = re.compile(r"^```\{.*?^```$\n?|\{download\}`([^`<]+?)\s*<[^`]*>`", re.M | re.S)


def notebook(text: str, outputs: list[dict[str, Any]]) -> str:
    """Return a page as the text of a notebook.

    >>> made = notebook("# A\\n\\n```python\\n1 + 1\\n```\\n", [{"text": "2"}])
    >>> [(c["cell_type"], c["source"]) for c in json.loads(made)["cells"]]
    [('markdown', '# A'), ('code', '1 + 1')]
    """
    cells: list[dict[str, Any]] = []
    end = 0
    for block, output in zip(blocks_of(text), outputs, strict=True):
        fence = text.rindex("```python", end, block.end)
        cells += [_prose(text[end:fence]), _code(block.code, output["text"], block.raises)]
        end = block.end
    cells.append(_prose(text[end:]))
    cells = [c | {"id": f"cell-{k}"} for k, c in enumerate(c for c in cells if c["source"])]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _prose(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": DIRECTIVE.sub(r"\1", text).strip()}


def _code(code: str, printed: str, raises: bool) -> dict[str, Any]:
    shown = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": ["raises-exception"]} if raises else {},
        "outputs": shown,
        "source": code.rstrip(),
    }

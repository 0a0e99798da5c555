"""Sources of the site: the pages with their outputs, and the pages that are made."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from docs.site.demo_pictures import write_live_pages
from docs.site.examples import example_pages
from docs.site.kept_outputs import PICTURE_FOLDER
from docs.site.notebooks import notebook
from docs.site.page_blocks import ROOT, blocks_of, source_pages
from docs.site.reference import reference_pages

__all__ = ["write_sources"]

DOCS = ROOT / "docs"
#: Pages that lie elsewhere in the repository.
ELSEWHERE = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "benchmarks/RESULTS.md": "performance.md",
    "examples": "gallery.md",
    "docs/decisions": "decisions/index.md",
}
FENCED = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^)#\s:]*)(#[^)\s]*)?\)")
#: A page in 3-D inside a page; it begins when it is seen.
FRAME = (
    '<iframe class="scene" loading="lazy" title="The scene that the block saves" src="{}"></iframe>'
)
OTHER_PAGES = "<!-- other pages -->"


def write_sources(folder: Path, outputs: dict[Path, list[dict[str, Any]]]) -> None:
    """Write all sources of the site; files that would not change are left alone."""
    texts: dict[str, str] = {}
    for page in source_pages():
        if page.name != "README.md":
            texts[_place(page)] = _linked(page, _with_outputs(page, outputs.get(page, [])))
        if page.parent.name == "tutorials" and page.stem != "index":
            name = page.relative_to(DOCS).with_suffix(".ipynb")
            texts[str(name)] = notebook(page.read_text("utf-8"), outputs.get(page, []))
    for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        page = ROOT / name
        texts[_place(page)] = _linked(page, page.read_text("utf-8"))
    results = ROOT / "benchmarks" / "RESULTS.md"
    texts["performance.md"] = _linked(results, performance_page(results.read_text("utf-8")))
    texts.update({f"{name}.md": text for name, text in example_pages(outputs)})
    texts.update({f"{name}.rst": text for name, text in reference_pages()})
    texts["index.md"] = _with_other_pages(texts)
    _write(folder, texts)
    write_live_pages(PICTURE_FOLDER / "live")
    for source in (DOCS / "_static", PICTURE_FOLDER):
        shutil.copytree(source, folder / source.name, dirs_exist_ok=True)
    for picture in results.parent.glob("*.png"):
        shutil.copy2(picture, folder)


def _write(folder: Path, texts: dict[str, str]) -> None:
    """Write what has changed, so that Sphinx reads no more than that; delete what is gone."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    pages = {p for p in folder.rglob("*") if p.suffix in (".md", ".rst", ".ipynb")}
    for path in pages - {folder / name for name in texts}:
        path.unlink()


def _place(page: Path) -> str:
    """Return where a page of the repository is in the site."""
    name = page.relative_to(ROOT).as_posix()
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if name.startswith("examples/"):
        return f"examples/{page.stem}.md"
    return page.relative_to(DOCS).as_posix() if name.startswith("docs/") else ""


def _linked(page: Path, text: str) -> str:
    """Return the text with links to files of the repository as links in the site."""
    here = Path(_place(page)).parent

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if not target:
            return found[0]
        place = _place(Path(os.path.normpath(page.parent / target)))
        # Files of the source are no pages: their names will do.
        return f"[{words}]({os.path.relpath(place, here)}{anchor})" if place else words

    parts = FENCED.split(text)
    return "".join(part if k % 2 else LINK.sub(link, part) for k, part in enumerate(parts))


def _with_outputs(page: Path, outputs: list[dict[str, Any]]) -> str:
    """Return a page with what each block printed and drew behind it."""
    text = page.read_text("utf-8")
    up = "../" * (len(page.relative_to(DOCS).parts) - 1)
    for block, output in reversed(list(zip(blocks_of(text), outputs, strict=True))):
        style = "output message" if block.raises else "output"
        text = text[: block.end] + _shown(output, up, style) + text[block.end :]
    return text


def _shown(output: dict[str, Any], up: str, style: str) -> str:
    shown = ""
    if output["text"].strip():
        shown += f"\n\n```{{code-block}} text\n:class: {style}\n\n{output['text'].rstrip()}\n```\n"
    for picture in output["pictures"]:
        shown += f"\n\n![What the block draws.]({up}pictures/{picture})\n"
    for scene in output["scenes"]:
        shown += f"\n\n```{{raw}} html\n{FRAME.format(f'{up}_static/{scene}')}\n```\n"
    if output["skipped"]:
        shown += (
            f"\n\n*(Not run where this page was made: no {', '.join(output['skipped'])} there.)*\n"
        )
    return shown


def _with_other_pages(texts: dict[str, str]) -> str:
    """Add pages that no table of contents names yet, so that all are found."""
    index = texts["index.md"]
    named = "\n".join(text for name, text in texts.items() if "```{toctree}" in text)
    top = [n[:-3] for n in texts if "/" not in n and n.endswith(".md") and n != "index.md"]
    others = [n for n in top if not re.search(rf"^{n}$|<{n}>$", named, re.MULTILINE)]
    return index.replace(OTHER_PAGES, "\n".join(sorted(others)))


# ---- the page on performance: the measurements in ``benchmarks/RESULTS.md`` -------------------

PERFORMANCE = """# Performance

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
    return PERFORMANCE + "".join(
        f"\n## {title}\n{_readable(title, text)}" for title, text in sections
    )


def _readable(title: str, text: str) -> str:
    """Leave out long tables; keep numbers such as 1e-9 in one line."""
    if title in LONG_TABLES:
        text = ROWS.sub("All points are in benchmarks/RESULTS.md.\n", text, count=1)
    return re.sub(r"(?<=\de)-(?=\d)", "\N{NON-BREAKING HYPHEN}", text)

"""Every file, folder, module and link that the pages at the root name is there."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
from functools import cache
from pathlib import PurePosixPath

import pytest

from tests.checkout import ROOT, tracked_files, untracked_files

PAGES = tuple(
    str(page.relative_to(ROOT))
    for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "decisions", ROOT / "docs" / "tutorials")
    for page in sorted(folder.glob("*.md"))
    if page.name != "CHANGELOG.md"
)
#: Pages that name paths from the folder they are about.
ABOUT_FOLDERS = ("ARCHITECTURE.md", "docs/")
#: Endings of files that pages name without a folder.
ENDINGS = (".py", ".pyi", ".md", ".toml", ".yaml", ".json")
#: What commands write, and names that stand for any.
NOT_KEPT = re.compile(
    r"(build|dist|archimedes_demo)/?.*|.*NAME.*|flight\.yaml|ln2/2|(?!\.ci).?\W.*"
)
FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", ".ci")


def paths_in(text: str) -> set[str]:
    """Return what a page names as a path: in code, or in prose from a folder of the root on.

    >>> sorted(paths_in("see `graph/ops.py`, `np.sum` and docs/ulp.md"))
    ['docs/ulp.md', 'graph/ops.py']
    """
    words = [word for code in re.findall(r"`([^`\n]+)`", text) for word in code.split()]
    code = {w for w in words if re.fullmatch(r"\.?\w[\w.-]*(/[\w.*-]+)*/?", w)}
    folders = "|".join(map(re.escape, FOLDERS))
    prose = set(re.findall(rf"(?<![\w/.-])(?:{folders})/[\w./-]*\w", text))
    # Decisions are cited by their number.
    return {
        f"{path}-*.md" if re.fullmatch(r"docs/decisions/\d+", path) else path
        for path in {w for w in code if "/" in w or w.endswith(ENDINGS)} | prose
        if not NOT_KEPT.fullmatch(path)
    }


@cache
def known_paths() -> tuple[str, ...]:
    """Return the files of the checkout and their folders, as paths from the root."""
    files = {*tracked_files(), *untracked_files()}
    return (*files, *{str(folder) for file in files for folder in PurePosixPath(file).parents})


def is_there(path: str, anywhere: bool) -> bool:
    """Return whether a path exists in the root or the package, or in any folder below them."""
    pattern = path.rstrip("/")
    above = ("", "src/archimedes/", *(("*/",) if anywhere else ()))
    return any(fnmatch.filter(known_paths(), folder + pattern) for folder in above)


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page):
    """Sections of the map are about a folder: there a path may begin in it."""
    named = paths_in((ROOT / page).read_text("utf-8"))
    assert sorted(p for p in named if not is_there(p, page.startswith(ABOUT_FOLDERS))) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_exist(page):
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text("utf-8"))
    here = (ROOT / page).parent
    # Pages that the site makes are followed by Sphinx.
    ours = [
        k for k in links if "://" not in k and k not in ("performance.md", "reference/index.rst")
    ]
    assert [k for k in ours if not (here / k).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_modules_exist(page):
    modules = re.findall(r"python3? -m ([\w.]+)", (ROOT / page).read_text("utf-8"))
    assert [m for m in modules if importlib.util.find_spec(m) is None] == []


def test_a_path_that_is_gone_is_found():
    assert paths_in("a row in `symbolic/ufuncs.py` or `np.einsum`") == {"symbolic/ufuncs.py"}
    assert not is_there("symbolic/ufuncs.py", anywhere=True)
    assert not is_there("core/ufuncs.py", anywhere=False)
    assert is_there("core/ufuncs.py", anywhere=True)


def test_the_index_names_every_decision_by_its_title():
    folder = ROOT / "docs" / "decisions"
    rows = re.findall(r"- \[(\d+)\]\((\S+)\) (.+)", (folder / "index.md").read_text("utf-8"))
    pages = sorted(page.name for page in folder.glob("[0-9]*.md"))
    assert sorted(name for _, name, _ in rows) == pages
    for number, name, title in rows:
        assert name.startswith(number)
        assert (folder / name).read_text("utf-8").partition("\n")[0] == f"# {number}: {title}"


def test_the_map_fits_on_a_few_screens():
    lines = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []

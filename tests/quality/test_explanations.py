"""Errors that tutorials' readers are likely to meet name a section that explains them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from docs.site.block_runs import run_blocks
from docs.site.page_blocks import ROOT, blocks_of

from archimedes.errors import EXPLAINED, refer_to

PAGE = ROOT / "docs" / "errors.md"
TEXT = PAGE.read_text("utf-8")
COMMAND = re.compile(r"^For an example and its remedy: archimedes explain (.+)$", re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor of a heading, as repositories and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def links_of(message: str) -> list[str]:
    """The sections that a message leads to."""
    return [EXPLAINED[kind] for kind in COMMAND.findall(message)]


def anchors() -> set[str]:
    return {f"errors.md#{slug(h)}" for h in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)}


@pytest.fixture
def mistakes(tmp_path, monkeypatch):
    """Sections with the messages of the mistakes in them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "page", None)
    found = []
    for block, output in zip(blocks_of(TEXT), run_blocks(PAGE), strict=True):
        if block.raises:
            section = re.findall(r"^### (.*)$", TEXT[: block.end], re.MULTILINE)[-1]
            found.append((section, output.text))
    return found


@pytest.mark.long
def test_forty_mistakes_lead_to_sections_that_explain(mistakes):
    assert len(mistakes) >= 40
    known = anchors()
    for section, message in mistakes:
        links = links_of(message)
        assert len(links) == 1, (section, message)
        assert links[0] in known, (section, links)
    # A section's own mistake leads to it, unless a more general one does.
    led = {link for _, message in mistakes for link in links_of(message)}
    assert led == set(EXPLAINED.values())
    own = [s for s, message in mistakes if f"errors.md#{slug(s)}" in links_of(message)]
    assert len(own) >= 40


def test_the_table_and_the_page_agree():
    assert set(EXPLAINED.values()) <= anchors()
    assert len(set(EXPLAINED.values())) == len(EXPLAINED)


def test_every_kind_is_used():
    source = ROOT / "src" / "archimedes"
    texts = [p.read_text("utf-8") for p in Path(source).rglob("*.py") if p.name != "errors.py"]
    used = {kind for text in texts for kind in re.findall(r'refer_to\(\s*"([^"]+)"', text)}
    assert used == set(EXPLAINED)


def test_unknown_kinds_are_mistakes():
    with pytest.raises(KeyError):
        refer_to("nothing")

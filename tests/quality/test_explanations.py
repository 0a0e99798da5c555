"""Errors that tutorials' readers are likely to meet name a section that explains them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from docs.site.block_runs import run_blocks
from docs.site.page_blocks import ROOT, blocks_of

from archimedes.cli.explain import read_sections

PAGE = ROOT / "docs" / "errors.md"
TEXT = PAGE.read_text("utf-8")
COMMAND = re.compile(r"^For an example and its remedy: archimedes explain (.+)$", re.MULTILINE)


#: The title of each section, by the kind that it explains.
TITLES = {kind: text.partition("\n")[0] for kind, text in read_sections().items()}


def titles_of(message: str) -> list[str]:
    """The sections that a message leads to."""
    return [TITLES[kind] for kind in COMMAND.findall(message)]


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
    for section, message in mistakes:
        assert len(titles_of(message)) == 1, (section, message)
    # A section's own mistake leads to it, unless a more general one does.
    led = {title for _, message in mistakes for title in titles_of(message)}
    assert led == set(TITLES.values())
    own = [section for section, message in mistakes if section in titles_of(message)]
    assert len(own) >= 40


def test_every_kind_has_one_section():
    kinds = re.findall(r"^<!-- explain: (.+) -->$", TEXT, re.MULTILINE)
    assert sorted(kinds) == list(TITLES) and len(set(TITLES.values())) == len(TITLES)


def test_every_kind_is_used():
    source = ROOT / "src" / "archimedes"
    texts = [p.read_text("utf-8") for p in Path(source).rglob("*.py") if p.name != "errors.py"]
    used = {kind for text in texts for kind in re.findall(r'refer_to\(\s*"([^"]+)"', text)}
    assert used == set(TITLES)

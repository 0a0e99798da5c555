"""Every file of ``examples/`` runs, and what it asserts holds."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import pytest
from docs.site.unit_checks import units_checked

from .test_pages import has_run

FOLDER = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(FOLDER.glob("*.py"))


def test_there_are_examples():
    assert len(FILES) >= 8


@pytest.mark.long
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    if has_run(path):
        return
    matplotlib.use("agg")  # examples may show windows
    monkeypatch.chdir(tmp_path)
    with units_checked(path):
        runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example says what it found"
    assert list(tmp_path.iterdir()) == [], "an example leaves no files behind"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_examples_are_short(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 120
    assert "assert " in text, "an example checks what it claims"

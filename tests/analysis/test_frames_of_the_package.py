"""The physics of this package, its examples, pages and tests: no frame is mixed up in them."""

from __future__ import annotations

from pathlib import Path

import pytest

import archimedes as arc
from tests.checkout import ROOT

PACKAGE = Path(arc.__file__).parent


def test_models_of_strangers_are_silent():
    report = arc.check_frames(Path(__file__).parent / "frame_models")
    assert report.ok, str(report)


def test_the_physics_is_silent():
    folders = "spatial vehicles environment demos observers"
    report = arc.check_frames([PACKAGE / name for name in folders.split()])
    assert report.ok, str(report)


@pytest.mark.long
def test_everything_else_is_silent():
    others = [PACKAGE, ROOT / "examples", ROOT / "benchmarks"]
    pages = sorted((ROOT / "docs").rglob("*.md"))
    report = arc.check_frames([p for p in [*others, *pages] if p.exists()])
    assert report.ok, str(report)


@pytest.mark.long
def test_the_models_of_the_tests_are_silent():
    folders = [f for f in (ROOT / "tests").iterdir() if f.is_dir() and f.name != "analysis"]
    report = arc.check_frames(sorted(folders))
    assert report.ok, str(report)

"""The Python blocks of every page run, one after the other."""

from __future__ import annotations

import os
import sys

import matplotlib
import pytest
from docs.site.kept_outputs import kept
from docs.site.page_blocks import blocks_of
from matplotlib import pyplot

from .pages import PAGES, ROOT, run_blocks

#: Pages that are made of mistakes have a test of their own.
OTHERS = [page for page in PAGES if page.name != "errors.md"]


def has_run(path) -> bool:
    """Whether this very file has been run a while ago, and the results were kept for the tests."""
    return os.environ.get("ARCHIMEDES_KEPT_OUTPUTS") == "1" and kept(path) is not None


@pytest.mark.long_cases(
    "archimedes",
    "autopilots",
    "bounds",
    "casadi",
    "control",
    "environment",
    "estimation",
    "f16_autopilot",
    "filter_to_cortex_m",
    "getting_started",
    "gymnasium",
    "jax*",
    "live_pages",
    "logs",
    "matlab",
    "multibody",
    "noise_and_campaigns",
    "numpy_scipy",
    "optimal_landing",
    "optimize",
    "pendulum_to_flight_computer",
    "plots",
    "precision",
    "pytorch",
    "random",
    "robot_arm",
    "simulation",
    "six_degrees_of_freedom",
    "time_series",
    "vehicles",
    "viewer",
)
@pytest.mark.parametrize("page", OTHERS, ids=lambda p: p.stem)
def test_blocks_run(page, tmp_path, monkeypatch):
    if has_run(page):
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "page", None)  # put back afterwards
    matplotlib.use("agg")
    run_blocks(page)
    pyplot.close("all")


def test_ten_pages_have_a_model_to_play_with():
    """Blocks marked ``interactive`` save a page that has the model in it, or they fail."""
    pages = {p for p in PAGES if any(b.interactive for b in blocks_of(p.read_text("utf-8")))}
    assert len(pages) >= 10, sorted(page.stem for page in pages)


def test_every_page_opens_with_what_it_is_for():
    for page in PAGES:
        title, _, rest = page.read_text("utf-8").partition("\n")
        assert title.startswith("# "), page
        assert rest.lstrip()[:1].isalpha() or rest.lstrip().startswith(("`arc", "`Arc", "[")), page


def test_blocks_with_words_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="line 3: a block of Python says 'rises'"):
        list(blocks_of("# A\n\n```python rises\n1\n```\n"))


def test_a_block_says_what_it_needs(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python needs=no_such_module\nimport no_such_module\n```\n", "utf-8")
    (output,) = run_blocks(page)
    assert output.skipped == ["no_such_module"]


def test_a_mistake_that_is_none_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python raises\n1 + 1\n```\n", "utf-8")
    with pytest.raises(AssertionError, match=r"page\.md:4: the block should end in an error"):
        run_blocks(page)


def test_all_pages_are_found():
    assert ROOT / "README.md" in PAGES and len(PAGES) > 30

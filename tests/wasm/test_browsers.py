"""The catalogue and models in headless browsers, bit for bit, and the example page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.system.programs import find_program
from archimedes.viewer.browser import Browser

from ..embedded.toolchain import needs
from ..programs.catalogue import programs
from ..programs.ops import OPS, op_program
from .browsers import run_in_chromium, run_in_firefox
from .checking import Case, differences
from .travellers import NAMES, traveller

pytestmark = pytest.mark.long
CHROMIUM = needs("chromium")
#: Not every system has a package of it.
FIREFOX = pytest.mark.skipif(find_program("firefox-esr") is None, reason="needs firefox-esr")
BROWSERS = [
    pytest.param(run_in_chromium, marks=CHROMIUM, id="chromium"),
    pytest.param(run_in_firefox, marks=FIREFOX, id="firefox"),
]


@pytest.mark.parametrize("run", BROWSERS)
def test_the_catalogue(run, tmp_path: Path):
    made = [*programs(), *(op_program(*row) for row in OPS)]
    cases = [Case(x.name, x.graph, x.columns, x.count) for x in made]
    assert not differences(cases, tmp_path, simd=True, run=run)


@pytest.mark.parametrize("run", BROWSERS)
def test_solvers_filters_robots_and_vehicles(run, tmp_path: Path):
    cases = [traveller(name) for name in NAMES]
    assert not differences(cases, tmp_path, simd=True, run=run)


@CHROMIUM
def test_the_example_page(tmp_path: Path):
    """Opened from a file, under its content policy: fields are typed into, results follow."""

    def lift(speed, wing):
        return {"</script><script>alert(1)//": 0.5 * 1.225 * speed**2 * wing["area"]}

    wing = {"area": np.array([16.0, 2.5]), "__proto__": 1.0}
    arc.codegen(lift, (50.0, wing), target="wasm", name="lift", output_dir=tmp_path)
    with Browser(800, 600) as browser:
        browser.open(tmp_path / "lift.html")
        browser.wait("document.documentElement.dataset.ready === 'yes'")
        shown = browser.evaluate("document.querySelector('#outputs output').textContent")
        assert [float(x) for x in shown.split(",")] == [
            0.5 * 1.225 * 50.0**2 * x for x in (16, 2.5)
        ]
        type_into = """(value) => { const field = document.querySelector('[aria-label="speed"]');
            field.value = value; field.dispatchEvent(new Event('input')); }"""
        browser.evaluate(f"({type_into})('nan')")
        shown = browser.evaluate("document.querySelector('#outputs output').textContent")
        assert shown == "NaN, NaN"
        browser.evaluate(f"({type_into})('1, 2')")
        message = browser.evaluate("document.querySelector('#message').textContent")
        assert message == "speed: 1 numbers are needed"
        bad = ("Runtime.exceptionThrown", "Log.entryAdded")
        assert not [event for event in browser.events if event.get("method") in bad]

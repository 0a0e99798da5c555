"""40 mistakes and more: each is found in its line, and nothing is found without them."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from importlib import import_module

import pytest

import archimedes as arc
from tests.analysis.planted_units import OWN, PLANTED, SETUPS


def check(setup, module):
    """Return the findings of a check that a table describes: a function, arguments and units."""
    function, *rest = SETUPS[setup](module)
    units = rest.pop() if rest and type(rest[-1]) is dict else None
    return arc.check_units(function, units)(*rest)


@pytest.fixture
def run_source(monkeypatch):
    """Return a function that makes a module of some text, kept in a file with lines to name."""

    def run(text, path):
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, module)  # where dataclasses look
        spec.loader.exec_module(module)
        return module

    return run


def without_files(text):
    """Return the source of a vehicle without its parameter files, which only the package reads."""
    return re.split(r"\n\nclass \w+Config\(", text)[0] + "\n"


def test_there_are_enough():
    assert len(PLANTED) + len(OWN) >= 40
    assert len({p.name for p in PLANTED} | {name for name, *_ in OWN}) == len(PLANTED) + len(OWN)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_a_mistake_in_the_package_is_found_in_its_line(planted, run_source, tmp_path):
    source = without_files(inspect.getsource(import_module(planted.module)))
    assert source.count(planted.before) == 1, planted.before
    path = tmp_path / "planted.py"
    text = source.replace(planted.before, planted.after)
    report = check(planted.setup, run_source(text, path))
    lines = text.splitlines()
    found = [lines[f.line - 1] for f in report if f.file == str(path)]
    assert any(planted.marked.splitlines()[0] in line for line in found), str(report)


@pytest.mark.parametrize(("module", "setup"), sorted({(p.module, p.setup) for p in PLANTED}))
def test_without_it_there_is_nothing(module, setup):
    assert check(setup, import_module(module)).ok, str(check(setup, import_module(module)))


@pytest.mark.parametrize(("name", "source", "at"), OWN, ids=[name for name, *_ in OWN])
def test_a_mistake_in_a_model_is_found_in_its_line(name, source, at, run_source, tmp_path):
    path = tmp_path / "own.py"
    report = check("own", run_source(source, path))
    lines = source.splitlines()
    assert [f.file for f in report] == [str(path)], str(report)
    assert at in lines[report[0].line - 1], str(report)

"""200 random programs whose units fit have no finding; with one mistake each, it is found."""

from __future__ import annotations

import importlib.util

import pytest

import archimedes as arc
from tests.analysis.random_units import make_program


def check(program, path):
    path.write_text(program.source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    args = module.Args(*(1.5 + 0.25 * k for k in range(program.arguments)))
    return arc.check_units(module.f)(args)


def check_seeds(seeds, tmp_path):
    for seed in seeds:
        program = make_program(seed)
        report = check(program, tmp_path / f"fits{seed}.py")
        assert report.ok, f"seed {seed}\n{report}"


def count_found(seeds, tmp_path):
    missed = []
    for seed in seeds:
        program = make_program(seed, mistake=True)
        report = check(program, tmp_path / f"wrong{seed}.py")
        if {finding.line for finding in report} != {program.planted}:
            missed.append(f"seed {seed}, line {program.planted}, {program.what}\n{report}")
    return missed


def test_programs_that_fit(tmp_path):
    check_seeds(range(8), tmp_path)


def test_programs_with_a_mistake(tmp_path):
    assert count_found(range(8), tmp_path) == []


@pytest.mark.long
def test_many_programs_that_fit(tmp_path):
    check_seeds(range(8, 200), tmp_path)


@pytest.mark.long
def test_many_programs_with_a_mistake(tmp_path):
    missed = count_found(range(8, 200), tmp_path)
    assert missed == [], "\n".join(missed)

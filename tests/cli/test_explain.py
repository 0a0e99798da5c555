"""``archimedes explain`` prints what messages refer to, and hints name the right distribution."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import archimedes as arc
from archimedes import installation
from archimedes.cli import main
from archimedes.cli.explain import read_sections

ROOT = Path(__file__).resolve().parents[2]


def test_a_message_names_the_command_that_explains_it(capsys):
    with pytest.raises(arc.TraceError) as caught:
        arc.compile(lambda x: x if x > 0 else 0.0 * x)(2.0)
    command = str(caught.value).splitlines()[-1].partition("archimedes ")[2].split()
    assert command == ["explain", "branch"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert said.startswith("A branch on a value\n") and "np.where" in said
    assert "Python's max and min" not in said  # the next section


@pytest.mark.parametrize("kind", read_sections())
def test_every_kind_has_a_section(kind, capsys):
    assert main(["explain", *kind.split()]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 3
    assert main(["explain", kind.upper().replace(" ", "-"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == kind


def test_without_a_kind_all_are_listed(capsys):
    assert main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(read_sections())


def test_an_unknown_kind_is_answered_with_the_nearest(capsys):
    assert main(["explain", "brunch"]) == 1
    said = capsys.readouterr().err
    assert "no explanation of 'brunch'; did you mean 'branch'" in said


def test_hints_name_this_distribution(monkeypatch, tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == installation.DISTRIBUTION
    monkeypatch.chdir(ROOT)
    assert installation.install_command("viewer") == 'pip install -e ".[viewer]"'
    monkeypatch.chdir(tmp_path)
    assert installation.install_command("viewer") == f'pip install -e "{ROOT}[viewer]"'
    monkeypatch.setattr(installation, "checkout_folder", lambda: None)  # as in a wheel
    assert installation.install_command("viewer") == 'pip install "archimedes-dynamics[viewer]"'

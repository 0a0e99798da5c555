"""What belongs into a wheel and an sdist, without building them (``.ci/package`` does)."""

from __future__ import annotations

from email.message import Message

from archimedes import __version__
from archimedes.installation import DISTRIBUTION
from tests.checkout import ROOT, tracked_files
from tests.packaging.contents import (
    SDIST_EXTRA,
    faults_of_metadata,
    faults_of_names,
    sdist_names,
    wheel_names,
)
from tests.packaging.project import read_project, read_settings, version


def test_a_stray_file_and_a_missing_one_are_found():
    wanted = wheel_names(["src/archimedes/py.typed", "tests/conftest.py"])
    held = {"archimedes/py.typed", "archimedes/MUJOCO_LOG.TXT"}
    assert list(faults_of_names("wheel", held, wanted)) == [
        "wheel: archimedes/cli/errors.md is missing",
        "wheel: archimedes/MUJOCO_LOG.TXT does not belong there",
    ]


def test_the_sdist_holds_what_its_settings_say():
    settings = read_settings()["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    assert {*settings, "pyproject.toml"} == {"src/archimedes", *SDIST_EXTRA}
    assert not any(name.startswith("tests/") for name in sdist_names(tracked_files()))


def test_metadata_of_another_version_is_found():
    metadata = Message()
    metadata["Version"] = "0.0.1"
    faults = list(faults_of_metadata(metadata))
    assert f"metadata: Version is ['0.0.1'], expected ['{version()}']" in faults


def test_names_and_versions_agree():
    assert version() == __version__
    assert read_project()["name"] == DISTRIBUTION


def test_stray_files_are_not_tracked():
    """Logs, caches, results of commands and files of editors."""
    endings = (".log", ".LOG", ".TXT", ".pyc", ".npz", ".orig", ".rej", ".swp", ".whl", ".gz", "~")
    data = {"examples/learning/walking_policy.npz"}  # what an example has learnt
    assert {name for name in tracked_files() if name.endswith(endings)} == data
    empty = [n for n in tracked_files() if (ROOT / n).is_file() and not (ROOT / n).stat().st_size]
    assert {n.rpartition("/")[2] for n in empty} <= {"__init__.py", "py.typed"}

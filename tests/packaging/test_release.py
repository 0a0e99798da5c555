"""The release checklist finds what is wrong."""

from __future__ import annotations

import datetime

import pytest

from tests.checkout import ROOT
from tests.packaging import release
from tests.packaging.project import read_project

TODAY = datetime.date(2026, 1, 31)
PROJECT = {
    "requires-python": ">=3.11",
    "classifiers": [
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
    ],
}


def test_the_version_stands_in_one_place():
    assert list(release.faults_of_version()) == []


@pytest.mark.parametrize("text", ["## 1.0 (unreleased)", "## 1.0 (2026-01-30)", "## 0.9", ""])
def test_a_changelog_of_another_day(text):
    (fault,) = release.faults_of_changelog(text, "1.0", TODAY)
    assert "it should be '## 1.0 (2026-01-31)'" in fault


def test_the_classifiers_of_this_project_hold():
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    assert list(release.faults_of_classifiers(read_project(), run)) == []


def test_classifiers_that_nobody_tests():
    assert list(release.faults_of_classifiers(PROJECT, "for version in 3.11 3.13; do")) == [
        "a classifier says Python 3.12: .ci/run does not test it",
        ".ci/run tests Python 3.13: no classifier says so",
    ]
    anywhere = {**PROJECT, "classifiers": PROJECT["classifiers"][1:]}
    (fault,) = release.faults_of_classifiers(anywhere, "for version in 3.11 3.12; do")
    assert "CI runs on Linux alone" in fault


def test_the_readme_begins_with_the_commands_that_ci_runs():
    assert list(release.faults_of_readme((ROOT / "README.md").read_text("utf-8"))) == []
    (fault,) = release.faults_of_readme("```\npip install archimedes\n```\n")
    assert "pip install archimedes" in fault

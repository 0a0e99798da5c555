"""The release checklist: ``python -m tests.packaging.release`` (``.ci/release`` does all of it).

Says of each item whether it holds, and what to do where it does not. It publishes nothing: the
commands that do are printed for a person to type.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

from tests.checkout import ROOT, tracked_files
from tests.packaging.project import read_project, version

__all__ = [
    "CHECKLIST",
    "faults_of_changelog",
    "faults_of_classifiers",
    "faults_of_version",
    "main",
    "tested_pythons",
]

Faults = Iterator[str]


def faults_of_version(number: str | None = None) -> Faults:
    """Yield the tracked files that state the version besides the one that does."""
    number = version() if number is None else number
    pattern = re.compile(rf"^\W*_*version_*\W+{re.escape(number)}\b", re.MULTILINE | re.IGNORECASE)
    for name in tracked_files():
        # The template's is the version of the user's project.
        if name.endswith(("/version.py", "project_template/pyproject.toml.txt")):
            continue
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt"} and pattern.search(
            path.read_text("utf-8")
        ):
            yield f"{name} states the version too: src/archimedes/version.py alone does"


def faults_of_tag() -> Faults:
    """Yield whether this version has been released already."""
    if _git("tag", "--list", f"v{version()}"):
        yield f"v{version()} is released already: raise the number in src/archimedes/version.py"


def faults_of_changelog(text: str, number: str, today: datetime.date) -> Faults:
    """Yield why the first section of the changelog is not that of a release made today.

    >>> list(faults_of_changelog("## 1.2.0 (2026-01-31)", "1.2.0", datetime.date(2026, 1, 31)))
    []
    """
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    wanted = f"{number} ({today.isoformat()})"
    if sections[:1] != [wanted]:
        yield f"the first section of CHANGELOG.md is {sections[:1]}: it should be '## {wanted}'"


def tested_pythons(run: str) -> set[str]:
    """Return the versions of Python that ``.ci/run`` names: those it looks for, and parts.

    >>> sorted(tested_pythons("for version in 3.11 3.12; do\\npython314\\n"))
    ['3.11', '3.12', '3.14']
    """
    installed = re.findall(r"for version in ([\d. ]+);", run)
    parts = re.findall(r"^python(\d)(\d+)$", run, re.MULTILINE)
    return {*" ".join(installed).split(), *(f"{major}.{minor}" for major, minor in parts)}


def faults_of_classifiers(project: dict, run: str) -> Faults:
    """Yield the classifiers that CI does not bear out, and what it tests that they leave out."""
    prefix = "Programming Language :: Python :: "
    listed = {
        c.removeprefix(prefix) for c in project["classifiers"] if re.match(prefix + r"\d\.", c)
    }
    oldest = re.search(r">=\s*([\d.]+)", project["requires-python"])
    if oldest is None or sorted(listed, key=_number)[0] != oldest[1]:
        yield f"requires-python is {project['requires-python']}, the classifiers say {listed}"
    tested = tested_pythons(run)
    for python in sorted(listed - tested, key=_number):
        yield f"a classifier says Python {python}: .ci/run does not test it"
    for python in sorted(tested - listed, key=_number):
        yield f".ci/run tests Python {python}: no classifier says so"
    systems = [c for c in project["classifiers"] if c.startswith("Operating System")]
    if systems != ["Operating System :: POSIX :: Linux"]:
        yield f"{systems}: CI runs on Linux alone"


def faults_of_readme(text: str) -> Faults:
    """Yield whether the first screen has lost its two commands, which ``.ci/readme`` runs."""
    commands = re.findall(r"^```\n(.+)\n```$", text, re.MULTILINE)[:2]
    wanted = ["pip install -e . && python -m archimedes", 'pip install -e ".[test]" && pytest']
    if commands != wanted:
        yield f"the README's first commands are {commands}, expected {wanted}"


def faults_of_checkout() -> Faults:
    """Yield what is not committed, or not ignored."""
    yield from (f"not committed: {line}" for line in _git("status", "--porcelain"))


def _number(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split("."))


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


CHECKLIST: dict[str, Callable[[], Faults]] = {
    "the version stands in one place": faults_of_version,
    "the version is new": faults_of_tag,
    "the changelog has the version, with the date of today": lambda: faults_of_changelog(
        _read("CHANGELOG.md"), version(), datetime.date.today()
    ),
    "classifiers say what CI tests": lambda: faults_of_classifiers(
        read_project(), _read(".ci/run")
    ),
    "README's first screen has the commands that CI runs": lambda: faults_of_readme(
        _read("README.md")
    ),
    "everything is committed": faults_of_checkout,
}


def main() -> int:
    """Print the checklist; return the exit status."""
    failed = False
    for item, check in CHECKLIST.items():
        faults = list(check())
        failed |= bool(faults)
        print(f"[{' ' if faults else 'x'}] {item}")
        print("".join(f"      {fault}\n" for fault in faults), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

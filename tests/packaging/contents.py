"""What a wheel and an sdist hold: ``python -m tests.packaging.contents FOLDER``.

Compares both with the files that git knows, and reads the metadata that an index would show.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from tests.checkout import ROOT, tracked_files
from tests.packaging.project import read_project, version

__all__ = [
    "SDIST_EXTRA",
    "faults_of_metadata",
    "faults_of_names",
    "main",
    "sdist_names",
    "wheel_names",
]

#: The largest wheel and sdist that are not a mistake, in bytes.
LARGEST = 3_500_000
#: What an sdist holds besides the package.
SDIST_EXTRA = ("CHANGELOG.md", "LICENSE", "README.md", "docs/errors.md", "pyproject.toml")


def wheel_names(tracked: Sequence[str]) -> set[str]:
    """Return the files that a wheel should hold, besides its own description.

    >>> sorted(wheel_names(["README.md", "docs/errors.md", "src/archimedes/py.typed"]))
    ['archimedes/cli/errors.md', 'archimedes/py.typed']
    """
    inside = {name.removeprefix("src/") for name in tracked if name.startswith("src/archimedes/")}
    return inside | {"archimedes/cli/errors.md"}


def sdist_names(tracked: Sequence[str]) -> set[str]:
    """Return the files that an sdist should hold, besides its own description."""
    return {name for name in tracked if name.startswith("src/archimedes/")} | set(SDIST_EXTRA)


def faults_of_names(what: str, held: set[str], wanted: set[str]) -> Iterator[str]:
    """Yield what is missing from a distribution, and what does not belong there."""
    for name in sorted(wanted - held):
        yield f"{what}: {name} is missing"
    for name in sorted(held - wanted):
        yield f"{what}: {name} does not belong there"


def faults_of_metadata(metadata: Message) -> Iterator[str]:
    """Yield where the description of a distribution differs from the project's."""
    project = read_project()
    wanted = {
        "Name": [project["name"]],
        "Version": [version()],
        "License-Expression": [project["license"]],
        "Summary": [project["description"]],
        "Classifier": sorted(project["classifiers"]),
        "Provides-Extra": sorted(project["optional-dependencies"]),
        "Description-Content-Type": ["text/markdown"],
    }
    for key, values in wanted.items():
        if sorted(metadata.get_all(key) or []) != values:
            yield f"metadata: {key} is {metadata.get_all(key)}, expected {values}"
    pythons = {part.strip() for part in (metadata["Requires-Python"] or "").split(",")}
    if pythons != {part.strip() for part in project["requires-python"].split(",")}:
        yield f"metadata: Requires-Python is {metadata['Requires-Python']}"
    required = {r for r in metadata.get_all("Requires-Dist") or [] if "extra ==" not in r}
    if len(required) != len(project["dependencies"]):
        yield f"metadata: requires {sorted(required)}, expected {project['dependencies']}"


def faults_in(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the one wheel and the one sdist in a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    tracked = tracked_files()
    for path in (wheel, sdist):
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes")
        if size > LARGEST:
            yield f"{path.name}: {size:,} bytes, more than {LARGEST:,}"
    if wheel.name.partition("-")[2].partition("-")[2] != "py3-none-any.whl":
        yield f"{wheel.name} is for some machines only"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        described = {name for name in names if ".dist-info/" in name}
        yield from faults_of_names("wheel", names - described, wheel_names(tracked))
        (metadata,) = (name for name in described if name.endswith("/METADATA"))
        yield from faults_of_metadata(HeaderParser().parsestr(archive.read(metadata).decode()))
        if not any(name.endswith("/licenses/LICENSE") for name in described):
            yield "wheel: the license is missing"
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames() if name.count("/")}
        held = {n for n in files if not any(m.startswith(f"{n}/") for m in files)}
        # hatchling adds the list of what it left out to every sdist.
        held -= {"PKG-INFO", ".gitignore"}
        yield from faults_of_names("sdist", held, sdist_names(tracked))


def main(folder: str) -> int:
    """Print what is wrong with the distributions in a folder; return the exit status."""
    faults = list(faults_in(Path(folder)))
    print("\n".join(faults) or f"wheel and sdist hold what git knows in {ROOT.name}, nothing else")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Binaries from the C sources in an FMU, for platforms for which it has none."""

from __future__ import annotations

import os
import re
from pathlib import Path

from archimedes.interchange.fmi.description_reader import FmuDescription, file_name
from archimedes.interchange.fmi.fmu_archive import FmuArchive
from archimedes.interchange.fmi.fmu_binary import FmuError
from archimedes.system.programs import find_program, install_hint, run_program
from archimedes.xml_elements import Element, parse_elements

BUILD = "sources/buildDescription.xml"
#: The headers of the standard, which an FMU in source form leaves to the importer.
HEADERS = Path(__file__).with_name("headers")
#: Seconds that a compiler may take.
PATIENCE = 300.0
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def compile_sources(
    archive: FmuArchive, description: FmuDescription, kind: str, folder: Path, library: Path
) -> None:
    """Compile the sources of an FMU, which lie in ``folder/sources``, into a library."""
    files, options = list(description.interfaces[kind].sources), list[str]()
    identifier = description.interfaces[kind].identifier
    if BUILD in archive:
        files, options = _read_build(archive, identifier, folder / "sources")
    if not files:
        raise FmuError(f"{description.name}: its sources are there, but no list of them")
    missing = [name for name in files if f"sources/{name}" not in archive]
    if missing:
        raise FmuError(f"{description.name}: the source file sources/{missing[0]} is missing")
    compiler = next(filter(find_program, [os.environ.get("CC") or "cc", "gcc", "clang"]), None)
    if compiler is None:
        raise FmuError(
            f"{description.name}: there is no binary for this platform, and no C compiler (cc, gcc "
            f"or clang) to make one from its sources: {install_hint('gcc')}"
        )
    library.parent.mkdir(parents=True, exist_ok=True)
    # Whole paths: a name that begins with "-" is no option.
    paths = [str(folder / "sources" / name) for name in files]
    command = [compiler, "-shared", "-fPIC", "-O2", "-w", "-I", str(folder / "sources")]
    # Last, because an FMU may bring its own. The functions of a library have no prefix.
    command += [*options, "-I", str(HEADERS)]
    command += [f"-DFMI{description.version[0]}_OVERRIDE_FUNCTION_PREFIX"]
    command += [*paths, "-o", str(library), "-lm"]
    done = run_program(command, cwd=folder / "sources", timeout=PATIENCE)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise FmuError(
            f"{description.name}: its sources do not compile here ({compiler}): "
            + " | ".join(lines[:5] or done.stderr.splitlines()[-5:])
        )


def _read_build(archive: FmuArchive, identifier: str, folder: Path) -> tuple[list[str], list[str]]:
    """Return source files and options of the configuration for a binary (FMI 3.0, 2.5)."""
    root = parse_elements(archive.read(BUILD), f"{archive.name}/{BUILD}")
    builds = [part for part in root if part.tag == "BuildConfiguration"]
    for build in builds:
        # The only one is meant, whatever its name: some published FMUs have that of another.
        if len(builds) == 1 or build.get("modelIdentifier") == identifier:
            sets = [part for part in build if part.tag == "SourceFileSet"]
            files = [file_name(file) for part in sets for file in part if file.tag == "SourceFile"]
            options = [option for part in sets for option in _options(part, folder)]
            libraries = [_word(part, "name") for part in build if part.tag == "Library"]
            return files, [*options, *(f"-l{name}" for name in libraries)]
    raise root.error(f"there is no BuildConfiguration for {identifier}")


def _options(part: Element, folder: Path) -> list[str]:
    language = part.attributes.get("language", "C99")
    if not re.fullmatch(r"C(\d\d)?", language):
        raise part.error(f"sources in {language[:20]!r} are not compiled here, only C")
    options = []
    for element in part:
        if element.tag == "PreprocessorDefinition":
            value = element.attributes.get("value")
            options.append(f"-D{_word(element, 'name')}" + (f"={value}" if value else ""))
        if element.tag == "IncludeDirectory":
            options += ["-I", str(folder / file_name(element))]
    return options


def _word(of: Element, name: str) -> str:
    text = of.get(name)
    if not _NAME.fullmatch(text):
        raise of.error(f"{name} is {text[:40]!r}, expected a name of C")
    return text

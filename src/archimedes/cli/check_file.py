"""Check units and frames of models (.py), robots (.urdf, .sdf, .xml) and configurations (.yaml).

Examples:
    archimedes check model.py
    archimedes check robot.urdf flight.yaml --format json
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archimedes.analysis.findings import Finding, Report
from archimedes.cli import answers
from archimedes.records import record

if TYPE_CHECKING:
    from types import ModuleType

    from archimedes.analysis.observed_calls import Call
    from archimedes.xml_elements import Element


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, nargs="+", help="models, robots or configurations")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the output")
    main = 'also run what a model has under if __name__ == "__main__"'
    parser.add_argument("--run", action="store_true", help=main)
    packages = "folder of packages that a robot's file names"
    parser.add_argument("--packages", type=Path, action="append", help=packages)


@record
class Checked:
    """What was found in a file, what was looked at, and what could not be, with the reason."""

    findings: list[Finding]
    checked: list[str]
    unchecked: list[str]


def run(options: argparse.Namespace) -> int:
    """Check the files; the status is 0 where everything fits and 1 where something does not."""
    options.json = options.json or options.format == "json"
    paths = [find_input(file) for file in options.file]
    findings, checked = find_frames([path for path in paths if path.suffix.lower() == ".py"])
    unchecked: list[str] = []
    failed: list[answers.CommandError] = []
    for path in paths:
        try:
            result = KINDS[path.suffix.lower()](path, options)
        except answers.CommandError as error:
            failed.append(error)
            continue
        findings += result.findings
        checked += [f"{path}: {what}" for what in result.checked]
        unchecked += [f"{path}: {what}" for what in result.unchecked]
    report = Report(findings, about=plural(len(checked), "part"))
    if failed and report.ok:
        raise failed[0]
    for line in (*map(str, failed), *unchecked):
        print(f"not checked: {line}", file=sys.stderr)
    answers.answer(options, report.as_json(), str(report))
    return 0 if report.ok else 1


def find_input(file: Path) -> Path:
    """Return a file of a kind that is checked; every failure has the status 2."""
    try:
        path = answers.input_file(file, 64 * 2**20)
    except answers.CommandError as error:
        raise answers.CommandError(str(error), status=2) from None
    if path.suffix.lower() not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise answers.CommandError(f"{path}: the name must end in {known}", status=2)
    return path


def find_frames(models: list[Path]) -> tuple[list[Finding], list[str]]:
    """Check the frames of models by their text, all together: they may import each other."""
    if not models:
        return [], []
    from archimedes.analysis.frames.check import check_frames

    report = check_frames(models)
    for finding in report:
        if finding.message.startswith("cannot be read"):
            raise answers.CommandError(
                f"{finding.file}:{finding.line}: {finding.message}", status=2
            )
    return list(report), [f"{path}: frames" for path in models]


def plural(count: int, word: str) -> str:
    """Return a count with its noun."""
    return f"{count} {word}{'' if count == 1 else 's'}"


# ---- models ------------------------------------------------------------------------------------

#: Methods and functions that are physics by their names: checked even if the file calls none.
PHYSICS = (
    *("dynamics", "derivatives", "rates", "output", "outputs", "measure", "observe", "energy"),
    *("kinetic_energy", "potential_energy", "wrench", "forces", "force", "moment", "__call__"),
    *("command", "control", "step", "update"),
)


def check_model(path: Path, options: argparse.Namespace) -> Checked:
    """Check the units of what a Python file defines."""
    result = Checked([], [], [])
    module, calls = run_model(path, options)
    declared = declared_checks(module, result)
    called = {call.function for call in (*declared, *calls)}
    calls = [*declared, *calls, *uncalled(module, called, result)]
    for call in calls:
        check_call(call, path, result)
    return result


def run_model(path: Path, options: argparse.Namespace) -> tuple[ModuleType, list[Call]]:
    """Run the file; what it prints goes to the standard error, and it shows no windows."""
    from archimedes.analysis.observed_calls import observe

    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return observe(path, options.run)
    except (Exception, SystemExit) as error:
        where = f"{type(error).__name__}: {error}"
        raise answers.CommandError(f"{path} cannot be run: {where}", status=2) from error


def declared_checks(module: ModuleType, result: Checked) -> list[Call]:
    """Return what a file declares with ``check = arc.check_units(f, units={...})``."""
    from archimedes.analysis.observed_calls import Call, make_arguments
    from archimedes.analysis.units.checking import UnitsCheck

    calls = []
    for name, check in vars(module).items():
        if isinstance(check, UnitsCheck):
            try:
                arguments = make_arguments(check.function, None, vars(module))
            except Exception as error:
                result.unchecked.append(f"units of {name}: {error}")
                continue
            calls.append(Call(name, check.function, arguments, check.units))
    return calls


def uncalled(module: ModuleType, called: set[Any], result: Checked) -> Iterator[Call]:
    """Yield what is physics by its name, or has declared units, and was not called by the file."""
    from archimedes import tree
    from archimedes.analysis.observed_calls import Call, make_arguments

    for name, function, owner in definitions(module):
        if function in called:
            continue
        short = name.rpartition(".")[2]
        first = [*inspect.signature(function).parameters][owner is not None :][:2]
        if owner is not None and not tree.is_struct(owner):
            continue
        if short not in PHYSICS and first != ["t", "x"]:
            if not short.startswith("_"):
                result.unchecked.append(f"units of {name}: nothing that is recorded calls it")
            continue
        try:
            arguments = make_arguments(function, owner, vars(module))
        except Exception as error:
            result.unchecked.append(f"units of {name}: {error}")
            continue
        yield Call(name, function, arguments)


def definitions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any], type | None]]:
    """Yield the functions and methods that a module defines, with the class of each method."""

    def visit(space: Mapping[str, Any], owner: type | None, prefix: str) -> Iterator[Any]:
        for name, value in list(space.items()):
            value = inspect.unwrap(value) if callable(value) else value
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value) and value.__name__ == name:
                yield prefix + name, value, owner
            elif inspect.isclass(value) and value.__name__ == name:
                yield from visit(vars(value), value, f"{prefix}{name}.")

    return visit(vars(module), None, "")


def check_call(call: Call, path: Path, result: Checked) -> None:
    """Check the units of a function with the arguments that were found."""
    from archimedes.analysis.units.checking import check_units

    try:
        report = check_units(call.function, call.units)(*call.positional)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        result.unchecked.append(f"units of {call.name}: {reason}")
        return
    result.checked.append(f"units of {call.name}")
    result.findings.extend(as_given(finding, path) for finding in report)


def as_given(finding: Finding, path: Path) -> Finding:
    """Return a finding with the name of its file as it was typed."""
    is_same = finding.file == os.path.abspath(path)
    return replace(finding, file=str(path)) if is_same else finding


# ---- robots ------------------------------------------------------------------------------------


def check_robot(path: Path, options: argparse.Namespace) -> Checked:
    """Check masses, inertias, lengths and limits of a robot for those of other units."""
    from archimedes import multibody as mb
    from archimedes.multibody.files.plausibility import find_doubtful, find_slips

    try:
        builder = mb.read(path, options.packages)
    except (ValueError, ImportError, OSError) as error:
        line = re.search(re.escape(path.name) + r":(\d+):", str(error))
        if line is None:
            raise answers.CommandError(f"{path}: {error}", status=2) from None
        text = str(error).partition(f"{line[0]} ")[2]
        return Checked([Finding(str(path), int(line[1]), text, "", "units")], [], [])
    lines = element_lines(path)
    slips = dict.fromkeys([*find_slips(builder), *find_doubtful(builder)])
    findings = [
        Finding(str(path), lines.get((s.kind, s.name), 1), s.message, s.name, "units")
        for s in slips
    ]
    counts = [plural(len(builder.bodies), "body").replace("bodys", "bodies")]
    counts.append(plural(len(builder.joints), "joint"))
    return Checked(findings, counts, [])


def element_lines(path: Path) -> dict[tuple[str, str], int]:
    """Return the lines of bodies and joints of a robot's file, by kind and name."""
    from archimedes.xml_elements import read_elements

    kinds = {"link": "body", "body": "body", "joint": "joint"}
    lines: dict[tuple[str, str], int] = {}

    def visit(element: Element) -> None:
        name = element.attributes.get("name")
        if element.tag in kinds and name:
            lines.setdefault((kinds[element.tag], name), int(element.place.rpartition(":")[2]))
        for child in element:
            visit(child)

    visit(read_elements(path, None))
    return lines


# ---- configurations ----------------------------------------------------------------------------


def check_configuration(path: Path, options: argparse.Namespace) -> Checked:
    """Check the units of a parameter file of a vehicle, or of the description of a flight."""
    from archimedes.cli.flights import MISTAKES, read_flight, vehicle_source
    from archimedes.errors import ArchimedesError
    from archimedes.tree.config_files import read_data
    from archimedes.vehicles import load

    try:
        data = read_data(path)
        if not isinstance(data, dict) or not {"type", "vehicle"} & {*data}:
            kinds = "a vehicle has the key 'type', a flight the key 'vehicle'"
            raise answers.CommandError(f"{path}: {kinds}; nothing else is checked", status=2)
        if "vehicle" in data:
            load(vehicle_source(read_flight(path).vehicle, path))
        else:
            load(path)
    except MISTAKES as error:
        line = getattr(error, "line", None)
        text = str(error).removeprefix(f"{path}: ").removesuffix(f" (line {line})")
        if line is None and not isinstance(error, ArchimedesError):
            raise answers.CommandError(f"{path}: {text}", status=2) from None
        return Checked([Finding(str(path), line or 1, text, "", "units")], [], [])
    return Checked([], [f"{data.get('type', 'flight')}"], [])


KINDS: dict[str, Callable[[Path, argparse.Namespace], Checked]] = {
    ".py": check_model,
    **dict.fromkeys((".urdf", ".sdf", ".xml", ".mjcf"), check_robot),
    **dict.fromkeys((".yaml", ".yml", ".json"), check_configuration),
}

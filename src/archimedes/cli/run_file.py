"""Simulate the flight that a YAML or JSON file describes.

Examples:
    archimedes run --template f16 > flight.yaml
    archimedes run flight.yaml --output out
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archimedes.cli import answers

if TYPE_CHECKING:
    from archimedes.cli.flights import Flown


#: A description is short; what is longer is no description.
MOST = 16 * 2**20


#: A vehicle is a folder here; nothing of it is imported to ask for its files.
VEHICLES = Path(__file__).parents[1] / "vehicles"


def vehicle_names() -> list[str]:
    """Return the names of the vehicles that come with a file of parameters."""
    return sorted(p.stem for p in VEHICLES.glob("*/*.yaml") if p.stem == p.parent.name)


def flight_templates() -> dict[str, Path]:
    """Return the files to start from, by vehicle: each lies in the folder of its vehicle."""
    return {path.parent.name: path for path in sorted(VEHICLES.glob("*/*_flight.yaml"))}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, nargs="?", help="the flight, YAML or JSON")
    templates = list(flight_templates())
    parser.add_argument("--template", choices=templates, help="print a file to start from")
    answers.add_output(parser, "archimedes_run", "results")
    parser.add_argument("--no-page", action="store_true", help="leave out the page in 3-D")


def run(options: argparse.Namespace) -> int:
    """Fly it and write trajectory, table and page."""
    if options.template:
        print(flight_templates()[options.template].read_text("utf-8"), end="")
        return 0
    if options.file is None:
        raise answers.CommandError("name a file, or --template f16 for one to start from")
    from archimedes.cli.flights import MISTAKES, fly_file

    path = answers.input_file(options.file, MOST)
    try:
        flown = fly_file(path)
    except MISTAKES as error:
        raise answers.CommandError(said(error, path)) from None
    folder, stem = answers.output_folder(options.output), path.stem
    files = [answers.output_file(folder, f"{stem}.npz"), answers.output_file(folder, f"{stem}.csv")]
    flown.trajectory.to_npz(files[0])
    flown.trajectory.to_csv(files[1], units=True)
    if not options.no_page:
        files.append(page(flown, answers.output_file(folder, f"{stem}.html")))
    data = summary(flown)
    lines = [f"  {name:<28}{value}" for name, value in data.items()]
    lines += [f"  {file}" for file in files]
    answers.answer(options, {**data, "files": [str(file) for file in files]}, "\n".join(lines))
    if flown.complete:
        return 0
    print(f"archimedes run: {path}: {data['end']}", file=sys.stderr)
    return 1


def summary(flown: Flown) -> dict[str, Any]:
    """Return how a flight ended."""
    traj = flown.trajectory
    last = flown.vehicle.world.flight(traj.t[-1], getattr(traj.final, "motion", traj.final))
    north, east, down = (float(v) for v in last.v_NED)
    return {
        "vehicle": flown.config.vehicle,
        "end": "after its duration" if flown.complete else traj.message,
        "duration (s)": round(float(traj.t[-1]), 3),
        "steps of the solver": int(traj.stats.get("steps", 0)),
        "altitude at the end (m)": round(float(last.alt), 3),
        "speed at the end (m/s)": round((north**2 + east**2 + down**2) ** 0.5, 3),
    }


def said(error: BaseException, path: Path) -> str:
    """Return the words of an error, which name the file; a KeyError's would be quoted."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text if path.name in text else f"{path}: {text}"


def page(flown: Flown, path: Path) -> Path:
    """Write the page of a flight, with its controls."""
    from archimedes.viewer import view

    name = flown.config.vehicle
    pair = (flown.vehicle, flown.trajectory)
    shown = view({name: pair}, inputs=flown.inputs, title=flown.config.title or name)
    shown.scene.note = "" if flown.complete else flown.trajectory.message
    return shown.save(path)

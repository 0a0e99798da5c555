"""``archimedes demo``: one of the demonstrations, or a list of them."""

from __future__ import annotations

import argparse
from pathlib import Path

from archimedes.cli.answers import CommandError, print_json
from archimedes.cli.folders import output_folder
from archimedes.demos.catalogue import DEMOS, run_demo

__all__ = ["declare", "run"]

#: Where a demonstration leaves its files.
FOLDER = "archimedes_demo"


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", nargs="?", default="f16", choices=list(DEMOS), metavar="name",
                        help=f"which one (default: f16): {', '.join(DEMOS)}")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the demonstrations")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(FOLDER),
        help=f"folder for its files (default: {FOLDER})",
    )
    parser.add_argument("--runs", type=int, help="dispersed copies (default: as the demo says)")


def run(options: argparse.Namespace) -> int:
    """Run it; the exit status says whether its checks passed."""
    if options.list:
        if options.json:
            print_json({name: demo.summary for name, demo in DEMOS.items()})
        else:
            print("\n".join(f"{name:<12}{demo.summary}" for name, demo in DEMOS.items()))
        return 0
    if options.runs is not None and options.runs < 1:
        raise CommandError("--runs must be at least 1")
    report = run_demo(options.name, output_folder(options.output), options.runs, options.json)
    if options.json:
        print_json(report.data())
    return 0 if report.good else 1

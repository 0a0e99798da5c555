"""Fly an F-16 with 1,000 dispersed copies, or another demonstration.

Examples:
    archimedes demo
    archimedes demo --list
    archimedes demo orbit --output out
"""

from __future__ import annotations

import argparse

from archimedes.cli.answers import CommandError, add_output, answer, output_folder, print_json
from archimedes.demos import DEMOS, run_demo


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", nargs="?", default="f16", choices=list(DEMOS), metavar="name",
                        help=f"which one (default: f16): {', '.join(DEMOS)}")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the demonstrations")
    add_output(parser, "archimedes_demo", "its files")
    parser.add_argument("--runs", type=int, help="dispersed copies (default: as the demo says)")


def run(options: argparse.Namespace) -> int:
    """Run it; the exit status says whether its checks passed."""
    if options.list:
        data = {name: demo.summary for name, demo in DEMOS.items()}
        answer(options, data, "\n".join(f"{name:<12}{text}" for name, text in data.items()))
        return 0
    if options.runs is not None and options.runs < 1:
        raise CommandError("--runs must be at least 1")
    report = run_demo(options.name, output_folder(options.output), options.runs, options.json)
    if options.json:
        print_json(report.data())
    return 0 if report.good else 1

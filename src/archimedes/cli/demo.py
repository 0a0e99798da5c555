"""Fly an F-16 with 1,000 dispersed copies, or another demonstration.

Examples:
    archimedes demo
    archimedes demo --list
    archimedes demo orbit --output out
    archimedes demo f16 --live --show
"""

from __future__ import annotations

import argparse

from archimedes.cli.answers import CommandError, add_output, answer, output_folder, print_json
from archimedes.demos import DEMOS, run_demo
from archimedes.system.programs import open_page


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", nargs="?", default="f16", choices=list(DEMOS), metavar="name",
                        help=f"which one (default: f16): {', '.join(DEMOS)}")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the demonstrations")
    add_output(parser, "archimedes_demo", "its files")
    parser.add_argument("--live", action="store_true",
                        help="write only the page whose model runs in the browser")  # fmt: skip
    parser.add_argument("--show", action="store_true", help="open the page in a browser")
    parser.add_argument("--runs", type=int, help="dispersed copies (default: as the demo says)")


def run(options: argparse.Namespace) -> int:
    """Run it; the exit status says whether its checks passed."""
    if options.list:
        data = {name: demo.summary for name, demo in DEMOS.items()}
        answer(options, data, "\n".join(f"{name:<12}{text}" for name, text in data.items()))
        return 0
    if options.runs is not None and options.runs < 1:
        raise CommandError("--runs must be at least 1")
    if options.live and not DEMOS[options.name].live:
        raise CommandError(f"the demo {options.name!r} has no live page: --list says which have")
    folder = output_folder(options.output)
    report = run_demo(options.name, folder, options.runs, options.json, options.live)
    if options.json:
        print_json(report.data())
    if options.show:
        open_page([file for file in report.files if file.suffix == ".html"][-1])
    return 0 if report.good else 1

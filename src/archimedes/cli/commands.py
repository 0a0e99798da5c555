"""What can be typed after ``archimedes``: one entry in a table per command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import archimedes

__all__ = ["main"]

DEFAULT = "demo"
#: Where the demonstration leaves its files.
FOLDER = "archimedes_demo"


class Command(NamedTuple):
    """A command: what help says, how its options are declared, and what it does."""

    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def declare_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(FOLDER),
        help=f"folder for plot and trajectory (default: {FOLDER})",
    )
    parser.add_argument(
        "--runs", type=int, default=10_000, help="dispersed copies in the batch (default: 10000)"
    )


def run_demo(options: argparse.Namespace) -> int:
    from archimedes.cli.demonstration import demo

    if options.runs < 1:
        raise SystemExit("archimedes demo: --runs must be at least 1")
    return demo(options.output, options.runs)


COMMANDS: dict[str, Command] = {
    "demo": Command("simulate a tumbling rigid body, check it, time it", declare_demo, run_demo),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; without a command, the demonstration.

    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    parser = argparse.ArgumentParser("archimedes", description=archimedes.__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=archimedes.__version__)
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, command in COMMANDS.items():
        command.declare(commands.add_parser(name, help=command.summary))
    given = list(sys.argv[1:] if arguments is None else arguments)
    known = {*COMMANDS, "-h", "--help", "--version"}
    options = parser.parse_args(given if given and given[0] in known else [DEFAULT, *given])
    return COMMANDS[options.command].run(options)

"""What can be typed after ``archimedes``: one entry in a table per command.

Exit status: 0 done, 1 it could not be done or a flight ended at the ground (the text says why),
2 the command was not understood, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import archimedes
from archimedes.cli.answers import CommandError, print_json

__all__ = ["main"]

DEFAULT = "demo"


class Command(NamedTuple):
    """A command: its module (with `declare` and `run`), what help says, and examples."""

    module: str
    summary: str
    examples: tuple[str, ...]


COMMANDS: dict[str, Command] = {
    "demo": Command(
        "demo",
        "fly an F-16 with 1,000 dispersed copies, or another demonstration",
        ("archimedes demo", "archimedes demo --list", "archimedes demo orbit --output out"),
    ),
    "doctor": Command(
        "doctor",
        "say what is installed, what is missing, and how to add it",
        ("archimedes doctor", "archimedes doctor --json"),
    ),
    "run": Command(
        "run_file",
        "simulate the flight that a YAML or JSON file describes",
        ("archimedes run --template f16 > flight.yaml", "archimedes run flight.yaml --output out"),
    ),
    "view": Command(
        "view_file",
        "make a page in 3-D of a trajectory (npz, csv), a flight (yaml) or a robot (urdf)",
        ("archimedes view flight.npz --vehicle f16", "archimedes view robot.urdf --show"),
    ),
    "codegen": Command(
        "generate_c",
        "write a function of yours as a C project",
        ("archimedes codegen controller:step --args '[0.0, [1, 2, 3]]' --output c",),
    ),
    "new": Command(
        "new_project",
        "start a project: a model, a test, a notebook and a C target",
        ("archimedes new pendulum",),
    ),
    "explain": Command(
        "explain",
        "explain a message: the mistake, an example, and what to write instead",
        ("archimedes explain branch", "archimedes explain"),
    ),
    "completion": Command(
        "completion",
        "print what a shell needs to complete these commands",
        ('eval "$(archimedes completion bash)"', "archimedes completion zsh > _archimedes"),
    ),
}


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, every command declared."""
    about = (archimedes.__doc__ or "").splitlines()[0]
    examples = "\n".join(f"  {c.examples[0]}" for c in COMMANDS.values())
    parser = argparse.ArgumentParser(
        "archimedes",
        description=about,
        epilog=f"examples:\n{examples}\n\nWithout a command: the demonstration.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=archimedes.__version__)
    parsers = parser.add_subparsers(dest="command", metavar="command")
    for name, command in COMMANDS.items():
        own = parsers.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module_of(command).declare(own)
        own.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def module_of(command: Command) -> Any:
    return import_module(f"archimedes.cli.{command.module}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; without a command, the demonstration.

    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    known = {*COMMANDS, "-h", "--help", "--version"}
    names_command = words and (words[0] in known or not words[0].startswith("-"))
    parser = make_parser()
    options = parser.parse_args(words if names_command else [DEFAULT, *words])
    options.parser = parser
    try:
        return module_of(COMMANDS[options.command]).run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has gone, as with | head
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 0
    except CommandError as error:
        if options.json:
            print_json({"error": str(error)})
        print(f"archimedes {options.command}: {error}", file=sys.stderr)
        return 1

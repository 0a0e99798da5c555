"""What can be typed after ``archimedes``: one entry in a table per command.

Exit status: 0 done, 1 it could not be done or a flight ended at the ground (the text says why),
2 the command was not understood, 130 interrupted. `check` answers 1 where it has findings and 2
where it cannot check.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import archimedes
from archimedes.cli.answers import CommandError, print_json

__all__ = ["main"]

DEFAULT = "demo"


#: The module of each command. Its docstring is the command's help: a summary, then examples.
COMMANDS = {
    "demo": "demo",
    "doctor": "doctor",
    "run": "run_file",
    "view": "view_file",
    "check": "check_file",
    "codegen": "generate_c",
    "new": "new_project",
    "explain": "explain",
    "completion": "completion",
}


def import_command(name: str) -> Any:
    """Return the module of a command."""
    return import_module(f"archimedes.cli.{COMMANDS[name]}")


def examples_of(module: Any) -> list[str]:
    """Return the examples in the docstring of a command: its indented lines."""
    return [line for line in (module.__doc__ or "").splitlines() if line.startswith("    ")]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, every command declared."""
    about = (archimedes.__doc__ or "").splitlines()[0]
    modules = {name: import_command(name) for name in COMMANDS}
    examples = "\n".join(examples_of(module)[0] for module in modules.values())
    parser = argparse.ArgumentParser(
        "archimedes",
        description=about,
        epilog=f"examples:\n{examples}\n\nWithout a command: the demonstration.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=archimedes.__version__)
    parsers = parser.add_subparsers(dest="command", metavar="command")
    for name, module in modules.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        own = parsers.add_parser(
            name,
            help=summary[:1].lower() + summary[1:-1],
            description=summary,
            epilog="\n".join(["examples:", *examples_of(module)]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.declare(own)
        own.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


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
        return import_command(options.command).run(options)
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
        return error.status

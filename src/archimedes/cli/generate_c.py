"""Write a function of yours as a C project.

Examples:
    archimedes codegen controller:step --args '[0.0, [1, 2, 3]]' --output c
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from archimedes.cli.answers import CommandError, add_output, answer


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("function", help="module:function; the module is imported, from here too")
    parser.add_argument(
        "--args",
        default="",
        help="example arguments as JSON, '[0.0, [1, 2, 3]]', or module:name of a tuple "
        "(default: the module's example_args)",
    )
    add_output(parser, "c", "the project")
    parser.add_argument("--float32", action="store_true", help="float instead of double")
    parser.add_argument("--target", default="c", help="c, arduino, cortex-m or wasm (default: c)")
    parser.add_argument("--state", action="append", help="argument that a result replaces")
    parser.add_argument("--returns", help="names of the results, with commas between")
    parser.add_argument("--verify", action="store_true", help="compile here and compare bits")


def run(options: argparse.Namespace) -> int:
    """Write the project and say what is in it."""
    import numpy as np

    from archimedes.embedded import codegen
    from archimedes.errors import ArchimedesError

    function = find_name(options.function)
    if not callable(function):
        raise CommandError(f"{options.function} is not a function")
    args = example_arguments(options)
    settings: dict[str, Any] = {"target": options.target, "verify": options.verify}
    settings["state"] = options.state
    settings["return_names"] = options.returns.split(",") if options.returns else None
    settings["float_type"] = np.float32 if options.float32 else float
    try:
        project = codegen(function, args, output_dir=options.output, **settings)
    except (ArchimedesError, ValueError, TypeError) as error:
        raise CommandError(str(error)) from None
    data: dict[str, Any] = {"folder": str(options.output), "files": sorted(project.files)}
    data |= {"verified": str(project.verification)} if options.verify else {}
    lines = [*map(str, project.paths), *([data["verified"]] if options.verify else [])]
    answer(options, data, "\n".join(lines))
    return 0


def find_name(text: str) -> Any:
    """Return what ``module:name`` stands for."""
    module, _, name = text.partition(":")
    if not (module and name):
        raise CommandError(f"{text!r} must be written module:function, such as controller:step")
    sys.path.insert(0, str(Path.cwd()))
    try:
        value: Any = importlib.import_module(module)
    except ImportError as error:
        raise CommandError(
            f"{module} cannot be imported ({error}): run this in its folder, or install it"
        ) from None
    finally:
        sys.path.pop(0)
    for part in name.split("."):
        if not hasattr(value, part):
            raise CommandError(f"{module} has no {name!r}")
        value = getattr(value, part)
    return value


def example_arguments(options: argparse.Namespace) -> tuple[Any, ...]:
    """Return the arguments: of JSON, by a name, or those that the module keeps for it."""
    import numpy as np

    text = options.args.strip()
    if text and text[0] not in "[{" and ":" in text:
        return _as_tuple(find_name(text))
    if not text:
        module = options.function.partition(":")[0]
        examples = getattr(importlib.import_module(module), "example_args", None)
        if examples is None:
            raise CommandError(
                f"example arguments are needed: --args '[0.0, [1, 2, 3]]', or {module}.example_args"
            )
        return _as_tuple(examples)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise CommandError(f"--args is not JSON: {error}") from None
    if not isinstance(values, list):
        raise CommandError("--args must be a list, one entry per argument")
    return tuple(np.asarray(v, dtype=float) if isinstance(v, list) else v for v in values)


def _as_tuple(examples: Any) -> tuple[Any, ...]:
    """Return examples that are kept as a tuple, or made by a function."""
    return tuple(examples() if callable(examples) else examples)

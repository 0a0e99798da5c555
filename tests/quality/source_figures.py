"""Figures about the source: lines of code, files, imports, names and types that say little.

    python -m tests.quality.source_figures                       # a row for each package
    python -m tests.quality.source_figures --folder OLD/src/archimedes   # another checkout
    python -m tests.quality.source_figures --names multibody     # the names to look at

Docstrings, comments and blank lines are not counted as code.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Figures", "read_figures"]

SOURCE = Path(__file__).parents[2] / "src" / "archimedes"

#: Tokens that are not code.
LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)

#: Words that end like a participle and are none, or that are terms of the field.
NOT_PARTICIPLES = frozenset(
    {"batched", "bounded", "compiled", "embed", "exceed", "expected", "fixed", "interpolated"}
    | {"limited", "proceed", "recorded", "reversed", "shared", "shifted", "signed", "simulated"}
    | {"sorted", "speed", "succeed", "truncated", "typed", "unsigned"}
)
IRREGULAR = frozenset(
    {"bound", "built", "cut", "drawn", "found", "given", "held", "kept", "known", "laid", "left"}
    | {"made", "met", "seen", "sent", "shown", "sought", "taken", "thrown", "told", "written"}
)

#: Names of variables that do not say what they hold.
VAGUE = frozenset({"found", "given", "made", "kept", "got", "place", "places", "thing", "things"})


@dataclass
class Figures:
    """Counts of one package, or of all."""

    files: int = 0
    small_files: int = 0
    lines: int = 0
    import_lines: int = 0
    arguments: int = 0
    bare_any: int = 0
    participles: Counter[str] = field(default_factory=Counter)
    vague: Counter[str] = field(default_factory=Counter)

    def add(self, other: Figures) -> None:
        """Add the counts of another package."""
        for name in ("files", "small_files", "lines", "import_lines", "arguments", "bare_any"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.participles.update(other.participles)
        self.vague.update(other.vague)


def _lines_of(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]


def _docstrings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield from _lines_of(first)


def _is_bare_any(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).strip("'\"") == "Any"


def is_participle(name: str) -> bool:
    """Return whether a function is named by a participle instead of a verb or a noun."""
    bare = name.strip("_")
    words = bare.split("_")
    if words[0] in {"is", "has", "are", "check", "find", "make", "with", "as", "test"}:
        return False
    if bare in IRREGULAR:
        return True
    return any(w.endswith("ed") and len(w) > 4 and w not in NOT_PARTICIPLES for w in words[:1])


def read_file(path: Path) -> Figures:
    """Return the figures of one file."""
    text = path.read_text()
    tree = ast.parse(text)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= set(_docstrings(tree))
    figures = Figures(files=1, small_files=len(text.splitlines()) < 100, lines=len(code))
    imports: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(_lines_of(node))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            typed = [a for a in every if a.arg not in ("self", "cls")]
            figures.arguments += len(typed)
            figures.bare_any += sum(_is_bare_any(a.annotation) for a in typed)
            if is_participle(node.name):
                figures.participles[f"{path.stem}.{node.name}"] += 1
            for name in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & VAGUE:
                figures.vague[f"{path.stem}.{node.name}: {name}"] += 1
            for argument in every:
                if argument.arg in VAGUE:
                    figures.vague[f"{path.stem}.{node.name}: {argument.arg}"] += 1
    figures.import_lines = len(imports & code)
    return figures


def read_figures(folder: Path = SOURCE) -> dict[str, Figures]:
    """Return the figures of each package below a folder."""
    packages: dict[str, Figures] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        packages.setdefault(parts[0] if len(parts) > 1 else ".", Figures()).add(read_file(path))
    return packages


def main() -> None:
    """Print the table, or the names of one package that are to be looked at."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=SOURCE, help="the package's folder")
    parser.add_argument("--names", help="list the names of this package that say little")
    options = parser.parse_args()
    packages = read_figures(options.folder)
    if options.names:
        chosen = packages[options.names]
        print("participles:", *sorted(chosen.participles), sep="\n  ")
        print("vague:", *sorted(chosen.vague), sep="\n  ")
        return
    total = Figures()
    for figures in packages.values():
        total.add(figures)
    print(
        "| package | files | < 100 lines | lines of code | imports | arguments | Any | "
        "participles | vague |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, f in [*packages.items(), ("all", total)]:
        print(
            f"| {name} | {f.files} | {f.small_files} | {f.lines} | {f.import_lines} | "
            f"{f.arguments} | {f.bare_any} ({f.bare_any / max(f.arguments, 1):.0%}) | "
            f"{f.participles.total()} | {f.vague.total()} |"
        )


if __name__ == "__main__":
    main()

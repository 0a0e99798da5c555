"""`check_frames`: read files, functions or text, follow them, and report."""

from __future__ import annotations

import ast
import inspect
import io
import os
import re
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archimedes.analysis.findings import Finding, Report
from archimedes.analysis.frames.flow import Checker
from archimedes.analysis.frames.modules import INSTALLED, Module, Project
from archimedes.analysis.frames.names import parse_name

__all__ = ["FrameReport", "check_frames"]

_IGNORE = re.compile(r"#\s*frames:\s*ignore\b")
_SUFFIXED = re.compile(r"\w+_[A-Z]\w*")
_FENCE = re.compile(r"^( *)```\s*(\w*)")
#: A file with longer lines or more text is generated data, not a model.
MOST_BYTES = 20_000_000


class FrameReport(Report):
    """Findings of `check_frames`, in the order of their lines; empty where all frames agree.

    Parameters
    ----------
    findings : iterable of Finding, optional
        What was found; nothing by default.
    about : str, optional
        What was checked, for the line that is printed where there is nothing to report.

    Examples
    --------
    >>> import archimedes as arc
    >>> report = arc.check_frames("def f(R_BE, v_N):\\n    return R_BE @ v_N")
    >>> report.ok, report[0].line
    (False, 2)
    """


def check_frames(target: Any) -> FrameReport:
    """Check frames of vectors and rotations by their names, without running anything.

    Names follow the monogram notation: ``v_B`` is in the axes of B, ``R_BE`` takes E to B,
    ``p_AB_C`` is the position of B from A in C, ``X_WB`` a transformation, ``J_B`` an inertia.
    Names without a suffix take the frame of what they are given, or are left alone. A line with
    the comment ``# frames: ignore`` is not reported; ``# frames: E = NED`` says that two names are
    one frame in this file.

    Parameters
    ----------
    target : str, path, function, class, module or list of them
        A Python file, a Markdown page with Python blocks, a folder, source text, or a function,
        class or module whose source is read. Files of a list see each other's functions.

    Returns
    -------
    FrameReport
        Findings with ``file``, ``line``, ``message`` and ``expression``.

    Examples
    --------
    >>> import archimedes as arc
    >>> print(arc.check_frames("def f(R_BE, v_N):\\n    return R_BE @ v_N"))
    <source>:2: frames: R_BE takes E to B; v_N is in N: meant R_BN?
        R_BE @ v_N
    """
    targets = list(target) if isinstance(target, (list, tuple, set)) else [target]
    project, checker = Project(), Checker()
    findings: list[Finding] = []
    modules: list[tuple[Module, str]] = []
    count = 0
    project.roots = [Path(t) for t in targets if is_folder(t)]
    for path, text, first in sources(targets, findings):
        name = str(path) if path is not None else "<source>"
        tree = parse(text, name, findings)
        count += tree is not None
        if tree is None or not any(map(parse_name, set(_SUFFIXED.findall(text)))):
            continue  # nothing in it has a frame
        if first > 1:
            ast.increment_lineno(tree, first - 1)
        try:
            module = project.add(path, tree, text)
        except RecursionError:
            findings.append(Finding(name, 1, TOO_DEEP, kind="frames"))
            continue
        module.given = True
        modules.append((module, text if first == 1 else "\n" * (first - 1) + text))
    for module, text in modules:
        ignored = ignored_lines(text, module.tree)
        findings += [f for f in checker.check(module) if f.line not in ignored]
    return FrameReport(findings, about=f"{count} source{'s' if count != 1 else ''}")


TOO_DEEP = "nested too deeply to be checked: split it into smaller steps"


def is_folder(target: Any) -> bool:
    """Return whether a target is a folder."""
    if isinstance(target, str) and ("\n" in target or not looks_like_path(target)):
        return False
    return isinstance(target, (str, os.PathLike)) and Path(target).is_dir()


def sources(targets: list[Any], findings: list[Finding]) -> Iterator[tuple[Path | None, str, int]]:
    """Yield paths, texts and first lines of everything that is to be checked."""
    for target in targets:
        if isinstance(target, str) and ("\n" in target or not looks_like_path(target)):
            yield None, textwrap.dedent(target), 1
        elif isinstance(target, (str, os.PathLike)):
            path = Path(target)
            if path.is_dir():
                for file in sorted(path.rglob("*.py")):
                    if not any(is_skipped(part) for part in file.relative_to(path).parts):
                        yield from read(file, findings)
            elif path.exists():
                yield from read(path, findings)
            else:
                raise FileNotFoundError(f"check_frames: {path}: no such file")
        elif inspect.ismodule(target) and getattr(target, "__file__", None):
            yield from read(Path(str(target.__file__)), findings)
        elif callable(target):
            yield source_of(target)
        else:
            raise TypeError(
                f"check_frames takes a file, a folder, source text or a function, got {target!r}"
            )


def is_skipped(part: str) -> bool:
    """Return whether a folder holds what others wrote: hidden ones, and installed packages."""
    return part.startswith(".") or part in (*INSTALLED, "node_modules")


def looks_like_path(text: str) -> bool:
    """Return whether a line is the name of a file rather than source."""
    if not text.strip() or len(text) > 1000 or "\0" in text:
        return False
    return text.endswith((".py", ".md", ".pyi")) or Path(text).exists()


def source_of(target: Any) -> tuple[Path | None, str, int]:
    """Return the source of a function or class, also of a compiled one."""
    target = inspect.unwrap(target)
    try:
        lines, first = inspect.getsourcelines(target)
    except (OSError, TypeError):
        name = getattr(target, "__name__", repr(target))
        raise ValueError(
            f"check_frames: the source of {name} is not available: give the file, or its text"
        ) from None
    text = textwrap.dedent("".join(lines))
    file = inspect.getsourcefile(target)
    return Path(file) if file and Path(file).exists() else None, text, first


def read(path: Path, findings: list[Finding]) -> Iterator[tuple[Path, str, int]]:
    """Yield the text of a file, or report why it cannot be read."""
    try:
        data = path.read_bytes()
        if len(data) > MOST_BYTES:
            raise ValueError(f"{len(data)} bytes are more than a model has")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        findings.append(Finding(str(path), 1, f"cannot be read: {error}", kind="frames"))
        return
    yield path, python_blocks(text) if path.suffix == ".md" else text, 1


def python_blocks(text: str) -> str:
    """Return the Python blocks of a Markdown page at their lines; all else is left empty."""
    lines: list[str] = []
    block: list[str] = []
    fence: str | None = None
    for line in text.splitlines():
        match = _FENCE.match(line)
        if match and fence is None:
            fence = match.group(2)
            block = []
        elif match:
            lines += block if fence == "python" and parses("\n".join(block)) else [""] * len(block)
            fence = None
        elif fence is not None:
            block.append(line)
            continue
        lines.append("")
    return "\n".join(lines) + "\n"


def parses(text: str) -> bool:
    """Return whether a text is Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parse(text: str, name: str, findings: list[Finding]) -> ast.Module | None:
    """Return the tree of a text, or report why there is none."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        message, line = f"cannot be read: {error.msg}", error.lineno or 1
        findings.append(Finding(name, line, message, (error.text or "").strip(), "frames"))
    except ValueError as error:
        findings.append(Finding(name, 1, f"cannot be read: {error}", kind="frames"))
    except (RecursionError, MemoryError):
        findings.append(Finding(name, 1, TOO_DEEP, kind="frames"))
    return None


def ignored_lines(text: str, tree: ast.Module) -> set[int]:
    """Return the lines that comments exclude: a statement, or a whole function or class."""
    if not _IGNORE.search(text):
        return set()
    marked: set[int] = set()
    alone: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and _IGNORE.match(token.string):
            marked.add(token.start[0])
            if not token.line[: token.start[1]].strip():
                alone.add(token.start[0])
    lines = text.splitlines()
    for line in sorted(alone):  # a comment of its own is about the next line
        after = line
        while after < len(lines) and (not lines[after].strip() or lines[after].strip()[0] == "#"):
            after += 1
        marked.add(after + 1)
    ignored = set(marked)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = node.end_lineno or node.lineno
            header = range(node.lineno, (body[0].lineno if body else last + 1))
            if marked & set(header) or node.lineno in marked:
                whole = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                ignored |= set(range(node.lineno, last + 1) if whole else header)
    return ignored

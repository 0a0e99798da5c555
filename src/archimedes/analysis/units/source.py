"""Expressions of the user's source: which one an instruction evaluates, and what it is part of."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["HERE", "Place", "Text", "locate", "sides_of", "stands_in_product"]

#: The folder of this package.
HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


class Place(NamedTuple):
    """An instruction of a running function."""

    code: CodeType
    instruction: int

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to this package."""
        return self.code.co_filename.startswith(HERE)

    @property
    def is_formula(self) -> bool:
        """Whether it belongs to our physics, whose numbers are plain; demos are models."""
        return self.is_ours and not self.code.co_filename.startswith(f"{HERE}demos{os.sep}")


class Text(NamedTuple):
    """An expression in a source file."""

    file: str
    line: int
    expression: str


Span = tuple[int, int, int, int]


@functools.lru_cache(maxsize=1024)
def _spans(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def _span(place: Place) -> Span | None:
    """Return first and last line, first and last column of what an instruction evaluates."""
    first, last, start, end = _spans(place.code)[place.instruction // 2]
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


def locate(place: Place) -> Text:
    """Return file, line and text of the expression that an instruction evaluates."""
    file, span = place.code.co_filename, _span(place)
    if span is None:
        line = _spans(place.code)[place.instruction // 2][0] or place.code.co_firstlineno
        return Text(file, line, linecache.getline(file, line).strip())
    first, last, start, end = span
    lines = [linecache.getline(file, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    expression = re.sub(r"\s+", " ", b"".join(lines).decode(errors="replace")).strip()
    return Text(file, first, expression)


# ---- syntax trees ------------------------------------------------------------------------------


Operations = dict[Span, tuple[ast.expr, ...]]


@functools.lru_cache(maxsize=64)
def _parse(file: str, size: int) -> ast.Module | None:
    """Return the syntax tree of a file; None if it is no Python, as a page of documentation."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def _collect(tree: ast.AST) -> Operations:
    """Return operations, comparisons and calls by their span, with the expressions around."""
    found: Operations = {}
    stack: list[tuple[ast.AST, tuple[ast.expr, ...]]] = [(tree, ())]
    while stack:
        node, around = stack.pop()
        if isinstance(node, ast.expr):
            around = (node, *around)
            if isinstance(node, (ast.BinOp, ast.Compare, ast.Call)):
                end = node.end_lineno or node.lineno
                span = (node.lineno, end, node.col_offset, node.end_col_offset or 0)
                found[span] = around
        else:
            around = ()
        stack += [(child, around) for child in ast.iter_child_nodes(node)]
    return found


@functools.lru_cache(maxsize=64)
def _operations_of_file(file: str, size: int) -> Operations:
    tree = _parse(file, size)
    return {} if tree is None else _collect(tree)


@functools.lru_cache(maxsize=1024)
def _operations_of_lines(file: str, first: int, last: int) -> Operations:
    """Return the operations of the statement that some lines belong to."""
    for before, after in _AROUND:
        lines = [linecache.getline(file, n) for n in range(first - before, last + after + 1)]
        indent = len(lines[0]) - len(lines[0].lstrip())
        try:
            tree = ast.parse("def _():\n" + textwrap.indent(textwrap.dedent("".join(lines)), " "))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.expr):
                node.lineno += first - before - 2
                node.end_lineno = (node.end_lineno or 0) + first - before - 2
                node.col_offset += indent - 1
                node.end_col_offset = (node.end_col_offset or 0) + indent - 1
        return _collect(tree)
    return {}


#: How many lines before and after an expression may belong to its statement, in order of trial.
_AROUND = sorted(((b, a) for b in range(8) for a in range(8)), key=sum)


def _operations(place: Place) -> tuple[ast.expr, ...]:
    """Return the operation that an instruction evaluates and the expressions it is part of."""
    file, span = place.code.co_filename, _span(place)
    if span is None:
        return ()
    size = len(linecache.getlines(file))
    if _parse(file, size) is None:
        return _operations_of_lines(file, *span[:2]).get(span, ())
    return _operations_of_file(file, size).get(span, ())


def sides_of(place: Place) -> tuple[str, str] | None:
    """Return the two sides of a sum, a difference or a comparison, as they are written.

    Those of ``a > b`` come in the order in which they are compared, ``b < a``.
    """
    node = next(iter(_operations(place)), None)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        sides = (node.left, node.comparators[0])
        if isinstance(node.ops[0], (ast.Gt, ast.GtE)):
            sides = sides[::-1]
    else:
        return None
    left, right = (ast.unparse(side) for side in sides)
    return (left, right) if len(left) + len(right) < 120 else None


def argument_of(place: Place, name: str, fields: Sequence[str]) -> Text | None:
    """Return the argument of a call for a field of the struct that it makes.

    ``fields`` are the fields of the struct, in the order of positional arguments.
    """
    node = next(iter(_operations(place)), None)
    if not isinstance(node, ast.Call):
        return None
    found = next((k.value for k in node.keywords if k.arg == name), None)
    plain = not any(isinstance(arg, ast.Starred) for arg in node.args)
    if found is None and plain and name in fields and fields.index(name) < len(node.args):
        found = node.args[fields.index(name)]
    return None if found is None else _explain(place, found)


def named_argument(place: Place, name: str) -> Text | None:
    """Return the argument of a call that is a variable, or a keyword, of a name."""
    node = next(iter(_operations(place)), None)
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg == name:
            return _explain(place, keyword.value)
    names = [arg for arg in node.args if isinstance(arg, ast.Name) and arg.id == name]
    return _explain(place, names[0]) if names else None


def _explain(place: Place, node: ast.expr) -> Text | None:
    """Return an expression, or where it was read from; None for a variable that was computed."""
    file = place.code.co_filename
    if isinstance(node, ast.Name):
        above = [
            a
            for a in _assignments(file, len(linecache.getlines(file)))
            if place.code.co_firstlineno <= a.lineno < node.lineno and _assigns(a, node.id)
        ]
        last = max(above, key=lambda a: a.lineno, default=None)
        value = None if last is None else _assigned(last, node.id)
        if not isinstance(value, (ast.Subscript, ast.Attribute, ast.Name)):
            return None
        return Text(file, value.lineno, ast.unparse(value))
    return Text(file, node.lineno, ast.unparse(node))


Assignment = ast.Assign | ast.AugAssign | ast.AnnAssign


@functools.lru_cache(maxsize=64)
def _assignments(file: str, size: int) -> list[Assignment]:
    tree = _parse(file, size)
    return [node for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, Assignment)]


def _assigned(statement: Assignment, name: str) -> ast.expr | None:
    """Return what an assignment assigns to a name."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        pairs = zip(target.elts, statement.value.elts)
        return next((v for t, v in pairs if isinstance(t, ast.Name) and t.id == name), None)
    return statement.value if isinstance(target, ast.Name) else None


def _assigns(statement: Assignment, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [n for target in targets for n in ast.walk(target)]
    return any(isinstance(n, ast.Name) and n.id == name for n in names)


def _is_number(node: ast.expr) -> bool:
    """Return whether an expression consists of numbers alone, and pi."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Attribute):
        return node.attr == "pi"
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.BinOp) and _is_number(node.left) and _is_number(node.right)


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a product that are no numbers; a power counts twice."""
    if isinstance(node, ast.UnaryOp):
        yield from _factors(node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult)):
        yield from _factors(node.left)
        yield from _factors(node.right)
    elif not _is_number(node):
        yield node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield node


#: Denominators of numbers that belong to a formula: 1/2, 4/3, 1/12.
_BELOW = (1, 2, 3, 4, 6, 8, 12, 24)
_PI = 3.141592653589793


def _is_simple(value: float, powers: Sequence[int] = (0, 1, -1, 2, -2)) -> bool:
    """Return whether a number is one that formulas have: a small fraction, maybe with pi."""
    for power in powers:
        for below in _BELOW:
            above = abs(value) * _PI**power * below
            if 0.5 < above < 9.5 and abs(above - round(above)) < 1e-12:
                return True
    return False


def stands_in_product(place: Place, value: float) -> bool:
    """Return whether a number is part of a formula, such as the half of ``0.5 * rho * v**2``.

    That is a simple number, written where it is used, in a product of several other factors. In
    one with a single other factor, ``2.0 * x``, it may be a gain that has a unit; in our own code
    it is not, nor is a multiple of pi, or the half of a sum.
    """
    if not _is_simple(value):
        return False
    node, *around = _operations(place) or (None,)
    if not isinstance(node, ast.BinOp):
        return abs(value) == 1.0  # the ones of a matrix
    if not (_is_number(node.left) or _is_number(node.right)):
        return False
    written = node.left if _is_number(node.left) else node.right
    numbers: list[Any] = [n.value for n in ast.walk(written) if isinstance(n, ast.Constant)]
    if not all(n and _is_simple(n) for n in numbers):  # the 1.2 of 0.5 * 1.2 * v is a density
        return False
    if not isinstance(node.op, (ast.Mult, ast.Div)):
        return place.is_formula or abs(value) == 1.0  # 1.0 + 0.0 * x is one
    if place.is_formula or _is_simple(value, (1, -1, 2, -2)):
        return True
    other = node.right if _is_number(node.left) else node.left
    if isinstance(other, ast.BinOp) and isinstance(other.op, (ast.Add, ast.Sub)):
        if value in (0.5, 2.0) and isinstance(other.op, ast.Add):
            return True
        if any(len(list(_factors(side))) > 1 for side in (other.left, other.right)):
            return True
    for outer in around:
        if isinstance(outer, ast.UnaryOp):
            continue
        if not isinstance(outer, ast.BinOp) or not isinstance(outer.op, (ast.Mult, ast.Div)):
            break
        node = outer
    return len(list(_factors(node))) > 1

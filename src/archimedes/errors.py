"""Errors that users meet. Each says what happened, where, and what to write instead."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArchimedesError",
    "CodegenError",
    "DeviceError",
    "GraphError",
    "IntegerRangeError",
    "ShapeDtypeError",
    "StructError",
    "TraceError",
    "UnitsError",
    "refer_to",
]


class ArchimedesError(Exception):
    """Base class of every error raised by this package on purpose.

    >>> import archimedes as arc
    >>> try:
    ...     arc.compile(lambda x: float(x))(1.0)
    ... except arc.ArchimedesError as error:
    ...     print(type(error).__name__)
    TraceError
    """


class TraceError(ArchimedesError, TypeError):
    """A NumPy program did something that cannot be recorded as a graph.

    >>> import archimedes as arc
    >>> sign = arc.compile(lambda x: 1.0 if x > 0.0 else -1.0)
    >>> try:
    ...     sign(2.0)
    ... except arc.TraceError as error:
    ...     print(str(error).split(", at")[0])
    bool(x) needs the value of a traced bool
    """


class IntegerRangeError(TraceError, OverflowError):
    """A Python integer is outside the range of int64, which recorded integers are.

    >>> import archimedes as arc
    >>> try:
    ...     arc.compile(lambda n: n + 2**70)(1)
    ... except arc.errors.IntegerRangeError as error:
    ...     print(str(error).split(",")[0])
    the Python integer 1180591620717411303424 does not fit into int64
    """


class ShapeDtypeError(TraceError, ValueError):
    """Values have another shape, dtype or structure than a recorded function can take or give.

    >>> import numpy as np
    >>> import archimedes as arc
    >>> try:
    ...     arc.grad(lambda x: x)(np.ones(2))
    ... except arc.errors.ShapeDtypeError as error:
    ...     print(str(error).split(":")[0])
    grad needs a function with one scalar result, this one returns 1 of shape [(2,)]
    """


class GraphError(ArchimedesError, ValueError):
    """A recorded program is too long, or breaks a rule of graphs.

    >>> import archimedes as arc
    >>> issubclass(arc.GraphError, arc.ArchimedesError)
    True
    """


class StructError(ArchimedesError, TypeError, ValueError):
    """A struct definition or a tree does not have the form that is needed.

    >>> import archimedes as arc
    >>> try:
    ...     arc.tree.map(lambda a, b: a + b, {"x": 1.0}, {"y": 1.0})
    ... except arc.StructError as error:
    ...     print(str(error).split(",")[0])
    map: tree number 2 has another structure than the first
    """


class UnitsError(ArchimedesError, ValueError):
    """Units do not fit, or a unit is not known.

    ``report`` holds the findings where a model was checked, else None.

    >>> import archimedes as arc
    >>> try:
    ...     arc.quantity(1.0, "metr/s")
    ... except arc.UnitsError as error:
    ...     print(error)
    'metr/s': unknown unit 'metr'; did you mean 'metre'?
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class CodegenError(ArchimedesError, ValueError):
    """A function cannot be written as C, or its C project cannot be written as asked.

    >>> import archimedes as arc
    >>> try:
    ...     arc.codegen(lambda x: "text", (1.0,))
    ... except arc.CodegenError as error:
    ...     print(str(error).split(":")[1].strip())
    result is a str, which has no form in C
    """


class DeviceError(ArchimedesError, RuntimeError):
    """A device, or what is needed to use it, is missing or failed.

    >>> import archimedes as arc
    >>> issubclass(arc.errors.DeviceError, arc.ArchimedesError)
    True
    """


def refer_to(kind: str) -> str:
    """Return the end of a message: the command that prints the section of the documentation.

    Parameters
    ----------
    kind : str
        Kind of the error: a section of docs/errors.md has the line ``<!-- explain: kind -->``.

    Examples
    --------
    >>> print("bool(x) needs a value." + refer_to("branch"))
    bool(x) needs a value.
    For an example and its remedy: archimedes explain branch
    """
    return f"\nFor an example and its remedy: archimedes explain {kind}"

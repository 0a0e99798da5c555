"""Errors that users meet. Each says what happened, where, and what to write instead."""

from __future__ import annotations

__all__ = [
    "EXPLAINED",
    "ArchimedesError",
    "CodegenError",
    "DeviceError",
    "GraphError",
    "IntegerRangeError",
    "ShapeDtypeError",
    "StructError",
    "TraceError",
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


#: Kinds of mistakes, and the sections of the documentation that explain them. The sections make
#: the mistakes: tests/quality/test_explanations.py holds this table and the page together.
EXPLAINED = {
    "adaptive in C": "errors.md#a-solver-without-a-bound-in-c",
    "axes": "errors.md#axes-of-different-lengths",
    "backend": "errors.md#a-backend-of-another-name",
    "branch": "errors.md#a-branch-on-a-value",
    "branches": "errors.md#branches-that-differ",
    "callback in C": "errors.md#a-callback-in-c",
    "campaign": "errors.md#a-campaign-without-a-result",
    "carry": "errors.md#a-carry-that-changes",
    "clock": "errors.md#the-clock",
    "complex": "errors.md#complex-numbers",
    "coordinates": "errors.md#coordinates-of-another-size",
    "count": "errors.md#a-count-that-is-an-argument",
    "derivative shape": "errors.md#a-derivative-of-another-shape",
    "derivative structure": "errors.md#a-derivative-of-another-structure",
    "distribution": "errors.md#a-class-in-place-of-a-distribution",
    "eigenvectors": "errors.md#eigenvectors-of-a-general-matrix",
    "event": "errors.md#an-event-that-is-not-a-number",
    "examples": "errors.md#examples-of-the-arguments",
    "fixed steps": "errors.md#fixed-steps-without-a-size",
    "foreign code": "errors.md#code-that-needs-plain-arrays",
    "frame": "errors.md#a-frame-of-another-name",
    "frozen": "errors.md#changing-a-struct",
    "gradient": "errors.md#the-gradient-of-several-numbers",
    "guess": "errors.md#a-guess-without-a-part",
    "input": "errors.md#an-input-that-is-a-number",
    "key": "errors.md#a-seed-taken-for-a-key",
    "mask": "errors.md#a-selection-by-a-mask",
    "memory": "errors.md#memory-in-an-object",
    "method": "errors.md#a-method-of-another-name",
    "number": "errors.md#a-function-of-the-math-module",
    "objective": "errors.md#an-objective-of-several-numbers",
    "order": "errors.md#arguments-in-another-order",
    "outputs": "errors.md#outputs-outside-the-span",
    "outside array": "errors.md#writing-to-an-array-from-outside",
    "print": "errors.md#printing-a-value",
    "random numbers": "errors.md#numpys-random-numbers",
    "return": "errors.md#a-forgotten-return",
    "root": "errors.md#no-root-found",
    "rotation": "errors.md#a-matrix-that-is-not-a-rotation",
    "sequence": "errors.md#a-sequence-of-axes",
    "size": "errors.md#a-result-of-unknown-size",
    "table": "errors.md#a-table-at-a-traced-index",
    "trajectory": "errors.md#a-trajectory-inside-a-recorded-function",
    "vehicle": "errors.md#a-vehicle-of-another-name",
    "weight": "errors.md#a-weight-or-covariance-that-is-not-positive",
    "zero quaternion": "errors.md#a-quaternion-of-zeros",
}


def refer_to(kind: str) -> str:
    """Return the end of a message: the command that prints the section of the documentation.

    Parameters
    ----------
    kind : str
        Kind of the error, a key of `EXPLAINED`.

    Examples
    --------
    >>> print("bool(x) needs a value." + refer_to("branch"))
    bool(x) needs a value.
    For an example and its remedy: archimedes explain branch
    """
    if kind not in EXPLAINED:
        raise KeyError(kind)
    return f"\nFor an example and its remedy: archimedes explain {kind}"

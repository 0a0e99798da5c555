"""Errors that users meet. Each says what happened, where, and what to write instead."""

from __future__ import annotations

__all__ = [
    "ArchimedesError",
    "CodegenError",
    "DeviceError",
    "GraphError",
    "IntegerRangeError",
    "ShapeDtypeError",
    "StructError",
    "TraceError",
]


class ArchimedesError(Exception):
    """Base class of every error raised by this package on purpose."""


class TraceError(ArchimedesError, TypeError):
    """A NumPy program did something that cannot be recorded as a graph."""


class IntegerRangeError(TraceError, OverflowError):
    """A Python integer is outside the range of int64, which recorded integers are."""


class ShapeDtypeError(TraceError, ValueError):
    """Values have another shape, dtype or structure than a recorded function can take or give."""


class GraphError(ArchimedesError, ValueError):
    """A graph breaks the rules of ``archimedes.graph.spec``."""


class StructError(ArchimedesError, TypeError, ValueError):
    """A struct definition or a tree does not have the form that is needed."""


class CodegenError(ArchimedesError, ValueError):
    """A function cannot be written as C, or its C project cannot be written as asked."""


class DeviceError(ArchimedesError, RuntimeError):
    """A device, or what is needed to use it, is missing or failed."""

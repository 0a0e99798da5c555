"""Programs written as formulas: what derivative rules and linear algebra emit reads as text."""

from __future__ import annotations

from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph

_ADD, _SUB, _MUL, _DIV = (CODES[n] for n in ("add", "sub", "mul", "div"))
_NEG, _SELECT = CODES["neg"], CODES["select"]


class Emit:
    """Short names for emitting nodes of one dtype, so that rules read like formulas."""

    __slots__ = ("dtype", "g")

    def __init__(self, g: Graph, dtype: int) -> None:
        self.g = g
        self.dtype = dtype

    def c(self, value: float) -> int:
        """Emit a constant."""
        return self.g.const(value, self.dtype)

    def __call__(self, name: str, *ids: int) -> int:
        """Emit the op of that name."""
        return self.g.emit(CODES[name], *ids)

    def add(self, a: int, b: int) -> int:
        """Emit a + b."""
        return self.g.emit(_ADD, a, b)

    def mul(self, a: int, b: int) -> int:
        """Emit a * b."""
        return self.g.emit(_MUL, a, b)

    def div(self, a: int, b: int) -> int:
        """Emit a / b."""
        return self.g.emit(_DIV, a, b)

    def sub(self, a: int, b: int) -> int:
        """Emit a - b."""
        return self.g.emit(_SUB, a, b)

    def neg(self, a: int) -> int:
        """Emit -a."""
        return self.g.emit(_NEG, a)

    def where(self, test: int, a: int, b: int) -> int:
        """Emit a select."""
        return self.g.emit(_SELECT, test, a, b)

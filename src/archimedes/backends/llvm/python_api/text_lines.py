"""Writing the text of a native entry point: lines, loads, checks, calls into CPython and NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.python_api.functions import object_pointer

__all__ = ["Text", "pointer_to"]


def _literal(value: int) -> str:
    """Return an address as a literal."""
    return f"inttoptr (i64 {value} to ptr)"


def pointer_to(obj: object) -> str:
    """Return the pointer to an object as a literal; the entry must own the object."""
    return _literal(object_pointer(obj))


class Text:
    """Collects the lines of the function."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        #: Buffer views that are still free.
        self.views: list[str] = []
        #: The number of instances, once a batched argument has told it.
        self.instances = ""

    def value(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def line(self, text: str) -> None:
        """Append an instruction without result."""
        self.lines.append("  " + text)

    def slot(self, size: int) -> str:
        """Reserve so many bytes on the stack and return their address."""
        return self.value(f"alloca [{size} x i8], align 8")

    def at(self, base: str, offset: int, kind: str) -> str:
        """Load a value that lies so many bytes behind an address."""
        where = self.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.value(f"load {kind}, ptr {where}, align {4 if kind == 'i32' else 8}")

    def need(self, test: str) -> None:
        """Leave for the slow path unless ``test`` holds."""
        self.count += 1
        label = f"ok{self.count}"
        self.line(f"br i1 {test}, label %{label}, label %other")
        self.lines.append(f"{label}:")

    def unless(self, test: str, label: str) -> None:
        """Go to a label if ``test`` holds."""
        self.count += 1
        self.line(f"br i1 {test}, label %{label}, label %go{self.count}")
        self.lines.append(f"go{self.count}:")

    def unless_null(self, obj: str, label: str) -> None:
        """Go to a label if there is no object."""
        self.unless(self.value(f"icmp eq ptr {obj}, null"), label)

    def is_object(self, where: str, obj: object) -> None:
        """Leave for the slow path unless a pointer is that of an object."""
        self.need(self.value(f"icmp eq ptr {where}, {pointer_to(obj)}"))

    def constant(self, kind: str, values: Sequence[int]) -> str:
        """Add a constant array to the module and return its name."""
        name = f"@c{len(self.head)}"
        items = ", ".join(f"{kind} {v}" for v in values)
        self.head.append(f"{name} = private constant [{len(values)} x {kind}] [{items}]")
        return name

    def zeros(self, count: int) -> str:
        """Return the address of so many zeros of 64 bits."""
        return self.constant("i64", [0] * max(count, 1))

    def call(self, kind: str, address: int, arguments: str) -> str:
        """Call the function at an address and return the name of its result."""
        text = f"call {kind} {_literal(address)}({arguments})"
        if kind == "void":
            self.line(text)
            return ""
        return self.value(text)

"""Functions of arrays described by loops, as machine code: see ``Backend.array_functions``."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite  # type: ignore[import-untyped]
import numpy as np

from archimedes.backends import code_cache as cache
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.backends.llvm.runtime.pointers import pointer_reader

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.assembler import Function


#: Numbers in a vector, unless another number is asked for: what the widest registers hold.
LANES = 8
#: Types by letter: float64, int64, float32, and pointers.
_ITEMS = {"f": "double", "i": "i64", "s": "float", "p": "ptr"}
#: Bytes by which items are aligned, unless it is 8.
_ALIGNMENT = {"float": 4, "i8": 1}
#: Operations of integers, and of floating-point numbers.
_WORDS = {
    "+": ("add", "fadd"),
    "-": ("sub", "fsub"),
    "*": ("mul", "fmul"),
    "/": ("sdiv", "fdiv"),
    "&": ("and", ""),
    "<": ("icmp slt", "fcmp olt"),
    "<=": ("icmp sle", "fcmp ole"),
    ">": ("icmp sgt", "fcmp ogt"),
    "==": ("icmp eq", "fcmp oeq"),
}
_COMPARISONS = ("<", "<=", ">", "==")


def _operator(op: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operator of Python."""
    return lambda self, other: self._with(op, other, swapped)


def _is_vector(kind: str) -> bool:
    return kind.startswith("<")


class Value:
    """A number, a truth, a pointer or a vector of numbers in the function that is being written."""

    def __init__(self, w: Writer, text: str, kind: str) -> None:
        self.w, self.text, self.kind = w, text, kind

    def _with(self, op: str, other: Any, swapped: bool = False) -> Value:
        w = self.w
        mate = w.like(other, self)
        one = w.like(self, mate)
        a, b = (mate, one) if swapped else (one, mate)
        word = _WORDS[op][one.kind not in ("i64", "ptr")]
        kind = "i1" if op in _COMPARISONS else one.kind
        return Value(w, w.f.value(f"{word} {one.kind} {a.text}, {b.text}"), kind)

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __floordiv__, __and__ = _operator("/"), _operator("&")
    __lt__, __le__, __gt__ = _operator("<"), _operator("<="), _operator(">")

    def equals(self, other: Any) -> Value:
        """Whether both are the same; None is the null pointer."""
        return self._with("==", other)

    def __neg__(self) -> Value:
        if self.kind == "i64":
            return 0 - self
        return Value(self.w, self.w.f.value(f"fneg {self.kind} {self.text}"), self.kind)

    def __abs__(self) -> Value:
        return self.w.intrinsic("fabs", self)


class Array:
    """An array of the function's caller, or a part of one."""

    def __init__(self, w: Writer, base: str, kind: str) -> None:
        self.w, self.base, self.kind = w, base, kind
        self._align = _ALIGNMENT.get(kind, 8)

    def _at(self, index: Any) -> str:
        at = self.w.like(index, "i64").text
        return self.w.f.item(self.kind, self.base, at)

    def __getitem__(self, index: Any) -> Value:
        return self._load(index, self.kind)

    def _load(self, index: Any, kind: str) -> Value:
        text = self.w.f.value(f"load {kind}, ptr {self._at(index)}, align {self._align}")
        return Value(self.w, text, kind)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.put(index, self.w.like(value, self.kind))

    def from_(self, index: Any) -> Array:
        """Return the array from an element on."""
        return Array(self.w, self._at(index), self.kind)

    def vector(self, index: Any, lanes: int = LANES) -> Value:
        """Return neighbours, ``Writer.lanes`` of them unless another number is given."""
        return self._load(index, f"<{lanes} x {self.kind}>")

    def put(self, index: Any, value: Value) -> None:
        """Store a vector."""
        at = self._at(index)
        self.w.f.line(f"store {value.kind} {value.text}, ptr {at}, align {self._align}")


class Variable:
    """A number that changes as the function runs."""

    def __init__(self, w: Writer, value: Value) -> None:
        self.w, self.kind = w, value.kind
        self.location = w.f.memory(value.kind)
        self.set(value)

    def get(self) -> Value:
        """Return the number it has now."""
        return Value(self.w, self.w.f.value(f"load {self.kind}, ptr {self.location}"), self.kind)

    def set(self, value: Any) -> None:
        """Give it another number."""
        text = self.w.like(value, self.kind).text
        self.w.f.line(f"store {self.kind} {text}, ptr {self.location}")

    def add(self, value: Any) -> None:
        """Add to it."""
        self.set(self.get() + value)

    def add_product(self, a: Any, b: Any) -> None:
        """Add a * b to it."""
        self.set(self.w.plus(self.get(), a, b))

    def most(self, value: Value) -> None:
        """Make it the larger of both; nan is not larger."""
        self.set(self.w.larger(value, self.get()))

    def least(self, value: Value) -> None:
        """Make it the smaller of both; nan is not smaller."""
        self.set(self.w.smaller(value, self.get()))


class Writer:
    """A function being written; see the module's text. ``lanes`` numbers are a vector."""

    def __init__(self, f: Function, kinds: str) -> None:
        """``kinds`` has a letter for each parameter, as ``Backend.array_functions`` says.

        Further letters are S for arrays of float32, P for arrays of pointers, p for a pointer.
        """
        self.f, self.lanes, self.wide = f, LANES, f"<{LANES} x double>"
        self.arguments = [
            (Array if kind.isupper() else Value)(self, f"%a{k}", _ITEMS[kind.lower()])
            for k, kind in enumerate(kinds)
        ]

    def like(self, value: Any, other: Value | str) -> Value:
        """Return a value of the kind of another; a number beside a vector is in all lanes."""
        kind = other if isinstance(other, str) else other.kind
        if isinstance(value, Variable):
            value = value.get()
        if kind == "ptr":
            text = getattr(value, "text", "null") if not isinstance(value, Array) else value.base
            return Value(self, text, kind)
        if isinstance(value, Value):
            if _is_vector(kind):
                return self.spread(value, kind)
            other_precision = {value.kind, kind} == {"float", "double"}
            return self.convert(value, kind) if other_precision else value
        if kind == "i64":
            return Value(self, str(int(value)), kind)
        one = Value(self, _literal(float(value)), "double")
        return self.spread(one, kind) if _is_vector(kind) else one

    def spread(self, one: Value, kind: str = "") -> Value:
        """Return a vector, of a kind or of ``lanes`` numbers, with a number in all lanes."""
        if _is_vector(one.kind):
            return one
        wide = kind or self.wide
        count = int(wide[1:].split()[0])
        return Value(self, self.f.splat(one.text, one.kind, count), wide)

    def convert(self, value: Value, kind: str) -> Value:
        """Return floating-point numbers, alone or in a vector, in another precision."""
        word = "fpext" if "double" in kind else "fptrunc"
        return Value(self, self.f.value(f"{word} {value.kind} {value.text} to {kind}"), kind)

    def total(self, vector: Value) -> Value:
        """Return the sum of a vector's numbers, by halves."""
        items = (f"extractelement {self.wide} {vector.text}, i64 {k}" for k in range(self.lanes))
        parts = [Value(self, self.f.value(item), "double") for item in items]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [a + b for a, b in zip(parts[:half], parts[half:])]
        return parts[0]

    def intrinsic(self, name: str, *values: Value) -> Value:
        """Apply one of LLVM's exactly rounded functions (fabs, sqrt, fma)."""
        kind = values[0].kind
        full = f"@llvm.{name}.{'f64' if kind == 'double' else f'v{self.lanes}f64'}"
        self.f.module.declare(full, kind, ", ".join([kind] * len(values)))
        operands = ", ".join(f"{kind} {value.text}" for value in values)
        return Value(self, self.f.value(f"call {kind} {full}({operands})"), kind)

    def plus(self, total: Value, a: Any, b: Any) -> Value:
        """Return total + a * b, rounded once (by the C library, where the CPU cannot)."""
        kind = self.wide if self.wide in (total.kind, getattr(a, "kind", "")) else "double"
        return self.intrinsic("fma", *(self.like(v, kind) for v in (a, b, total)))

    def minus(self, total: Value, a: Any, b: Any) -> Value:
        """Return total - a * b, rounded once."""
        return self.plus(total, -a, b)

    def sqrt(self, value: Value) -> Value:
        """Return the square root."""
        return self.intrinsic("sqrt", value)

    def select(self, condition: Value, a: Any, b: Any) -> Value:
        """Return a where the condition holds, else b."""
        first, second = self._alike(a, b)
        text = f"select i1 {condition.text}, {first.kind} {first.text}, {first.kind} {second.text}"
        return Value(self, self.f.value(text), first.kind)

    def _alike(self, a: Any, b: Any) -> tuple[Value, Value]:
        known = next((v for v in (a, b) if isinstance(v, Value)), None)
        kind = known.kind if known is not None else "i64" if isinstance(a, int) else "double"
        return self.like(a, kind), self.like(b, kind)

    def smaller(self, a: Any, b: Any) -> Value:
        """Return the smaller of both."""
        first, second = self._alike(a, b)
        return self.select(first < second, first, second)

    def larger(self, a: Any, b: Any) -> Value:
        """Return the larger of both."""
        first, second = self._alike(a, b)
        return self.select(first > second, first, second)

    def split(self, value: Value) -> tuple[Value, Value]:
        """Return a positive number as a factor in [1, 2) and the exponent of a power of two."""
        bits = Value(self, self.f.value(f"bitcast double {value.text} to i64"), "i64")
        exponent = Value(self, self.f.value(f"lshr i64 {bits.text}, 52"), "i64") - 1023
        low = self.f.value(f"and i64 {bits.text}, {(1 << 52) - 1}")
        one = self.f.value(f"or i64 {low}, {1023 << 52}")
        return Value(self, self.f.value(f"bitcast i64 {one} to double"), "double"), exponent

    def as_number(self, value: Value) -> Value:
        """Return an integer as a floating-point number."""
        return Value(self, self.f.value(f"sitofp i64 {value.text} to double"), "double")

    def variable(self, value: Any, kind: str = "double") -> Variable:
        """Return a variable with this first value."""
        return Variable(self, self.like(value, kind))

    def vector_variable(self) -> Variable:
        """Return a variable vector of zeros."""
        return Variable(self, self.like(0.0, self.wide))

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1) -> Iterator[Value]:
        """Write ``for k in range(start, stop, step)``."""
        begin, end = self.like(start, "i64"), self.like(stop, "i64")
        with self.f.loop(begin.text, end.text, step=step) as loop:
            yield Value(self, loop.counter, "i64")

    @contextmanager
    def down(self, start: Any, stop: Any) -> Iterator[Value]:
        """Write ``for k in reversed(range(start, stop))``."""
        begin, last = self.like(start, "i64"), self.like(stop, "i64") - 1
        with self.loop(begin, last + 1) as k:
            yield last - (k - begin)

    def first_failing(self, start: Any, stop: Any, test: Callable[[Value], Value]) -> Value:
        """Return the first number of ``range(start, stop)`` for which a test fails, or ``stop``."""
        end, more = self.f.label(), self.f.label()
        with self.loop(start, stop) as k:
            self.f.fork(test(k).text, more, end)
            self.f.start(more)
        self.f.jump(end)
        return k

    def when(self, condition: Value, unless: bool = False) -> AbstractContextManager[None]:
        """Write what runs only where the condition holds, or only where it does not."""
        return self.f.when(condition.text, unless)

    def leave_unless(self, condition: Value, code: Any) -> None:
        """End the function with this code, unless the condition holds."""
        f, out, on = self.f, self.f.label(), self.f.label()
        f.fork(condition.text, on, out)
        f.start(out)
        short = f.value(f"trunc i64 {self.like(code, 'i64').text} to i32")
        f.line(f"ret i32 {short}")
        f.start(on)

    def zero(self, array: Array, count: Any) -> None:
        """Set the first numbers to zero, and up to ``lanes - 1`` behind them."""
        nothing = self.like(0.0, self.wide)
        with self.loop(0, count, self.lanes) as k:
            array.put(k, nothing)

    def copy(self, source: Array, to: Array, count: Any) -> None:
        """Copy the first numbers, and up to ``lanes - 1`` behind them."""
        with self.loop(0, count, self.lanes) as k:
            to.put(k, source.vector(k))

    def check(self, function: str | Value, *arguments: Any) -> None:
        """Call a function, and end with its code unless that is 0."""
        code = self.call(function, *arguments)
        self.leave_unless(code.equals(0), code)

    def call(self, function: str | Value, *arguments: Any) -> Value:
        """Call another function of the module, or the one at an address; return its code."""
        name = f"@{function}" if isinstance(function, str) else function.text
        values = [self.like(a, "ptr" if isinstance(a, Array) else "i64") for a in arguments]
        operands = ", ".join(f"{value.kind} {value.text}" for value in values)
        code = self.f.value(f"call i32 {name}({operands})")
        return Value(self, self.f.value(f"sext i32 {code} to i64"), "i64")

    def room(self, kind: str, count: Any) -> Array:
        """Return an array of the function's own, whose length need not be known before."""
        length = self.like(count, "i64").text
        return Array(self, self.f.value(f"alloca {kind}, i64 {length}, align 64"), kind)

    def array_at(self, pointer: Value | Array, kind: str = "i8") -> Array:
        """Return the array that a pointer leads to, of bytes unless a kind is given."""
        return Array(self, self.like(pointer, "ptr").text, kind)

    def byte(self, pointer: Value) -> Value:
        """Return the byte that a pointer leads to as an integer."""
        return Value(self, self.f.value(f"zext i8 {self.array_at(pointer)[0].text} to i64"), "i64")


def _literal(value: float) -> str:
    """Spell a number exactly, as LLVM reads it."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


#: Functions by name: the kinds of their parameters, and what describes them.
Descriptions = Mapping[str, tuple[str, Callable[..., None]]]


def array_text(functions: Descriptions, target: Target, flushing: Sequence[str] = ()) -> str:
    """Write the module of functions, given by the kinds of their arguments and what they do.

    In those that are ``flushing``, numbers too small to be normal are zero.
    """
    # Code from the disk does without.
    from archimedes.backends.llvm.lowering.assembler import Function, Module
    from archimedes.backends.llvm.lowering.memory import Spelling
    from archimedes.backends.llvm.lowering.prologue import add_guarded

    module = Module(Spelling(1), target)
    entries = []
    for name, (kinds, describe) in functions.items():
        types = ["ptr" if kind.isupper() else _ITEMS[kind] for kind in kinds]
        parameters = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(types))
        f = Function(module, f"define internal i32 @{name}({parameters}) noinline")
        writer = Writer(f, kinds)
        describe(writer, *writer.arguments)
        f.finish("ret i32 0")
        add_guarded(module, f"arc_{name}", parameters, name, name in flushing)
        entries.append(f"ptr @arc_{name}")
    # One address leads to all of them.
    table = f"@entries = internal constant [{len(entries)} x ptr] [{', '.join(entries)}]"
    module.global_lines.append(table)
    module.functions.append("define ptr @arc_entries() nounwind {\n  ret ptr @entries\n}")
    return module.text()


_KINDS: dict[str, Any] = {"f": ctypes.c_double, "i": ctypes.c_int64, "p": ctypes.c_void_p}
_DTYPES = {"F": np.dtype(np.float64), "I": np.dtype(np.int64), "S": np.dtype(np.float32)}
_OWN = Path(__file__).parents[1]


class ArrayFunction:
    """A native function of arrays and numbers.

    ``kinds`` has a letter per parameter, as ``Backend.array_functions`` says. ``bind`` checks the
    arrays it is given; a call does not, and takes contiguous arrays of the right dtype. ``native``
    is the function of their addresses.
    """

    def __init__(self, native: Callable[..., int], kinds: str, owned: object = None) -> None:
        self.native, self._kinds, self._owned = native, kinds, owned
        self._is_array, self._address = [kind in _DTYPES for kind in kinds], pointer_reader()

    def __call__(self, *arguments: Any) -> int:
        """Run it, and return its code."""
        pairs, address = zip(arguments, self._is_array, strict=True), self._address
        return self.native(*[address(x) if is_array else x for x, is_array in pairs])

    def bind(self, *first: Any) -> ArrayFunction:
        """Return the function of the other parameters; it holds the arrays of these."""
        addresses: list[Any] = []
        for x, kind in zip(first, self._kinds):
            if kind in _DTYPES and (x.dtype != _DTYPES[kind] or not x.flags.c_contiguous):
                raise ValueError(
                    f"array {len(addresses)} must be C-contiguous {_DTYPES[kind]}, not {x.dtype} "
                    f"with strides {x.strides}; use np.ascontiguousarray"
                )
            addresses.append(self._address(x) if kind in _DTYPES else x)
        others = self._kinds[len(first) :]
        return ArrayFunction(partial(self.native, *addresses), others, (self, first))


def array_functions(
    functions: Descriptions, sources: Path, flushing: Sequence[str] = ()
) -> dict[str, ArrayFunction]:
    """Return the functions by name, from the disk where they are there."""
    target = host_target(None)
    kinds = {name: letters for name, (letters, _) in functions.items()}
    text = b"".join(path.read_bytes() for path in sorted(sources.glob("*.py")))
    version = f"{llvmlite.__version__} {cache.sources_digest(_OWN)}"
    key = cache.cache_key("arrays", kinds, text, target, version, flushing)
    code = cache.read(key)
    if code is None:
        # Variables become registers.
        code = target.compile(array_text(functions, target, flushing), fused=True)
        cache.write(key, code)
    native = NativeCode(code, "arc_entries")
    table = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(native.address)()
    result: dict[str, ArrayFunction] = {}
    for k, (name, letters) in enumerate(kinds.items()):
        types = [ctypes.c_void_p if kind.isupper() else _KINDS[kind] for kind in letters]
        result[name] = ArrayFunction(native.function(*types, address=table[k]), letters)
    return result

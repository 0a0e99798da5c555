"""Traces: which graph is being recorded, and how values of enclosing traces enter it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from archimedes.errors import GraphError, IntegerRangeError, TraceError, refer_to
from archimedes.graph.blocks.references import any_reference, scalar_ids
from archimedes.graph.ops import BLOCK, CONST
from archimedes.graph.program import Graph
from archimedes.symbolic.core.user_frames import is_user_code, user_line

__all__ = ["Trace", "current_trace", "is_tracing", "trace_error", "while_recording"]


class _Stack(threading.local):
    """The traces under way in this thread, innermost last."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []


_stack = _Stack()
_numbers = itertools.count(1)
#: What to do when a thread begins to record, and to undo when it has ended.
_surroundings: list[tuple[Callable[[], None], Callable[[], None]]] = []


def while_recording(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Have ``begin`` called when the outermost trace of a thread is entered, ``end`` at its end."""
    _surroundings.append((begin, end))


class _Owned(Protocol):
    """What a trace needs to know of a traced value."""

    ids: np.ndarray
    owner: Trace


class Trace:
    """One recording: a graph, and the values of enclosing traces it has come to use.

    Use it as a context manager; while it is active, NumPy calls on traced arrays append to its
    graph. A value of an enclosing trace becomes an extra input, listed in ``captured`` (ids in
    the enclosing graph) with its index in ``graph.inputs`` after those made explicitly. Given a
    ``graph``, it appends to that one.
    """

    __slots__ = ("_inner", "captured", "graph", "number", "parent", "refused")

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        #: Unlike the trace itself, its number can be kept by what was made in it.
        self.number = next(_numbers)
        self.parent: Trace | None = None
        self.captured: list[int] = []
        self._inner: dict[int, int] = {}
        #: The first thing that could not be recorded.
        self.refused: TraceError | None = None

    def __enter__(self) -> Trace:
        traces = _stack.traces
        self.parent = traces[-1] if traces else None
        traces.append(self)
        if self.parent is None:
            with ExitStack() as undo:  # all that surrounds a recording begins, or nothing
                undo.callback(traces.pop)
                for begin, end in _surroundings:
                    begin()
                    undo.callback(end)
                undo.pop_all()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> None:
        _stack.traces.pop()
        if not _stack.traces:
            for _, end in reversed(_surroundings):
                end()
        if error is not None:
            _explain(error, where, self.refused)
        elif self.refused is not None:
            raise type(self.refused)(
                f"{self.refused}\nThe function caught this error and went on, on a way that it "
                "would not take with numbers: let the error pass (except ValueError: ..., not "
                "except Exception: ...), or write what it says."
            )

    def ids_of(self, array: _Owned) -> np.ndarray:
        """Return nodes of this trace's graph for an array of this or an enclosing trace."""
        return scalar_ids(self.graph, self.elements_of(array))

    def elements_of(self, array: _Owned) -> np.ndarray:
        """Return the same, with references for elements of blocks: for those who take them."""
        if array.owner is self:
            return array.ids
        if self.parent is None:
            raise trace_error(
                "a traced value was used after its trace had ended",
                "Return it from the compiled function, or pass it as an argument, instead of "
                "storing it in a global, an attribute or a mutable default.",
            )
        return self._capture(self.parent.elements_of(array))

    def _capture(self, outer: np.ndarray) -> np.ndarray:
        assert self.parent is not None
        source = self.parent.graph
        ids = outer.ravel()
        inner = np.empty(ids.size, dtype=np.int64)
        if source.referenced and any_reference(ids):
            starts = np.array(source.reference_starts)
            home = np.searchsorted(starts, ids, side="right") - 1
            for at in np.unique(home[home >= 0]).tolist():
                first = self.graph.first_reference(self._inside(source.referenced[at]))
                mine = home == at
                inner[mine] = ids[mine] - starts[at] + first
            nodes = np.flatnonzero(home < 0).tolist()
        else:
            nodes = list(range(ids.size))
        flat = ids.tolist()
        for k in nodes:
            inner[k] = self._inside(flat[k])
        return inner.reshape(outer.shape)

    def _inside(self, i: int) -> int:
        """Return what stands in this graph for a node of the enclosing one."""
        assert self.parent is not None
        source = self.parent.graph
        mine = self._inner.get(i)
        if mine is None:
            if source.op[i] == CONST:
                mine = self.graph.const(source.value[i], source.dtype[i])
            elif source.op[i] == BLOCK:
                mine = self.graph.block(source.tables[source.b[i]])
            else:
                mine = self.graph.input(source.dtype[i])
                self.captured.append(i)
            self._inner[i] = mine
        return mine


@contextmanager
def attempt() -> Iterator[None]:
    """Let recordings under way go on after an error inside that somebody takes care of."""
    before = [(trace, trace.refused) for trace in _stack.traces]
    try:
        yield
    finally:
        for trace, refused in before:
            trace.refused = refused


def current_trace() -> Trace:
    """Return the innermost active trace of this thread."""
    traces = _stack.traces
    if not traces:
        raise trace_error(
            "a traced value was used outside any trace",
            "Values of a trace live only while the compiled function is being recorded; "
            "return what you need from the function.",
        )
    return traces[-1]


def is_tracing() -> bool:
    """Return whether this thread is recording a function."""
    return bool(_stack.traces)


def trace_number() -> int:
    """Return the number of the innermost active trace of this thread, or 0."""
    traces = _stack.traces
    return traces[-1].number if traces else 0


def is_active(number: int) -> bool:
    """Return whether a trace of this thread is under way."""
    return any(trace.number == number for trace in _stack.traces)


def trace_error(what: str, remedy: str, where: TracebackType | None = None) -> TraceError:
    """Build the one error of tracing: what happened, on which line, what to write instead."""
    return _note(TraceError(f"{what}, at\n  {user_line(where)}\n{remedy}"))


def _note(error: TraceError) -> TraceError:
    """Remember an error with the recordings under way, in case the user's code catches it."""
    for trace in _stack.traces:
        trace.refused = trace.refused or error
    return error


def outer_write_error() -> TraceError:
    """Build the error about a write to an array of the function that records this one inside."""
    return trace_error(
        "a function recorded inside another writes to the outer one's array",
        "Copy it first (y = x.copy()), and return the result.",
    )


def range_error(value: int) -> TraceError:
    """Build the error about a Python integer that no int64 holds."""
    error = IntegerRangeError(
        f"the Python integer {value} does not fit into int64, which integers of a recorded "
        f"function are, at\n  {user_line()}\nWrite it as a float ({float(value)!r}), or declare "
        "the argument it meets static (static_argnames)."
    )
    return _note(error)


#: What libraries say that were given traced values, or arrays of them.
_NOT_TAKEN = (
    "Symbolic",
    "object arrays are not supported",
    "'object' not supported",
    "dtype('O')",
    "dtype('V",
)


_USE_NUMPY = "Use NumPy's functions, or call the code through arc.callback." + refer_to(
    "foreign code"
)


def _explain(error: BaseException, where: TracebackType | None, refused: TraceError | None) -> None:
    """Turn an error that other code raised about a traced value into the error of tracing."""
    if isinstance(error, TraceError) or not isinstance(error, Exception):
        return
    cause = error.__cause__
    if refused is not None and error.__context__ is None:
        cause = refused  # C code has put an error of its own in its place
    if isinstance(cause, TraceError):
        raise cause from None  # NumPy wraps what float(x) raises in errors of its own
    if isinstance(error, GraphError):
        text = str(error).strip().rstrip(".")
        remedy = "Shorten the recorded program there."
        raise trace_error(text, remedy, where).with_traceback(where) from None
    _explain_memory(error, where)
    if isinstance(error, AttributeError) and "Symbolic" in str(error) and error.obj is not None:
        raise _attribute_error(error, where).with_traceback(where) from None
    if "does not support ufuncs" in str(error):
        raise trace_error(
            f"{str(error).split(' does')[0].removeprefix('operand ')} is no array, as NumPy's "
            "functions need it",
            "Pass the numbers in it: np.sin(q.array), np.linalg.norm(q.array).",
            where,
        ).with_traceback(where) from None
    if any(words in str(error) for words in _NOT_TAKEN):
        raise trace_error(
            f"a traced value was given to code that cannot take it "
            f"({type(error).__name__}: {error})",
            _USE_NUMPY,
            where,
        ).with_traceback(where) from None


def _attribute_error(error: AttributeError, where: TracebackType | None) -> TraceError:
    """Explain that an array or a number was given where the function wants a struct."""
    value: Any = error.obj
    shape = np.shape(value)
    what = f"an array of shape {shape}" if shape else "a number"
    if hasattr(np.ndarray, str(error.name)):
        remedy = _USE_NUMPY
    else:
        remedy = (
            f"If a struct with a field {error.name!r} is meant, pass one: a solver gives the model "
            "the state as x0 is. Arrays are indexed: x[0]." + refer_to("struct")
        )
    return trace_error(f"{what} has no attribute {error.name!r}", remedy, where)


def _explain_memory(error: Exception, where: TracebackType | None) -> None:
    """Explain that C code was given an array that holds traced values, which it cannot read."""
    from archimedes.symbolic.core.plain_array_uses import (
        explain_plain_array_use,
        is_given_traced_arrays,
    )

    while where is not None and where.tb_next is not None:
        where = where.tb_next
    if where is None or not isinstance(error, (TypeError, ValueError, IndexError)):
        return
    frame, at = where.tb_frame, where.tb_lasti
    if is_user_code(frame) and is_given_traced_arrays(frame, at):
        use = explain_plain_array_use(frame, at)
        if use is not None:
            raise trace_error(*use, where).with_traceback(where) from None

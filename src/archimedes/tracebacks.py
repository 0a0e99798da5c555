"""Tracebacks that end at the user's line: the frames of this package are left out of them.

What users call is a *boundary*: a public function, a method of a public class, a compiled function.
An error that leaves the outermost boundary has only the frames of the user's own code left, and
those of code that he called himself. Nothing else about it changes: its type, its text and its
attributes stay, so that notebooks, debuggers, threads and test runners show the same.
``ARCHIMEDES_TRACEBACK=full`` in the environment, read whenever there is an error, keeps all frames.

A boundary sets the traceback of the error and raises it again by a bare ``raise``, which, unlike
``raise error``, adds no frame of its own. A call that succeeds pays for one Python function; the
generated call paths of compiled functions are boundaries themselves and pay nothing.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Iterator
from enum import Enum
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

__all__ = ["GENERATED", "boundary", "hide_frames", "inside", "publish"]

F = TypeVar("F")
#: What code that is generated for compiled functions has for the name of its file.
GENERATED = "<shortcut>"
#: Packages that this one calls, and that call it back on behalf of the user.
_LIBRARIES = frozenset({"numpy", "scipy", "llvmlite", *sys.stdlib_module_names} - {"__main__"})
#: Special methods that users call by an expression and that check what they are given.
_SPECIAL = frozenset(
    {
        *("__init__", "__call__", "__getitem__", "__setitem__", "__contains__", "__enter__"),
        *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__neg__"),
        *("__truediv__", "__rtruediv__", "__matmul__", "__rmatmul__", "__pow__"),
    }
)
_RAISES = frozenset({dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]})
_published: set[type] = set()


def boundary(function: F) -> F:
    """Return a function that does the same and hides the frames of this package in its errors.

    Examples
    --------
    >>> @boundary
    ... def half(x):
    ...     return x / 2
    >>> half(3.0), half.__name__
    (1.5, 'half')
    """
    if not isinstance(function, FunctionType) or function.__code__ is _CALL:
        return function
    call = _wrap(function, hide_frames)
    # With the globals of the function: doctest and others take a function to be from there.
    wrapper = FunctionType(_CALL, function.__globals__, function.__name__, closure=call.__closure__)
    return functools.update_wrapper(wrapper, function)  # type: ignore[return-value]


def _wrap(function: Any, hide: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise

    return call


def inside(function: Any) -> Any:
    """Return the function inside a boundary; any other object as it is."""
    is_boundary = type(function) is FunctionType and function.__code__ is _CALL
    return function.__wrapped__ if is_boundary else function


def publish(value: Any, package: str) -> Any:
    """Return what users get for a public name of a package: its functions are boundaries.

    The methods of a class become boundaries where they are, since a class has to stay itself.

    Examples
    --------
    >>> from archimedes.control.linear.regulators import lqr
    >>> public = publish(lqr, "archimedes.control")
    >>> public is lqr, public.__wrapped__ is lqr
    (False, True)
    """
    if isinstance(value, FunctionType):
        if value.__code__ is not _CALL:
            value = boundary(value)
            value.__module__ = package  # pickled by its public name
    elif isinstance(value, type) and value.__module__.startswith("archimedes."):
        _publish_methods(value)
    return value


def _publish_methods(cls: type) -> None:
    if cls in _published or issubclass(cls, (BaseException, Enum)):
        return
    _published.add(cls)
    if getattr(cls, "_is_protocol", False):
        return
    is_checked = hasattr(cls, "__post_init__") or "__dataclass_fields__" not in vars(cls)
    for name, member in list(vars(cls).items()):
        if isinstance(member, type):
            if member.__qualname__.startswith(f"{cls.__qualname__}."):  # State, Input
                _publish_methods(member)
        elif (name.startswith("_") and name not in _SPECIAL) or (
            name == "__init__" and not is_checked
        ):
            continue
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(cls, name, type(member)(boundary(member.__func__)))
        elif isinstance(member, FunctionType):
            setattr(cls, name, boundary(member))


def hide_frames(error: BaseException) -> None:
    """Leave the frames of this package out of the traceback of an error, and of its causes.

    It is called where the error is caught, in a boundary; inside another one it does nothing.

    Parameters
    ----------
    error : BaseException
        The error. It gets a note that names the line of this package where it was raised if that
        was not done on purpose, by a ``raise``, and one that suggests the name of an argument.
    """
    where = error.__traceback__
    if os.environ.get("ARCHIMEDES_TRACEBACK") == "full" or where is None:
        return
    if any(_is_boundary(frame) for frame in _callers(where.tb_frame)):
        return
    seen: set[int] = set()
    errors = [error]
    while errors:
        error = errors.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        _note_accident(error)
        error.__traceback__ = _without_own_frames(error.__traceback__)
        errors += getattr(error, "exceptions", ())
        if error.__cause__ is not None:
            errors.append(error.__cause__)
        context = error.__context__
        if context is not None and not error.__suppress_context__:
            errors.append(context)
            # Raised and caught in here: no business of the user.
            if _without_own_frames(context.__traceback__) is None:
                error.__suppress_context__ = True


def _callers(frame: FrameType) -> Iterator[FrameType]:
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back


def _is_boundary(frame: FrameType) -> bool:
    is_call = frame.f_code is _CALL or frame.f_code.co_filename == GENERATED
    return is_call or frame.f_globals.get("__name__") == "archimedes.lazy_names"


def _entries(where: TracebackType | None) -> Iterator[TracebackType]:
    while where is not None:
        yield where
        where = where.tb_next


def _owner(frame: FrameType) -> str:
    """Return whose code a frame runs: "ours", "library" or "user"."""
    name = frame.f_globals.get("__name__")  # generated code has no module
    top = "archimedes" if name is None else str(name).partition(".")[0]
    if top == "archimedes":
        return "ours"
    return "library" if top in _LIBRARIES else "user"


def _without_own_frames(where: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package and of what it calls."""
    kept: list[TracebackType] = []
    run: list[TracebackType] = []  # since the last frame of the user
    for entry in _entries(where):
        run.append(entry)
        if _owner(entry.tb_frame) == "user":
            kept += [entry] if _has_own(run) else run
            run = []
    kept += [] if _has_own(run) else run
    result = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _has_own(run: list[TracebackType]) -> bool:
    return any(_owner(entry.tb_frame) == "ours" for entry in run)


def _note_accident(error: BaseException) -> None:
    """Name the line of this package where an error was raised that was not raised on purpose."""
    run: list[TracebackType] = []
    for entry in _entries(error.__traceback__):
        run = [] if _owner(entry.tb_frame) == "user" else [*run, entry]
    own = [entry for entry in run if _owner(entry.tb_frame) == "ours"]
    if not own or not isinstance(error, Exception):
        return
    last, code = own[-1], own[-1].tb_frame.f_code
    if last is run[-1] and code is _CALL:  # the function was not even called
        _note_arguments(error, last.tb_frame.f_locals.get("function"))
        return
    if isinstance(error, OSError) or (last is run[-1] and code.co_code[last.tb_lasti] in _RAISES):
        return
    module = last.tb_frame.f_globals.get("__name__", code.co_filename)
    error.add_note(
        f"Raised in {module}, line {last.tb_lineno}. To see all frames: ARCHIMEDES_TRACEBACK=full"
    )


def _note_arguments(error: Exception, function: Any) -> None:
    """Say which arguments a function has, if it was given one that it has not."""
    import difflib  # for errors only
    import inspect

    wrong = str(error).partition("unexpected keyword argument '")[2].rstrip("'")
    if wrong:
        known = [name for name in inspect.signature(function).parameters if name != "self"]
        near = difflib.get_close_matches(wrong, known, 3, 0.5)
        near += [name for name in known if wrong in name and name not in near]
        hint = "Did you mean " + " or ".join(near) if near else "Its arguments: " + ", ".join(known)
        error.add_note(hint + ("?" if near else ""))


_CALL = _wrap(None, None).__code__

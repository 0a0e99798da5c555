"""Runs a Python file and notes with which arguments its functions are recorded.

A checker needs arguments: structs have units, arrays have shapes. A file that simulates, compiles
or optimizes calls its own functions with traced values, so that running it gives the arguments of
everything that it records. Methods that nothing called get arguments by their names and
annotations, as `make_arguments` describes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.records import record

__all__ = ["Call", "make_arguments", "make_instance", "observe", "watch_calls"]


@record
class Call:
    """A function of a file, and arguments for it: numbers stand for what was traced.

    ``units`` are those that the file declares for its arguments, None where it declares none.
    """

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    units: Mapping[str, Any] | None = None

    @property
    def positional(self) -> tuple[Any, ...]:
        """The arguments in order."""
        return tuple(self.arguments.values())


def stand_in(value: Any) -> Any:
    """Return a tree with ones of the same shape and dtype in place of its traced leaves."""

    def concrete(leaf: Any) -> Any:
        if not is_traced(leaf):
            return leaf
        shape, dtype = np.shape(leaf), getattr(leaf, "dtype", np.dtype(float))
        return np.ones(shape, dtype) if shape else np.ones((), dtype).item()

    return tree.map(concrete, value)


@contextlib.contextmanager
def watch_calls(files: str | tuple[str, ...], traced: bool = True) -> Iterator[list[Call]]:
    """Collect the functions that are called inside the block, with the arguments of the first call.

    Parameters
    ----------
    files : str or tuple of str
        How the names of their files begin.
    traced : bool, optional
        Only calls with traced values: those that something records. True by default.
    """
    seen: dict[CodeType, dict[str, Any] | None] = {}
    homes: dict[CodeType, Mapping[str, Any]] = {}
    calls: list[Call] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in seen or not code.co_filename.startswith(files):
            return
        count = code.co_argcount + code.co_kwonlyargcount
        own = frame.f_locals
        arguments = {name: own[name] for name in code.co_varnames[:count] if name in own}
        if not count or (code.co_name.startswith("<") and code.co_name != "<lambda>"):
            seen[code] = None
            return
        try:
            if not traced or is_traced(*arguments.values()):
                seen[code] = {name: stand_in(value) for name, value in arguments.items()}
                homes[code] = frame.f_globals
        except Exception:  # objects half made, or no trees: the program must not notice
            seen[code] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        for code, known in seen.items():
            function = None if known is None else function_of(code, homes[code])
            if known is not None and function is not None:
                calls.append(Call(code.co_qualname, function, known))


def function_of(code: CodeType, names: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Return a function that runs a piece of code: by its name in a module, or any that is left."""
    first, *rest = code.co_qualname.split(".")
    value: Any = names.get(first)
    for name in rest:
        value = vars(value).get(name) if hasattr(value, "__dict__") else None
    while value is not None:
        if getattr(value, "__code__", None) is code:
            return cast("Callable[..., Any]", value)
        inner = (getattr(value, name, None) for name in ("__wrapped__", "__func__", "fget", "func"))
        value = next((v for v in inner if v is not None), None)
    for owner in gc.get_referrers(code):  # made inside another function
        if isinstance(owner, FunctionType) and owner.__code__ is code:
            return owner
    return None


def observe(path: Path, as_main: bool = False) -> tuple[ModuleType, list[Call]]:
    """Run a Python file; return its module, and its functions that were recorded, with arguments.

    Parameters
    ----------
    path : Path
        The file. Its folder is searched for modules that it imports.
    as_main : bool, optional
        Also run what stands under ``if __name__ == "__main__"``. False by default.
    """
    file = os.path.abspath(path)
    name = "__main__" if as_main else f"checked_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(file))
    try:
        with watch_calls(file) as calls:
            spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.dirname(file))
        if as_main and before is not None:
            sys.modules[name] = before
    return module, calls


# ---- arguments for what was not called ---------------------------------------------------------

#: Arguments that are numbers by convention, and arguments that are structs of a class so named.
TIMES = ("t", "dt", "time")
BY_CLASS = {"x": "State", "state": "State", "u": "Input", "inputs": "Input", "input": "Input"}
#: What fields and arguments hold, by annotation.
VALUES: dict[str, Callable[[], Any]] = {
    "float": lambda: 1.0,
    "Scalar": lambda: 1.0,
    "int": lambda: 1,
    **dict.fromkeys(("Vec3", "Vector", "ndarray", "Array", "ArrayLike"), lambda: np.ones(3)),
    "Matrix": lambda: np.eye(3),
}


class NoArgumentError(Exception):
    """An argument or a field has no value that follows from its name or annotation."""


def make_instance(cls: type, namespace: Mapping[str, Any]) -> Any:
    """Return an instance of a struct: one that the module has, or one from defaults.

    Parameters
    ----------
    cls : type
        A struct. Fields without a default are structs, numbers or arrays by their annotations;
        attitudes are the identity.
    namespace : mapping
        Names of the module, for its values and for annotations that are text.
    """
    for value in namespace.values():
        if type(value) is cls:
            return value
    identity = getattr(cls, "identity", None)
    if inspect.ismethod(identity):
        return identity()
    values = {}
    for f in dataclasses.fields(cls):
        has_default = f.default is not dataclasses.MISSING
        if f.init and not has_default and f.default_factory is dataclasses.MISSING:
            where = f"{cls.__qualname__}.{f.name}"
            values[f.name] = _make_value(f.type, cls, namespace, where)
    return cls(**values)


def make_arguments(
    function: Callable[..., Any], owner: type | None, namespace: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments of a function or method by the names and annotations of its parameters.

    Parameters
    ----------
    function : callable
        The function. ``self`` is an instance of `owner` from its defaults; ``t`` and ``dt`` are
        numbers; ``x`` and ``u`` are of the classes ``State`` and ``Input`` of `owner` or of the
        module.
    owner : type or None
        The class of a method.
    namespace : mapping
        Names of the module.
    """
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        wanted = BY_CLASS.get(name, "")
        cls = getattr(owner, wanted, None) or namespace.get(wanted) if wanted else None
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if owner is not None and not arguments and name == "self":
            arguments[name] = make_instance(owner, namespace)
        elif name in TIMES:
            arguments[name] = 1.0
        elif isinstance(cls, type) and tree.is_struct(cls):
            arguments[name] = make_instance(cls, namespace)
        elif parameter.default is not parameter.empty:
            arguments[name] = parameter.default
        elif parameter.annotation is parameter.empty:
            arguments[name] = 1.0
        else:
            hint = parameter.annotation
            arguments[name] = _make_value(hint, owner, namespace, f"argument {name!r}")
    return arguments


def _make_value(hint: Any, owner: type | None, namespace: Mapping[str, Any], where: str) -> Any:
    """Return a value for a field or an argument."""
    if isinstance(hint, str):
        word = hint.split(".")[-1]
        hint = getattr(owner, word, None) or namespace.get(word, word)
    if isinstance(hint, type) and tree.is_struct(hint):
        return make_instance(hint, namespace)
    word = getattr(hint, "__name__", str(hint)).split("[")[0]
    if word not in VALUES:
        raise NoArgumentError(
            f"{where} has no default, and {word} does not say what it is: give a value of its "
            "class a name in the file"
        )
    return VALUES[word]()

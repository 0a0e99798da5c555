"""Random numbers drawn while recording would become constants: drawing them is refused.

NumPy's and Python's generators know nothing of recordings, and their numbers look like any other.
So, while at least one trace is active, the functions of ``numpy.random``, ``random`` and a few
others, and the methods of their generator types, are replaced by versions that raise in user code
of a thread that is tracing and call the original in any other. A generator is caught wherever it
comes from: an argument, a closure, a cache, another library. When the last trace ends, all is as
it was. See docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any

from archimedes.errors import explained
from archimedes.lazy_dataclasses import lazy_dataclass
from archimedes.symbolic.core.trace import is_tracing, is_user_code, trace_error
from archimedes.symbolic.recorded import bound_names

__all__ = [
    "REMEDY",
    "generator_state",
    "install",
    "is_generator",
    "refusal",
    "set_generator_state",
    "uninstall",
]

REMEDY = explained(
    "random numbers",
    "Draw with arc.random from a key that is an argument: key = arc.random.key(seed), "
    "arc.random.normal(key, shape). Where fixed numbers are meant, make them outside the function.",
)


@lazy_dataclass(frozen=True)
class Source:
    """Functions of a module and methods of its types that give another value at each call."""

    functions: str
    types: str = ""
    methods: str = ""


#: Methods of ``random.Random`` that all others draw with, and those that say more about it.
_PYTHON = "random getrandbits seed getstate setstate randbytes"
#: By the name of a module; "*" stands for every public function, or method.
SOURCES = {
    "numpy.random": Source("*", "Generator RandomState BitGenerator", "*"),
    "random": Source("*", "SystemRandom Random", _PYTHON),
    "secrets": Source("choice randbelow randbits token_bytes token_hex token_urlsafe"),
    "uuid": Source("uuid1 uuid4"),
    "os": Source("urandom getrandom"),
}
#: Making a generator does no harm by itself; some of these are types.
_HARMLESS = {"default_rng", "test"}
#: Modules that draw on behalf of whoever calls them.
_CARRIERS = ("random", "secrets", "uuid", "numpy", "scipy")


def _carries(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _CARRIERS


def _is_recorded(frame: FrameType | None) -> bool:
    """Tell whether a draw, made in a frame, belongs to the function that is being recorded."""
    while frame is not None and _carries(frame):
        frame = frame.f_back
    # A module that is imported for the first time may draw what it likes.
    return frame is not None and is_user_code(frame) and frame.f_code.co_name != "<module>"


def refusal(name: str) -> str:
    """Return the words about a function that was called."""
    return (
        f"{name} was called while the function was being recorded: what it gives would become a "
        "constant, the same in every call"
    )


def _refusing(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if is_tracing() and _is_recorded(sys._getframe(1)):
            raise trace_error(refusal(name), REMEDY)
        return original(*args, **kwargs)

    return refuse


def _property(name: str, label: str, original: Any, version: Any) -> property:
    """Return a property of a module: what is held under a name, refusing. It can be set."""

    def get(module: ModuleType) -> Any:
        held = vars(module).get(name, original)
        return version if held is original else _refusing(label, held)

    def put(module: ModuleType, value: Any) -> None:
        vars(module)[name] = value

    return property(get, put, lambda module: vars(module).pop(name))


class Functions:
    """Functions of a module: while they are refused, its class has properties of their names."""

    def __init__(self, module: ModuleType, label: str, names: Iterable[str]) -> None:
        self.owner, self.plain = module, type(module)
        found = {n: getattr(module, n) for n in names}
        versions = {n: _refusing(f"{label}.{n}", f) for n, f in found.items()}
        # A property comes before what the module itself has under its name.
        members = {n: _property(n, f"{label}.{n}", f, versions[n]) for n, f in found.items()}
        self.refusing = type("module", (self.plain,), members)
        bound_names.register(found, versions)

    def put(self) -> None:
        """Refuse from now on."""
        self.owner.__class__ = self.refusing

    def restore(self) -> None:
        """Put back what was there before."""
        self.owner.__class__ = self.plain


class Methods:
    """Methods of a type, replaced in its dict: types written in C offer no other way."""

    def __init__(self, owner: type, label: str, names: Iterable[str]) -> None:
        held = gc.get_referents(owner.__dict__)[0]
        found = {name: getattr(owner, name) for name in names}
        self.originals = {name: held[name] for name in found if name in held}
        self.versions = {
            name: _refusing(f"{label}.{name}", self.originals.get(name, value))
            for name, value in found.items()
        }
        self._update, self._pop = held.update, held.pop
        self._added = [name for name in found if name not in held]
        self._modified = functools.partial(
            ctypes.pythonapi.PyType_Modified, ctypes.py_object(owner)
        )

    def put(self) -> None:
        """Refuse from now on."""
        self._update(self.versions)
        self._modified()

    def restore(self) -> None:
        """Put back what was there before."""
        self._update(self.originals)
        for name in self._added:
            self._pop(name, None)
        self._modified()


@functools.cache
def _replacements(name: str) -> list[Functions | Methods]:
    """Return what is replaced in a module, which must have been imported."""
    source, module = SOURCES[name], sys.modules[name]
    names = [n for n in source.functions.split() if hasattr(module, n)]
    if source.functions == "*":
        listed = (n for n in module.__all__ if n not in _HARMLESS)
        names = [n for n in listed if not isinstance(getattr(module, n), type)]
    found: list[Functions | Methods] = [Functions(module, name.replace("numpy", "np"), names)]
    for kind in source.types.split():
        owner = getattr(module, kind)
        methods = source.methods.split()
        if source.methods == "*":
            methods = [n for n, v in vars(owner).items() if n[0] != "_" and callable(v)]
        found.append(Methods(owner, kind, methods))
    return found


class _FirstImport:
    """A finder that lets a module be refused from its first import on, while recording."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module of the table, and replace its functions once it has been executed."""
        if name not in SOURCES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _put(name)

            loader.exec_module = exec_module
        return spec


_lock = threading.RLock()
_active = 0
_in_place: dict[str, list[Functions | Methods]] = {}
_finder = _FirstImport()


def _put(name: str) -> None:
    """Replace what a module has, while something is recorded and unless that is done."""
    with _lock:
        if _active and name not in _in_place:
            _in_place[name] = _replacements(name)
            for replaced in _in_place[name]:
                replaced.put()


def install() -> None:
    """Refuse random numbers in recorded functions from now on (counted)."""
    global _active
    with _lock:
        _active += 1
        if _active == 1:
            sys.meta_path.insert(0, _finder)
    try:
        for name in SOURCES:
            if name in sys.modules and name not in _in_place:
                # Another thread may be importing it for the first time: this waits for the end.
                importlib.import_module(name)
                _put(name)
    except BaseException:
        uninstall()
        raise


def uninstall() -> None:
    """Undo one ``install``; the last one restores everything."""
    global _active
    with _lock:
        _active -= 1
        if _active == 0:
            sys.meta_path.remove(_finder)
            while _in_place:
                for replaced in reversed(_in_place.popitem()[1]):
                    replaced.restore()


# ---- generators --------------------------------------------------------------------------------
# A method taken from a generator before (``draw = rng.normal``) is called past its type: whoever
# records a function that reaches one compares the state before and after.


def _kind(value: Any) -> str:
    """Return which generator of the table a value is, or an empty string."""
    for name in ("numpy.random", "random"):
        module = sys.modules.get(name)
        for kind in SOURCES[name].types.split() if module is not None else ():
            if isinstance(value, getattr(module, kind)):
                return kind
    return ""


def is_generator(value: Any) -> bool:
    """Tell whether a value is a generator of random numbers.

    >>> import random
    >>> is_generator(random.Random(1)), is_generator(1.5)
    (True, False)
    """
    return bool(_kind(value))


def generator_state(value: Any) -> Any:
    """Return the state of a generator, which can be pickled; the system's has none."""
    kind = _kind(value)
    if kind == "SystemRandom":
        return None
    if kind == "Generator":
        return value.bit_generator.state
    if kind == "RandomState":
        return value.get_state(legacy=False)
    return value.state if kind == "BitGenerator" else value.getstate()


def set_generator_state(value: Any, state: Any) -> None:
    """Put a generator back to a state."""
    kind = _kind(value)
    if kind == "Generator":
        value.bit_generator.state = state
    elif kind == "RandomState":
        value.set_state(state)
    elif kind == "BitGenerator":
        value.state = state
    elif kind == "Random":
        value.setstate(state)

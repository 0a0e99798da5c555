"""Random numbers and times read while recording would become constants: reading them is refused.

NumPy's and Python's generators know nothing of recordings, and their numbers look like any other.
But a draw changes the state of a generator: states are compared before and after a recording, for
all generators that the function can reach and for those of the modules ``numpy.random`` and
``random``.

Clocks, and random numbers of the operating system, have no state; C functions read them. Python
reports C functions to a thread's own profiling function (``sys.setprofile``) just before it calls
them; nothing is replaced, and other threads notice nothing. Being told of every call more than
doubles the time of a recording, so only those recordings are watched whose functions can reach such
a source. ``is_clock`` and ``is_random_source`` answer that for the walk over what a function reads.
See docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import dis
import gc
import sys
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

import numpy as np

from archimedes.errors import refer_to
from archimedes.symbolic.core.trace import is_tracing, trace_error
from archimedes.symbolic.core.user_frames import INSTALLED, is_user_code

REMEDY = (
    "Draw with arc.random from a key that is an argument: key = arc.random.key(seed), "
    "arc.random.normal(key, shape). Where fixed numbers are meant, make them outside the function."
    + refer_to("random numbers")
)

#: Modules, and packages, that draw random numbers.
_MODULES = frozenset({"random", "secrets", "uuid", "os", "posix", "nt", "_uuid"})
_PACKAGES = ("numpy.random", "scipy.stats")
#: C functions that ask the operating system, by name.
_ENTROPY = frozenset({"urandom", "getrandom", "generate_time_safe", "UuidCreate"})
#: Packages that draw on behalf of whoever calls them.
_CARRIERS = frozenset({"random", "secrets", "uuid", "numpy", "scipy"})


def refusal(name: str) -> str:
    """Return what the error says about a function that was called."""
    return (
        f"{name} was called while the function was being recorded: what it gives would become a "
        "constant, the same in every call"
    )


# ---- what a function can reach -----------------------------------------------------------------


def _draws(module: Any) -> bool:
    return isinstance(module, str) and (module in _MODULES or module.startswith(_PACKAGES))


def is_random_source(value: Any) -> bool:
    """Return whether a module, class or function is one that draws random numbers.

    >>> import random
    >>> is_random_source(random), is_random_source(np.random.default_rng), is_random_source(np.sin)
    (True, True, False)
    """
    if isinstance(value, ModuleType):
        return _draws(value.__name__)
    if callable(value):
        return _draws(getattr(value, "__module__", None))
    return _kind(value) == "SystemRandom"


def names_random_source(
    dotted: Set[tuple[str, str]], modules: Set[str], held: dict[str, Any]
) -> bool:
    """Return whether names in code lead to random numbers: ``np.random``, or imported modules.

    ``held`` are the globals of the code: ``arc.random`` draws from keys.
    """
    if any(map(_draws, modules)):
        return True
    owners = [held.get(owner) for owner, name in dotted if name == "random"]
    return any(getattr(owner, "__name__", "") != "archimedes" for owner in owners)


# ---- numbers of the operating system -----------------------------------------------------------


def drawing_frame(frame: FrameType, function: Any) -> FrameType | None:
    """Return the frame of the user who draws by a C function that is called, or None."""
    name = function.__name__
    if name == "seed":  # of random.Random, without a seed
        if frame.f_locals.get("a", 0) is not None:
            return None
    elif name not in _ENTROPY or not _draws(function.__module__):
        return None
    outer: FrameType | None = frame
    while outer is not None and outer.f_globals.get("__name__", "").partition(".")[0] in _CARRIERS:
        outer = outer.f_back
    # A module that is imported for the first time may draw what it likes.
    if outer is None or not is_user_code(outer) or outer.f_code.co_name == "<module>":
        return None
    return outer


# ---- generators --------------------------------------------------------------------------------

_TYPES = {
    "numpy.random": ("Generator", "RandomState", "BitGenerator"),
    "random": ("SystemRandom", "Random"),
}


def _kind(value: Any) -> str:
    """Return the name of a generator's class, or an empty string for any other value."""
    for name, kinds in _TYPES.items():
        module = sys.modules.get(name)
        for kind in kinds if module is not None else ():
            if isinstance(value, getattr(module, kind, ())):
                return kind
    return ""


def is_generator(value: Any) -> bool:
    """Return whether a value is a generator of random numbers.

    >>> import random
    >>> is_generator(random.Random(1)), is_generator(1.5)
    (True, False)
    """
    return bool(_kind(value))


def module_generators() -> Iterator[tuple[str, Any]]:
    """Yield the generators that the functions of ``numpy.random`` and ``random`` draw from."""
    yield "np.random", np.random.get_state.__self__  # type: ignore[attr-defined]
    random: Any = sys.modules.get("random")
    if random is not None:
        yield "random", random.getstate.__self__


def generators_in_cache(wrapper: Any) -> list[Any]:
    """Return the generators among the results that ``functools.lru_cache`` remembers."""
    held = gc.get_referents(wrapper)
    tables = [table.values() for table in held if type(table) is dict]
    return [value for part in (held, *tables) for value in part if is_generator(value)]


def generator_state(value: Any) -> Any:
    """Return the state of a generator, which can be pickled; the system's has none."""
    kind = _kind(value)
    if kind == "SystemRandom":
        return None
    if kind in ("Generator", "BitGenerator"):
        return getattr(value, "bit_generator", value).state
    return value.get_state(legacy=False) if kind == "RandomState" else value.getstate()


def set_generator_state(value: Any, state: Any) -> None:
    """Put a generator back to a state."""
    kind = _kind(value)
    if kind in ("Generator", "BitGenerator"):
        getattr(value, "bit_generator", value).state = state
    elif kind == "RandomState":
        value.set_state(state)
    elif kind == "Random":
        value.setstate(state)


# ---- clocks -------------------------------------------------------------------------------------

CLOCK_REMEDY = (
    "Pass the time as an argument, or read the clock in a function called by arc.callback."
    + refer_to("clock")
)
_READ = (
    "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns "
    "thread_time thread_time_ns clock_gettime clock_gettime_ns times"
)
#: Functions of the module ``time`` that read the clock whatever they are given.
_ALWAYS = {f for name in _READ.split() if (f := getattr(time, name, None)) is not None}
#: Those that read it unless a time is given, with the number of arguments without it.
_UNLESS_GIVEN = dict.fromkeys((time.gmtime, time.localtime, time.ctime, time.asctime), 0)
_UNLESS_GIVEN[time.strftime] = 1
#: Class methods of ``datetime.date`` and ``datetime.datetime``, and of their subclasses.
_OF_DATES = {"now", "today", "utcnow"}
_CLOCK_MODULES = {"time", "datetime"}
#: What np.datetime64 takes for the time at which it is called.
_WORDS = {"now", "today"}


def is_clock(value: Any) -> bool:
    """Return whether a module, class or function is one that tells the time.

    >>> is_clock(time), is_clock(time.perf_counter), is_clock(np.sin)
    (True, True, False)
    """
    if isinstance(value, ModuleType):
        return value.__name__ in _CLOCK_MODULES
    if isinstance(value, type):
        return value is np.datetime64 or value.__module__ == "datetime"
    return isinstance(value, BuiltinFunctionType) and (
        value.__module__ in _CLOCK_MODULES or _is_of_dates(value)
    )


def names_clock(attributes: Set[str], modules: Set[str]) -> bool:
    """Return whether names in code lead to a clock: NumPy's, or that of a module to import."""
    return "datetime64" in attributes or not _CLOCK_MODULES.isdisjoint(modules)


def _is_of_dates(function: Any) -> bool:
    """Return whether a C function is a method such as ``datetime.now``."""
    if function.__name__ not in _OF_DATES or not isinstance(function.__self__, type):
        return False
    return any(base.__module__ == "datetime" for base in function.__self__.__mro__)


def _argument_count(frame: FrameType) -> int:
    """Return how many arguments a frame is calling a function with; many, if that is not known."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if dis.opname[code[at]] != "CALL" or (at >= 2 and code[at - 2] == dis.EXTENDED_ARG):
        return sys.maxsize
    return code[at + 1]


def reads_clock(frame: FrameType, function: Any) -> bool:
    """Return whether a C function that a frame calls reads the clock."""
    if function in _ALWAYS:
        return True
    without = _UNLESS_GIVEN.get(function)
    if without is not None:
        return _argument_count(frame) <= without
    return _is_of_dates(function)


def asks_numpy(frame: FrameType) -> bool:
    """Return whether a function that begins has ``np.datetime64("now")`` in it."""
    code = frame.f_code
    return "datetime64" in code.co_names and not _WORDS.isdisjoint(
        c for c in code.co_consts if isinstance(c, str)
    )


def is_direct(frame: FrameType) -> bool:
    """Return whether a frame is a user's: libraries read clocks for purposes of their own."""
    if not is_tracing() or not is_user_code(frame) or frame.f_code.co_name == "<module>":
        return False
    if frame.f_globals.get("__name__", "").partition(".")[0] == "archimedes":
        return False
    return not any(folder in frame.f_code.co_filename for folder in INSTALLED)


def clock_label(function: Any) -> str:
    """Return the name of a clock, as it is called."""
    owner = function.__self__
    inside = owner.__name__ if isinstance(owner, (type, ModuleType)) else "time"
    return f"{inside}.{function.__name__}"


# ---- watching -----------------------------------------------------------------------------------


def _check(frame: FrameType, event: str, argument: Any) -> None:
    if event == "c_call":
        if reads_clock(frame, argument):
            if is_direct(frame):
                raise trace_error(refusal(clock_label(argument)), CLOCK_REMEDY)
            return
        drawing = drawing_frame(frame, argument)
        if drawing is not None and is_tracing():
            _refuse_draw(drawing, argument)
    elif event == "call" and asks_numpy(frame) and is_direct(frame):
        raise trace_error(refusal("np.datetime64 of now or today"), CLOCK_REMEDY)


def _refuse_draw(frame: FrameType, function: Any) -> None:
    """Refuse a call of the user's that asks the operating system for random numbers."""
    import ast  # for errors only

    from archimedes.symbolic.core.plain_array_uses import expression_at

    expression = expression_at(frame, frame.f_lasti)
    label = f"os.{function.__name__}"
    if isinstance(expression, ast.Call):
        label = ast.unparse(expression.func)
        if label.endswith("RandomState") and expression.args:
            return  # it is given its seed after it has been made without
    raise trace_error(refusal(label), REMEDY)


def _watching(before: Callable[..., Any] | None) -> Callable[..., Any]:
    def watch(frame: FrameType, event: str, argument: Any) -> None:
        _check(frame, event, argument)
        if before is not None:
            before(frame, event, argument)

    watch.before = before  # type: ignore[attr-defined]
    return watch


@contextmanager
def refuse_outside_sources() -> Iterator[None]:
    """Refuse to have clocks and the system's random numbers read in this thread while it records.

    A profiling function written in Python goes on being told. Under one written in C, such as
    cProfile's, nothing is noticed: it could not be put back.
    """
    before: Any = sys.getprofile()
    if hasattr(before, "before") or (before is not None and not callable(before)):
        yield
        return
    sys.setprofile(_watching(before))
    try:
        yield
    finally:
        sys.setprofile(before)

"""Random numbers drawn while recording would become constants: drawing them is refused.

NumPy's and Python's generators know nothing of recordings, and their numbers look like any other.
What tells is the state of a generator: it is compared before and after a recording, for all
generators that the function can reach and for those of the modules ``numpy.random`` and
``random``. Numbers that come from the operating system have no state; they are asked for by C
functions, which ``watching.py`` notices. See docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Set
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from archimedes.errors import explained
from archimedes.symbolic.core.trace import is_user_code

__all__ = [
    "REMEDY",
    "cached_generators",
    "drawing_frame",
    "generator_state",
    "is_generator",
    "is_random_source",
    "module_generators",
    "names_random_source",
    "refusal",
    "set_generator_state",
]

REMEDY = explained(
    "random numbers",
    "Draw with arc.random from a key that is an argument: key = arc.random.key(seed), "
    "arc.random.normal(key, shape). Where fixed numbers are meant, make them outside the function.",
)

#: Modules, and packages, that draw random numbers.
_MODULES = frozenset({"random", "secrets", "uuid", "os", "posix", "nt", "_uuid"})
_PACKAGES = ("numpy.random", "scipy.stats")
#: C functions that ask the operating system, by name.
_ENTROPY = frozenset({"urandom", "getrandom", "generate_time_safe", "UuidCreate"})
#: Packages that draw on behalf of whoever calls them.
_CARRIERS = frozenset({"random", "secrets", "uuid", "numpy", "scipy"})


def refusal(name: str) -> str:
    """Return the words about a function that was called."""
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
    """Return which of the classes of generators a value is of, or an empty string."""
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


def cached_generators(wrapper: Any) -> list[Any]:
    """Return the generators among the results that ``functools.lru_cache`` remembers."""
    held = gc.get_referents(wrapper)
    tables = [table.values() for table in held if type(table) is dict]
    return [value for part in (held, *tables) for value in part if is_generator(value)]


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

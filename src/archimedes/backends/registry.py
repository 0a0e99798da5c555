"""The registered backends: chosen by name, by the arrays of a call, or by default.

``arc.compile(f, backend=name)`` and ``ARCHIMEDES_BACKEND=name`` take the names of registered
backends and "auto": the reference at first, the default backend once that is worth compiling.
Calls with arrays of a device run on that device.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from archimedes.backends.array_kinds import HOST
from archimedes.backends.protocol import Backend
from archimedes.errors import ShapeDtypeError, refer_to

AUTO = "auto"
VARIABLE = "ARCHIMEDES_BACKEND"
#: What "auto" compiles with, and what it interprets with before: every other must give its bits.
_DEFAULT, _REFERENCE = "llvm", "interpreter"
#: Backends of this package and the modules that have them; imported when first needed.
_BUILT_IN = {
    "llvm": "archimedes.backends.llvm.backend",
    "interpreter": "archimedes.backends.interpreter",
    "cuda": "archimedes.backends.cuda.backend",
}

#: What arrays of devices show. Until one is met, no backend is imported to ask whose it is.
_INTERFACES = ("__cuda_array_interface__", "__dlpack_device__")

_registered: dict[str, Backend] = {}
_lock = threading.Lock()
#: Whether arrays of other kinds than NumPy's were ever met: until then nobody looks for them.
_met_others = False


def register(backend: Backend) -> Backend:
    """Make a backend known under its name, and return it.

    A second one of the same name replaces the first, for functions made from then on.
    """
    if not isinstance(backend, Backend):
        raise TypeError(
            f"register needs a Backend, got {type(backend).__name__}: pass an instance of a "
            "subclass of archimedes.backends.protocol.Backend"
        )
    if backend.name == AUTO or not backend.name.isidentifier():
        raise ValueError(f"register: {backend.name!r} cannot be the name of a backend")
    with _lock:
        _registered[backend.name] = backend
    return backend


def unregister(name: str) -> None:
    """Forget a backend that was registered; functions made with it keep it."""
    with _lock:
        if _registered.pop(name, None) is None:
            raise ValueError(f"unregister: {name!r} is not a registered backend")


def names() -> tuple[str, ...]:
    """Return all names that ``backend=`` takes.

    >>> names()[:3]
    ('auto', 'llvm', 'interpreter')
    """
    return tuple(dict.fromkeys((AUTO, *_BUILT_IN, *_registered)))


def check_backend(caller: str, name: str | None) -> str:
    """Check the name that a user gave and return it; None means that of the environment, or "auto".

    >>> check_backend("compile", None)
    'auto'
    """
    choice = os.environ.get(VARIABLE, AUTO) if name is None else name
    if choice not in names():
        fault = f"{choice!r} is not one of {names()}"
        if name is None:
            raise ValueError(f"{VARIABLE}={fault}")
        raise ValueError(f"{caller}: backend={fault}" + refer_to("backend"))
    return choice


def backend_choice(name: str | None) -> str | None:
    """Return the name that a user gave, or the environment's; None where neither says anything.

    The name is not checked: it is part of keys of things that were made with a checked one.

    >>> backend_choice("llvm")
    'llvm'
    """
    return os.environ.get(VARIABLE) if name is None else name


def resolve_backend(name: str) -> str:
    """Return the name of the backend that compiles: "auto" stands for the default one."""
    return _DEFAULT if name == AUTO else name


def get_backend(name: str) -> Backend:
    """Return a backend by its name ("auto": the default one).

    >>> get_backend("interpreter")
    <backend interpreter>
    """
    name = resolve_backend(name)
    if name not in _registered:
        if name not in _BUILT_IN:
            raise ValueError(f"backend={name!r} is not one of {names()}")
        register(import_module(_BUILT_IN[name]).BACKEND)
    return _registered[name]


def default_backend() -> Backend:
    """Return the backend that compiles where nobody chose one."""
    return get_backend(_DEFAULT)


def reference_backend() -> Backend:
    """Return the backend that runs at once and that every other must equal bit for bit."""
    return get_backend(_REFERENCE)


# ---- by arrays -------------------------------------------------------------------------


def backend_of(value: Any) -> Backend | None:
    """Return the backend that owns an array, if it is not NumPy's; None for anything else."""
    known = _BUILT_IN.keys() <= _registered.keys()
    if not known and any(hasattr(type(value), name) for name in _INTERFACES):
        for name in _BUILT_IN:
            get_backend(name)  # light: what they need is imported when they build something
    for backend in list(_registered.values()):
        if backend.arrays is not HOST and backend.arrays.owns(value):
            global _met_others
            _met_others = True
            return backend
    return None


def device_backend(leaves: Sequence[Any], names: Sequence[str]) -> Backend | None:
    """Return the backend that owns the arrays of a call; None for NumPy's arrays and numbers.

    Numbers go with any arrays. Arrays of two kinds raise an error that names the leaves.
    """
    if not _met_others:
        return None
    owners = [_numpy if _is_array(leaf) else backend_of(leaf) for leaf in leaves]
    first = {owner: k for k, owner in reversed(list(enumerate(owners))) if owner is not None}
    if len(first) > 1:
        kinds = {owner: owner.arrays if isinstance(owner, Backend) else HOST for owner in first}
        arguments = sorted((names[k], kinds[owner].kind) for owner, k in first.items())
        said = " and ".join(f"{name} is a {kind} array" for name, kind in arguments)
        remedies = [arrays.remedy for arrays in kinds.values() if arrays.remedy]
        raise ShapeDtypeError(
            f"argument {said}: a call runs where its arrays are, so all of them must be of one "
            f"kind; {'; '.join(remedies) or 'move one of them'}"
        )
    owner = next(iter(first), None)
    return owner if isinstance(owner, Backend) else None


def runs_in_place(name: str, leaves: Sequence[Any]) -> bool:
    """Return whether a call with these leaves runs on a backend that reads tables in place."""
    if not get_backend(name).reads_tables_in_place:
        return False
    return not _met_others or all(backend_of(leaf) is None for leaf in leaves)


#: Stands for all backends that compute with NumPy's arrays.
_numpy = object()


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.ndim > 0

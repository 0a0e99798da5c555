"""What is taken as fixed: the standard library and installed packages.

Their functions, classes and modules are not looked into. Everything else is a user's code, also
a package installed in place (``pip install -e``).
"""

from __future__ import annotations

import functools
import os
import sys

import numpy as np

__all__ = ["is_installed", "is_transparent", "module_of"]

#: Packages that read no attributes of a user's objects but those of their protocols.
_TRANSPARENT = {
    *("abc", "archimedes", "builtins", "cmath", "collections", "dataclasses", "enum"),
    *("functools", "itertools", "math", "numbers", "numpy", "operator", "types", "typing"),
    *("warnings", "__future__", "_operator", "_functools", "_collections"),
    *("contextlib", "logging", "os", "pathlib", "sys", "threading", "time"),
}


@functools.cache
def _of_python() -> frozenset[str]:
    """Folders of Python's own modules, those written in C too.

    ``sysconfig`` knows them, but reads a file of its own; packages are found by ``sys.path``.
    """
    release = f"python{sys.version_info.major}.{sys.version_info.minor}"
    compiled = os.path.join(sys.base_exec_prefix, sys.platlibdir, release)
    return frozenset((os.path.dirname(os.path.abspath(os.__file__)), compiled))


def _folders() -> tuple[str, ...]:
    found = set(_of_python())
    found.add(os.path.dirname(os.path.dirname(os.path.abspath(np.__file__))))
    found |= {p for p in sys.path if p.endswith(("site-packages", "dist-packages"))}
    return tuple(os.path.abspath(p) + os.sep for p in found if p)


def module_of(cls: type) -> str:
    """Return the name of the module of a class; some types written in C have none.

    >>> module_of(np.ndarray)
    'numpy'
    """
    name: object = cls.__module__
    return name if isinstance(name, str) else "builtins"


@functools.lru_cache(maxsize=4096)
def is_installed(module: str | None) -> bool:
    """Tell whether a module, by its name, is part of Python or of an installed package.

    >>> is_installed("numpy.linalg"), is_installed("__main__")
    (True, False)
    """
    if not module or module == "__main__":
        return False
    top = module.split(".")[0]
    if top in ("archimedes", "numpy", "scipy") or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and os.path.abspath(file).startswith(_folders())


def is_transparent(module: str | None) -> bool:
    """Tell whether code of an installed module reads only what its arguments' protocols offer."""
    return not module or module.split(".")[0] in _TRANSPARENT

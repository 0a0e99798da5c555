"""A digest of what a function is that is the same in every process.

Code counts by its instructions and constants, not by its file and lines.
"""

from __future__ import annotations

import hashlib
import pickle
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

import numpy as np

from archimedes.function.dependencies.openers import Same
from archimedes.function.dependencies.walk import Walk


def stable_digest(*roots: Any) -> str:
    """Return a hash of functions and all that they read.

    Raises TypeError for what only this process knows, such as an open file.

    >>> def make(k):
    ...     return lambda x: k * x
    >>> stable_digest(make(2.0)) == stable_digest(make(2.0)) != stable_digest(make(3.0))
    True
    """
    h = hashlib.blake2b(digest_size=16)
    for token in Walk(roots).tokens:
        h.update(_bytes(token))
    return h.hexdigest()


def _bytes(token: Any) -> bytes:
    if isinstance(token, Same):
        return _name_bytes(token.value)
    if isinstance(token, tuple):
        return b"(" + b",".join(map(_bytes, token)) + b")"
    if isinstance(token, frozenset):
        return b"{" + b",".join(sorted(map(_bytes, token))) + b"}"
    if isinstance(token, CodeType):
        return _code_bytes(token)
    if isinstance(token, bytes):
        return b"%d:" % len(token) + token
    if token is None or isinstance(token, (bool, int, float, complex, str, range)):
        return f"{type(token).__name__} {token!r}".encode()
    return _name_bytes(token)


def _code_bytes(code: CodeType) -> bytes:
    parts = (
        *(code.co_name, code.co_code, code.co_consts, code.co_names, code.co_varnames),
        *(code.co_freevars, code.co_cellvars, code.co_flags, code.co_exceptiontable),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
    )
    return _bytes(parts)


def _name_bytes(value: Any) -> bytes:
    """Return the name of a class, a module or a builtin, or the pickle of another object."""
    if isinstance(value, (type, BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}".encode()
    if isinstance(value, (ModuleType, np.ufunc)):
        return value.__name__.encode()
    if isinstance(value, np.dtype):
        return value.str.encode()
    if value is ... or value is NotImplemented:
        return repr(value).encode()
    try:
        return pickle.dumps(value, protocol=4)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TypeError(
            f"it reads an object of type {type(value).__qualname__}, which cannot be compared "
            f"between processes ({error})"
        ) from error

"""Methods by name: each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module

from archimedes.errors import explained
from archimedes.simulate.methods.method_table import METHODS, Method

__all__ = ["find_method"]

#: Where methods are defined. A line here and a ``register`` there make a method available.
_HOMES = {
    "archimedes.simulate.methods.explicit": "euler heun rk4 bs3 dopri5 tsit5 dop853",
    "archimedes.simulate.methods.rosenbrock": "rodas5p",
    "archimedes.simulate.methods.esdirk": "esdirk4",
    "archimedes.simulate.methods.radau": "radau5",
    "archimedes.simulate.methods.switching": "auto",
    "archimedes.simulate.solves.bdf": "bdf",
    "archimedes.simulate.solves.sundials": "cvode ida",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


#: Names that users of the original type.
_OTHER_NAMES = {"cvodes": "cvode", "idas": "ida"}


def find_method(method: str | Method) -> Method:
    """Return the method of this name (a :class:`Method` is returned as it is).

    >>> find_method("rk4").order
    4
    """
    if isinstance(method, Method):
        return method
    method = _OTHER_NAMES.get(method, method)
    if method not in METHODS and method in _HOME:
        import_module(_HOME[method])
    if method not in METHODS:
        known = ", ".join(sorted({*_HOME, *METHODS}))
        raise ValueError(explained("method", f"method={method!r} is unknown: write one of {known}"))
    return METHODS[method]

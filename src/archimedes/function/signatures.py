"""How functions take their arguments: names, defaults, and which of them are traced."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Bound(dict[str, Any]):
    """Arguments by name; ``defaulted`` are those the caller left to their defaults."""

    def __init__(self, values: dict[str, Any] | None = None, defaulted: Any = ()) -> None:
        super().__init__(values or {})
        self.defaulted: set[str] = set(defaulted)


class Signature:
    """How a function takes its arguments: names, defaults, which are static."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int] | None,
        static_argnames: str | Sequence[str] | None,
    ) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        try:
            self.parameters = inspect.signature(function)
        except (TypeError, ValueError):
            any_args = inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)
            self.parameters = inspect.Signature([any_args])
        kinds = inspect.Parameter
        params = list(self.parameters.parameters.values())
        self.positional = [
            p.name for p in params if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ]
        self.plain = len(self.positional) == len(params)
        numbers = _as_tuple(static_argnums)
        names = _as_tuple(static_argnames)
        known = [p.name for p in params]
        self.names = frozenset(known)
        for number in numbers:
            if not -len(self.positional) <= number < len(self.positional):
                raise ValueError(
                    f"static_argnums={number} is out of range: {self.name}() has "
                    f"{len(self.positional)} positional parameters {self.positional}"
                )
        has_any = any(p.kind == kinds.VAR_KEYWORD for p in params)
        for name in names:
            if name not in known and not has_any:
                raise ValueError(
                    f"static_argnames names {name!r}, which is not a parameter of "
                    f"{self.name}(): {known}"
                )
            if name in known and self.parameters.parameters[name].kind in _GATHERING:
                raise ValueError(
                    f"static_argnames names {name!r}, which collects further arguments of "
                    f"{self.name}(): "
                    "give the static arguments names of their own"
                )
        self.known = {p.name for p in params if p.kind not in _GATHERING}
        self.static = {*(self.positional[n] for n in numbers), *names}

    def is_positional(self, name: str) -> bool:
        """Return whether a name that ``bind`` gives belongs to a positional argument."""
        return name in self.positional or name.endswith("]")

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, defaults filled in."""
        if self.plain and not kwargs and len(args) == len(self.positional):
            return dict(zip(self.positional, args))
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"{self.name}(): {error}; its arguments are {self.parameters}. Solvers pass those "
                "after time and state as args=(...)"
            ) from None
        passed = set(bound.arguments)
        bound.apply_defaults()
        flat = Bound(defaulted=[n for n in bound.arguments if n not in passed and n in self.known])
        for name, value in bound.arguments.items():
            kind = self.parameters.parameters[name].kind
            if kind == inspect.Parameter.VAR_POSITIONAL:
                flat.update({f"{name}[{k}]": v for k, v in enumerate(value)})
            elif kind == inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            else:
                flat[name] = value
        return flat

    def fixed(self, values: dict[str, Any]) -> set[str]:
        """Names of the arguments that are not traced: static ones, and defaults left alone."""
        return self.static | getattr(values, "defaulted", set())

    def rebind(
        self, values: dict[str, Any], new: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments as given, with new values for some; defaults are left to themselves."""
        defaulted: set[str] = getattr(values, "defaulted", set())
        return self.unbind(
            {k: new.get(k, v) for k, v in values.items() if k in new or k not in defaulted}
        )

    def unbind(self, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments from values by name; some may be left out."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in values.items():
            # After one that was left to its default, only names tell which is meant.
            is_next = self.positional[len(args) : len(args) + 1] == [name]
            if is_next or (name not in self.positional and name.endswith("]")):
                args.append(value)
            else:
                kwargs[name] = value
        return tuple(args), kwargs


def _as_tuple(x: Any) -> tuple[Any, ...]:
    if x is None:
        return ()
    return (x,) if isinstance(x, (int, str)) else tuple(x)


_REASONS = {
    "kind": "there is one kind of graph, and NumPy's semantics for all of it",
    "jit": "functions become native code by themselves (choose with backend=)",
    "buffered": "calls need no buffers of their own (out= reuses arrays)",
    "sparse": "sparsity of derivatives is found and used by itself",
}


def warn_of_former_options(what: str, options: Mapping[str, object]) -> None:
    """Warn of options that are no longer needed; raise TypeError for any other.

    >>> warn_of_former_options("compile", {})
    """
    for name in options:
        if name not in _REASONS:
            raise TypeError(f"{what}() got an unexpected keyword argument {name!r}")
        warnings.warn(
            f"{what}({name}=...) means nothing here and will be refused one day: {_REASONS[name]}",
            DeprecationWarning,
            stacklevel=4,
        )

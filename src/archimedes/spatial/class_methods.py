"""Methods that work on an instance, through ``super()``, and on the class itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["on_class_too"]


class on_class_too:
    """Decorator: a method that, called on the class, uses an instance with default fields.

    ``RigidBody.dynamics(t, x, u)`` is ``RigidBody().dynamics(t, x, u)``, and
    ``RigidBody.dynamics(body, t, x, u)`` is ``body.dynamics(t, x, u)`` as for any method. The
    defaults are those of the class that defines the method, so a subclass may add required
    fields.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    @functools.cached_property
    def on_class(self) -> Callable[..., Any]:
        """The function that the class itself shows; one object, so that it can be cached by."""
        function, owner = self.function, self.owner
        signature = inspect.signature(function)
        count = len(signature.parameters)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) + len(kwargs) == count and args and isinstance(args[0], owner):
                return function(*args, **kwargs)
            return function(owner(), *args, **kwargs)

        without_self = list(signature.parameters.values())[1:]
        call.__signature__ = signature.replace(parameters=without_self)  # type: ignore[attr-defined]
        del call.__wrapped__
        return call

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        return self.on_class if instance is None else self.function.__get__(instance, owner)

"""The table of operators, which the files of this folder fill.

An operator is a function ``f(node, *inputs)`` that returns an array, or a tuple of several. Inputs
that are left out are None. ``node.get(name, default)`` reads an attribute, ``node.version`` is the
version in which the operator last changed. An operator with subgraphs is called as
``f(node, values, *inputs)``, where ``values`` are all values around it by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OPERATORS: dict[str, Callable[..., Any]] = {}


def op(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the table, under the names of ONNX."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OPERATORS[name] = function
        return function

    return enter

"""Checks of what users give to a campaign, before anything runs."""

from __future__ import annotations

import inspect
import operator
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from archimedes import tree
from archimedes.errors import explained
from archimedes.simulate.campaigns.chunk_store import CampaignError
from archimedes.simulate.campaigns.distributions import Distribution

__all__ = [
    "check_count",
    "check_folder",
    "check_model",
    "check_portable",
    "check_progress",
    "check_result",
    "explain_broken_pool",
]


def check_count(name: str, value: Any, least: int) -> int:
    """Return a whole number, which must be at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"monte_carlo: {name} must be a whole number, got {value!r}") from None
    if isinstance(value, bool):
        raise TypeError(f"monte_carlo: {name} must be a whole number, got {value!r}")
    if number < least:
        raise ValueError(f"monte_carlo: {name} must be at least {least}, got {number}")
    return number


def check_model(model: Any, distributions: Any) -> None:
    """Raise if the model is not a function of one parameter tree, or a class was given."""
    if not callable(model):
        words = f"model must be a function model(params) -> results, got {type(model).__name__}"
        swapped = callable(distributions) and not isinstance(distributions, Distribution)
        remedy = "the model comes first, then the distributions" if swapped else "write f, not f(x)"
        raise TypeError(f"monte_carlo: {words}: {remedy}")
    try:
        inspect.signature(model).bind(None)
    except TypeError as error:
        raise TypeError(
            f"monte_carlo: model is called with one argument, the tree of parameters: {error}. "
            "Put them into a dict or a struct"
        ) from None
    except ValueError:  # a builtin without a signature
        pass
    leaves, treedef = tree.flatten(distributions)
    for leaf, path in zip(leaves, treedef.paths("distributions")):
        if isinstance(leaf, type) and issubclass(leaf, Distribution):
            name = leaf.__name__
            raise TypeError(
                explained(
                    "distribution", f"monte_carlo: {path} is the class {name}: write {name}(...)"
                )
            )


def check_result(model: Callable[[Any], Any], results: Any) -> Any:
    """Return the results, if there are any."""
    if not tree.leaves(results):
        code = getattr(inspect.unwrap(model), "__code__", None)
        where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
        raise CampaignError(
            explained(
                "campaign",
                f"monte_carlo: the model{where} returned nothing ({results!r}): is a return "
                "missing?",
            )
        )
    return results


def check_folder(folder: Any) -> None:
    """Raise if a folder is not a path."""
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"monte_carlo: folder must be a path, got {type(folder).__name__}")


def check_progress(progress: Any) -> None:
    """Raise if progress is neither True or False nor a function."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            "monte_carlo: progress must be True, False or a function of (runs done, n), got "
            f"{progress!r}"
        )


def check_portable(task: Any, executor: Any) -> None:
    """Raise early where a process pool could not send the model to its workers."""
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CampaignError(
            "monte_carlo: the model and the distributions must travel to other processes, and "
            f"cannot: {error}. Define the model with def at the top of a module"
        ) from error


def explain_broken_pool(model: Any) -> str:
    """Return why a pool may have lost its workers, and what to do."""
    main = sys.modules["__main__"]
    if getattr(model, "__module__", None) == "__main__" and not hasattr(main, "__file__"):
        advice = (
            "they cannot import the model, which was typed into a notebook, a prompt or python -c: "
            "write it into a file, and import it from there"
        )
    else:
        advice = (
            "each of them imports your program again, so put what starts the campaign under "
            'if __name__ == "__main__":'
        )
    return (
        "monte_carlo: the executor lost its worker processes. Where these are not forked (Windows, "
        f"macOS, Linux since Python 3.14) {advice}. If that is so already, a worker was killed, "
        "for example for lack of memory: use fewer workers or a smaller chunk. With a folder, the "
        "same call goes on with the runs that are missing"
    )

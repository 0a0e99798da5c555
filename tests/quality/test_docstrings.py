"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

from .test_source import MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    with np.printoptions():
        result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_public_functions_have_examples():
    """A function that users call shows a call."""
    import archimedes as arc

    finder = doctest.DocTestFinder(recurse=False)
    without = []
    for name in arc.__all__:
        value = getattr(arc, name)
        if callable(value) and not isinstance(value, type):
            examples = [e for t in finder.find(value, name) for e in t.examples]
            if not examples:
                without.append(name)
    assert without == [], "public functions whose docstrings show no call"

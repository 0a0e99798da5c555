"""Every example in the docstrings of the tree package runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import archimedes.tree

MODULES = [m.name for m in pkgutil.iter_modules(archimedes.tree.__path__, "archimedes.tree.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_public_functions_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    for name in set(archimedes.tree.__all__) - {"InitVar"}:
        tests = finder.find(getattr(archimedes.tree, name), name)
        assert tests and tests[0].examples, f"{name} has no example"

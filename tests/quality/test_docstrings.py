"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect

import numpy as np
import pytest

from .test_source import MODULES

WITH_EXAMPLES = [name for name, p in MODULES.items() if ">>> " in p.read_text(encoding="utf-8")]


class Finder(doctest.DocTestFinder):
    """Finds the examples of a module where they are written.

    Public names say the package that offers them, not the module that defines them: classes are
    known by their names here, functions by what is inside their wrappers.
    """

    def __init__(self, module):
        super().__init__()
        body = ast.parse(MODULES[module].read_text(encoding="utf-8")).body
        self.classes = {node.name for node in body if isinstance(node, ast.ClassDef)}

    def _from_module(self, module, object):
        if isinstance(object, type):
            return object.__qualname__.split(".")[0] in self.classes
        return super()._from_module(module, inspect.unwrap(object))


@pytest.mark.long_cases("archimedes.vehicles.flight_case", "archimedes.vehicles.steady_flight")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with np.printoptions():
        for test in Finder(name).find(module, name):
            runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


def test_public_names_have_examples():
    """Whatever users call or are given shows how."""
    from docs.site.public_names import public_names

    ours = [n for n in public_names() if n.kind not in ("module", "data") and n.same_as is None]
    home = {n.full: getattr(n.value, "__module__", "") for n in ours}
    without = [n.full for n in ours if ">>> " not in n.text and "archimedes" in home[n.full]]
    assert without == [], "public names whose docstrings show no use"

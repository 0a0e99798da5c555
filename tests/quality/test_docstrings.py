"""Every example in a docstring runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

from .test_source import MODULES

WITH_EXAMPLES = [name for name, p in MODULES.items() if ">>> " in p.read_text(encoding="utf-8")]


@pytest.mark.long_cases("archimedes.vehicles.flight_case", "archimedes.vehicles.steady_flight")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name):
    module = importlib.import_module(name)
    with np.printoptions():
        result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0


def test_public_names_have_examples():
    """Whatever users call or are given shows how."""
    from docs.site.public_names import public_names

    ours = [n for n in public_names() if n.kind not in ("module", "data") and n.same_as is None]
    home = {n.full: getattr(n.value, "__module__", "") for n in ours}
    without = [n.full for n in ours if ">>> " not in n.text and "archimedes" in home[n.full]]
    assert without == [], "public names whose docstrings show no use"

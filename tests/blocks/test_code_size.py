"""Programs do not grow with arrays: every NumPy form of the conformance table, at two sizes."""

from __future__ import annotations

import inspect
from fnmatch import fnmatchcase

import numpy as np
import pytest

from tests.blocks.code_size import sizes
from tests.blocks.growing_forms import GROWING
from tests.conformance.samples import SAMPLES
from tests.conformance.table import EXPECTED_TRACE_ERRORS, FORMS

#: Elements of vectors, rows of matrices.
SMALL, LARGE = (96, 64), (288, 128)
#: Searches and sorts have a step for each doubling.
SLACK = 40


def _is_long(form):
    if form.name in EXPECTED_TRACE_ERRORS or form.group == "empty arrays":
        return False
    return any(np.ndim(SAMPLES[name]) for name in inspect.signature(form.fn).parameters)


def _matches(name, pattern):
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def reason(name):
    """Return why the program of a form grows, or None."""
    return next((why for pattern, why in GROWING.items() if _matches(name, pattern)), None)


@pytest.mark.long
@pytest.mark.parametrize("form", [pytest.param(f, id=f.name) for f in FORMS if _is_long(f)])
def test_programs_do_not_grow_with_arrays(form):
    if reason(form.name) is not None:
        pytest.skip(reason(form.name))
    found = sizes(form, list(inspect.signature(form.fn).parameters), SMALL, LARGE)
    if found is not None:  # NumPy takes it at these sizes too
        assert found[1] <= found[0] + SLACK


def test_the_table_of_exceptions_names_forms():
    names = [form.name for form in FORMS]
    assert [p for p in GROWING if not any(_matches(name, p) for name in names)] == []

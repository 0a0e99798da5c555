"""NumPy conformance: every form agrees with NumPy or raises the tracing error, none is wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from archimedes import TraceError
from archimedes import compile as arc_compile

from .compare import AGREE, TRACE_ERROR, WRONG, difference, eager, outcome
from .forms import EXACT, SUMS, Form
from .table import EXPECTED_TRACE_ERRORS, FORMS
from .untraceable import UNTRACEABLE


def by_name(forms: list[Form]) -> list:
    return [pytest.param(form, id=form.name) for form in forms]


@pytest.mark.parametrize("form", by_name(FORMS))
def test_form_agrees_with_numpy(form: Form) -> None:
    kind, detail = outcome(form)
    expected = TRACE_ERROR if form.name in EXPECTED_TRACE_ERRORS else AGREE
    assert (kind, detail if kind != TRACE_ERROR else "") == (expected, ""), detail


@pytest.mark.parametrize("form", by_name(UNTRACEABLE))
def test_value_dependent_form_raises_trace_error(form: Form) -> None:
    eager(form)
    with pytest.raises(TraceError):
        arc_compile(form.fn)(*form.call_args())


def test_table_is_large_and_well_formed() -> None:
    names = [form.name for form in FORMS + UNTRACEABLE]
    assert not [name for name, count in Counter(names).items() if count > 1]
    assert len(FORMS) >= 400
    assert len(FORMS) - len(EXPECTED_TRACE_ERRORS) >= 315
    assert set(EXPECTED_TRACE_ERRORS) <= set(names)
    assert sum(max(map(np.ndim, form.args)) >= 3 for form in FORMS) >= 60
    assert sum(form.group == "nasty values" for form in FORMS) >= 25


@pytest.mark.parametrize(
    ("want", "got", "tolerance", "agrees"),
    [
        (np.zeros(2), -np.zeros(2), EXACT, False),
        (np.zeros(2), -np.zeros(2), SUMS, True),
        (np.ones(2), np.ones(2, np.float32), SUMS, False),
        (np.ones(2), np.ones((1, 2)), SUMS, False),
        (np.ones(2), np.nextafter(np.ones(2), 2), EXACT, False),
        (np.ones(2), np.nextafter(np.ones(2), 2), SUMS, True),
        (np.array([np.nan]), np.array([1.0]), SUMS, False),
        (np.array([np.nan]), np.array([np.nan]), EXACT, True),
        (np.array([np.inf]), np.array([-np.inf]), SUMS, False),
        ((1.0, [2.0]), (1.0, [3.0]), SUMS, False),
        ((1.0, 2.0), (1.0,), SUMS, False),
    ],
)
def test_comparison_tells_differences(want, got, tolerance, agrees) -> None:
    assert (difference(want, got, tolerance) is None) == agrees


def test_wrong_results_are_reported_as_wrong() -> None:
    # A documented departure from NumPy, where the value of 0 * inf is nan.
    zero = Form("zero", lambda x: 0.0 * x, (np.array([np.inf]),), "self-check", EXACT)
    assert outcome(zero)[0] == WRONG

"""Keywords, odd shapes, nan, traced positions and writing functions agree with NumPy."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from tests.conformance.compare import AGREE, outcome
from tests.conformance.forms import Form

from .more_forms import FORMS


@pytest.mark.parametrize("form", [pytest.param(form, id=form.name) for form in FORMS])
def test_form_agrees_with_numpy(form: Form) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's own, about nan and empty slices
        kind, detail = outcome(form)
    assert kind == AGREE, detail


def test_forms_are_named_once() -> None:
    assert not [name for name, n in Counter(form.name for form in FORMS).items() if n > 1]

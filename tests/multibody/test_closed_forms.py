"""Each row of the table of `closed_forms`, and that errors of the first order halve."""

from __future__ import annotations

import pytest

from .closed_forms import FORMS

#: Errors below this are rounding, and nothing that halves.
ROUNDING = 1e-8


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, id=form.name, marks=[] if form.quick else [pytest.mark.long])
        for form in FORMS
    ],
)
def test_what_is_found_is_what_is_known(form):
    _, error = form.error()
    assert error <= form.within
    if form.first_order:
        _, halved = form.error(halved=True)
        assert halved == pytest.approx(error / 2, rel=0.2, abs=ROUNDING)

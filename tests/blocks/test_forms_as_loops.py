"""NumPy's forms of the conformance table, recorded as loops already for two elements."""

from __future__ import annotations

import pytest

from archimedes.symbolic.core.loop_nests import loops_from
from tests.conformance.compare import AGREE, outcome
from tests.conformance.table import EXPECTED_TRACE_ERRORS, FORMS

pytestmark = pytest.mark.long

TRACED = [form for form in FORMS if form.name not in EXPECTED_TRACE_ERRORS]


@pytest.mark.parametrize("form", [pytest.param(form, id=form.name) for form in TRACED])
def test_agrees_with_numpy(form):
    with loops_from(2, 1):
        kind, detail = outcome(form)
    assert kind == AGREE, detail

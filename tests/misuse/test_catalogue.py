"""Every entry of the catalogue of misuse, on every backend."""

from __future__ import annotations

import pytest

from tests.misuse.catalogue import BACKENDS, Entry, catalogue, check, eager_value

ENTRIES = catalogue()


@pytest.mark.long_cases(
    "events:-a-function-with*",
    "events:-a-reset-in-place",
    "events:-a-truth-value-as*",
    "events:-an-event-faster*",
    "events:-an-event-that-writes*",
    "events:-times-after*",
    "solves:-a-solve-that-fails*",
    "solves:-the-time-of-a-truth*",
    "*a-hessian-in-all-times*",
)
@pytest.mark.parametrize("item", ENTRIES, ids=lambda item: item.name.replace(" ", "-"))
def test_same_value_or_an_error_that_teaches(item: Entry) -> None:
    expected = eager_value(item)
    for backend in BACKENDS:
        try:
            check(item, backend, expected)
        except Exception as error:
            error.add_note(f"on {backend}")
            raise

"""Every entry of the catalogue of misuse, on every backend."""

from __future__ import annotations

import pytest

from tests.misuse.catalogue import BACKENDS, Entry, catalogue, check

ENTRIES = catalogue()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("item", ENTRIES, ids=lambda item: item.name.replace(" ", "-"))
def test_same_value_or_an_error_that_teaches(item: Entry, backend: str) -> None:
    check(item, backend)

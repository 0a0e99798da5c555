"""The cache of these tests, where one turns it on, is a folder of its own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "cache"))

"""Kernels of these tests do not go to the user's cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "0")
    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path / "cache"))

"""Fixtures of the derivative tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def jax_float64():
    """JAX in double precision, as an independent oracle."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax

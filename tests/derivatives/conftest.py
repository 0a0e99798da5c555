"""Fixtures of the derivative tests."""

from __future__ import annotations

import pytest

from tests.optional_packages import import_or_skip


@pytest.fixture(scope="session")
def jax_float64():
    """JAX in double precision, as an independent oracle."""
    jax = import_or_skip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax

"""IPOPT, with which many of these tests compare: they are skipped where it is not installed."""

from __future__ import annotations

import pytest

from archimedes.optimize.solvers import ipopt as ipopt_solver
from archimedes.optimize.solvers.ipopt import library
from tests.optional_packages import skip_without


@pytest.fixture
def ipopt():
    """Skip a test that asks for IPOPT where no package brings it."""
    require_ipopt()


@pytest.fixture
def without_ipopt(monkeypatch):
    """Have no IPOPT go on where a method of this package gives up."""

    def none(*_):
        raise ImportError("none here")

    monkeypatch.setattr(ipopt_solver, "solve", none)


def pytest_runtest_setup(item):
    """Skip tests with ``"ipopt"`` among their parameters where no package brings it."""
    if hasattr(item, "callspec") and "ipopt" in item.callspec.params.values():
        require_ipopt()


def require_ipopt():
    try:
        library()
    except ImportError as error:
        skip_without("casadi", error, "IPOPT")

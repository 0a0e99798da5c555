"""The derivatives of the catalogue, with arrays recorded as loops already from two elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archimedes.symbolic.core.wide import wide_from

from . import test_first, test_second

FIRST = [test_first.test_jac, test_first.test_vjp, test_first.test_jvp]
SECOND = [test_second.test_hess, test_second.test_forward_over_reverse]
CHECKS = [(check, name) for check in FIRST for name in test_first.NAMES]
CHECKS += [(check, name) for check in SECOND for name in test_second.NAMES]


@pytest.mark.parametrize(
    ("check", "name"), [pytest.param(c, n, id=f"{c.__name__[5:]}-{n}") for c, n in CHECKS]
)
def test_as_loops(check: Callable[[str], None], name: str) -> None:
    with wide_from(2, 1):
        check(name)

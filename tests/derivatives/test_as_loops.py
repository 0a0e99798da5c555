"""The derivatives of the catalogue, with arrays recorded as loops already from two elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archimedes.symbolic.core.loop_nests import loops_from

from . import test_first, test_second

pytestmark = pytest.mark.long

CHECKS = [(test_first.test_jac, name) for name in test_first.NAMES]
CHECKS += [(test_first.test_jvp, name) for name in test_first.NAMES[::3]]
CHECKS += [(test_first.test_vjp, name) for name in test_first.NAMES[1::3]]
CHECKS += [(test_second.test_hess, name) for name in test_second.NAMES]


@pytest.mark.parametrize(
    ("check", "name"), [pytest.param(c, n, id=f"{c.__name__[5:]}-{n}") for c, n in CHECKS]
)
def test_as_loops(check: Callable[[str], None], name: str) -> None:
    with loops_from(2, 1):
        check(name)

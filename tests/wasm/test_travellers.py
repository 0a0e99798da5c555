"""Whatever records, runs in Node: solvers, filters, controllers, robots, vehicles, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..embedded.toolchain import needs
from .checking import differences
from .travellers import NAMES, traveller

pytestmark = needs("node")
QUICK = ("rodas5p", "discretize", "ekf", "pid", "random")


def test_solver_filter_controller_and_draws(tmp_path: Path):
    assert not differences([traveller(name) for name in QUICK], tmp_path, simd=True)


@pytest.mark.long
@pytest.mark.parametrize("simd", [False, True], ids=["scalar", "simd"])
def test_all(tmp_path: Path, simd: bool):
    assert not differences([traveller(name) for name in NAMES], tmp_path, simd=simd)

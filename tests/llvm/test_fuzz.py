"""Random programs over all ops, dtypes and regions."""

from __future__ import annotations

import os

import numpy as np
import pytest

from ..long_parameters import long_after
from ..programs.random_graphs import random_graph
from ..programs.values import samples
from .bundling import case_of, instances, run_bundle
from .checking import check, check_shared

BLOCKS = 8
#: Programs a block; more by command: ARCHIMEDES_FUZZ=12500 makes 10^5 in all.
PROGRAMS = int(os.environ.get("ARCHIMEDES_FUZZ", "30"))


def differences(seeds, turn):
    """Return what differs from the interpreter where these programs are one kernel."""
    cases = []
    for seed in seeds:
        g = random_graph(seed)
        rng = np.random.default_rng(seed)
        count = instances(turn)
        cases.append(case_of(g, [samples(d, count, rng) for d in g.input_dtypes], count))
    return run_bundle(cases, turn)


def test_a_few_random_programs_in_one_kernel():
    assert differences(range(1000, 1025), 0) == {}


@pytest.mark.parametrize("block", long_after(0, range(10)))
def test_many_random_programs_in_one_kernel(block):
    assert differences(range(100 * block, 100 * (block + 1)), block) == {}


@pytest.mark.parametrize("block", long_after(0, range(BLOCKS)))
def test_random_programs(block):
    for seed in range(block * PROGRAMS, (block + 1) * PROGRAMS):
        g = random_graph(seed)
        rng = np.random.default_rng(seed)
        columns = [samples(d, 21, rng) for d in g.input_dtypes]
        part = 7 if seed % 4 == 0 else 1500
        lanes = [(8, 4, 2)[seed % 3]]
        kernel = check(g, columns, lanes=lanes, part=part, note=f"seed {seed}", scalars=4)
        if seed % 2:
            check_shared(kernel, g, columns, seed)

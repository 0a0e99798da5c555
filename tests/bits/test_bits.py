"""The bits of this machine, and of one that NumPy believes to be older, are those in the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ..checkout import ROOT
from .catalogue import GROUPS, results
from .comparison import HASHES, computed, failures
from .result import bits_of, hash_of

KNOWN = json.loads(HASHES.read_text())
#: Results of every kind; the long ones are marked, and ``python -m tests.bits`` has all.
CHOSEN = (
    *("ops/exp float64", "programs/switch_8", "spatial/rigid body", "environment/atmosphere"),
    *("f16/rates on a flat Earth", "f16/trim", "vehicles/multirotor", "robot/dynamics, fixed base"),
    "robot/contact",
    *("solves/dopri5", "solves/bdf, eighty cells", "minima/ipm", "filters/extended"),
    *("solves/campaign", "draws/interpolation"),
)


@pytest.mark.long_cases("f16*", "minima*", "ops*", "programs*", "robot*", "solves*")
@pytest.mark.parametrize("name", CHOSEN)
def test_this_machine(name):
    found = list(results([name]))
    assert found
    for result in found:
        wrong = failures(computed(result), KNOWN[result.name])
        assert not wrong, f"{result.name}: {wrong}, see python -m tests.bits --help"


@pytest.mark.long_cases("names1")
@pytest.mark.parametrize(
    "names",
    [
        ("environment/atmosphere", "draws/interpolation", "vehicles/multirotor"),
        ("f16/trim", "f16/rates on a flat Earth", "robot/dynamics"),
    ],
)
def test_another_processor(names):
    """NumPy without its vector code, and BLAS for a processor of 2004: constants are the same."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    lesser = {"NPY_DISABLE_CPU_FEATURES": " ".join(found), "OPENBLAS_CORETYPE": "Prescott"}
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.bits", "--quiet", "--interpreted", *names],
        cwd=ROOT,
        env={**os.environ, **lesser, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_file_names_every_group():
    assert {name.split("/")[0] for name in KNOWN} == {*GROUPS}


def test_a_unit_in_the_last_place_is_found():
    (result,) = results(["draws/interpolation"])
    found = computed(result)
    assert not failures(found, KNOWN[result.name])
    numbers = found["native"]
    numbers[0][3] = np.nextafter(numbers[0][3], np.inf)
    assert [*failures(found, KNOWN[result.name])] == ["native"]


def test_what_cannot_be_computed_differs():
    (result,) = results(["draws/interpolation"])
    result.ways["native"] = lambda: 1 / 0
    assert failures(computed(result), KNOWN[result.name]) == {
        "native": "ZeroDivisionError: division by zero"
    }


def test_every_nan_counts_as_one_and_zeros_have_signs():
    odd = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(float)
    assert len({*bits_of(odd).tolist()}) == 1
    assert hash_of([np.array([0.0])]) != hash_of([np.array([-0.0])])
    assert hash_of([np.zeros(2)]) != hash_of([np.zeros((2, 1))])

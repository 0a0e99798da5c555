"""Campaigns in processes that are started from nothing, as on Windows, macOS and Python 3.14."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import CampaignError, Normal
from archimedes.system.programs import run_program

PROGRAM = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np
import archimedes as arc
from archimedes.simulate import Normal

def throw(params):
    return {"range": params["speed"] ** 2 * np.sin(2 * params["angle"]) / 9.81}

def run(executor=None):
    given = {"speed": Normal(10.0, 0.5), "angle": 0.7}
    return arc.monte_carlo(throw, given, n=60, seed=1, chunk=20, executor=executor).results["range"]

def main():
    with ProcessPoolExecutor(1, mp_context=get_context(sys.argv[1])) as pool:
        assert run(pool).tobytes() == run().tobytes()
    print("the same bits")

"""
GUARDED = PROGRAM + 'if __name__ == "__main__":\n    main()\n'
FROM_NOTHING = [m for m in multiprocessing.get_all_start_methods() if m != "fork"]


@pytest.mark.long
@pytest.mark.parametrize("method", FROM_NOTHING)
def test_programs_with_a_guard_have_the_same_bits(tmp_path, method):
    (tmp_path / "program.py").write_text(GUARDED)
    done = run_program([sys.executable, str(tmp_path / "program.py"), method])
    assert done.stdout.strip() == "the same bits", done.stderr


@pytest.mark.long
@pytest.mark.parametrize("method", FROM_NOTHING)
def test_programs_without_a_guard_are_told(tmp_path, method):
    (tmp_path / "program.py").write_text(PROGRAM + "main()\n")
    done = run_program([sys.executable, str(tmp_path / "program.py"), method])
    assert done.returncode == 1
    assert "CampaignError: monte_carlo: the executor lost its worker processes" in done.stderr
    assert 'under if __name__ == "__main__":' in done.stderr


@pytest.mark.long
def test_programs_without_a_file_are_told():
    done = run_program([sys.executable, "-c", GUARDED, "spawn"])
    assert done.returncode == 1
    assert "python -c: write it into a file" in done.stderr


class Broken(Executor):
    """A pool whose workers are gone."""

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        future.set_exception(BrokenProcessPool("terminated abruptly"))
        return future


def test_a_pool_without_workers_is_explained():
    with pytest.raises(CampaignError, match=r"lost its worker processes.* under if __name__"):
        arc.monte_carlo(lambda p: np.sin(p["a"]), {"a": Normal()}, n=3, executor=Broken())

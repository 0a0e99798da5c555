"""What all tests share.

Properties are checked on the same examples at every run, so that a failure is a change in the
code. ``HYPOTHESIS_PROFILE=explore`` draws new ones, ten times as many.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from fnmatch import fnmatchcase
from functools import cache, lru_cache

import pytest
from hypothesis import settings

from tests.checkout import untracked_files

UNTRACKED = pytest.StashKey[frozenset[str]]()

# Until the tests are collected nothing is garbage (see pytest_collection_finish).
gc.disable()

# Kernels of the tests do not go to the user's cache, but into a folder of this run, which its
# processes share. ARCHIMEDES_TESTS_CACHE names one that several runs share, as in .ci/run.
os.environ.pop("ARCHIMEDES_CACHE", None)
if "PYTEST_XDIST_WORKER" not in os.environ:
    kernels = os.environ.get("ARCHIMEDES_TESTS_CACHE")
    if not kernels:
        kernels = tempfile.mkdtemp(prefix="archimedes-kernels-")
        atexit.register(shutil.rmtree, kernels, ignore_errors=True)
    os.environ["ARCHIMEDES_CACHE_DIR"] = kernels

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the cases that a test names as long, before the default leaves them out."""
    for item in items:
        patterns = [p for mark in item.iter_markers("long_cases") for p in mark.args]
        case = getattr(getattr(item, "callspec", None), "id", "")
        if patterns and is_any_of(case, tuple(patterns)):
            item.add_marker(pytest.mark.long)


@cache
def is_any_of(case, patterns):
    """Return whether the name of a case matches one of the patterns, in which [ is a character."""
    return any(fnmatchcase(case, pattern.replace("[", "[[]")) for pattern in patterns)


def pytest_sessionstart(session):
    """Note what lies in the checkout before the tests; workers leave that to the first process."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[UNTRACKED] = untracked_files()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Fail a run in which something new appeared in the checkout, on the machines that watch it.

    Elsewhere it may be the work of the person who runs the tests: there it is only said.
    """
    new = new_files(session.config)
    if new and exitstatus == pytest.ExitCode.OK and os.environ.get("CI"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Name the files that appeared in the checkout."""
    for file in new_files(config):
        terminalreporter.write_line(f"new in the checkout since the tests began: {file}", red=True)


def new_files(config):
    """Return the files that appeared in the checkout since the session began, in order."""
    before = config.stash.get(UNTRACKED, None)
    return [] if before is None else sorted(untracked_files() - before)


def pytest_collection_finish():
    """Twenty thousand tests stay: the collector is not to go through them again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def compiled_once():
    """For files whose tests record the same programs again: LLVM sees each text once."""
    from archimedes.backends.llvm.runtime.machine import Target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Target, "compile", lru_cache(maxsize=256)(Target.compile))
        yield


@pytest.fixture
def recordings(monkeypatch):
    """Return the names of the functions recorded since the test began, in order."""
    from archimedes.function.recorded_function import RecordedFunction

    names: list[str] = []
    record = RecordedFunction._record

    def counted(function, *given):
        names.append(function.name)
        return record(function, *given)

    monkeypatch.setattr(RecordedFunction, "_record", counted)
    return names


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures that a test leaves open: matplotlib warns of more than twenty."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")

"""Campaigns, batches, time series and files, used as they should not be."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.errors import StructError
from archimedes.simulate import CampaignError, InputSeries, Normal, Uniform, monte_carlo, summarize
from archimedes.tree import StructConfig

from ..llvm.test_environment import SETTINGS, setting
from .catalogue import entry

DRAWN = {"a": Normal(1.0, 0.1)}


def one_run(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """The value of a function of an array, as one of the runs of a campaign."""

    def call(x: Any) -> Any:
        params = {"x": x, "zero": Uniform(0.0, 0.0)}
        found = monte_carlo(lambda p: function(p["x"] + p["zero"]), params, 3)
        return tree.map(lambda leaf: leaf[1], found.results)

    return call


def one_row(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """The value of a function of an array, as one of the rows of a batch in two threads."""
    many = arc.vmap(function, threads=2)
    return lambda x: tree.map(lambda leaf: leaf[33], many(np.stack([np.asarray(x)] * 40)))


def disturbed(name: str) -> Callable[..., Any]:
    """Compiled, and called where another library has changed the floating-point environment."""

    def through(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
        compiled = arc.compile(function, backend=backend)
        if platform.machine() not in ("x86_64", "AMD64"):
            return compiled

        def call(*args: Any) -> Any:
            with setting(SETTINGS[name]):
                return compiled(*args)

        return call

    return through


# ---- another library's floating-point environment ----------------------------------------------


@entry("environment", through=disturbed("both"))
def subnormal_numbers_where_they_are_flushed(run):
    return run(lambda x: x * 1e-310)(np.array([0.5, -3.0]))


@entry("environment", through=disturbed("up"))
def sums_that_round_up(run):
    return run(lambda x: np.cumsum(x / 3.0))(np.arange(1.0, 9.0))


@entry("environment", through=disturbed("to zero"))
def a_matrix_that_rounds_to_zero(run):
    return run(lambda x: np.linalg.solve(np.diag(x) + 0.1, x))(np.arange(1.0, 5.0))


@entry("environment", through=disturbed("down"))
def constants_folded_while_another_mode_is_set(run):
    return run(lambda x: x + np.float64(1.0) / np.float64(3.0))(1.0)


# ---- runs of a campaign ------------------------------------------------------------------------


@entry("campaigns", through=one_run)
def parameters_written_to(run):
    def model(x):
        x = x + 0.0
        x[0] = 7.0
        return x.sum()

    return run(model)(np.arange(3.0))


@entry("campaigns", through=one_run)
def a_run_that_has_no_value(run):
    with np.errstate(all="ignore"):
        return run(lambda x: np.sqrt(x))(np.array([-1.0, 4.0]))


@entry("campaigns", through=one_run)
def whole_numbers_and_truth_values(run):
    return run(lambda x: {"n": np.argmax(x), "b": x > 1.0})(np.array([0.0, 3.0, 1.0]))


@entry("campaigns", through=one_run)
def a_result_that_no_parameter_changes(run):
    return run(lambda x: (x, np.eye(2)))(np.array(1.5))


@entry("campaigns", through=one_run, error=arc.TraceError, says=["arc.cond"])
def a_branch_on_a_parameter(run):
    return run(lambda x: x if x > 0.0 else -x)(np.array(2.0))


@entry("campaigns", through=one_row)
def empty_arrays_in_a_batch(run):
    return run(lambda x: np.concatenate([x[:0], x]))(np.arange(2.0))


@entry("campaigns", through=one_row)
def division_by_zero_in_one_row(run):
    with np.errstate(all="ignore"):
        return run(lambda x: np.array(1.0) / x)(np.array([0.0, -0.0, 2.0]))


@entry("campaigns", error=CampaignError, eager_error=CampaignError, says=["is a return missing?"])
def a_forgotten_return(run):
    def model(params):
        params["a"] * 2.0

    return monte_carlo(run(model), DRAWN, 3)


@entry("campaigns", error=TypeError, eager_error=TypeError, says=["model comes first"], line=False)
def distributions_before_the_model(run):
    return monte_carlo(DRAWN, run(lambda p: p["a"]), 3)


@entry("campaigns", error=TypeError, eager_error=TypeError, says=["write f, not f(x)"], line=False)
def the_model_called_at_once(run):
    return monte_carlo(run(lambda a: a * 1.0)(2.0), DRAWN, 3)


@entry("campaigns", error=TypeError, eager_error=TypeError, says=["write Normal(...)"], line=False)
def a_class_in_place_of_a_distribution(run):
    return monte_carlo(run(lambda p: p["a"]), {"a": Normal}, 3)


@entry("campaigns", error=TypeError, eager_error=TypeError, says=["a dict or a struct"], line=False)
def a_model_of_two_arguments(run):
    return monte_carlo(lambda a, b: run(lambda x: x)(a) + b, DRAWN, 3)


@entry("campaigns", error=ValueError, eager_error=ValueError, says=["0.95 for 95 %"], line=False)
def quantiles_in_per_cent(run):
    return summarize(run(lambda x: x * 1.0)(np.arange(5.0)), (5, 95))


@entry("campaigns", error=TypeError, eager_error=TypeError, says=["whole number"], line=False)
def a_number_of_runs_that_is_none(run):
    return monte_carlo(run(lambda p: p["a"]), DRAWN, 1e3)


@entry("campaigns", error=ValueError, eager_error=ValueError, says=["at least 1"], line=False)
def no_threads_at_all(run):
    return arc.vmap(run(lambda x: x), threads=0)(np.ones(3))


@entry("campaigns", error=TypeError, eager_error=TypeError, says=["True, False or a"], line=False)
def progress_that_cannot_be_called(run):
    return monte_carlo(run(lambda p: p["a"]), DRAWN, 3, progress="bar")


@entry("campaigns", error=CampaignError, eager_error=CampaignError, says=["another"], line=False)
def a_folder_of_another_seed(run):
    with tempfile.TemporaryDirectory() as folder:
        monte_carlo(run(lambda p: p["a"]), DRAWN, 3, seed=1, folder=folder)
        return monte_carlo(run(lambda p: p["a"]), DRAWN, 3, seed=2, folder=folder)


@entry("campaigns", error=CampaignError, eager_error=CampaignError, says=["delete it"], line=False)
def a_damaged_chunk(run):
    with tempfile.TemporaryDirectory() as folder:
        monte_carlo(run(lambda p: p["a"]), DRAWN, 3, folder=folder)
        (path,) = Path(folder).glob("runs-*.npz")
        path.write_bytes(path.read_bytes()[:50])
        return monte_carlo(run(lambda p: p["a"]), DRAWN, 3, folder=folder)


# ---- time series -------------------------------------------------------------------------------

SERIES = InputSeries([0, 2, 3], [[1, 2], [3, 5], [0, 0]])


@entry("time series")
def an_array_of_times(run):
    return run(lambda t: SERIES(t))(np.array([[0.5, 1.0, 2.0], [2.5, 3.0, 9.0]]))


@entry("time series")
def whole_numbers_as_times(run):
    return run(lambda t: SERIES(t))(1)


@entry("time series")
def times_outside(run):
    f = run(lambda t: SERIES(t))
    return f(-5.0), f(99.0), f(np.nan), f(np.inf)


@entry("time series")
def samples_changed_afterwards(run):
    u = np.array([1.0, 2.0])
    series = InputSeries([0.0, 1.0], u)
    u[:] = 9.0
    return run(lambda t: series(t))(0.5)


@entry("time series", error=ValueError, eager_error=ValueError, says=["sort", "t[2]"], line=False)
def times_out_of_order(run):
    series = InputSeries([0.0, 2.0, 1.0], [1.0, 2.0, 3.0])
    return run(lambda t: series(t))(0.5)


@entry("time series", error=ValueError, eager_error=ValueError, says=["axis must be"], line=False)
def samples_along_the_other_axis(run):
    series = InputSeries([0.0, 1.0, 2.0], np.ones((2, 3)))
    return run(lambda t: series(t))(0.5)


@entry("time series", error=ValueError, eager_error=ValueError, says=["real numbers"], line=False)
def complex_samples(run):
    series = InputSeries([0.0, 1.0], np.array([1j, 2.0]))
    return run(lambda t: series(t))(0.5)


@entry("time series", error=ValueError, eager_error=ValueError, says=["nan or inf"], line=False)
def a_sample_that_is_missing(run):
    series = InputSeries([0.0, 1.0], [1.0, np.nan])
    return run(lambda t: series(t))(0.5)


# ---- configurations ----------------------------------------------------------------------------


class Drive(StructConfig):
    gear: int
    start: str = "0:00"
    ratio: float = 1.0


def loaded(text: str) -> Drive:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drive.yaml"
        path.write_text(text)
        return Drive.load(path)


@entry("configurations")
def numbers_with_leading_zeros(run):
    drive = loaded("gear: 010\nratio: 1e-1\n")
    return run(lambda x: x * drive.gear * drive.ratio)(2.0)


@entry("configurations")
def a_time_of_day(run):
    drive = loaded("gear: 1\nstart: 1:30\n")
    minutes = sum(int(part) * size for part, size in zip(drive.start.split(":"), (60, 1)))
    return run(lambda x: x * minutes)(2.0)


@entry("configurations", error=StructError, eager_error=StructError, says=["gear"], line=False)
def a_word_where_a_number_belongs(run):
    drive = loaded("gear: yes\n")
    return run(lambda x: x * drive.gear)(2.0)


@entry("configurations", error=StructError, eager_error=StructError, says=["*name"], line=False)
def a_file_that_explodes(run):
    levels = "".join(f"  - &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 12))
    drive = loaded("gear:\n  - &l0 [x]\n" + levels)
    return run(lambda x: x * drive.gear)(2.0)


@entry("configurations", error=StructError, eager_error=StructError, says=["twice"], line=False)
def a_key_given_twice(run):
    drive = loaded("gear: 1\ngear: 2\n")
    return run(lambda x: x * drive.gear)(2.0)

"""Every public function or method that plots takes ``title=`` and ``file=``."""

from __future__ import annotations

import inspect
import re

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from docs.site.public_names import public_names
from matplotlib import pyplot

import archimedes as arc
from archimedes import viz
from archimedes.control import StateSpace, frequency_response
from archimedes.multibody import State
from archimedes.optimize import OptimalControl
from archimedes.simulate import Normal, Trajectory, monte_carlo
from archimedes.sysid import Timeseries
from tests.display.samples import first_order_fit, flight_record, snake


def plot_functions():
    """Return all functions called ``plot...`` or ``..._plot``, and methods ``plot`` of classes."""
    found = {}
    for name in public_names():
        if name.kind == "function" and (
            name.name.startswith("plot") or name.name.endswith("_plot")
        ):
            found[name.full] = name.value
        if name.kind == "class" and callable(getattr(name.value, "plot", None)):
            found[f"{name.full}.plot"] = name.value.plot
    return found


FUNCTIONS = plot_functions()


def test_the_walk_finds_them():
    assert {"archimedes.plot", "archimedes.viz.plot_trajectory"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) >= 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_plot_takes_title_and_file(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    for option in ("title", "file"):
        assert option in parameters and parameters[option].default is None, f"{name}({option}=)"
        assert f"{option} : " in inspect.getdoc(FUNCTIONS[name])


SYSTEM = StateSpace([[0.0, 1.0], [-4.0, -0.4]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
T = np.linspace(0.0, 1.0, 9)


def solution():
    problem = OptimalControl(
        lambda t, x, u: u, running_cost=lambda t, x, u: u**2, initial=0.0, final=1.0
    )
    return problem.solve({"x": 0.0, "u": 0.0}, intervals=3)


#: How to call each: a function of title and file.
CALLS = {
    "trajectory": lambda **o: arc.plot(Trajectory(T, {"x": T}), **o),
    "campaign": lambda **o: arc.plot(
        monte_carlo(lambda p: {"y": p["a"] ** 2}, {"a": Normal(0.0, 1.0)}, n=20, seed=1), **o
    ),
    "optimal control": lambda **o: arc.plot(solution(), **o),
    "modes": lambda **o: viz.plot_modes(SYSTEM, **o),
    "system": lambda **o: arc.plot(SYSTEM, **o),
    "frequency response": lambda **o: frequency_response(SYSTEM, [0.1, 1.0, 9.0]).plot(**o),
    "root locus": lambda **o: viz.plot_root_locus(
        lambda k: np.array([[0.0, 1.0], [-k, -1.0]]), [0.0, 1.0, 2.0], **o
    ),
    "robot": lambda **o: arc.plot(
        snake(1).build(), Trajectory(T, State(T[:, None], T[:, None])), **o
    ),
    "fit": lambda **o: arc.plot(first_order_fit(), **o),
    "time series": lambda **o: arc.plot(Timeseries(T, T, T), **o),
    "flight": lambda **o: arc.plot(flight_record(), **o),
    "sparsity": lambda **o: viz.plot_sparsity(np.eye(3), **o),
    "graph": lambda **o: arc.plot(arc.compile(lambda x: np.sin(x) * 2.0), 1.0, **o),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes_say_name_and_unit(name):
    """Issue 29: one style on axes, "time (s)"."""
    figure = CALLS[name]()
    labels = [text for a in figure.axes for text in (a.get_xlabel(), a.get_ylabel())]
    for label in labels:
        assert not re.search(r"\[(?!\d)| in [a-z/]+$|\(rad\)|^t\b", label), label
    pyplot.close("all")


@pytest.mark.parametrize("name", CALLS)
def test_title_and_file_do_what_they_say(name, tmp_path):
    path = tmp_path / "picture.png"
    with matplotlib.rc_context():
        figure = CALLS[name](title="A title", file=path)
    titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    assert "A title" in titles
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 2_000
    pyplot.close("all")

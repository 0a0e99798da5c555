"""Tracebacks end at the user's line: in scripts, threads, notebooks, for every kind of call."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest

import archimedes as arc
from archimedes import control, spatial, tree
from archimedes.tracebacks import boundary, publish
from archimedes.vehicles import load


@arc.struct
class State:
    pos: np.ndarray
    vel: np.ndarray


X0 = State(pos=np.zeros(2), vel=np.ones(2))


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def frames_of(error):
    return [(frame.filename, frame.name) for frame in traceback.extract_tb(error.__traceback__)]


def ends_here(error):
    """Whether nothing but this file is in a traceback."""
    return {name for name, _ in frames_of(error)} == {__file__}


def typo(t, x):
    return State(x.vel, -x.poss)


def test_a_typo_in_a_field_gives_few_lines():
    error = error_of(lambda: arc.solve_ode(typo, (0.0, 1.0), X0))
    assert isinstance(error, AttributeError) and ends_here(error)
    assert frames_of(error)[-1] == (__file__, "typo")
    lines = "".join(traceback.format_exception(error)).splitlines()
    assert len(lines) <= 12 and "'State' object has no attribute 'poss'" in lines[-1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: arc.compile(typo)(0.0, X0),
        lambda: arc.vmap(lambda x: x.no_such_thing)(np.ones(3)),
        lambda: arc.jac(lambda x: x[7])(np.ones(3)),
        lambda: control.lqr(np.eye(2), np.eye(2), np.eye(3), np.eye(2)),
        lambda: spatial.Quaternion([1.0, 2.0]),
        lambda: spatial.Quaternion([1.0, 0.0, 0.0, 0.0]).as_euler("x"),
        lambda: spatial.Quaternion.from_euler([1.0, 0.0, 0.0], "abc"),
        lambda: X0.replace(veel=1.0),
        lambda: setattr(X0, "pos", 1.0),
        lambda: arc.solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0)["vel"],
        lambda: load("multirotor").dynamics(0.0, X0, None),
        lambda: tree.map(lambda a, b: a, {"a": 1.0}, {"b": 1.0}),
        lambda: arc.minimize(lambda x: x, np.ones(2)),
    ],
)
def test_own_frames_are_hidden_after_any_call(call):
    assert ends_here(error_of(call))


class Mine(Exception):
    """An error of the user."""


def raises(t, x):
    raise Mine("not here")


@pytest.mark.parametrize("run", [lambda: arc.odeint(raises, (0.0, 1.0), np.ones(2))])
def test_errors_of_the_user_keep_their_type_and_end_at_his_line(run):
    error = error_of(run)
    assert type(error) is Mine and error.args == ("not here",)
    assert frames_of(error)[-1] == (__file__, "raises") and ends_here(error)
    assert not hasattr(error, "__notes__")


def test_errors_of_other_code_that_the_user_calls_keep_its_frames():
    def singular(t, x):
        return np.linalg.inv(np.zeros((2, 2))) @ x

    error = error_of(lambda: arc.solve_ode(singular, (0.0, 1.0), np.ones(2)))
    assert isinstance(error, np.linalg.LinAlgError)
    assert "archimedes/" not in "".join(traceback.format_tb(error.__traceback__))
    assert "singular" in [name for _, name in frames_of(error)]


def test_a_call_of_compiled_code_hides_them_too():
    seen = []

    def callback(x):
        seen.append(x)
        if len(seen) > 6:
            raise Mine("late")
        return x

    f = arc.compile(lambda x: arc.callback(callback, np.float64(0.0), x), backend="llvm")
    error = error_of(lambda: [f(1.0) for _ in range(20)])
    assert isinstance(error, Mine) and ends_here(error)


def test_full_shows_all_frames(monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_TRACEBACK", "full")
    error = error_of(lambda: arc.solve_ode(typo, (0.0, 1.0), X0))
    assert len(frames_of(error)) > 10 and frames_of(error)[-1][1] == "typo"


def test_errors_that_led_to_an_error_of_the_user_are_shown_without_our_frames():
    def model(t, x):
        try:
            return x.missing
        except AttributeError as error:
            raise Mine("no field") from error

    error = error_of(lambda: arc.solve_ode(model, (0.0, 1.0), X0))
    assert isinstance(error.__cause__, AttributeError)
    assert ends_here(error) and ends_here(error.__cause__)


def test_an_error_that_the_user_is_handling_stays_the_context():
    def call():
        try:
            raise Mine("first")
        except Mine:
            spatial.Quaternion([1.0])

    error = error_of(call)
    assert isinstance(error.__context__, Mine) and not error.__suppress_context__


def test_an_error_caught_inside_is_not_shown():
    def inner():
        try:
            {}["key"]
        except KeyError:
            raise ValueError("refused")  # noqa: B904

    inner = boundary(make_ours(inner))
    error = error_of(inner)
    assert isinstance(error, ValueError) and error.__suppress_context__ and ends_here(error)


def test_an_accident_of_ours_names_its_line():
    error = error_of(boundary(make_ours(lambda: {}["key"])))
    assert isinstance(error, KeyError) and ends_here(error)
    assert "Raised in archimedes.made" in error.__notes__[0]
    assert "ARCHIMEDES_TRACEBACK=full" in error.__notes__[0]


def make_ours(function):
    """A function that is taken to be of this package."""
    names = {**function.__globals__, "__name__": "archimedes.made"}
    return type(function)(function.__code__, names, function.__name__)


def test_groups_of_errors():
    def several():
        errors = []
        for call in (lambda: spatial.Quaternion([1.0]), lambda: {}["key"]):
            try:
                call()
            except Exception as error:
                errors.append(error)
        raise ExceptionGroup("two", errors)

    error = error_of(boundary(several))
    assert all(ends_here(one) for one in error.exceptions)


def test_in_threads():
    errors = []

    def work():
        try:
            arc.solve_ode(typo, (0.0, 1.0), X0)
        except AttributeError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 4 and all(map(ends_here, errors))


@pytest.mark.parametrize("mode", ["", "full"])
def test_in_a_script(tmp_path, mode):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport archimedes as arc\n"
        "def model(t, x):\n    return x.vel\n"
        "arc.solve_ode(model, (0.0, 1.0), np.ones(2))\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "ARCHIMEDES_TRACEBACK": mode},
    )
    lines = run.stderr.splitlines()
    assert run.returncode == 1 and "no attribute 'vel'" in run.stderr
    assert (len(lines) > 40) == (mode == "full") and (len(lines) <= 12) == (mode == "")


def test_in_a_notebook():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    result = shell.run_cell(
        "import numpy as np, archimedes as arc\n"
        "arc.solve_ode(lambda t, x: x.vel, (0.0, 1.0), np.ones(2))",
        silent=True,
    )
    names = [name for name, _ in frames_of(result.error_in_exec)]
    assert names and not any(f"{os.sep}archimedes{os.sep}" in name for name in names)


def test_public_functions_look_like_those_of_their_modules():
    from archimedes.simulate import ode

    assert arc.solve_ode is arc.simulate.solve_ode is publish(arc.solve_ode, "archimedes")
    assert arc.solve_ode.__wrapped__ is ode.solve_ode
    assert inspect.signature(arc.solve_ode) == inspect.signature(ode.solve_ode)
    assert inspect.getsourcefile(inspect.unwrap(arc.solve_ode)) == ode.__file__
    assert arc.solve_ode.__doc__ == ode.solve_ode.__doc__
    for function in (arc.solve_ode, control.lqr, spatial.slerp, tree.replace):
        assert pickle.loads(pickle.dumps(function)) is function


def test_methods_stay_methods():
    assert spatial.Quaternion.from_euler.__self__ is spatial.Quaternion
    assert "seq" in inspect.signature(spatial.Quaternion.as_euler).parameters
    q = spatial.Quaternion([1.0, 0.0, 0.0, 0.0])
    assert pickle.loads(pickle.dumps(q)) == q and pickle.loads(pickle.dumps(q.inv))() == q.inv()

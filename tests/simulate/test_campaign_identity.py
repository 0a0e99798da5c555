"""A campaign goes on only with the model, and the chunks, that it was begun with."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.dependencies.stable_digest import stable_digest
from archimedes.simulate import CampaignError, Normal, monte_carlo

SPEED = {"speed": Normal(10.0, 0.5)}
PLANET = types.SimpleNamespace(gravity=9.81, table=[1.0, 2.0])
DRAG = 0.1


class Thrower:
    """A model with attributes, a class attribute and a method that can be patched."""

    angle = 0.7

    def __init__(self):
        self.gravity = 9.81

    def range(self, speed):
        return speed**2 * np.sin(2 * self.angle) / self.gravity

    def __call__(self, params):
        return {"range": self.range(params["speed"]), "angle": self.angle}


def with_globals(params):
    return {"range": params["speed"] ** 2 / PLANET.gravity * PLANET.table[1] - DRAG}


def changes():
    thrower, scale = Thrower(), np.ones(2)
    yield "attribute", thrower, lambda m: m.setattr(thrower, "gravity", 1.6)
    other = Thrower()
    yield "class attribute", other, lambda m: m.setattr(Thrower, "angle", 0.3)
    patched = Thrower()
    yield "method", patched, lambda m: m.setattr(Thrower, "range", lambda self, speed: speed)
    yield "namespace", with_globals, lambda m: m.setattr(PLANET, "gravity", 1.6)
    yield "list in a namespace", with_globals, lambda m: m.setattr(PLANET, "table", [1.0, 5.0])
    yield "global", with_globals, lambda m: m.setattr(f"{__name__}.DRAG", 0.5)
    captured = lambda params: {"range": scale[0] * params["speed"]}
    yield "captured array", captured, lambda m: scale.__setitem__(0, 3.0)


@pytest.mark.parametrize("vectorize", [True, False])
@pytest.mark.parametrize("name", [name for name, _, _ in changes()])
def test_a_changed_model_does_not_go_on(name, vectorize, tmp_path, monkeypatch):
    model, change = {name: rest for name, *rest in changes()}[name]
    first = monte_carlo(model, SPEED, 8, folder=tmp_path, chunk=4, vectorize=vectorize)
    same = monte_carlo(model, SPEED, 12, folder=tmp_path, chunk=4, vectorize=vectorize)
    assert first.complete and same.executed == 4
    change(monkeypatch)
    with pytest.raises(CampaignError, match="something that the model reads was another"):
        monte_carlo(model, SPEED, 16, folder=tmp_path, chunk=4, vectorize=vectorize)


def test_a_constant_among_the_results_counts(tmp_path, monkeypatch):
    model = lambda params: {"speed": params["speed"], "drag": DRAG}
    monte_carlo(model, SPEED, 4, folder=tmp_path)
    monkeypatch.setattr(f"{__name__}.DRAG", 0.9)
    with pytest.raises(CampaignError, match="another model"):
        monte_carlo(model, SPEED, 8, folder=tmp_path)


def test_what_a_callback_reads_counts(tmp_path, monkeypatch):
    model = lambda params: arc.callback(lambda x: x * DRAG, 0.0, params["speed"])
    monte_carlo(model, SPEED, 4, folder=tmp_path)
    monkeypatch.setattr(f"{__name__}.DRAG", 0.9)
    with pytest.raises(CampaignError, match="another model"):
        monte_carlo(model, SPEED, 8, folder=tmp_path)


def test_a_model_changed_while_the_campaign_runs():
    state = types.SimpleNamespace(k=1.0)
    change = lambda done, n: setattr(state, "k", 2.0)
    with pytest.raises(CampaignError, match="was changed while the campaign ran"):
        monte_carlo(lambda p: state.k * p["speed"], SPEED, 8, chunk=4, progress=change)


def test_a_chunk_under_the_name_of_another(tmp_path):
    model = Thrower()
    monte_carlo(model, SPEED, 8, folder=tmp_path, chunk=4)
    one, other = sorted(tmp_path.glob("runs-*.npz"))
    shutil.copy(other, one)
    with pytest.raises(CampaignError, match=r"runs-0000000000.*other parameters \(params.*speed"):
        monte_carlo(model, SPEED, 8, folder=tmp_path, chunk=4)


def test_an_object_that_other_processes_do_not_know(tmp_path):
    with (tmp_path / "log").open("w") as log:
        model = lambda params: log.write("") * params["speed"]
        with pytest.raises(CampaignError, match=r"(?s)reads an object of type .*Make it in the"):
            monte_carlo(model, SPEED, 4, folder=tmp_path / "runs", vectorize=False)


@pytest.mark.long
def test_the_digest_is_the_same_in_every_process():
    code = "from tests.simulate import test_campaign_identity as t\nprint(t.all_digests())"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] and len(runs[0]) > 100


NAMES = {"a", "b", "c"}


def all_digests():
    sets = lambda x: x * len(NAMES) + np.sum(np.arange(3.0))
    partial = functools.partial(with_globals, {"speed": 1.0})
    return [stable_digest(f) for f in (with_globals, Thrower(), Thrower().range, sets, partial)]

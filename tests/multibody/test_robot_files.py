"""MJCF models that together have every element, against MuJoCo: they load, and move as there."""

from __future__ import annotations

import pytest

from archimedes import multibody as mb
from archimedes.multibody.files.mjcf import MjcfReader, compile_mjcf

from .mjcf_models import MODELS, write_model
from .mujoco_peer import mujoco
from .robot_files import ROUNDING, WITHIN, compare, forced_difference, mjcf_files, summarize

#: Elements that the report names as ignored or approximated, and what they change.
OTHER_ACCELERATIONS = {"polynomial springs", "armature of a tendon"}


#: Elements that are reported, and change what acts.
OTHER_FORCES = OTHER_ACCELERATIONS | {
    "delay", "general actuators", "limits of what actuators give",
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_loads_and_accelerates_as_in_mujoco(name, tmp_path):
    row = compare(write_model(name, tmp_path), largest=0)
    assert row.loads and (row.unforced < WITHIN) == (name not in OTHER_ACCELERATIONS), row
    if name in OTHER_ACCELERATIONS:
        report = mb.read(tmp_path / "model.xml").report
        assert report.ignored or report.approximated


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OTHER_FORCES])
def test_a_model_with_all_forces_accelerates_as_in_mujoco(name, tmp_path):
    """Limits, friction, equality and actuators, at states that violate and exceed them."""
    m, lost = compile_mjcf(mujoco, str(write_model(name, tmp_path)))
    reader = MjcfReader(mujoco, m, name, lost)
    assert forced_difference(reader, reader.read().build(physical=False), m) < WITHIN


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["hinge", "limits", "servos", "muscle of a tendon", "thrust", "a loop with impedances"]
)
def test_a_model_moves_as_in_mujoco(name, tmp_path):
    row = compare(write_model(name, tmp_path), largest=100)
    assert row.motion <= max(row.halving, ROUNDING), row


def test_files_that_are_no_models_are_told_from_those_that_are(tmp_path, capsys):
    write_model("hinge", tmp_path)
    (tmp_path / "part.xml").write_text("<mujocoinclude><worldbody/></mujocoinclude>")
    (tmp_path / "wrong.xml").write_text("<mujoco><worldbody><bodi/></worldbody></mujoco>")
    (tmp_path / "still.xml").write_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    rows = {row.file.name: row for row in (compare(f, 0) for f in mjcf_files([tmp_path]))}
    kinds = {name: row.kind for name, row in rows.items()}
    assert kinds == {
        "model.xml": "model", "arm.xml": "model", "wrong.xml": "no model",
        "still.xml": "nothing moves",
    }  # fmt: skip
    summarize(list(rows.values()))
    assert "load: 2 of 2" in capsys.readouterr().out

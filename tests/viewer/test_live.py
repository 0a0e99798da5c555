"""Live views: bodies, arrows and charts follow time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from archimedes.viewer import view
from archimedes.viewer.live import at_time, rotate
from tests.optional_packages import import_or_skip
from tests.viewer.scenes import HOSTILE, falling


@pytest.fixture
def live():
    import_or_skip("viser")
    scene = falling(name=HOSTILE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        made = view(scene).live(port=18099)
    yield made
    made.stop()


def test_all_follows_time(live):
    live.go(1.0)
    assert live._handles[0].position == pytest.approx([3.0, 0.0, 20.1])
    start, end = live._arrows[0].handle.points[0]
    assert start == pytest.approx([3.0, 0.0, 20.1], abs=1e-4)
    assert end - start == pytest.approx([0.0, 0.0, -3.0], abs=1e-4)
    (chart,) = live._charts
    now = [np.nanmax(row) for row in chart.handle.data[4:]]
    assert now == pytest.approx([3.0, 0.0, 20.1])
    assert chart.handle.title.endswith(" 3, y 0, z 20.1") and " (m): " in chart.handle.title


def test_bodies_that_hang_on_others_carry_their_arrows(live):
    from archimedes.viewer import Arrow, Body
    from archimedes.viewer.live import LiveArrow

    scene = live.scene
    scene.bodies.append(Body("arm", [], 0.0, [1, 0, 0], [1, 0, 0, 0], parent=HOSTILE, reach=1.0))
    arrow = LiveArrow(live.server, scene, Arrow("f", "arm", 0.0, [0, 0, 1.0]), "/more")
    arrow.go(1.0)
    half = 0.5
    x = [np.cos(2 * half), 0.0, -np.sin(2 * half)]  # the body's x axis, turned about y
    assert arrow.handle.points[0, 0] == pytest.approx(np.array([3.0, 0.0, 20.1]) + x, abs=1e-4)


def test_turns_and_times():
    q = np.array([np.cos(0.25), 0.0, 0.0, np.sin(0.25)])
    assert rotate(q, np.array([1.0, 0, 0])) == pytest.approx([np.cos(0.5), np.sin(0.5), 0.0])
    rows = np.array([[0.0], [2.0]])
    assert at_time(np.array([0.0, 1.0]), rows, 0.25) == pytest.approx([0.5])
    assert at_time(np.array([0.0]), rows[:1], 9.0) == pytest.approx([0.0])

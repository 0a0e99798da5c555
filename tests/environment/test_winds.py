"""Winds: values by hand, places as altitudes and positions, sums."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import (
    ConstantWind,
    LinearShear,
    LogarithmicShear,
    OneCosineGust,
    TableWind,
    Winds,
    geodetic_to_ecef,
)
from tests.environment.backends import check_everywhere

TABLE = TableWind(np.array([0.0, 1000.0, 3000.0]), np.array([[1.0, 0, 0], [3, 2, 0], [3, 2, 1]]))
MODELS = [
    ConstantWind(np.array([1.0, 2.0, 3.0])),
    TABLE,
    LinearShear(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.01, 0.0]), 100.0),
    LogarithmicShear(8.0, 0.3),
    OneCosineGust(np.array([0.0, 0.0, -5.0]), start=2.0, rise=0.5),
    Winds((TABLE, ConstantWind(np.ones(3)))),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_places_batches_and_backends(model):
    alts = np.array([10.0, 500.0, 2000.0, 5000.0])
    p = geodetic_to_ecef(np.full(4, 0.7), np.full(4, 2.0), alts)
    many = model(2.2, alts)
    assert many.shape == (4, 3)
    np.testing.assert_allclose(model(2.2, p), many, rtol=1e-9, atol=1e-9)
    for k in range(4):
        np.testing.assert_allclose(model(2.2, alts[k]), many[k], rtol=1e-15)
    check_everywhere(model, 2.2, 500.0)
    check_everywhere(model, 2.2, p[1], rtol=1e-12)
    assert np.all(np.isfinite(arc.jac(model, argnums=1)(2.2, 0.0)))


def test_tables_hold_beyond_their_ends():
    np.testing.assert_array_equal(TABLE(0.0, -50.0), [1, 0, 0])
    np.testing.assert_array_equal(TABLE(0.0, 500.0), [2, 1, 0])
    np.testing.assert_array_equal(TABLE(0.0, 9000.0), [3, 2, 1])


def test_logarithmic_profile():
    wind = LogarithmicShear(speed=10.0, direction=np.pi / 2, reference=6.096, roughness=0.6096)
    np.testing.assert_allclose(wind(0.0, 6.096), [0.0, 10.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(wind(0.0, 60.96), [0.0, 20.0, 0.0], atol=1e-14)
    np.testing.assert_array_equal(wind(0.0, 0.0), np.zeros(3))


@pytest.mark.parametrize(("t", "size"), [(1.9, 0), (2.25, 0.5), (2.5, 1), (2.75, 1), (9, 1)])
def test_gust_that_stays(t, size):
    gust = OneCosineGust(np.array([0.0, 0.0, 4.0]), start=2.0, rise=0.5)
    np.testing.assert_allclose(gust(t, 0.0), [0, 0, 4.0 * size], atol=1e-15)


def test_gust_that_passes():
    gust = OneCosineGust(np.array([2.0, 0, 0]), start=0.0, rise=1.0, hold=False)
    np.testing.assert_allclose(
        [gust(t, 0.0)[0] for t in (0.5, 1.0, 1.5, 2.0, 5.0)], [1, 2, 1, 0, 0], atol=1e-15
    )


def test_errors():
    with pytest.raises(ValueError, match=r"taken as a position.*arc\.vmap"):
        TABLE(0.0, np.array([10.0, 20.0, 30.0]))
    with pytest.raises(ValueError, match=r"TableWind\.alt must increase"):
        TableWind(np.array([0.0, 0.0]), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"alt must be \(n,\) and v_NED \(n, 3\)"):
        TableWind(np.array([0.0, 1.0]), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"OneCosineGust\.rise must be positive"):
        OneCosineGust(np.ones(3), rise=0.0)


def test_three_altitudes_that_are_not_known_yet_give_nan():
    """Eagerly they are refused; recorded, a last axis of 3 is a position, and this is none."""
    assert np.all(np.isnan(arc.compile(lambda a: TABLE(0.0, a))(np.array([10.0, 20.0, 30.0]))))

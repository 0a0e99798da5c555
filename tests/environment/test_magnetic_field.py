"""Magnetic fields from SHC files: the IGRF against ppigrf, splines in time against SciPy's."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import BSpline

import archimedes as arc
from archimedes.environment import (
    MagneticField,
    geodetic_to_ecef,
    ned,
    read_magnetic_coefficients,
)
from tests.environment.backends import check_everywhere
from tests.optional_packages import import_or_skip


@pytest.fixture(scope="module")
def igrf() -> MagneticField:
    ppigrf = import_or_skip("ppigrf")
    return read_magnetic_coefficients(Path(ppigrf.__file__).with_name("IGRF14.shc"))


def year_of(date: datetime, epoch: int) -> float:
    """Five years are as long as their days: ppigrf counts days between the epochs of the file."""
    start, end = datetime(epoch, 1, 1), datetime(epoch + 5, 1, 1)
    return epoch + 5 * ((date - start) / (end - start))


@pytest.mark.parametrize("generation", [13, 14])
def test_igrf_against_ppigrf(generation):
    ppigrf = import_or_skip("ppigrf")
    file = Path(ppigrf.__file__).with_name(f"IGRF{generation}.shc")
    model = read_magnetic_coefficients(file)
    rng = np.random.default_rng(0)
    for year in (1900, 1943, 1978, 2004, 2015, 2021, 2024):
        date = datetime(year, 4, 11)
        lat, lon = rng.uniform([-89.9, -180], [89.9, 180], (40, 2)).T
        alt = rng.uniform(-1e3, 6e5, 40)
        east, north, up = ppigrf.igrf(lon, lat, alt / 1e3, date, coeff_fn=str(file))
        p_E = geodetic_to_ecef(np.deg2rad(lat), np.deg2rad(lon), alt)
        B_E = model(p_E, year_of(date, year - year % 5))
        B_N = 1e9 * ned(np.deg2rad(lat), np.deg2rad(lon)).rotate(B_E)
        expected = np.stack([north[0], east[0], -up[0]], axis=-1)
        np.testing.assert_allclose(B_N, expected, atol=2e-4)  # nT; ppigrf rounds the ellipsoid


def test_igrf_at_the_poles_where_ppigrf_has_none(igrf):
    p = np.array([0.0, 0.0, 6.4e6])
    near = igrf(p + np.array([1.0, 0.0, 0.0]), 2020.0)
    np.testing.assert_allclose(igrf(p, 2020.0), near, rtol=1e-5)


def test_epochs_of_the_igrf(igrf):
    """Values of the table at its epochs, its mean between, secular variation at the end."""
    assert igrf.years == (1900.0, 2030.0) and igrf.g.shape == (26, 14, 14)
    g, h = igrf.coefficients(1900.0)
    assert (g[1, 0], g[1, 1], h[1, 1]) == (-31543, -2298, 5922)
    g, h = igrf.coefficients(2025.0)
    assert (g[1, 0], h[1, 1]) == (-29350.0, 4545.5)
    np.testing.assert_allclose(igrf.coefficients(2030.0)[0][1, 0], -29287.0, rtol=1e-15)
    np.testing.assert_allclose(igrf.coefficients(2022.5)[0][1, 0], (-29403.41 - 29350.0) / 2)
    # The rate is what the last two columns differ by: 12.6 nT/yr.
    rate = arc.jac(lambda y: igrf.coefficients(y)[0][1, 0])(2027.0)
    np.testing.assert_allclose(rate, 12.6, rtol=1e-12)


def test_backends_and_batches_of_years(igrf):
    p = np.array([4e6, -5e6, 2e6])
    check_everywhere(lambda p, y: igrf(p, y), p, 1987.3, rtol=1e-12)
    years = np.array([1900.0, 1963.2, 2030.0])
    together = igrf(np.tile(p, (3, 1)), years)
    for k in range(3):
        np.testing.assert_allclose(together[k], igrf(p, years[k]), rtol=1e-13)
    np.testing.assert_allclose(arc.vmap(igrf)(np.tile(p, (3, 1)), years), together, rtol=1e-12)
    assert igrf(np.zeros((0, 3)), 2000.0).shape == (0, 3)
    J = arc.jac(lambda p: igrf(p, 2020.0))(p)
    assert abs(np.trace(J)) < 1e-12 * np.abs(J).max()
    # The coefficients themselves are parameters: a recorded function may take the field.
    field = lambda model: np.sum(model(p, 2021.0))
    assert arc.grad(field)(igrf).dg.shape == igrf.dg.shape


def test_a_field_of_one_year_flies_with_a_satellite(igrf):
    p = np.array([4e6, -5e6, 2e6])
    np.testing.assert_allclose(igrf.at(1987.3)(p), igrf(p, 1987.3), rtol=1e-15)
    satellite = arc.vehicles.Satellite(20.0, np.eye(3), magnetic_field=igrf.at(2026.5))
    check_everywhere(satellite.magnetic_field, p)


def test_years_that_the_file_does_not_cover(igrf):
    p = np.array([7e6, 0.0, 0.0])
    for year in (1899.9, 2031.0):
        with pytest.raises(
            ValueError, match=r"year must lie within 1900.0 to 2030.0, which the co"
        ):
            igrf(p, year)
        assert np.isnan(arc.compile(igrf)(p, year)).all()
    with pytest.raises(ValueError, match=r"year must be given: the coefficients.* 1900.0 to 2030"):
        igrf(p)
    with pytest.raises(ValueError, match="year must be finite"):
        igrf(p, np.nan)


def write(path: Path, header: str, times, table) -> Path:
    """An SHC file of g10, g11 and h11 at some times, with its times on two lines."""
    half = len(times) // 2
    lines = [
        "# a test",
        header,
        *(" ".join(map(repr, map(float, t))) for t in (times[:half], times[half:])),
    ]
    for (n, m), row in zip([(1, 0), (1, 1), (1, -1)], table):
        lines.append(f"{n} {m} " + " ".join(map(repr, map(float, row))))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("order", "step"), [(2, 1), (3, 2), (4, 3), (6, 5), (6, 7), (4, 2)])
def test_splines_of_any_order(tmp_path, order, step):
    """Snapshots of a B-spline, as CHAOS and Swarm's models are published, give it back."""
    knots = 2000.0 + np.array([0.0, 0.5, 1.0, 2.0, 2.5, 3.0])
    k = order - 1
    t = np.r_[[knots[0]] * k, knots, [knots[-1]] * k]
    c = np.random.default_rng(order).normal(size=(len(knots) + k - 1, 3))
    truth = BSpline(t, c, k)
    times = np.r_[
        np.concatenate([np.linspace(a, b, step + 1)[:-1] for a, b in pairwise(knots)]), 2003.0
    ]
    file = write(tmp_path / "m.shc", f"1 1 {len(times)} {order} {step}", times, truth(times).T)
    model = read_magnetic_coefficients(file)
    assert model.years == (2000.0, 2003.0)
    for year in np.linspace(2000.0, 2003.0, 31):
        g, h = model.coefficients(year)
        np.testing.assert_allclose([g[1, 0], g[1, 1], h[1, 1]], truth(year), atol=1e-11)
    rate = arc.jac(lambda y: model.coefficients(y)[0][1, 0])(2001.3)
    np.testing.assert_allclose(rate, truth(2001.3, 1)[0], atol=1e-10)


def test_constants_and_snapshots(tmp_path):
    steps = write(
        tmp_path / "c.shc", "1 1 3 1 0", [2000.0, 2001.0, 2003.0], np.arange(9).reshape(3, 3)
    )
    model = read_magnetic_coefficients(steps)
    for year, value in ((2000.0, 0), (2000.9, 0), (2001.0, 1), (2002.9, 1), (2003.0, 2)):
        assert model.coefficients(year)[0][1, 0] == value
    one = write(tmp_path / "o.shc", "1 1 1 1 0", [2010.0], [[1.0], [2.0], [3.0]])
    model = read_magnetic_coefficients(one)
    assert model.epoch == 2010.0 and model.h[1, 1] == 3.0
    model(np.array([7e6, 0.0, 0.0]))
    # A cubic spline through every snapshot: what is between follows from smoothness alone.
    times = np.arange(2000.0, 2010.0)
    cubic = write(tmp_path / "s.shc", "1 1 10 4 1", times, [(times - 2004) ** 3] * 3)
    g, _ = read_magnetic_coefficients(cubic).coefficients(2006.5)
    assert g[1, 0] == pytest.approx(2.5**3, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1 1 2 2 1\n2000 2001\n1 0 5\n",
            "is not an SHC file: after the line '1 1 2 2 1' there must",
        ),
        ("1 1 2 2 1\n", "there must be 2 times, and then lines of n, m and 2 coefficients"),
        ("1 1 2 2 1\n2000 2001\n1 0 5 x\n", "is not an SHC file"),
        ("1 1 2 2 1\n2000 2001\n1 0 5 nan\n", "is not an SHC file"),
        ("1 1 2 2 1\n2001 2000\n1 0 5 6\n", "times must increase strictly"),
        ("1 1 2 2 1\n2000 2001\n1 -2 5 6\n", "n = 1.0, m = 2.0 are not a valid degree and order"),
        ("1 13 2 2 1\n2000 2001\n1 0 5 6\n", "end at degree 1, but the first line says 13"),
        ("1 1 2 2 1\n2000 2001\n2 0 5 6\n", "end at degree 2, but the first line says 1"),
        ("1 1 2 0 1\n2000 2001\n1 0 5 6\n", "order 0 and step 1 of the spline are not valid"),
        ("# nothing\n", "is not a file of magnetic coefficients"),
        ("", "is not a file of magnetic coefficients"),
    ],
)
def test_bad_files(tmp_path, text, message):
    (tmp_path / "bad.shc").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_magnetic_coefficients(tmp_path / "bad.shc")


def test_bad_fields():
    g = np.zeros((2, 2))
    with pytest.raises(
        ValueError, match=r"g and h must be square and of the same shape \(3, degree"
    ):
        MagneticField(g, g, epoch=[2000.0, 2001.0, 2002.0])
    with pytest.raises(ValueError, match=r"MagneticField.epoch must increase strictly"):
        MagneticField([g, g], [g, g], epoch=[2001.0, 2000.0])
    with pytest.raises(ValueError, match="dg and dh must be square"):
        MagneticField(g, g, np.zeros((3, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="MagneticField: give both dg and dh"):
        MagneticField(g, g, g)
    with pytest.raises(ValueError, match=r"MagneticField.radius must be positive"):
        MagneticField(g, g, radius=0.0)

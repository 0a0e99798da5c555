"""Distributions: against SciPy's, by Kolmogorov-Smirnov, and streams by their definition."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

import archimedes as arc
from archimedes.random.continuous import normal_quantile
from archimedes.simulate import (
    Choice,
    Distribution,
    Integers,
    LogNormal,
    MultivariateNormal,
    Normal,
    RandomAttitude,
    RunKey,
    Truncated,
    Uniform,
)
from archimedes.simulate.campaigns.distributions import Sampler, run_keys, uniform_numbers
from archimedes.spatial import EulerAngles, Quaternion

N = 4000


def draws(distribution, n=N, seed=3):
    return Sampler(distribution, seed)(0, n)[0]


def test_normal_quantile_to_the_last_digits():
    p = np.concatenate([10.0 ** -np.arange(1, 17), np.linspace(0.01, 0.99, 33), [0.5 + 2**-53]])
    p = np.concatenate([p, 1.0 - p[:10]])
    with mpmath.workdps(40):
        exact = [float(mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(float(x)) - 1)) for x in p]
    np.testing.assert_allclose(normal_quantile(p), exact, rtol=2e-15, atol=1e-16)


SCIPY = {
    "normal": (Normal(2.0, 3.0), stats.norm(2.0, 3.0)),
    "uniform": (Uniform(-1.0, 4.0), stats.uniform(-1.0, 5.0)),
    "lognormal": (LogNormal(0.5, 0.25), stats.lognorm(0.25, scale=np.exp(0.5))),
    "truncated": (Truncated(Normal(1.0, 2.0), 0.0, 4.0), stats.truncnorm(-0.5, 1.5, 1.0, 2.0)),
    "one-sided": (Truncated(Normal(), high=-3.0), stats.truncnorm(-np.inf, -3.0)),
    "cut lognormal": (
        Truncated(LogNormal(), 1.0),
        stats.uniform(0, 1),  # compared after the distribution function, below
    ),
}


@pytest.mark.parametrize("name", SCIPY)
def test_against_scipy(name):
    mine, theirs = SCIPY[name]
    values = draws(mine)
    if name == "cut lognormal":
        assert np.all(values >= 1.0)
        values = (stats.lognorm(1.0).cdf(values) - 0.5) / 0.5
    # The seed is fixed: a share of 1e-3 would be a bad draw, not bad luck of a later run.
    assert stats.kstest(values, theirs.cdf).pvalue > 1e-3


def test_arrays_of_independent_numbers():
    values = draws(Normal(np.array([0.0, 10.0]), np.array([1.0, 2.0])))
    assert values.shape == (N, 2)
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.05
    np.testing.assert_allclose(values.mean(axis=0), [0.0, 10.0], atol=0.1)
    assert draws(Uniform(np.zeros((2, 3)), 1.0), 5).shape == (5, 2, 3)


def test_multivariate_normal():
    cov = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    values = draws(MultivariateNormal([1.0, 2.0, 3.0], cov))
    np.testing.assert_allclose(np.cov(values.T), cov, atol=0.1)
    np.testing.assert_allclose(values.mean(axis=0), [1.0, 2.0, 3.0], atol=0.1)
    flat = draws(MultivariateNormal([0.0, 0.0], np.ones((2, 2))))
    np.testing.assert_allclose(flat[:, 0], flat[:, 1], atol=1e-7)


def test_choice_and_integers():
    values = draws(Choice([1, 2, 5], p=[0.2, 0.5, 0.3]))
    assert values.dtype == np.int64
    shares = [np.mean(values == v) for v in (1, 2, 5)]
    np.testing.assert_allclose(shares, [0.2, 0.5, 0.3], atol=0.03)
    vectors = draws(Choice([[1.0, 2.0], [3.0, 4.0]]))
    assert {tuple(v) for v in vectors} == {(1.0, 2.0), (3.0, 4.0)}
    dice = draws(Integers(1, 7))
    assert stats.chisquare(np.bincount(dice)[1:]).pvalue > 1e-3 and set(dice) == set(range(1, 7))
    assert set(draws(Choice([1.0, 2.0], p=[0.0, 1.0]))) == {2.0}


def test_attitudes_are_even_over_all_rotations():
    q = draws(RandomAttitude(Quaternion))
    assert isinstance(q, Quaternion)
    np.testing.assert_allclose(np.linalg.norm(q.array, axis=1), 1.0, rtol=1e-12)
    # The angle has density (1 - cos a) / pi; the axis and any turned vector are even on the sphere.
    angle = q.magnitude()
    assert stats.kstest(angle, lambda a: (a - np.sin(a)) / np.pi).pvalue > 1e-3
    for z in q.rotate(np.array([0.0, 0.0, 1.0])).T:
        assert stats.kstest(z, stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-3
    assert draws(RandomAttitude(), 3).shape == (3, 4)


@pytest.mark.parametrize("kind", [Quaternion, EulerAngles])
def test_attitudes_around_a_given_one(kind):
    centre = kind.from_euler([0.3, -0.2, 1.0], "xyz")
    att = draws(RandomAttitude(around=centre, std=0.01))
    turn = (Quaternion.from_quat(centre).inv() * att.as_quat()).log()
    for component in turn.T:
        assert stats.kstest(component, stats.norm(0.0, 0.01).cdf).pvalue > 1e-3


def uniforms(seed, name, count, start, stop):
    return uniform_numbers(run_keys(seed, name, np.arange(start, stop)), count)


def test_streams_do_not_overlap_and_are_even():
    a, b = uniforms(1, "a", 5, 0, 2000), uniforms(1, "b", 5, 0, 2000)
    assert len(np.unique(np.concatenate([a, b]))) == a.size + b.size
    assert stats.kstest(a.ravel(), stats.uniform().cdf).pvalue > 1e-3
    assert a.min() > 0.0 and a.max() < 1.0
    far = uniforms(1, "a", 5, 10**12, 10**12 + 3)
    assert far.tobytes() == uniforms(1, "a", 5, 10**12 - 7, 10**12 + 3)[7:].tobytes()
    place = arc.random.fold_in(arc.random.key(1), 0xE8B7BE43)  # the CRC-32 of "a"
    words = arc.random.bits(arc.random.fold_in(place, 3), 5).view(np.uint64)
    expected = ((words >> np.uint64(12)).astype(float) + 0.5) / 2**52
    assert a[3].tolist() == expected.tolist()


def test_a_key_for_each_run():
    def model(p):
        return p["mean"] + arc.random.normal(p["key"], 3)

    tree = {"mean": Uniform(0.0, 1.0), "key": RunKey()}
    found = arc.monte_carlo(model, tree, n=100, seed=3, chunk=16)
    keys = found.params["key"]
    assert keys.dtype == np.int64 and len(np.unique(keys, axis=0)) == 100
    assert (found.results[41] == model({"mean": found.params["mean"][41], "key": keys[41]})).all()
    plain = arc.monte_carlo(model, tree, n=30, seed=3, vectorize=False)
    assert plain.results.tobytes() == found.results[:30].tobytes()
    assert not (arc.monte_carlo(model, tree, n=30, seed=4).results == plain.results).any()


def test_a_campaign_with_keys_is_resumed(tmp_path):
    def model(p):
        return arc.random.normal(p["key"], 2, std=2.0)

    tree = {"key": RunKey()}
    whole = arc.monte_carlo(model, tree, n=40, seed=5)
    arc.monte_carlo(model, tree, n=20, seed=5, chunk=8, folder=tmp_path)
    resumed = arc.monte_carlo(model, tree, n=40, seed=5, chunk=8, folder=tmp_path)
    assert resumed.executed == 20
    assert resumed.results.tobytes() == whole.results.tobytes()
    assert (resumed.params["key"] == whole.params["key"]).all()


def test_a_distribution_of_ones_own():
    class Ring(Distribution):
        uniforms = 1

        def draw(self, u):
            return {"x": np.cos(2 * np.pi * u[0]), "y": np.sin(2 * np.pi * u[0])}

    found = draws({"at": Ring()}, 10)
    np.testing.assert_allclose(found["x"] ** 2 + found["y"] ** 2, 1.0, rtol=1e-15)

    class Nothing(Distribution):
        pass

    with pytest.raises(NotImplementedError, match=r"must define draw\(u\) or quantile\(p\)"):
        draws(Nothing())


def test_drawing_is_the_same_in_numpy_and_recorded():
    u = uniforms(0, "x", 4, 0, 1)[0]
    for d in (Normal(), LogNormal(), Truncated(Normal(), 0.0), Choice([1.0, 2.0]), Integers(0, 9)):
        np.testing.assert_allclose(arc.compile(d.draw)(u), d.draw(u), rtol=1e-14)


BAD = [
    (lambda: Normal(0.0, -1.0), "Normal: std must not be negative"),
    (lambda: Normal(np.nan), "Normal: mean must be finite"),
    (lambda: Normal("a"), "Normal: mean must be finite, got 'a'"),
    (lambda: Normal(np.zeros(2), np.ones(3)), "Normal: the shapes .* do not fit"),
    (lambda: Uniform(2.0, 1.0), "Uniform: low must not exceed high"),
    (lambda: LogNormal(0.0, -1.0), "LogNormal: sigma must not be negative"),
    (lambda: Truncated(Normal(), 2.0, 1.0), "Truncated: low must be below high"),
    (lambda: Truncated(Normal(), 9.0), "Truncated: hardly anything"),
    (lambda: Integers(3, 3), "Integers: low must be below high"),
    (lambda: Choice([]), "Choice: values must be a row of numbers"),
    (lambda: Choice(["a"]), "Choice: values must be a row of numbers"),
    (lambda: Choice([1, 2], p=[1.0]), "Choice: p needs 2 numbers"),
    (lambda: MultivariateNormal([0.0, 0.0], np.eye(3)), "cov must be"),
    (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "negative eigenvalues"),
    (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "must be symmetric"),
    (lambda: RandomAttitude(std=0.1), "around, an attitude, and std in rad go together"),
]


@pytest.mark.parametrize("make, words", BAD, ids=[words for _, words in BAD])
def test_bad_parameters(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_multivariate_cannot_be_truncated():
    with pytest.raises(TypeError, match=r"MultivariateNormal has no cdf\(x\)"):
        Truncated(MultivariateNormal([0.0], [[1.0]]), 0.0)

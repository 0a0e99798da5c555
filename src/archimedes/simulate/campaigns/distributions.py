"""Distributions of parameters for campaigns, and how runs are drawn from them by their number.

Each distribution is a plain NumPy function of a few independent numbers, uniform between 0 and 1.
So the number of random words per run is fixed, run i is the same in any campaign, and thousands of
runs are drawn by one native kernel with the same bits everywhere. The uniform numbers come from a
key (`arc.random`) for each place in the parameter tree, made of the seed and the name of the place,
and for each run below that. So a run depends neither on how many there are, nor on who computes it,
nor on the other parameters. A user's own class needs only `uniforms` and `draw`.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.errors import StructError
from archimedes.function import array, vmap
from archimedes.function.reproducible import call
from archimedes.random import fold_in, key
from archimedes.random.continuous import normal_quantile
from archimedes.random.keys import DRAW, shift_right, threefry
from archimedes.simulate.trajectory.columns import label_leaves
from archimedes.tree.struct_methods import struct_repr

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Tree

__all__ = [
    "Choice",
    "Distribution",
    "Integers",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "RandomAttitude",
    "RunKey",
    "Truncated",
    "Uniform",
    "disperse",
]

#: Part of what a campaign is: another generator would draw other runs.
GENERATOR = "threefry2x64-20"


def run_keys(seed: int, name: str, runs: np.ndarray) -> np.ndarray:
    """Return the keys (n, 2) of the runs (n,) for the place of a name.

    >>> whole = run_keys(7, "mass", np.arange(10))
    >>> bool((run_keys(7, "mass", np.arange(4, 6)) == whole[4:6]).all())
    True
    """
    return fold_in(fold_in(key(seed), zlib.crc32(name.encode())), runs)


def uniform_numbers(keys: np.ndarray, count: int) -> np.ndarray:
    """Return numbers (n, count) in (0, 1), made of the bits that each key (n, 2) gives.

    >>> from archimedes import random
    >>> key = random.key(3)
    >>> u, words = uniform_numbers(key[None], 4), random.bits(key, 4).view(np.uint64)
    >>> bool((u[0] == ((words >> np.uint64(12)) + 0.5) / 2**52).all())
    True
    """
    # Whole numbers are exact in NumPy too, so that no kernel has to be compiled for them.
    words = threefry(keys[:, :1], keys[:, 1:], np.arange(-(-count // 2)), np.int64(DRAW))
    flat = np.stack(words, axis=-1).reshape(len(keys), -1)[:, :count]
    # The centres of 2^52 cells: neither 0 nor 1 can come up.
    return (shift_right(flat, 12) + 0.5) * 2.0**-52


class Distribution:
    """What all distributions share; a tree of parameters holds them as leaves.

    A subclass sets `uniforms`, the count of random numbers it takes, and defines ``draw(u)``: the
    value for `u`, an array (uniforms,) of numbers in (0, 1), in plain NumPy. A distribution of
    independent numbers defines ``quantile(p)`` and `shape` instead, and ``cdf(x)`` if it can be
    truncated.

    >>> import numpy as np
    >>> class Triangular(Distribution):
    ...     shape = ()
    ...     def quantile(self, p):
    ...         return np.sqrt(p)
    >>> Triangular().draw(np.array([0.25]))
    np.float64(0.5)
    """

    shape: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return struct_repr(self) if is_dataclass(self) else f"{type(self).__name__}()"

    @property
    def uniforms(self) -> int:
        """How many uniform numbers one value takes."""
        return math.prod(self.shape)

    def source(self, keys: np.ndarray) -> np.ndarray:
        """Return what `draw` needs for each run: its uniform random numbers.

        Parameters
        ----------
        keys : array (n, 2)
            Random keys of the runs.
        """
        return uniform_numbers(keys, self.uniforms)

    def draw(self, u: Array) -> Any:
        """Return the value for uniform random numbers.

        Parameters
        ----------
        u : array (uniforms,)
            Uniform random numbers in (0, 1).
        """
        return self.quantile(np.reshape(u, self.shape) if self.shape else u[0])

    def quantile(self, p: Array) -> Any:
        """Return the value below which a given fraction of the distribution lies.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        raise NotImplementedError(f"{type(self).__name__} must define draw(u) or quantile(p)")

    def cdf(self, x: ArrayLike) -> Any:
        """Return the fraction of the distribution that lies below a value.

        Parameters
        ----------
        x : array_like
            Values.
        """
        raise TypeError(f"{type(self).__name__} has no cdf(x), which Truncated needs")


def numbers(owner: object, **values: Any) -> tuple[int, ...]:
    """Store parameters of a distribution as float arrays; return the shape they share."""
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
            raise ValueError(f"{type(owner).__name__}: {name} must be finite, got {value!r}")
        object.__setattr__(owner, name, array.astype(np.float64))
    try:
        return np.broadcast_shapes(*(np.shape(value) for value in values.values()))
    except ValueError:
        shapes = {name: np.shape(value) for name, value in values.items()}
        raise ValueError(f"{type(owner).__name__}: the shapes {shapes} do not fit") from None


def check(owner: object, good: Array | bool, words: str) -> None:
    if not np.all(good):
        raise ValueError(f"{type(owner).__name__}: {words}, got {owner!r}")


@dataclass(frozen=True, eq=False, repr=False)
class Normal(Distribution):
    """Independent normal numbers.

    Parameters
    ----------
    mean : array_like, optional
        Mean, 0 by default.
    std : array_like, optional
        Standard deviation, 1 by default. It broadcasts against `mean`.

    Examples
    --------
    >>> import numpy as np
    >>> Normal(10.0, 2.0).draw(np.array([0.5]))
    np.float64(10.0)
    """

    mean: Any = 0.0
    std: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", numbers(self, mean=self.mean, std=self.std))
        check(self, self.std >= 0, "std must not be negative")

    def quantile(self, p: Array) -> Any:
        """Return mean + std z(p), with the quantile z of the standard normal distribution.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        return self.mean + self.std * normal_quantile(p)

    def cdf(self, x: ArrayLike) -> Any:
        """Return the fraction below a value.

        Parameters
        ----------
        x : array_like
            Values.
        """
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            return ndtr(np.divide(np.subtract(x, self.mean), self.std))


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Distribution):
    """Independent numbers, uniform over an interval.

    Parameters
    ----------
    low : array_like, optional
        Lower limit, 0 by default.
    high : array_like, optional
        Upper limit, 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform(2.0, 4.0).draw(np.array([0.25]))
    np.float64(2.5)
    """

    low: Any = 0.0
    high: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", numbers(self, low=self.low, high=self.high))
        check(self, self.low <= self.high, "low must not exceed high")

    def quantile(self, p: Array) -> Any:
        """Return low + (high - low) p.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        return self.low + (self.high - self.low) * p

    def cdf(self, x: ArrayLike) -> Any:
        """Return the fraction below a value.

        Parameters
        ----------
        x : array_like
            Values.
        """
        return np.clip((x - self.low) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(Distribution):
    """Numbers whose logarithm is normally distributed, as in NumPy.

    The median is exp(mean). If `sigma` is small, it is the relative standard deviation.

    Parameters
    ----------
    mean : array_like, optional
        Mean of the logarithm, 0 by default.
    sigma : array_like, optional
        Standard deviation of the logarithm, 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> LogNormal(np.log(10.0), 0.1).draw(np.array([0.5])).round(12)
    np.float64(10.0)
    """

    mean: Any = 0.0
    sigma: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", numbers(self, mean=self.mean, sigma=self.sigma))
        check(self, self.sigma >= 0, "sigma must not be negative")

    def quantile(self, p: Array) -> Any:
        """Return exp(mean + sigma z(p)), with the quantile z of the standard normal distribution.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        return np.exp(self.mean + self.sigma * normal_quantile(p))

    def cdf(self, x: ArrayLike) -> Any:
        """Return the fraction below a value.

        Parameters
        ----------
        x : array_like
            Values.
        """
        with np.errstate(divide="ignore"):
            return Normal(self.mean, self.sigma).cdf(np.log(np.maximum(x, 0.0)))


@dataclass(frozen=True, eq=False, repr=False)
class Truncated(Distribution):
    """A distribution of independent numbers, restricted to an interval.

    Parameters
    ----------
    base : Distribution
        The distribution to restrict. It needs `quantile` and `cdf`.
    low : array_like, optional
        Smallest value, -inf by default.
    high : array_like, optional
        Largest value, inf by default.

    Examples
    --------
    >>> import numpy as np
    >>> Truncated(Normal(), -1.0, 1.0).draw(np.array([0.999999])).round(4)
    np.float64(1.0)
    """

    base: Distribution
    low: Any = -np.inf
    high: Any = np.inf

    def __post_init__(self) -> None:
        check(self, np.less(self.low, self.high), "low must be below high")
        below, above = self.base.cdf(self.low), self.base.cdf(self.high)
        # Shares next to one are 1e-16 apart: with less between the bounds few values remain.
        enough = above - below > 1e-9
        check(self, enough, "hardly anything of the base lies between the bounds")
        shape = np.broadcast_shapes(self.base.shape, np.shape(below))
        vars(self).update(below=below, between=above - below, shape=shape)

    def quantile(self, p: Array) -> Any:
        """Return the value at a fraction of the part that lies between the limits.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        value = self.base.quantile(self.below + self.between * p)  # type: ignore[attr-defined]
        return np.minimum(np.maximum(value, self.low), self.high)


@dataclass(frozen=True, eq=False, repr=False)
class Integers(Distribution):
    """Whole numbers, all equally likely.

    Parameters
    ----------
    low : int
        Smallest number.
    high : int
        Upper limit, which is itself not drawn.

    Examples
    --------
    >>> import numpy as np
    >>> int(Integers(1, 7).draw(np.array([0.99])))
    6
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        check(self, self.low < self.high, "low must be below high")
        check(self, self.high - self.low <= 2**52, "at most 2^52 different numbers are possible")

    def quantile(self, p: Array) -> Any:
        """Return the whole number at a fraction.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        steps = np.floor(p * float(self.high - self.low))
        return self.low + np.minimum(steps, self.high - self.low - 1.0).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Distribution):
    """One value out of a list.

    Parameters
    ----------
    values : array_like (k, ...)
        What to choose from, along the first axis.
    p : array_like (k,), optional
        Probabilities. By default all values are equally likely.

    Examples
    --------
    >>> import numpy as np
    >>> Choice([1.0, 2.0, 4.0], p=[0.5, 0.25, 0.25]).draw(np.array([0.6]))
    np.float64(2.0)
    """

    values: Any
    p: Any = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.dtype.kind not in "biuf" or values.ndim == 0 or not len(values):
            raise ValueError(f"Choice: values must be a row of numbers or arrays, got {values!r}")
        p = np.ones(len(values)) if self.p is None else np.asarray(self.p, dtype=np.float64)
        if p.shape != values.shape[:1] or not np.all(p >= 0) or not p.sum() > 0:
            raise ValueError(f"Choice: p needs {len(values)} numbers, none negative, got {self.p}")
        vars(self).update(values=values, p=p / p.sum())

    def draw(self, u: Array) -> Any:
        """Return the value that a uniform number selects.

        Parameters
        ----------
        u : array (uniforms,)
            Uniform random numbers in (0, 1).
        """
        steps = np.cumsum(self.p)[:-1]
        return array(self.values)[np.sum(u[0] >= steps)]  # which takes traced places


def _square_root(cov: Array) -> Any:
    """Return the symmetric root of a covariance."""
    values, vectors = np.linalg.eigh(cov)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateNormal(Distribution):
    """Correlated normal numbers.

    Parameters
    ----------
    mean : array_like (n,)
        Mean.
    cov : array_like (n, n)
        Covariance, symmetric and positive semidefinite. In directions in which it is singular the
        value stays at the mean.

    Examples
    --------
    >>> import numpy as np
    >>> MultivariateNormal([1.0, 2.0], np.eye(2)).draw(np.array([0.5, 0.5]))
    array([1., 2.])
    """

    mean: Any
    cov: Any

    def __post_init__(self) -> None:
        numbers(self, mean=self.mean)
        numbers(self, cov=self.cov)
        n = self.mean.size
        check(self, self.mean.ndim == 1 and self.cov.shape == (n, n), "cov must be (n, n)")
        values = np.linalg.eigvalsh(self.cov)
        size = np.max(np.abs(values), initial=0.0)
        check(self, np.abs(self.cov - self.cov.T) <= 1e-12 * size, "cov must be symmetric")
        check(self, values >= -1e-12 * size, "cov must not have negative eigenvalues")
        vars(self).update(shape=(n,), root=call(_square_root, self.cov))

    def quantile(self, p: Array) -> Any:
        """Return mean + cov^(1/2) z(p), with the quantile z of the standard normal distribution.

        Parameters
        ----------
        p : array
            Fractions in (0, 1), with the shape of the distribution.
        """
        return self.mean + self.root @ normal_quantile(p)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False, repr=False)
class RandomAttitude(Distribution):
    """Random attitudes: uniform over all rotations, or close to a given attitude.

    Parameters
    ----------
    kind : type, optional
        Class of the attitude, such as `Quaternion`. By default the value is a quaternion array
        (4,), scalar first.
    around : attitude, optional
        Attitude that the value is a small rotation away from. By default all rotations are equally
        likely.
    std : array_like, optional
        Standard deviation in rad of the components, in body axes, of the rotation vector from
        `around`.

    Examples
    --------
    >>> import numpy as np
    >>> float(np.linalg.norm(RandomAttitude().draw(np.array([0.1, 0.2, 0.3]))).round(12))
    1.0
    """

    kind: Any = None
    around: Any = None
    std: Any = None
    shape = (3,)

    def __post_init__(self) -> None:
        if (self.around is None) != (self.std is None):
            raise ValueError("RandomAttitude: around, an attitude, and std in rad go together")
        if self.around is not None:
            check(self, self.kind is None, "kind is that of around, so give only one of them")
            numbers(self, std=self.std)

    def draw(self, u: Array) -> Any:
        """Return an attitude, or a quaternion array, for three uniform random numbers.

        Parameters
        ----------
        u : array (3,)
            Uniform random numbers in (0, 1).
        """
        if self.around is not None:
            turn = self.std * normal_quantile(u)
            return self.around.mul(type(self.around).from_rotvec(turn))
        q = even_quaternion(u)
        return q if self.kind is None else self.kind.from_quat(q)


class RunKey(Distribution):
    """A key for each run (`arc.random`), for noise that the model draws itself.

    Like other parameters it depends on seed, place and number of the run, and is kept with them:
    a run can be repeated alone.

    >>> from archimedes import random
    >>> from archimedes.simulate import monte_carlo
    >>> found = monte_carlo(lambda p: random.normal(p["key"]), {"key": RunKey()}, n=4)
    >>> bool((found.results[2] == random.normal(found.params["key"][2])).all())
    True
    """

    def source(self, keys: np.ndarray) -> np.ndarray:
        """Return the keys themselves.

        Parameters
        ----------
        keys : array (n, 2)
            Random keys of the runs.
        """
        return keys

    def draw(self, u: Array) -> Any:
        """Return the key of a run.

        Parameters
        ----------
        u : array (2,)
            Key of the run.
        """
        return u


def even_quaternion(u: Array) -> Any:
    """Return a unit quaternion (4,), even over all rotations.

    Source: K. Shoemake, Uniform random rotations, Graphics Gems III, 1992, section III.6.
    """
    a, b = np.sqrt(1.0 - u[0]), np.sqrt(u[0])
    first, second = 2.0 * np.pi * u[1], 2.0 * np.pi * u[2]
    parts = [b * np.cos(second), a * np.sin(first), a * np.cos(first), b * np.sin(second)]
    return np.stack(parts)


class Sampler:
    """Draws parameter trees: the tree given, with a value for each distribution in it.

    ``sampler(start, stop)`` returns what is drawn for these runs, a list of trees with a leading
    axis; ``sampler.params(drawn)`` puts one run's part, or all of them, into the parameter tree.
    """

    def __init__(self, distributions: Tree, seed: int) -> None:
        self.leaves, self.treedef = tree.flatten(distributions)
        self.seed = seed
        self.names = [label.name for label in label_leaves(self.treedef, "params")]
        self.places = [k for k, d in enumerate(self.leaves) if isinstance(d, Distribution)]
        bare = label_leaves(self.treedef, "params", prefix=False)
        self.keys = tuple(label.name for label, d in zip(bare, self.leaves) if type(d) is RunKey)
        self._draw = vmap(self._draw_one, name="draw")

    def _draw_one(self, *uniforms: Any) -> list[Any]:
        return [self.leaves[k].draw(u) for k, u in zip(self.places, uniforms)]

    def __call__(self, start: int, stop: int) -> list[Any]:
        """Draw runs `start` to `stop` (not included)."""
        blocks = self._source(np.arange(start, stop))
        return self._draw(*blocks) if blocks else []

    def one(self, run: Any) -> list[Any]:
        """Draw the parameters of one run, whose number may be traced: the bits of a campaign."""
        return self._draw_one(*(block[0] for block in self._source(np.stack([run]))))

    def _source(self, runs: np.ndarray) -> list[np.ndarray]:
        """Return what the distributions make their values of, for the runs (n,)."""
        keys = [run_keys(self.seed, self.names[k], runs) for k in self.places]
        return [self.leaves[k].source(own) for k, own in zip(self.places, keys)]

    def params(self, drawn: list[Any], count: int | None = None) -> Any:
        """Return the parameter tree with the drawn values in place of the distributions.

        With `count`, for as many runs, fixed numbers are repeated for each.
        """
        values = self.leaves if count is None else [repeat_leaf(v, count) for v in self.leaves]
        values = list(values)
        for k, value in zip(self.places, drawn):
            values[k] = value
        return self.treedef.unflatten(values)

    def digest(self) -> str:
        """Return a hash of what is drawn: the program that draws, and the fixed values."""
        h = hashlib.blake2b(GENERATOR.encode(), digest_size=16)
        sample = [block[0] for block in self._source(np.arange(1))]
        h.update(self._draw.compiled.graph(*sample).digest(lasting=True).encode())
        for k, leaf in enumerate(self.leaves):
            h.update(self.names[k].encode() + (b"" if k in self.places else fixed_bytes(leaf)))
        h.update(repr(self.treedef).encode())
        return h.hexdigest()


def is_numeric(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "biufc"


def repeat_leaf(leaf: Any, count: int) -> Any:
    return np.broadcast_to(leaf, (count, *np.shape(leaf))) if is_numeric(leaf) else leaf


def fixed_bytes(leaf: Any) -> bytes:
    array = np.asarray(leaf)
    text = f"{array.dtype}{array.shape}" if is_numeric(leaf) else repr(leaf)
    return text.encode() + (array.tobytes() if is_numeric(leaf) else b"")


def disperse(nominal: Tree, distributions: Mapping[str, Any]) -> Any:
    """Return nominal parameters with distributions in place of some of them.

    Unlike the constructor of a struct, this does not run the checks of the struct, which know only
    numbers.

    Parameters
    ----------
    nominal : tree
        Parameters of the model.
    distributions : mapping
        Distributions by the name of the leaf, as in `tree.paths`: ``"m"``, ``"wing.area"``.

    Returns
    -------
    tree
        The tree for `monte_carlo`.

    Examples
    --------
    >>> disperse({"mass": 2.0, "drag": 0.1}, {"mass": Normal(2.0, 0.1)})["drag"]
    0.1
    """
    leaves, treedef = tree.flatten(nominal)
    names = [label.name for label in label_leaves(treedef, "", prefix=False)]
    for name, distribution in distributions.items():
        if name not in names:
            raise StructError(f"disperse: no leaf {name!r}; there are {names}")
        leaves[names.index(name)] = distribution
    return treedef.unflatten(leaves)

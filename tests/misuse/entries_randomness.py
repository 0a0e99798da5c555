"""Random numbers and clocks inside recorded functions; keys used in unusual ways."""

# ruff: noqa: NPY002 (the legacy functions are what is misused)

from __future__ import annotations

import functools
import os
import random
import secrets
import time
import uuid
from dataclasses import dataclass, field
from random import uniform

import numpy as np
from numpy.random import default_rng, standard_normal

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0])
KEY = arc.random.key(5)
SAYS = ["arc.random", "constant"]
frozen = functools.partial(entry, "frozen randomness", error=TraceError, says=SAYS)
#: A generator with a fixed seed, made inside, gives the same numbers in every call.
seeded = functools.partial(entry, "frozen randomness")
keys = functools.partial(entry, "keys")


@frozen()
def legacy_normal_numbers(run):
    return run(lambda x: x + np.random.normal(size=3))(X)


@frozen()
def a_seed_inside_the_function(run):
    def model(x):
        np.random.seed(0)
        return x + np.random.rand()

    np.random.seed(1)
    return run(model)(X)


@frozen()
def a_generator_of_the_module_around(run):
    rng = np.random.default_rng(0)
    return run(lambda x: x + rng.normal(size=3))(X)


@seeded()
def a_generator_made_inside(run):
    return run(lambda x: np.random.default_rng(0).normal(size=(3, 3)) @ x)(X)


@frozen()
def a_generator_without_a_seed_made_inside(run):
    return run(lambda x: np.random.default_rng().normal(size=(3, 3)) @ x)(X)


@frozen()
def a_generator_in_an_attribute(run):
    class Sensor:
        def __init__(self):
            self.rng = np.random.default_rng(1)

        def read(self, x):
            return x + 0.1 * self.rng.standard_normal(3)

    return run(Sensor().read)(X)


@frozen()
def a_generator_in_a_default(run):
    def model(x, rng=np.random.RandomState(0)):  # noqa: B008
        return x + rng.randn(3)

    return run(model)(X)


@frozen()
def a_generator_in_a_dataclass(run):
    @dataclass
    class Noise:
        rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    noise = Noise()
    return run(lambda x: x + noise.rng.uniform(-1, 1, 3))(X)


@frozen()
def a_generator_in_a_container(run):
    streams = {"gps": [np.random.default_rng(0)]}
    return run(lambda x: x + streams["gps"][0].exponential())(X)


@frozen()
def a_cached_generator(run):
    @functools.cache
    def generator():
        return np.random.default_rng(7)

    return run(lambda x: x * generator().random())(X)


@frozen()
def a_bit_generator(run):
    bits = np.random.PCG64(1)
    return run(lambda x: x * (bits.random_raw() % 7))(X)


@frozen()
def a_mask_that_drops_out(run):
    rng = np.random.default_rng(0)
    return run(lambda x: np.where(rng.random(3) < 0.5, 0.0, x))(X)


@frozen()
def a_random_row(run):
    rng = np.random.default_rng(0)
    return run(lambda x: x[rng.integers(3)])(X)


@frozen()
def a_shuffled_order(run):
    rng = np.random.default_rng(0)
    return run(lambda x: x[rng.permutation(3)])(X)


@frozen()
def a_helper_that_draws(run):
    def noise(n):
        return np.random.standard_normal(n)

    return run(lambda x: x + noise(3))(X)


@seeded()
def a_generator_made_of_a_bit_generator(run):
    return run(lambda x: x + np.random.Generator(np.random.Philox(3)).normal())(X)


@frozen()
def numbers_of_the_random_module(run):
    return run(lambda x: x + random.random())(X)


@frozen()
def gauss_of_the_random_module(run):
    return run(lambda x: x + random.gauss(0.0, 1.0))(X)


@frozen()
def a_random_object_of_ones_own(run):
    mine = random.Random(4)
    return run(lambda x: x + mine.uniform(0.0, 1.0))(X)


@frozen()
def a_shuffle_of_the_random_module(run):
    def model(x):
        order = [0, 1, 2]
        random.shuffle(order)
        return x[order]

    return run(model)(X)


@frozen()
def numbers_of_the_operating_system(run):
    return run(lambda x: x + os.urandom(1)[0])(X)


@frozen()
def a_unique_identifier(run):
    return run(lambda x: x + uuid.uuid4().int % 3)(X)


@frozen()
def a_secret(run):
    return run(lambda x: x + secrets.randbelow(10))(X)


@frozen()
def a_function_imported_from_numpy(run):
    return run(lambda x: x + standard_normal(3))(X)


@frozen()
def a_function_imported_from_random(run):
    return run(lambda x: x + uniform(0.0, 1.0))(X)


@seeded()
def a_maker_of_generators_imported(run):
    return run(lambda x: x + default_rng(2).normal(size=3))(X)


@frozen()
def a_method_taken_from_a_generator(run):
    draw = np.random.default_rng(0).normal
    return run(lambda x: x + draw(size=3))(X)


@frozen()
def a_partial_of_a_method(run):
    noise = functools.partial(np.random.default_rng(0).normal, 0.0, 0.1)
    return run(lambda x: x + noise())(X)


@frozen()
def a_method_of_random_taken(run):
    draw = random.Random(0).random
    return run(lambda x: x + draw())(X)


@frozen()
def a_method_kept_in_an_attribute(run):
    class Sensor:
        def __init__(self):
            self.noise = np.random.RandomState(0).standard_normal

        def read(self, x):
            return x + self.noise(3)

    return run(Sensor().read)(X)


@entry("frozen randomness", error=TraceError, says=["Pass the time as an argument"])
def the_time_of_day(run):
    return run(lambda x: x + time.time())(X)


@frozen(through=lambda f, backend: arc.vmap(arc.compile(f, backend=backend)))
def one_number_for_all_rows_of_a_batch(run):
    rng = np.random.default_rng(0)
    return run(lambda x: x + rng.normal())(X)


@frozen(through=lambda f, backend: arc.grad(arc.compile(f, backend=backend)))
def a_stochastic_loss(run):
    rng = np.random.default_rng(0)
    return run(lambda w: np.sum((w - rng.normal(size=3)) ** 2))(X)


@frozen()
def noise_in_the_steps_of_a_scan(run):
    rng = np.random.default_rng(0)

    def walk(x):
        return arc.scan(lambda c, _: (c + rng.normal(), c), x, length=4)[0]

    return run(walk)(0.0)


@frozen()
def a_generator_as_an_argument(run):
    return run(lambda x, rng: x + rng.normal())(X, np.random.default_rng(0))


# ---- what works --------------------------------------------------------------------------------


@keys()
def numbers_of_a_key_that_is_an_argument(run):
    return run(lambda x, key: x + arc.random.normal(key, 3))(X, KEY)


@keys()
def numbers_of_a_key_around(run):
    return run(lambda x: x + arc.random.uniform(KEY, 3))(X)


@keys()
def numbers_of_a_seed_inside(run):
    return run(lambda x: x + arc.random.normal(arc.random.key(3), 3))(X)


@keys()
def numbers_of_a_traced_seed(run):
    f = run(lambda x, seed: x * arc.random.normal(arc.random.key(seed)))
    return f(X, 1), f(X, 2), f(X, -1)


@keys()
def two_calls_with_one_key(run):
    f = run(lambda key: arc.random.normal(key, 2))
    return f(KEY), f(KEY)


@keys()
def a_key_that_is_split_and_drawn_from(run):
    def draw(key):
        first, second = arc.random.split(key)
        return arc.random.normal(key), arc.random.normal(first), arc.random.normal(second)

    return run(draw)(KEY)


@keys()
def a_key_in_a_dict(run):
    return run(lambda p: p["gain"] * arc.random.exponential(p["key"], 2))({"gain": 2.0, "key": KEY})


@keys()
def a_key_for_each_step(run):
    def walk(key):
        def step(x, k):
            return x + arc.random.normal(arc.random.fold_in(key, k)), x

        return arc.scan(step, 0.0, np.arange(6))[1]

    return run(walk)(KEY)


@keys()
def a_mask_of_a_key(run):
    return run(lambda x, key: np.where(arc.random.bernoulli(key, 0.5, 3), 0.0, x))(X, KEY)


@keys()
def a_random_row_of_a_key(run):
    f = run(lambda x, key: (x[arc.random.integers(key, 3)], arc.random.choice(key, x)))
    return f(X, KEY)


@keys()
def a_shuffle_of_a_key(run):
    return run(lambda x, key: arc.random.permutation(key, x))(X, KEY)


@keys()
def numbers_that_decide_a_branch(run):
    def toss(x, key):
        return arc.cond(arc.random.bernoulli(key), lambda: x, lambda: -x)

    return run(toss)(X, KEY)


@keys(error=TypeError, says=["arc.random.key(seed)"], eager_error=TypeError, line=False)
def a_seed_taken_for_a_key(run):
    return run(lambda x: x + arc.random.normal(7, 3))(X)


@keys(error=TypeError, says=["arc.vmap"], eager_error=TypeError, line=False)
def many_keys_taken_for_one(run):
    return run(lambda keys: arc.random.normal(keys, 3))(arc.random.split(KEY, 4))


@keys(error=ValueError, says=["does not hold the parameters"], eager_error=ValueError, line=False)
def one_number_for_three_means(run):
    return run(lambda x, key: arc.random.normal(key, (), mean=x))(X, KEY)


@keys(error=TypeError, says=["known when the function is recorded"], line=False)
def a_shape_that_is_traced(run):
    return run(lambda key, n: np.sum(arc.random.uniform(key, n)))(KEY, 3)


@keys(error=TypeError, says=["int64 argument of its own"], eager_error=TypeError, line=False)
def a_key_that_became_floats(run):
    return run(lambda state: arc.random.normal(state[:2], 2))(np.concatenate([KEY, X]))


@keys(error=TypeError, says=["arc.random.key(seed)"], eager_error=TypeError, line=False)
def a_generator_taken_for_a_key(run):
    rng = np.random.default_rng(0)
    return run(lambda x: x + arc.random.normal(rng, 3))(X)

"""Functions that change what they read while they are recorded."""

from __future__ import annotations

import collections
import functools
import itertools
import types

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0])
COUNT = 0
CARRY = ["pass it as an argument and return its new value", "arc.scan", "Sampled"]


class Integrator:
    """The controller of the issue: its integral is state."""

    total = 0.0

    def __init__(self):
        self.i = 0.0

    def __call__(self, x):
        self.i = self.i + 0.1 * x
        return self.i


def twice(f, *args):
    """Call several times, as a loop would: state would move each time."""
    args = args or (X,)
    return [f(*args) for _ in range(3)]


@entry("hidden state", error=TraceError, says=["the attribute Integrator.i", "traced", *CARRY])
def an_integral_in_an_attribute(run):
    return twice(run(Integrator()))


@entry("hidden state", error=TraceError, says=["the attribute c.i", "traced", *CARRY])
def an_integral_in_an_object_that_is_closed_over(run):
    c = Integrator()
    return twice(run(lambda x: c(x) - x))


@entry("hidden state", error=TraceError, says=["the attribute self.n", *CARRY])
def a_counter_in_an_attribute(run):
    class Counter:
        n = 0

        def step(self, x):
            self.n = self.n + 1
            if self.n == 1:
                self.n = self.n + 1
            return self.n * x

    counter = Counter()
    counter.n = 0
    return twice(run(counter.step))


@entry("hidden state", error=TraceError, says=["the class attribute Shared.n", *CARRY])
def a_counter_in_a_class(run):
    class Shared:
        n = 0

        def step(self, x):
            Shared.n += 1
            return Shared.n * x

    return twice(run(Shared().step))


@entry("hidden state", error=TraceError, says=["the global COUNT", *CARRY])
def a_global_counter(run):
    def f(x):
        global COUNT
        COUNT += 1
        return COUNT * x

    try:
        return twice(run(f))
    finally:
        globals()["COUNT"] = 0


@entry("hidden state", error=TraceError, says=["the variable n of an enclosing function", *CARRY])
def a_counter_of_an_enclosing_function(run):
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return n * x

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the variable last", "traced", *CARRY])
def the_last_value_of_an_enclosing_function(run):
    last = 0.0

    def f(x):
        nonlocal last
        rate = x - last
        last = x
        return rate

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the list history", "traced", *CARRY])
def a_history(run):
    history = []

    def f(x):
        history.append(x)
        return x * len(history)

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the list seen", "arc.callback"])
def a_log_of_shapes(run):
    seen = []

    def f(x):
        seen.append(x.shape)
        return 2.0 * x

    twice(run(f))
    return len(seen)


@entry("hidden state", error=TraceError, says=["memory['last']", "traced", *CARRY])
def a_dict_as_a_memory(run):
    memory = {"last": 0.0}

    def f(x):
        rate = x - memory["last"]
        memory["last"] = x
        return rate

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["memory['last']", "traced", *CARRY])
def a_dict_that_gets_a_traced_value(run):
    memory = {}

    def f(x):
        memory["last"] = x
        return x

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["counts['n']", *CARRY])
def a_dict_that_counts_from_nothing(run):
    counts = {}

    def f(x):
        counts["n"] = counts.get("n", 0) + 1
        return counts["n"] * x

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the deque window", "traced", *CARRY])
def a_moving_average(run):
    window = collections.deque([0.0, 0.0], maxlen=2)

    def f(x):
        window.append(x)
        return (window[0] + window[1]) / 2.0

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the array table", *CARRY])
def an_array_written_to(run):
    table = np.zeros(3)

    def f(x):
        table[0] += 1.0
        return table * x

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the attribute s.k", *CARRY])
def a_slot_that_counts(run):
    class Slotted:
        __slots__ = ("k",)

    s = Slotted()
    s.k = 1.0

    def f(x):
        s.k = 2.0 * s.k
        return s.k * x

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the attribute p.k", *CARRY])
def a_namespace_that_counts(run):
    p = types.SimpleNamespace(k=1.0)

    def f(x):
        p.k = p.k + 1.0
        return p.k * x

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["n", *CARRY])
def an_attribute_of_the_function(run):
    def f(x):
        f.n = f.n + 1
        return f.n * x

    f.n = 0
    return twice(run(f))


@entry("hidden state", error=TraceError, says=["a static argument", *CARRY])
def a_mutable_default_that_grows(run):
    def f(x, seen=[]):  # noqa: B006
        seen.append(1.0)
        return x * len(seen)

    return twice(run(f))


@entry("hidden state", error=TraceError, says=["the position of the count ids", *CARRY])
def a_counter_of_itertools(run):
    ids = itertools.count(1)
    return twice(run(lambda x: next(ids) * x))


@entry("hidden state", error=TraceError, says=["the position of the chain values", *CARRY])
def a_chain_of_itertools(run):
    values = itertools.chain([1.0, 2.0], [3.0, 4.0])
    return twice(run(lambda x: next(values) * x))


@entry("hidden state", error=TraceError, says=["the position of the islice values", *CARRY])
def a_slice_of_itertools(run):
    values = itertools.islice([1.0, 2.0, 3.0, 4.0], 3)
    return twice(run(lambda x: next(values) * x))


@entry("hidden state", error=TraceError, says=["the position of the cycle values", *CARRY])
def a_cycle_of_itertools(run):
    values = itertools.cycle([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    return twice(run(lambda x: next(values) * x))


@entry("hidden state", error=TraceError, says=["the position of the accumulate values", *CARRY])
def sums_of_itertools(run):
    values = itertools.accumulate([1.0, 2.0, 3.0, 4.0])
    return twice(run(lambda x: next(values) * x))


@entry("hidden state", error=TraceError, says=["the position of the generator values", *CARRY])
def a_generator(run):
    values = (float(k) for k in range(9))
    return twice(run(lambda x: next(values) * x))


@entry("hidden state", error=TraceError, says=["the attribute self.rate", "traced", *CARRY])
def a_cached_property_of_a_traced_value(run):
    class Model:
        def step(self, x):
            self.rate = 2.0 * x
            return self.rate

    return twice(run(Model().step))


@entry("hidden state", error=TraceError, says=["the list history", "traced"])
def state_inside_a_loop(run):
    history = []

    def body(carry, _):
        history.append(carry)
        return carry * 2.0, None

    def f(x):
        return arc.scan(body, x, length=3)[0] + 0.0 * len(history)

    return twice(run(f))


@entry("hidden state", through=lambda f, backend: arc.vmap(f), error=TraceError, says=CARRY)
def state_in_a_mapped_function(run):
    return twice(run(Integrator()))


@entry("hidden state", through=lambda f, backend: arc.jac(f), error=TraceError, says=CARRY)
def state_in_a_function_that_is_differentiated(run):
    return twice(run(Integrator()))


@entry("hidden state")
def a_cached_property_that_keeps_a_constant(run):
    class Model:
        gain = 2.0

        @functools.cached_property
        def table(self):
            return [self.gain * k for k in range(3)]

        def __call__(self, x):
            return self.table[2] * x

    return twice(run(Model()))


@entry("hidden state")
def a_memo_that_keeps_a_constant(run):
    memo = {}

    def factorial(n):
        if n not in memo:
            memo[n] = 1.0 if n == 0 else n * factorial(n - 1)
        return memo[n]

    return twice(run(lambda x: factorial(5) * x))


@entry("hidden state")
def a_cache_of_constants(run):
    @functools.lru_cache
    def weights(n):
        return [1.0 / (k + 1) for k in range(n)]

    return twice(run(lambda x: weights(3)[2] * x))


@entry("hidden state")
def a_buffer_made_new_each_time_with_the_same_content(run):
    class Model:
        def __init__(self):
            self.order = [0, 1, 2]

        def __call__(self, x):
            self.order = [0, 1, 2]
            return x[self.order[2]] * x

    return twice(run(Model()))


@entry("hidden state")
def an_object_made_inside(run):
    def f(x):
        c = Integrator()
        c(x)
        return c(x)

    return twice(run(f))


@entry("hidden state")
def a_log_through_a_callback(run):
    log = []

    def f(x):
        return arc.callback(lambda v: (log.append(float(v[0])), v)[1], np.zeros(3), x) * 2.0

    return twice(run(f)), log


@entry("hidden state")
def a_table_made_when_it_is_first_needed(run):
    class Model:
        def __init__(self):
            self._table = None

        def __call__(self, x):
            if self._table is None:
                self._table = [2.0, 3.0]
            return self._table[1] * x

    return twice(run(Model()))


@entry("hidden state")
def a_first_call_that_differs(run):
    class Model:
        def __init__(self):
            self.k = None

        def __call__(self, x):
            if self.k is None:
                self.k = 5.0
                return 0.0 * x
            return self.k * x

    return twice(run(Model()))

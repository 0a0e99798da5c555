"""Branches, loops and conversions that depend on values."""

from __future__ import annotations

import math

import numpy as np

from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

X = np.array([0.5, -1.5, 2.0])


@entry("branches", error=TraceError, says=["arc.cond", "np.where"])
def if_on_a_value(run):
    return run(lambda x: x if x > 0 else -x)(np.array(2.0))


@entry("branches", error=TraceError, says=["np.where"])
def python_max_of_two_values(run):
    return run(lambda x: max(x[0], x[1]))(X)


@entry("branches", error=TraceError, says=["np.where"])
def a_value_and_another(run):
    return run(lambda x: x[0] > 0 and x[1] > 0)(X)


@entry("branches", error=TraceError, says=["np.where"])
def a_chain_of_comparisons(run):
    return run(lambda x: 0 < x[0] < 1)(X)


@entry("branches", error=TraceError, says=["np.where"])
def not_of_a_value(run):
    return run(lambda x: not x[0] > 0)(X)


@entry("branches", error=TraceError, says=["arc.while_loop"])
def while_on_a_value(run):
    def halve(x):
        while x > 1.0:
            x = x / 2
        return x

    return run(halve)(np.array(7.0))


@entry("branches", error=TraceError, says=["arc.fori_loop"])
def range_of_a_value(run):
    def total(n):
        s = 0
        for k in range(n):
            s = s + k
        return s

    return run(total)(np.int64(4))


@entry("conversions", error=TraceError, says=["static"])
def float_of_a_value(run):
    return run(lambda x: np.array([float(x)]))(np.array(2.0))


@entry("conversions", error=TraceError, says=["np.sin"])
def math_sin_of_a_value(run):
    return run(lambda x: math.sin(x))(np.array(2.0))


@entry("shapes", error=TraceError, says=["np.where"])
def a_mask_of_values(run):
    return run(lambda x: x[x > 0])(X)


@entry("shapes", error=TraceError, says=["shape"])
def the_unique_values(run):
    return run(lambda x: np.unique(x))(X)


@entry("branches", error=TraceError, says=["np.where"])
def an_assertion_on_a_value(run):
    def checked(x):
        assert x[0] > 0, "x[0] must be positive"
        return x

    return run(checked)(X)

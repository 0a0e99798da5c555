"""What the entries on identity share: something to read, and calls before and after a change."""

from __future__ import annotations

import types

import numpy as np

__all__ = ["Gain", "before_and_after", "fresh"]

X = np.array([0.5, -1.5, 2.0])


def before_and_after(f, change, *args):
    """Call often enough for native call paths, change something, call again, twice."""
    args = args or (X,)
    first = [f(*args) for _ in range(7)][-1]
    change()
    return first, f(*args), [f(*args) for _ in range(7)][-1]


class Gain:
    k = 2.0
    shared = [3.0]  # noqa: RUF012

    def __init__(self, k=None):
        if k is not None:
            self.k = k

    def apply(self, x):
        return self.k * x

    def __call__(self, x):
        return self.apply(x) + self.shared[0]

    @property
    def doubled(self):
        return 2.0 * self.k

    @staticmethod
    def fixed(x):
        return 2.0 * x

    @classmethod
    def made(cls, x):
        return cls.k * x


def fresh():
    """Return a class of its own, which an entry may change."""
    return types.new_class("Gain", (), {}, lambda ns: ns.update(_body()))


def _body():
    skipped = ("__dict__", "__weakref__")
    body = {name: value for name, value in vars(Gain).items() if name not in skipped}
    return {**body, "shared": [3.0]}

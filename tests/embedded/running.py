"""Generated C code called from tests, and numbers compared by their bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree


def assert_same_bits(actual: Any, expected: Any, what: str = "") -> None:
    """Compare arrays by dtype, shape and bits; any nan equals any nan."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, what
    nan = np.isnan(expected) if expected.dtype.kind == "f" else np.zeros(expected.shape, bool)
    assert np.array_equal(nan, np.isnan(actual)) if nan.any() else True, what
    same = np.where(nan, 0, actual).tobytes() == np.where(nan, 0, expected).tobytes()
    assert same, f"{what}: {actual} is not {expected}"


def leaves_of(result: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tree.leaves(result)]


class Steps:
    """Steps of a loaded project from its default values, with the state carried on."""

    def __init__(self, project: Any, flags: tuple[str, ...] = ()) -> None:
        self.project = project
        self.library = project.load(flags)
        self.library.init()

    def run(self) -> list[np.ndarray]:
        """Make a step and return copies of the outputs, in the order of the result's leaves."""
        self.library.step()
        outputs = [view.copy() for view in self.library.outputs.views]
        if self.project.model.carries:
            self.library.carry()
        return outputs

    def set(self, path: str, value: Any) -> None:
        """Write an input."""
        self.library.inputs[path][...] = value

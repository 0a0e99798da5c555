"""The arrays that a backend computes with: NumPy's, or those of a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from archimedes.graph.dtypes import DTYPES


class Arrays(ABC):
    """One kind of arrays. Results are of the same kind as the arguments.

    ``code`` is a dtype code of ``graph.dtypes``. ``remedy`` says how users move arrays, for the
    error that mixing kinds raises.
    """

    #: As messages name them.
    kind: str
    remedy: str = ""

    @abstractmethod
    def owns(self, value: Any) -> bool:
        """Return whether a value is an array of this kind."""

    @abstractmethod
    def describe(self, array: Any) -> tuple[tuple[int, ...], np.dtype]:
        """Return the shape and dtype of an array of this kind."""

    @abstractmethod
    def take(self, value: Any, code: int, shape: tuple[int, ...]) -> Any:
        """Return a value as an array in C order, of this dtype and shape: what kernels are given.

        ``value`` is of this kind, or NumPy's, or a number.
        """

    @abstractmethod
    def empty(self, code: int, shape: tuple[int, ...]) -> Any:
        """Return a new array in C order, of any content: what kernels write to."""

    @abstractmethod
    def to_host(self, array: Any) -> np.ndarray:
        """Return an array of this kind as NumPy's."""

    @abstractmethod
    def move_axis(self, array: Any, source: int, destination: int) -> Any:
        """Return an array with one of its axes at another position."""

    @abstractmethod
    def copy_into(self, value: Any, target: Any) -> None:
        """Write a value, of this kind or NumPy's, into an array of this kind."""

    @abstractmethod
    def is_plain(self, array: Any) -> bool:
        """Return whether a kernel could write to an array as it is: in C order and writable."""

    @abstractmethod
    def may_overlap(self, a: Any, b: Any) -> bool:
        """Return whether two arrays may share memory."""

    def module(self) -> Any:
        """Return the module that has NumPy's functions for these arrays, or None.

        Solves of many instances keep all they need on devices whose arrays have one; kernels of
        such a backend must have ``repeating_batch``. Elsewhere arrays are moved for each call.
        """
        return None

    def own(self, array: Any) -> Any:
        """Return an array of this kind, of whatever package, as the module's, without a copy.

        Other values stay what they are.
        """
        return array

    def glance(self, array: Any) -> np.ndarray:
        """Return an array as NumPy's, to be read once and dropped."""
        return self.to_host(array)

    def fetch(self, array: Any, target: np.ndarray) -> None:
        """Copy an array of this kind into one of NumPy's."""
        target[...] = self.to_host(array)

    def working(self, apart: bool) -> AbstractContextManager[Any]:
        """Return a context for work, in which a lack of memory is reported with what helps.

        ``apart``: the work does not wait for that of other threads.
        """
        return nullcontext()

    def first(self, batch: Any) -> Any:
        """Return the first instance of a batch."""
        return batch[0]

    def result(self, array: Any) -> Any:
        """Return what users get for a result array of one instance."""
        return array


class HostArrays(Arrays):
    """NumPy's."""

    kind = "NumPy"

    def module(self) -> Any:
        """Return NumPy."""
        return np

    def owns(self, value: Any) -> bool:
        """Return whether a value is a NumPy array."""
        return isinstance(value, np.ndarray)

    def describe(self, array: Any) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and dtype."""
        return array.shape, array.dtype

    def take(self, value: Any, code: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return a value as a contiguous array."""
        return np.ascontiguousarray(value, dtype=DTYPES[code]).reshape(shape)

    def empty(self, code: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return a new array."""
        return np.empty(shape, DTYPES[code])

    def to_host(self, array: Any) -> np.ndarray:
        """Return the array itself."""
        return array

    def move_axis(self, array: Any, source: int, destination: int) -> Any:
        """Return a view."""
        return np.moveaxis(array, source, destination)

    def copy_into(self, value: Any, target: Any) -> None:
        """Write a value into an array."""
        target[...] = value

    def is_plain(self, array: Any) -> bool:
        """Return whether a kernel could write to it."""
        flags = array.flags
        return flags.c_contiguous and flags.writeable and flags.aligned

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Return whether two arrays may share memory."""
        return np.may_share_memory(a, b)

    def result(self, array: Any) -> Any:
        """Return arrays without axes as scalars."""
        return array[()]


#: The arrays of all backends that run on this machine's CPUs.
HOST = HostArrays()

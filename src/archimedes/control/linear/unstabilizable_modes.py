"""Why a Riccati equation has no stabilising solution: the mode that stands in the way, by name.

A mode of A that is not stable must be reached by B, and one on the limit of stability must cost
something (Hautus' tests: T. Kailath, "Linear systems", 1980, theorem 2.4-8).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Singular values below this part of the largest are rounding, in balanced units.
RANK = 1e-14


class Words(NamedTuple):
    """What the matrices of an equation are called by who gave them."""

    pair: str
    verb: str
    reached: str
    remedy: str
    cost: str


REGULATOR = Words(
    *("B", "reach", "reached", "add an input that moves it, or leave it out of the model"),
    "Q gives it no weight",
)
ESTIMATOR = Words(
    *("C", "see", "seen", "measure something that shows it, or leave it out of the model"),
    "Q gives it no noise, so that its gain dies away",
)


def explain_failure(
    A: np.ndarray, B: np.ndarray, Q: np.ndarray, discrete: bool, words: Words
) -> np.linalg.LinAlgError:
    """Return the error of an equation without a stabilising solution, which names a mode.

    A, B and Q are in balanced units.
    """
    text = "found no stabilising solution: "
    need = f"{words.pair} must {words.verb} every mode of A that is not stable"
    margin = 1e-9 * (1.0 + np.abs(A).max(initial=0.0))
    poles = np.linalg.eigvals(A)
    beyond = np.abs(poles) - 1.0 if discrete else poles.real
    for pole, off in sorted(zip(poles, beyond), key=lambda item: -item[1]):
        if off >= -margin and _is_missed(A, B, pole):
            missed = f"; it does not {words.verb} the one at {_format_pole(pole)}: {words.remedy}"
            return np.linalg.LinAlgError(text + need + missed)
    for pole, off in zip(poles, beyond):
        if abs(off) <= margin and _is_missed(A.T, Q, np.conj(pole)):
            mode = f"the mode of A at {_format_pole(pole)} is on the limit of stability"
            return np.linalg.LinAlgError(f"{text}{mode}, and {words.cost}: give its states some")
    return np.linalg.LinAlgError(
        f"found no stabilising solution in double precision. {words.pair} does {words.verb} every "
        "mode of A that is not stable; but either a weight is so negative that it rewards a mode, "
        f"or some mode is so weakly {words.reached}, or so near the limit of stability with so "
        "little weight, that rounding decides: change the weights, or leave the mode out"
    )


def _is_missed(A: np.ndarray, B: np.ndarray, pole: complex) -> bool:
    """Return whether [A - pole I, B] has not full rank, columns of B being of the size of A."""
    size = np.abs(B).max(initial=0.0)
    scale = max(np.abs(A).max(initial=0.0), 1.0) / size if size > 0.0 else 1.0
    both = np.concatenate([A - pole * np.eye(len(A)), B * scale], axis=1)
    sizes = np.linalg.svd(both, compute_uv=False)
    return bool(sizes[-1] <= RANK * sizes[0])


def _format_pole(pole: complex) -> str:
    is_real = abs(pole.imag) < 1e-12 * (1.0 + abs(pole))
    return f"{pole.real:.4g}" + ("" if is_real else f" +- {abs(pole.imag):.4g}j")

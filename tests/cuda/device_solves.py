"""The tests of solves on a device once more, on the GPU of this machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from . import test_solves

__all__ = ["check_all"]

#: Tests of what only the emulated device does: its memory is small.
_EMULATED = {"test_too_little_memory_loses_nothing"}


def check_all(say: Callable[[str], None]) -> None:
    """Run them; an error names the test and the rest goes on."""
    import cupy

    module: Any = cupy

    class Tensor:
        """PyTorch's in the place of the emulated one."""

        def __new__(cls, held: np.ndarray) -> Any:
            import torch

            return torch.from_numpy(held).cuda()

    tests = {n: f for n, f in vars(test_solves).items() if n.startswith("test_")}
    wrong = 0
    for name, test in tests.items():
        if name in _EMULATED:
            continue
        with pytest.MonkeyPatch.context() as patch:
            if hasattr(module, "cuda") and hasattr(module.cuda.runtime, "getDeviceProperties"):
                patch.setattr(test_solves, "Tensor", Tensor)
            given = {"cupy": module, "monkeypatch": patch}
            if "launches" in inspect.signature(test).parameters:
                given["launches"] = test_solves.counted_launches(patch)
            try:
                test(**{k: given[k] for k in inspect.signature(test).parameters})
            except Exception as error:
                wrong += 1
                say(f"WRONG {name}: {type(error).__name__}: {str(error)[:500]}")
    say(f"{len(tests) - len(_EMULATED)} tests of solves, {wrong} wrong")

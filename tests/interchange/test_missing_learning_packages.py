"""Without PyTorch, JAX or Gymnasium an error says what to install."""

from __future__ import annotations

import sys

import pytest

import archimedes as arc
from archimedes.interchange import jax_functions, torch_functions
from archimedes.interchange.environments import gymnasium_interface, pendulum


@pytest.mark.parametrize(
    ("module", "made", "call"),
    [
        ("torch", torch_functions._autograd_function, lambda: arc.to_torch(abs)),
        ("jax", jax_functions._primitive, lambda: arc.to_jax(abs)),
        ("gymnasium", gymnasium_interface._classes, lambda: pendulum().to_gymnasium()),
        ("gymnasium", gymnasium_interface._classes, lambda: pendulum().to_gymnasium_vector(2)),
    ],
)
def test_error_names_the_extra(module, made, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    made.cache_clear()
    with pytest.raises(ImportError, match=rf"needs .*pip install .*\[{module}\]"):
        call()
    made.cache_clear()

"""Models on emulated processors give the bits of this machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends import interpreter
from archimedes.embedded import CodegenError, ToolError, codegen, run_in_qemu
from archimedes.embedded.boards import BOARDS

from .models import MODELS, kalman_inputs, kalman_step, lift, lift_inputs
from .toolchain import needs


def on(board: str, *rest: Any) -> Any:
    return pytest.param(board, *rest, marks=needs(*BOARDS[board].programs), id=board)


def same_bits(got: Any, wanted: Any) -> bool:
    """Compare trees leaf by leaf: dtype, shape and bits (which nan does not count)."""
    assert arc.tree.structure(got) == arc.tree.structure(wanted)
    for a, b in zip(arc.tree.leaves(got), arc.tree.leaves(wanted)):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if not np.array_equal(a, b, equal_nan=True) or not np.array_equal(
            np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)]
        ):
            return False
    return True


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("board", [on("cortex-m4"), on("cortex-m7")])
def test_double_has_the_bits_of_the_host(board, model):
    function, make = MODELS[model]
    inputs = make(20)
    run = run_in_qemu(function, inputs, board=board)
    compiled = arc.compile(function, backend="interpreter")
    for got, arguments in zip(run, inputs):
        assert same_bits(got, compiled(*arguments))
    assert len(run) == 20
    assert min(run.instructions) > 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("board", [on("cortex-m4"), on("cortex-m7")])
def test_float_has_the_bits_of_the_host(board, model):
    function, make = MODELS[model]
    inputs = make(20)
    project = codegen(function, inputs[0], float_type=np.float32)
    run = run_in_qemu(project, inputs, board=board)
    exact = arc.compile(function)
    for got, arguments in zip(run, inputs):
        leaves = [np.float32(leaf).ravel() for leaf in arc.tree.leaves(arguments)]
        results = interpreter.run(project.model.graph, list(np.concatenate(leaves)))
        flat = np.concatenate([np.ravel(leaf) for leaf in arc.tree.leaves(got)])
        assert flat.dtype == np.float32
        np.testing.assert_array_equal(flat, np.array(results, dtype=np.float32))
        # Rounding to float32 is all that differs from the model in double.
        wanted = np.concatenate([np.ravel(leaf) for leaf in arc.tree.leaves(exact(*arguments))])
        np.testing.assert_allclose(flat, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("board", [on("cortex-m3"), on("riscv32"), on("riscv64")])
def test_other_processors(board):
    inputs = kalman_inputs(10)
    run = run_in_qemu(kalman_step, inputs, board=board, optimize="-Os")
    compiled = arc.compile(kalman_step)
    assert all(same_bits(got, compiled(*arguments)) for got, arguments in zip(run, inputs))


@needs(*BOARDS["cortex-m4"].programs)
def test_integers_booleans_loops_and_fixed_arguments():
    def count(n, flag, xs, gain, mode):
        def body(carry, x):
            return carry + x * gain if mode == "up" else carry - x * gain, carry > 1.0

        total, above = arc.scan(body, 0.0, xs)
        return n * 3, ~flag, total, above

    inputs = [
        (2**40 + k, np.bool_(k % 2), np.arange(5.0) * k, 0.1, "up") for k in (-3, -2, -1, 0, 1, 2)
    ]
    project = codegen(count, inputs[0], parameters="gain", static_argnames="mode")
    run = run_in_qemu(project, inputs)
    compiled = arc.compile(count, static_argnames="mode")
    assert all(same_bits(got, compiled(*arguments)) for got, arguments in zip(run, inputs))
    for name, changed, message in (
        ("gain", (1, np.bool_(0), np.zeros(5), 0.2, "up"), r"inputs\[0\]: gain is a parameter"),
        ("mode", (1, np.bool_(0), np.zeros(5), 0.1, "down"), "mode is 'down', but .* for 'up'"),
        ("xs", (1, np.bool_(0), np.zeros(4), 0.1, "up"), r"xs has shape \(4,\), not \(5,\)"),
        ("n", ([1], np.bool_(0), np.zeros(5), 0.1, "up"), "another structure"),
        ("all", (1,), "missing a required argument"),
    ):
        with pytest.raises(CodegenError, match=message):
            run_in_qemu(project, [changed])
        assert name


@needs(*BOARDS["cortex-m4"].programs)
def test_hardware_floats_are_quicker_than_software_doubles():
    inputs = lift_inputs(8)
    doubles, floats = (
        run_in_qemu(lift, inputs, float_type=kind).instructions for kind in (float, np.float32)
    )
    assert max(floats) < max(doubles)


def test_misuse_is_explained():
    with pytest.raises(ValueError, match="board='esp32' is not one of"):
        run_in_qemu(lift, lift_inputs(5), board="esp32")
    with pytest.raises(CodegenError, match=r"inputs is a list that holds a float.*\[\(x0,\)"):
        run_in_qemu(lift, [1.0, 2.0])
    with pytest.raises(CodegenError, match="inputs is empty"):
        run_in_qemu(lift, [])
    project = codegen(lift, lift_inputs(5)[0])
    with pytest.raises(CodegenError, match="give float_type to codegen"):
        run_in_qemu(project, lift_inputs(5), float_type=np.float32)


def test_missing_tools_are_named(monkeypatch):
    project = codegen(lift, lift_inputs(5)[0])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"arm-none-eabi-gcc.*apt install .*gcc-arm-none-eabi"):
        run_in_qemu(project, lift_inputs(5))

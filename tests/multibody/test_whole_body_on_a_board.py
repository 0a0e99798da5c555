"""The whole-body controller of a quadruped as C on an emulated Cortex-M7: bits, memory, work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.embedded import codegen, report, run_in_qemu
from archimedes.embedded.boards import BOARDS
from archimedes.optimize import Status
from tests.embedded.toolchain import needs

FILE = Path(__file__).resolve().parents[2] / "examples" / "quadruped.xml"
#: Those of an STM32H743, a common Cortex-M7.
FLASH, RAM = 2 * 2**20, 512 * 2**10


def controller():
    """Return a step of a controller that keeps its balance, and its arguments, some by chance."""
    robot, ground = mb.load(FILE), mb.Ground(friction=0.7)
    feet = [mb.sphere(f"{leg}_foot", 0.02) for leg in ("fl", "fr", "hl", "hr")]
    q = np.array([0, 0, 0.02 + 0.5 * np.cos(0.57), 1, 0, 0, 0] + 4 * [0, 0.57, -1.14])
    turn = {"frequency": 15.0, "weights": [0, 0, 0, 1, 1, 1]}

    def balance(x, com, standing, guess=None):
        tasks = [
            mb.center_of_mass_task(robot, x, com, frequency=15.0),
            mb.frame_task(robot, x, "trunk", mb.pose(np.zeros(3), np.eye(3)), **turn),
            mb.posture_task(robot, x, q, weights=1e-3),
        ]
        settings = {"touching": standing, "max_iter": 20, "guess": guess}
        return mb.whole_body_control(robot, x, tasks, feet, ground, **settings)

    rng, com, inputs = np.random.default_rng(0), mb.center_of_mass(robot, q), []
    for standing in ([1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]):
        near = mb.integrate(robot, q, 0.02 * rng.normal(size=18))
        x = mb.State(near, 0.1 * rng.normal(size=18))
        inputs.append((x, com, np.array(standing, dtype=float)))
    return balance, inputs


def check_bits(got, wanted):
    """Check that results of the board are those of the interpreter, solved."""
    assert got.status == wanted.status == Status.SOLVED
    for a, b in zip(arc.tree.leaves(got), arc.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.long
@needs(*BOARDS["cortex-m7"].programs)
def test_the_bits_of_the_interpreter_within_its_memory():
    """All limits of motors, friction and contacts, in double; feet that stand and feet that swing.

    Seen: 136 kB of flash, 225 kB of stack, and 8 to 16 million instructions for 5 to 11
    iterations.
    """
    balance, inputs = controller()
    project = codegen(balance, inputs[0])
    sizes = report(project, board="cortex-m7")
    run = run_in_qemu(project, inputs, board="cortex-m7")
    host = arc.compile(balance, backend="interpreter")
    for got, arguments in zip(run, inputs, strict=True):
        check_bits(got, host(*arguments))
    for found, (_, _, standing) in zip(run, inputs, strict=True):
        force = found.force
        assert np.all(found.torque[:6] == 0.0) and np.abs(found.torque).max() <= 45.0
        assert np.all(np.linalg.norm(force[:, :2], axis=1) <= 0.7 * force[:, 2] + 1e-6)
        assert np.abs(force[standing == 0.0]).max(initial=0.0) < 1e-6
        assert np.any(standing) == (np.sum(force[:, 2]) > 10.0)
    assert sizes.flash < 200_000 < FLASH
    assert sizes.ram + run.stack_bytes < 300_000 < RAM
    assert run.stack_bytes == pytest.approx(sizes.stack, abs=256)
    assert max(run.instructions) < 25_000_000


@pytest.mark.long
@needs(*BOARDS["cortex-m7"].programs)
def test_the_last_result_saves_work():
    """As in a loop: the state has moved on by 2 ms. Seen: 10 iterations in place of 12."""
    balance, ((x, com, standing), *_) = controller()
    host = arc.compile(balance, backend="interpreter")
    before = host(x, com, standing)
    robot = mb.load(FILE)
    moved = mb.integrate(robot, x.q, 2e-3 * x.v)
    now = mb.State(moved, x.v + 2e-3 * before.acceleration)
    cold = run_in_qemu(balance, [(now, com, standing)], board="cortex-m7")
    warm = run_in_qemu(balance, [(now, com, standing, before)], board="cortex-m7")
    check_bits(warm[0], host(now, com, standing, before))
    np.testing.assert_allclose(warm[0].torque, cold[0].torque, atol=1e-4)
    assert warm.instructions[0] < 0.85 * cold.instructions[0]

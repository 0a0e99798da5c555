"""A neural network drives a quadruped: made with NumPy, written as ONNX, run in C on a board.

The policy imitates the controller of the demonstration `quadruped` (springs and dampers at the
joints). It keeps the robot on its feet while it is pushed; its commands have proven limits, and an
emulated Cortex-M7 computes the same bits.
"""

import importlib.util
import shutil
import tempfile
from pathlib import Path

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos.quadruped import FEET, HEIGHT, STEP, ground, robot, standing
from archimedes.embedded import run_in_qemu

HIDDEN, EVERY, LIMIT = 32, 5, 40.0  # units; steps per call of the policy; N m
ANGLE, RATE = 0.3, 6.0  # rad and rad/s: deviations at the joints that the policy is made for
stand, hold = standing()
contacts = [mb.sphere(foot, 0.0) for foot in FEET]


def expert(observation):
    """Return torques of springs and dampers, for deviations of joints and their rates."""
    return -80.0 * observation[:, :12] - 3.0 * observation[:, 12:]


def imitate(samples=8000):
    """Return weights of a layer of random features, and of the layer that fits the expert best."""
    rng = np.random.default_rng(0)
    scale = np.r_[np.full(12, ANGLE), np.full(12, RATE)]
    wide = rng.uniform(-1.0, 1.0, size=(samples // 2, 24))
    seen = scale * np.concatenate([wide, 0.2 * rng.normal(size=(samples // 2, 24))])
    wanted = np.clip(expert(seen), -LIMIT, LIMIT)
    first = np.linalg.qr(rng.normal(size=(HIDDEN, HIDDEN)))[0][:, :24] / scale
    hidden = np.tanh(seen @ first.T)
    second = np.linalg.solve(hidden.T @ hidden + 1e-4 * np.eye(HIDDEN), hidden.T @ wanted).T
    error = np.sqrt(np.mean((hidden @ second.T - wanted) ** 2))
    print(f"the policy imitates torques of {np.std(wanted):.1f} N m to {error:.1f} N m")
    return first, second


def write_policy(path):
    """Write the network: two dense layers, and limits of the torques."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    first, second = imitate()
    weights = {"W": first, "V": second, "low": np.array(-LIMIT), "high": np.array(LIMIT)}
    nodes = [
        helper.make_node("Gemm", ["observation", "W"], ["z"], transB=1),
        helper.make_node("Tanh", ["z"], ["h"]),
        helper.make_node("Gemm", ["h", "V"], ["t"], transB=1),
        helper.make_node("Clip", ["t", "low", "high"], ["torque"]),
    ]
    graph = helper.make_graph(
        nodes,
        "stance",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["N", 24])],
        [helper.make_tensor_value_info("torque", TensorProto.FLOAT, ["N", 12])],
        [numpy_helper.from_array(np.float32(w), name) for name, w in weights.items()],
    )
    versions = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)


def simulate(policy, pushes):
    """Return heights, observations and torques while the trunk is pushed aside."""

    def one(carry, given):
        x, torque = carry
        push, k = given
        observation = np.concatenate([x.q[7:] - stand[7:], x.v[6:]]).astype(np.float32)
        torque = np.where(k % EVERY == 0, policy(observation[None])[0], torque)
        R = mb.frame_pose(robot, x.q, "trunk").r.as_matrix()
        force = np.concatenate([R.T @ np.stack([0.0 * push, push, 0.0 * push]), np.zeros(3)])
        u = np.concatenate([np.zeros(6), hold + torque])
        x = mb.contact_step(robot, x, STEP, contacts, ground, u, {"trunk": force})
        return (x, torque), (x, observation, torque)

    start = (mb.rest_state(robot, stand), np.zeros(12, np.float32))
    run = arc.compile(lambda p: arc.scan(one, start, (p, np.arange(len(p))))[1])
    x, observations, torques = run(pushes)
    return x, observations[::EVERY], torques[::EVERY]


def main():
    """Make the policy, let it drive the robot, and replay what it saw on the board."""
    with tempfile.TemporaryDirectory() as folder:
        write_policy(Path(folder) / "stance.onnx")
        policy = arc.from_onnx(Path(folder) / "stance.onnx")
    print(policy)
    times = STEP * np.arange(1000)
    pushes = np.where((times > 0.2) & (times < 0.3), 60.0, 0.0)
    x, observations, torques = simulate(policy, pushes)
    aside, height = 1e3 * np.abs(x.q[:, 1]).max(), x.q[-1, 2]
    print(f"pushed aside by {aside:.0f} mm, it stands at {height:.3f} m after {times[-1]:.1f} s")
    assert abs(height - HEIGHT) < 0.01 and np.abs(x.v[-1]).max() < 0.1

    box = np.abs(observations).max(axis=0)[None]
    limits = policy.bounds({"observation": (-box, box)}, boxes=1)
    print(f"torques are proven to stay within {limits.upper.max():.1f} N m of those that hold it")
    assert limits.ok and np.abs(torques).max() <= limits.upper.max() < LIMIT

    if shutil.which("qemu-system-arm") and shutil.which("arm-none-eabi-gcc"):
        on_board = run_in_qemu(policy, [(row[None],) for row in observations], board="cortex-m7")
        print(on_board)
        assert all(a[0].tobytes() == b.tobytes() for a, b in zip(on_board, torques))


if importlib.util.find_spec("onnx"):
    main()
else:
    print('this example needs the package onnx: pip install "archimedes-dynamics[onnx]"')
assert EVERY * STEP == 0.01, "the policy is called at 100 Hz"

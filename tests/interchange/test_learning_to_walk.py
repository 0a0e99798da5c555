"""What example 25 learns with: its policy walks here, in MuJoCo and in C, and learning learns.

Advantages are compared with sums over the rest of an episode, normalization with NumPy's moments.
"""

from __future__ import annotations

import importlib
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.cuda.cuda_kernel import CompiledKernels

from ..cuda import fake_cupy
from ..optional_packages import import_or_skip

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def example():
    """The names of the example, which has not learnt or walked."""
    path = sys.path.copy()
    yield runpy.run_path(str(EXAMPLES / "25_quadruped_learns_to_walk.py"))
    sys.path[:] = path


@pytest.fixture(scope="module")
def walking(example):
    return importlib.import_module("learning.walking")


@pytest.fixture(scope="module")
def ppo(example):
    torch = import_or_skip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield importlib.import_module("learning.ppo")
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def policy():
    """The policy that is stored."""
    with np.load(EXAMPLES / "learning" / "walking_policy.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def control(walking, policy):
    return walking.controller(policy)


# ---- the policy ----------------------------------------------------------------------------------


def path_of(speed, turn, seconds):
    """Where a robot comes to that does what it is told: on a circle, or straight on."""
    angle = turn * seconds
    if turn == 0.0:
        return np.array([speed * seconds, 0.0]), angle
    return speed / turn * np.array([np.sin(angle), 1.0 - np.cos(angle)]), angle


def check_walk(q, speed, turn, seconds):
    """Check that it stayed upright, and went where it was told to."""
    up = 1.0 - 2.0 * (q[:, 4] ** 2 + q[:, 5] ** 2)
    assert np.isfinite(q).all() and np.degrees(np.arccos(up.min())) < 15.0
    place, angle = path_of(speed, turn, seconds)
    heading = np.unwrap(2.0 * np.arctan2(q[:, 6], q[:, 3]))[-1]
    assert abs(heading - angle) < 0.35 and np.hypot(*(q[-1, :2] - place)) < 1.0


@pytest.mark.parametrize("friction", [0.45, 0.7, 0.95])
def test_it_walks_for_ten_seconds_here_and_in_mujoco(example, walking, control, friction):
    import_or_skip("mujoco")
    for speed, turn in ((0.6, 0.0), (-0.2, 0.0), (0.4, 0.5), (0.4, -0.5)):
        command = np.array([speed, turn])
        start, route = walking.standing(command, np.float64(friction)), np.tile(command, (500, 1))
        ours = example["walk"](control, start, route)
        theirs = example["walk_in_mujoco"](control, start, route)
        check_walk(ours, speed, turn, 10.0)
        check_walk(theirs, speed, turn, 10.0)


def test_it_follows_what_episodes_draw(walking, policy):
    """Commands, frictions and starts as in learning: at most a hundredth of 400 robots falls."""

    def episode(key):
        def one(carry, _):
            state, seen = carry
            state, result = walking.task.step(state, walking.act(policy, seen))
            seen = result.observation
            off = np.stack([seen[0] - seen[11], seen[5] - seen[12]])
            return (state, seen), (result.terminated, np.abs(off))

        return arc.scan(one, walking.task.reset(key), None, 500)[1]

    fell, off = arc.vmap(episode)(arc.random.split(arc.random.key(1), 400))
    assert fell.any(axis=1).sum() <= 4
    assert np.all(np.median(off[:, 100:].mean(axis=1), axis=0) < 0.05)  # m/s, rad/s


def test_it_falls_without_the_policy(example, walking):
    """The test of a fall is one: legs that do nothing but bend do not carry it."""
    command = np.array([0.5, 0.0])
    start, route = walking.standing(command), np.tile(command, (100, 1))
    q = example["walk"](lambda state: walking.STANDING + 1.0, start, route)
    with pytest.raises(AssertionError):
        check_walk(q, *command, 2.0)


def test_c_computes_the_bits_of_the_policy(walking, control):
    if not (shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("no C compiler")
    project = arc.codegen(control, (walking.standing(np.array([0.5, 0.0])),), name="trot")
    assert "same bits" in str(project.verify())


# ---- the environment -----------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [0.0, 0.2])
def test_the_reward_of_simple_motions(walking, phase):
    """A robot that stands, and one whose trunk moves as it is told to; closed forms."""
    state = {**walking.standing(np.array([0.5, 0.2])), "phase": np.float64(phase)}
    v = np.zeros(18)
    v[0], v[5] = 0.5, 0.2
    moving = {**state, "x": state["x"].replace(v=v)}
    # Two feet should be in the air at a phase of 0.2: (0.7 - 0.55) / 0.45, a third of their swing.
    high = 0.08 * np.sin(np.pi / 3.0) ** 2 if phase else 0.0
    feet = 0.5 * np.exp(-300.0 * 2.0 * high**2)
    stays = np.exp(-10.0 * 0.5**2) + np.exp(-4.0 * 0.2**2)
    for after, want in ((state, stays + feet), (moving, 2.0 + feet)):
        np.testing.assert_allclose(walking.reward(state, walking.STANDING, after), want, atol=1e-12)


# ---- learning ------------------------------------------------------------------------------------


def test_advantages_are_sums_over_the_rest_of_the_episode(ppo):
    """Written out as a sum of differences, which ends where an episode does."""
    torch = importlib.import_module("torch")
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 7, 5))
    last, ends = rng.normal(size=5), rng.uniform(size=(2, 7, 5)) < 0.25
    fell, cut = ends[0], ends[1] & ~ends[0]
    following = np.concatenate([value[1:], last[None]])
    want = np.zeros((7, 5))
    for n in range(5):
        for k in range(7):
            weight = 1.0
            for j in range(k, 7):
                after = 0.0 if fell[j, n] else value[j, n] if cut[j, n] else following[j, n]
                want[k, n] += weight * (reward[j, n] + 0.99 * after - value[j, n])
                if fell[j, n] or cut[j, n]:
                    break
                weight *= 0.99 * 0.95
    numbers = (torch.as_tensor(x.astype(float)) for x in (reward, value, last, fell, cut))
    np.testing.assert_allclose(ppo.advantages(*numbers).numpy(), want, rtol=1e-12, atol=1e-12)


def test_observations_are_normalized_by_mean_and_variance_of_all(ppo):
    torch = importlib.import_module("torch")
    policy = ppo.Policy(3, 2, (4,)).double()
    policy.count.zero_()
    seen = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -2.0]
    for rows in np.split(seen, [7, 20]):
        policy.update_scale(torch.as_tensor(rows))
    np.testing.assert_allclose(policy.mean.numpy(), seen.mean(0), rtol=1e-12)
    np.testing.assert_allclose(policy.variance.numpy(), seen.var(0), rtol=1e-12)


def test_numpy_computes_the_network_of_pytorch(ppo, walking):
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    policy = ppo.Policy(41, 12, (16, 8))
    seen = np.random.default_rng(0).normal(size=(5, 41)).astype(np.float32)
    policy.update_scale(torch.as_tensor(3.0 * seen + 1.0))
    want = policy.actor(policy.normalize(torch.as_tensor(seen))).detach().numpy()
    arrays = policy.arrays()
    got = [walking.act(arrays, row) for row in seen]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_the_reward_rises(ppo, walking):
    robots = ppo.Robots(walking.task, 256)
    _, rewards = ppo.train(robots, rounds=60)
    assert np.mean(rewards[-5:]) > np.mean(rewards[:5]) + 0.3


def test_a_round_on_an_emulated_gpu_has_the_bits_of_one_on_the_cpu(ppo, walking, monkeypatch):
    """One kernel is compiled, and states stay on the device."""
    torch = importlib.import_module("torch")
    monkeypatch.setattr(ppo, "STEPS", 3)
    want = ppo.Robots(walking.task, 6)
    weights = ppo.train(want, rounds=1)[0].arrays()
    compiled = []
    monkeypatch.setattr(CompiledKernels, "__init__", counting(CompiledKernels.__init__, compiled))
    with fake_cupy.installed() as cupy:
        asarray = cupy.asarray
        monkeypatch.setattr(cupy, "asarray", lambda x: asarray(x if at_home(x) else np.asarray(x)))
        monkeypatch.setattr(ppo, "as_tensor", lambda x, device: torch.as_tensor(x.get()))
        monkeypatch.setattr(torch, "zeros", without_device(torch.zeros))
        robots = ppo.Robots(walking.task, 6, "cuda")
        robots.device = "cpu"  # of the tensors, which are emulated by nobody
        emulated = ppo.train(robots, rounds=1)[0].arrays()
    assert len(compiled) == 1, "acting, rewards and resets are one kernel"
    for x, y in zip(arc.tree.leaves(robots.states), arc.tree.leaves(want.states)):
        assert isinstance(x, cupy.ndarray) and x.get().tobytes() == y.tobytes()
    for name, array in weights.items():
        assert emulated[name].tobytes() == array.tobytes(), name


def at_home(x):
    """Return whether an array is one of the device."""
    return isinstance(x, fake_cupy.ndarray)


def counting(function, calls):
    """Return a function that also lists its calls."""
    return lambda *args: calls.append(args) or function(*args)


def without_device(function):
    """Return a function of PyTorch that makes tensors of the CPU."""
    return lambda *args, device=None, **others: function(*args, **others)

"""Environments: against Gymnasium's classics, its checks and its own vector environments."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import archimedes as arc
from archimedes.interchange import environments as envs

from ..cuda import fake_cupy
from ..optional_packages import import_or_skip

gymnasium = import_or_skip("gymnasium")


@cache
def ready(name):
    """Ready environments, made once."""
    return getattr(envs, name)()


@cache
def leaving() -> arc.Environment:
    """A point that is pushed until it leaves, or blows up; its state is a dict."""

    def dynamics(x, u):
        n = x["n"] + 1
        pos = x["pos"] + u[0] + np.where((x["kind"] > 0.9) & (n > 3), np.nan, 0.0)
        return {"pos": pos, "kind": x["kind"], "n": n}

    def initial(key):
        pos, kind = arc.random.uniform(key, (2,))
        return {"pos": pos, "kind": kind, "n": np.int64(0)}

    return arc.Environment(
        dynamics,
        initial,
        action=(np.full(1, -0.5), np.full(1, 0.5)),
        reward=lambda x, u, x_next: x_next["pos"] - x["pos"],
        terminated=lambda x: np.abs(x["pos"]) > 1.5,
        observe=lambda x: (x["pos"], x["kind"]),
        max_steps=7,
        name="Leaving",
    )


ALL = ("cart_pole", "pendulum", "hover", "pointing", "altitude_hold")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.long_cases("hover", "pointing", "altitude_hold")
def test_check_env_says_nothing(name):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(ready(name).to_gymnasium())


def follow(env, other, set_state, actions, count):
    """Give both the same actions from one state, until an episode ends."""
    env.reset(seed=4)
    other.reset(seed=0)
    set_state(other.unwrapped, np.asarray(env._state.x))
    for k in range(count):
        ours, theirs = env.step(actions[k][0]), other.step(actions[k][1])
        state = np.asarray(other.unwrapped.state, dtype=np.float64)
        np.testing.assert_allclose(np.asarray(env._state.x), state, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=2e-7, atol=2e-7)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12, atol=1e-13)
        assert ours[2:4] == theirs[2:4]
        if ours[2] or ours[3]:
            break
    return k


def set_state(env, x):
    env.state = x.copy()


@pytest.mark.filterwarnings("ignore:.*pkg_resources.*")
def test_same_trajectory_as_cart_pole_of_gymnasium():
    rng = np.random.default_rng(1)
    actions = [(int(a), int(a)) for a in rng.integers(0, 2, 500)]
    other = gymnasium.make("CartPole-v1")
    last = follow(ready("cart_pole").to_gymnasium(), other, set_state, actions, 500)
    assert 5 < last < 100, "the pole has fallen"


def test_same_trajectory_as_pendulum_of_gymnasium():
    rng = np.random.default_rng(2)
    draws = rng.uniform(-1.0, 1.0, (200, 1)).astype(np.float32)
    actions = [(a, 2.0 * a.astype(np.float64)) for a in draws]
    last = follow(
        ready("pendulum").to_gymnasium(), gymnasium.make("Pendulum-v1"), set_state, actions, 200
    )
    assert last == 199, "an episode of 200 steps"


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_vector_is_what_gymnasium_makes_of_single_ones(mode):
    """Observations, rewards, ends and infos, to the last bit, through many resets."""
    environment, n = leaving(), 12
    vector = environment.to_gymnasium_vector(n, autoreset=mode)
    autoreset = vector.metadata["autoreset_mode"]
    one = environment.to_gymnasium()
    single = gymnasium.vector.SyncVectorEnv(
        [lambda: environment.to_gymnasium()] * n, autoreset_mode=autoreset
    )
    assert vector.single_action_space == one.action_space == single.single_action_space
    seeds = list(range(20, 20 + n))
    a, b = vector.reset(seed=seeds), single.reset(seed=seeds)
    assert a[0].tobytes() == b[0].tobytes() and a[0].dtype == np.float32
    rng = np.random.default_rng(3)
    seen = {"terminated": 0, "truncated": 0, "nonfinite": 0}
    for _ in range(60):
        action = rng.uniform(-1.0, 1.0, (n, 1)).astype(np.float32)
        got, want = vector.step(action), single.step(action)
        for x, y in zip(got[:4], want[:4]):
            assert x.dtype == y.dtype and x.tobytes() == y.tobytes()
        seen["terminated"] += got[2].sum()
        seen["truncated"] += got[3].sum()
        info, other = got[4], want[4]
        assert np.isfinite(got[0]).all() and np.isfinite(got[1]).all()
        if mode == "same_step":
            assert ("final_obs" in info) == ("final_obs" in other)
            if "final_obs" in info:
                assert np.array_equal(info["_final_obs"], other["_final_obs"])
                for x, y in zip(info["final_obs"], other["final_obs"]):
                    assert (x is None and y is None) or x.tobytes() == y.tobytes()
            info, other = info.get("final_info", {}), other.get("final_info", {})
        assert ("nonfinite" in info) == ("nonfinite" in other)
        if "nonfinite" in info:
            assert np.array_equal(info["nonfinite"], other["nonfinite"])
            assert np.array_equal(info["_nonfinite"], other["_nonfinite"])
            assert got[2][info["nonfinite"]].all(), "it ends the episode"
            seen["nonfinite"] += info["nonfinite"].sum()
    assert all(count > 3 for count in seen.values()), seen


def test_seeds_are_reproducible_and_independent():
    environment = leaving()
    few, many = (environment.to_gymnasium_vector(n) for n in (3, 50))
    first = few.reset(seed=7)[0]
    assert np.array_equal(first, many.reset(seed=7)[0][:3]), "whatever their number"
    assert np.array_equal(first[0], environment.to_gymnasium().reset(seed=7)[0])
    following = few.reset()[0]
    assert not np.isin(following, first).any()
    assert not np.isin(few.reset()[0], following).any()
    few.reset(seed=7)
    assert np.array_equal(few.reset()[0], following), "what follows a seed belongs to it"
    few.reset(seed=8)
    assert not np.isin(few.reset()[0], following).any()
    drawn = np.concatenate([many.reset(seed=seed)[0][:, 0] for seed in (0, 1, 2, 3)])
    assert len(np.unique(drawn)) == 200, "neighbouring seeds share nothing"
    # Uniform between 0 and 1: mean and standard deviation within four standard errors.
    assert abs(drawn.mean() - 0.5) < 4.0 / np.sqrt(12.0 * 200.0)
    assert abs(drawn.std() - 12.0**-0.5) < 0.05
    fresh = environment.to_gymnasium_vector(3)
    assert not np.array_equal(fresh.reset()[0], environment.to_gymnasium_vector(3).reset()[0])
    with pytest.raises(ValueError, match="one for each of the 3 instances"):
        few.reset(seed=[1, 2])


def test_gymnasium_wrappers_take_them():
    vector = ready("cart_pole").to_gymnasium_vector(4)
    vector = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)
    vector.reset(seed=0)
    lengths = []
    for _ in range(40):
        infos = vector.step(np.ones(4, dtype=np.int64))[4]
        if "episode" in infos:
            lengths += infos["episode"]["l"][infos["_episode"]].tolist()
    assert len(lengths) >= 12 and all(7 <= n <= 12 for n in lengths)
    made = gymnasium.make(ready("cart_pole").to_gymnasium().spec)
    assert made.reset(seed=1)[0].shape == (4,)


@arc.struct
class Command:
    thrust: float = arc.field(limits=(0.0, 4.0))
    angles: np.ndarray = arc.field(limits=(-0.2, 0.4), default_factory=lambda: np.zeros(2))


@arc.struct
class Seen:
    place: np.ndarray = arc.field(limits=(-2.0, 3.0))
    clock: float = arc.field(limits=(0.0, 9.0))


def test_limits_of_fields_make_the_spaces():
    taken = []

    def dynamics(x, u):
        taken.append(u)
        return x + u.thrust

    environment = arc.Environment(
        dynamics,
        lambda key: np.zeros(2),
        action=Command(1.0),
        reward=lambda x, u, x_next: u.angles[1],
        observe=lambda x: Seen(x, x[0]),
        dtype=np.float64,
    )
    state, seen = environment.reset(arc.random.key(0))
    assert seen.dtype == np.float64 and seen.tolist() == [0.0, 0.0, 0.0]
    state, result = environment.step(state, np.array([-1.0, 1.0, 7.0]))
    assert type(taken[-1]) is Command and taken[-1].thrust == 0.0
    np.testing.assert_allclose(taken[-1].angles, [0.4, 0.4], rtol=1e-15)
    state, result = environment.step(state, np.array([1.0, -1.0, 0.0]))
    np.testing.assert_allclose(taken[-1].angles, [-0.2, 0.1], rtol=1e-15, atol=1e-16)
    assert result.observation.tolist() == [3.0, 3.0, 4.0], "clipped to the limits"
    env = environment.to_gymnasium()
    assert env.observation_space.low.tolist() == [-2.0, -2.0, 0.0]
    assert env.action_space.shape == (3,) and env.action_space.high.tolist() == [1.0] * 3


def row(batch, k):
    return arc.tree.map(lambda a: a[k], batch)


def test_steps_are_functions_of_arrays():
    """Without Gymnasium: a batch as one kernel, and the gradient of a reward by the action."""
    environment = ready("pendulum")
    states, _ = arc.vmap(environment.reset)(arc.random.split(arc.random.key(1), 5))
    after, result = arc.vmap(environment.step)(states, np.full((5, 1), 0.25))
    for k in range(5):
        state, one = environment.step(row(states, k), np.array([0.25]))
        assert np.array_equal(result.observation[k], one.observation)
        assert result.reward[k] == one.reward and np.array_equal(after.x[k], state.x)
    reward = lambda a: environment.step(row(states, 0), a)[1].reward
    slope = arc.grad(reward)(np.array([0.25]))
    np.testing.assert_allclose(slope, -0.001 * 2.0 * 0.5 * 2.0, rtol=1e-12)


def test_mistakes():
    def make(**options):
        given = {
            "dynamics": lambda x, u: x,
            "initial": lambda key: np.zeros(2),
            "action": (-1.0, 1.0),
            "reward": lambda x, u, x_next: 0.0,
            **options,
        }
        return arc.Environment(**given)

    with pytest.raises(TypeError, match=r"initial\(key\) and dynamics\(x, u\) .*\(2,\).*\(3,\)"):
        make(dynamics=lambda x, u: np.zeros(3))
    with pytest.raises(TypeError, match=r"reward\(x, u, x_next\) must return one number.*\(2,\)"):
        make(reward=lambda x, u, x_next: x)
    with pytest.raises(TypeError, match=r"terminated\(x\) must return one number"):
        make(terminated=lambda x: x > 0.0)
    with pytest.raises(ValueError, match=r"limits of action are -1 and inf for number 0"):
        make(action=(-1.0, np.inf))
    with pytest.raises(TypeError, match=r"no limits for action\[0\].*field\(limits=...\)"):
        make(action=np.zeros(2))
    with pytest.raises(ValueError, match="a number of choices"):
        make(action=1)
    with pytest.raises(TypeError, match="Environment: reward"):
        make(reward=0.0)
    with pytest.raises(ValueError, match="max_steps"):
        make(max_steps=0)
    with pytest.raises(ValueError, match="observation_limits"):
        make(observation_limits=(1.0, -1.0))
    with pytest.raises(ValueError, match="autoreset"):
        make().to_gymnasium_vector(2, autoreset="never")
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step\(\)"):
        make().to_gymnasium().step(np.zeros(1))


@pytest.mark.parametrize("vector", [False, True])
def test_actions_of_another_shape_or_beyond_the_choices(vector):
    def make(action):
        task = arc.Environment(
            lambda x, u: x + u, lambda key: np.zeros(2), action, lambda x, u, x_next: 0.0
        )
        env = task.to_gymnasium_vector(3) if vector else task.to_gymnasium()
        env.reset(seed=0)
        return env

    lead = (3,) if vector else ()
    for action, shape in (((-np.ones(2), np.ones(2)), (3, 3)), ((-1.0, 1.0), (2,)), (4, (5,))):
        with pytest.raises(ValueError, match="step needs an action of shape"):
            make(action).step(np.zeros(shape, int))
    for action in (4, -1):
        with pytest.raises(ValueError, match=f"actions are 0 to 3, got {action}"):
            make(4).step(np.full(lead, action))


def test_a_seed_that_is_no_int():
    with pytest.raises(ValueError, match=r"seed must be one int, .* got np.int64\(1\)"):
        envs.cart_pole().to_gymnasium_vector(3).reset(seed=np.int64(1))


@pytest.mark.long
def test_a_gpu_gives_the_same_bits():
    """On an emulated device: states, actions and results stay there, resets included."""
    with fake_cupy.installed() as cupy:
        environment = leaving()
        states, _ = arc.vmap(environment.reset)(arc.random.split(arc.random.key(2), 6))
        step = arc.vmap(environment.compiled_step("same_step"))
        there, ends = arc.tree.map(cupy.asarray, states), 0
        for action in np.random.default_rng(0).uniform(-1.0, 1.0, (12, 6, 1)):
            states, want = step(states, action)
            there, got = step(there, cupy.asarray(action))
            for x, y in zip(arc.tree.leaves((there, got)), arc.tree.leaves((states, want))):
                assert isinstance(x, cupy.ndarray) and x.get().tobytes() == y.tobytes()
            ends += np.sum(want.terminated | want.truncated)
        assert ends > 5


@pytest.mark.long
def test_a_quadruped_walks_or_falls():
    from archimedes.demos.quadruped import FEET, robot, standing

    walk = envs.walk(robot, FEET, standing()[0], steps=5)
    vector = walk.to_gymnasium_vector(4)
    first = vector.reset(seed=0)[0]
    assert first.shape == (4, 34) and np.allclose(first[:, 3], 1.0)
    rest = np.zeros((4, 12), np.float32)
    for _ in range(40):
        seen, _, terminated, *_ = vector.step(rest)
    assert not terminated.any() and np.all(seen[:, 0] > 0.35), "it stands on its feet"
    limp = np.ones((4, 12), np.float32)
    ends = sum(vector.step(limp)[2].sum() for _ in range(200))
    assert ends >= 4, "it falls when it kneels on one side, and begins anew"

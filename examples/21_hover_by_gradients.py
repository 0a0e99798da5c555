"""A drone learns to hover in seconds: a policy improved by gradients through its simulation.

The environment is NumPy, dynamics, reward and all, and so is the policy, a small network. The
gradient of the reward of whole flights goes through the physics, which takes far fewer flights than
learning from rewards alone (J. Xu et al., Accelerated Policy Learning with Parallel Differentiable
Simulation, ICLR 2022).
"""

import time

import numpy as np

import archimedes as arc
from archimedes.interchange.environments import hover

FLIGHTS, STEPS, HIDDEN, ROUNDS = 32, 60, 16, 120

# 1. The task: hover, from up to 1 m away, tilted and moving. Actions are speeds of the rotors.
task = hover(dt=0.04)


# 2. The policy: what is seen, in numbers around one, through a layer of 16.
def act(policy, seen):
    """Return an action between -1 and 1 for each rotor."""
    typical = np.repeat([2.0, 3.0, 1.0, 4.0], 3)  # m, m/s, rad, rad/s
    hidden = np.tanh((seen / typical) @ policy["first"] + policy["offset"])
    return np.tanh(hidden @ policy["second"])


def fly(policy, key, steps):
    """Return the rewards of one flight, and how far the drone is from its goal."""

    def one(carry, _):
        state, seen = carry
        state, result = task.step(state, act(policy, seen))
        seen = result.observation
        return (state, seen), (result.reward, np.sqrt(np.sum(seen[:3] ** 2)))

    return arc.scan(one, task.reset(key), None, steps)[1]


def worth(policy, key):
    """Return the mean reward of one flight."""
    return np.mean(fly(policy, key, STEPS)[0])


# 3. Many flights at once, each with its gradient: one kernel.
learn = arc.vmap(lambda p, key: (worth(p, key), arc.grad(worth)(p, key)), in_axes=(None, 0))
judge = arc.vmap(lambda p, key: fly(p, key, 250)[1], in_axes=(None, 0))

rng = np.random.default_rng(0)
policy = {
    "first": 0.3 * rng.normal(size=(12, HIDDEN)),
    "offset": np.zeros(HIDDEN),
    "second": 0.1 * rng.normal(size=(HIDDEN, 4)),
}
moments = (arc.tree.map(np.zeros_like, policy),) * 2


@arc.compile
def improve(policy, moments, slope, k):
    """Go uphill by Adam (D. Kingma and J. Ba, ICLR 2015); long gradients are cut to length one."""
    length = np.sqrt(sum(np.sum(g**2) for g in arc.tree.leaves(slope)))
    slope = arc.tree.map(lambda g: g / np.maximum(1.0, length), slope)
    mean = arc.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
    spread = arc.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, moments[1], slope)
    rate = 0.03 * np.sqrt(1.0 - 0.99**k) / (1.0 - 0.9**k)
    go = arc.tree.map(lambda m, s: rate * m / (np.sqrt(s) + 1e-8), mean, spread)
    return arc.tree.map(np.add, policy, go), (mean, spread)


rewards, begin = [], time.perf_counter()
for k in range(ROUNDS):
    found, slopes = learn(policy, arc.random.split(arc.random.key(k), FLIGHTS))
    slope = arc.tree.map(lambda g: g.mean(0), slopes)
    policy, moments = improve(policy, moments, slope, k + 1.0)
    if k == 0:
        compiled = time.perf_counter() - begin
    rewards.append(found.mean())
took = time.perf_counter() - begin
print(f"{ROUNDS} rounds of {FLIGHTS} flights: {compiled:.1f} s to compile, {took - compiled:.1f} s")
print("mean reward, round by round:", " ".join(f"{r:.2f}" for r in rewards[::15]))

# 4. 500 flights that it has not seen, four times as long: how far from the goal at the end.
away = judge(policy, arc.random.split(arc.random.key(10_000), 500))[:, -25:].mean(axis=1)
print(f"500 new flights of 10 s: {np.median(away):.2f} m from the goal, worst {away.max():.2f} m")
assert rewards[-1] > 0.8 and away.max() < 0.5, "it hovers"

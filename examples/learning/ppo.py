"""Proximal policy optimization in PyTorch, for environments that a kernel steps by the thousand.

The algorithm is that of J. Schulman et al., Proximal Policy Optimization Algorithms, 2017, with
generalized advantages (J. Schulman et al., ICLR 2016). Sizes, and the learning rate that follows
the change of the policy, are those of N. Rudin et al., Learning to Walk in Minutes Using Massively
Parallel Deep Reinforcement Learning, CoRL 2021. On a GPU observations, rewards and resets stay
there: the kernel's arrays, CuPy's, and the tensors are the same memory.
"""

import time
from itertools import pairwise

import numpy as np
import torch
from torch import nn

import archimedes as arc

STEPS, EPOCHS, PIECES = 24, 5, 4  # of a rollout; times that it is learnt from; pieces of it
DISCOUNT, TRACE, CLIP, LONGEST = 0.99, 0.95, 0.2, 1.0  # LONGEST: of gradients
CHANGE, ENTROPY, SPREAD = 0.01, 0.002, 0.5  # wanted KL divergence; weight; of first actions


class Policy(nn.Module):
    """Two networks behind one normalization: the actor's mean actions, the critic's values."""

    def __init__(self, seen, actions, hidden):
        """Begin with small actions."""
        super().__init__()
        sizes = [seen, *hidden]
        self.actor, self.critic = nn.Sequential(), nn.Sequential()
        for network, outputs in ((self.actor, actions), (self.critic, 1)):
            for a, b in pairwise(sizes):
                network.extend([nn.Linear(a, b), nn.ELU()])
            network.append(nn.Linear(sizes[-1], outputs))
        self.actor[-1].weight.data *= 0.1
        self.log_std = nn.Parameter(torch.full((actions,), float(np.log(SPREAD))))
        self.register_buffer("mean", torch.zeros(seen))
        self.register_buffer("variance", torch.ones(seen))
        self.register_buffer("count", torch.ones(()))

    def normalize(self, seen):
        """Return observations as numbers around one."""
        return ((seen - self.mean) * (self.variance + 1e-4).rsqrt()).clamp(-5.0, 5.0)

    @torch.no_grad()
    def update_scale(self, seen):
        """Take new observations (n, size) into mean and variance (Chan et al., 1979)."""
        share = len(seen) / (self.count + len(seen))
        variance, mean = torch.var_mean(seen, 0, correction=0)
        off = mean - self.mean
        self.mean += share * off
        self.variance += share * (variance - self.variance + (1.0 - share) * off**2)
        self.count += len(seen)

    def log_density(self, mean, action):
        """Return the logarithm of the density of actions, up to a constant."""
        return -(0.5 * ((action - mean) / self.log_std.exp()) ** 2 + self.log_std).sum(-1)

    def arrays(self):
        """Return what acts as NumPy arrays: the normalization, and weights and biases."""
        arrays = {"mean": self.mean, "scale": (self.variance + 1e-4).rsqrt()}
        for k, layer in enumerate(self.actor[::2]):
            arrays |= {f"W{k}": layer.weight, f"b{k}": layer.bias}
        return {name: x.detach().cpu().numpy() for name, x in arrays.items()}


class Robots:
    """Many instances of an environment, on a device."""

    def __init__(self, environment, count, device="cpu", seed=0):
        """Begin at different times of episodes: then they do not all end at once."""
        if device != "cpu":
            import cupy
        self.library, self.device = (np if device == "cpu" else cupy), device
        self.count, self.actions = count, environment.action.shape[0]
        keys = arc.random.split(arc.random.key(seed), count)
        one = environment.reset(keys[0])[0]
        state = arc.tree.map(lambda x: np.repeat(np.asarray(x)[None], count, axis=0), one)
        steps = np.random.default_rng(seed).integers(0, environment.max_steps, count)
        self.states = arc.tree.map(self.library.asarray, state.replace(key=keys, steps=steps))
        # One kernel computes actions' effects, rewards, observations and resets.
        self.kernel = arc.vmap(environment.compiled_step("same_step"))
        self.step(torch.zeros((count, self.actions), device=device))

    def step(self, actions):
        """Advance all by an action (n, actions); return rewards, and where episodes ended."""
        self.states, result = self.kernel(self.states, self.library.asarray(actions))
        seen, reward, fell, cut = (
            as_tensor(x, self.device)
            for x in (result.observation, result.reward, result.terminated, result.truncated)
        )
        self.seen = seen
        return reward.float(), fell.float(), cut.float() * (1.0 - fell.float())


def as_tensor(array, device):
    """Return an array's memory as a tensor."""
    return torch.as_tensor(array, device=device)


@torch.no_grad()
def act(policy, robots):
    """Let all act for a while; return what is learnt from, mean reward and share of falls."""
    steps = []
    for _ in range(STEPS):
        seen, z = robots.seen, policy.normalize(robots.seen)
        mean = policy.actor(z)
        action = mean + policy.log_std.exp() * torch.randn_like(mean)
        value, density = policy.critic(z)[:, 0], policy.log_density(mean, action)
        steps.append((seen, action, density, value, *robots.step(action)))
    seen, action, density, value, reward, fell, cut = map(torch.stack, zip(*steps))
    last = policy.critic(policy.normalize(robots.seen))[:, 0]
    advantage = advantages(reward, value, last, fell, cut)
    rows = [x.flatten(0, 1) for x in (seen, action, density, advantage, advantage + value)]
    return rows, reward.mean(), fell.mean()


def advantages(reward, value, last, fell, cut):
    """Return generalized advantages (steps, n); `last` are values of what is seen at the end."""
    advantage, trace, following = torch.empty_like(value), torch.zeros_like(last), last
    for k in reversed(range(len(value))):
        # An episode that was only cut off would have gone on being worth what it was.
        worth = torch.where(cut[k] > 0.0, value[k], (1.0 - fell[k]) * following)
        trace = trace * DISCOUNT * TRACE * (1.0 - fell[k]) * (1.0 - cut[k])
        trace = trace + reward[k] + DISCOUNT * worth - value[k]
        advantage[k], following = trace, value[k]
    return advantage


def improve(policy, adam, rate, rows):
    """Follow the clipped objective uphill; adapt the learning rate to how the policy changes."""
    seen, action, density, advantage, returns = rows
    z, advantage = policy.normalize(seen), (advantage - advantage.mean()) / advantage.std()
    with torch.no_grad():
        old_mean, old_std = policy.actor(z), policy.log_std.exp()
    for _ in range(EPOCHS):
        for k in torch.randperm(len(z), device=z.device).chunk(PIECES):
            mean, good = policy.actor(z[k]), advantage[k]
            ratio = (policy.log_density(mean, action[k]) - density[k]).exp()
            gain = torch.minimum(ratio * good, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * good).mean()
            miss = ((policy.critic(z[k])[:, 0] - returns[k]) ** 2).mean()
            adam.zero_grad()
            (miss - gain - ENTROPY * policy.log_std.sum()).backward()
            nn.utils.clip_grad_norm_(policy.parameters(), LONGEST)
            with torch.no_grad():
                std = policy.log_std.exp()
                kl = (old_std**2 + (mean - old_mean[k]) ** 2) / (2.0 * std**2) - 0.5
                kl = (kl + (std / old_std).log()).sum(-1).mean()
                faster = torch.where(kl < 0.5 * CHANGE, 1.5, 1.0)
                rate.mul_(torch.where(kl > 2.0 * CHANGE, 1.0 / 1.5, faster)).clamp_(1e-5, 1e-2)
            adam.step()
    policy.update_scale(seen)


def train(robots, rounds=None, seconds=None, seed=0, hidden=(128, 64), progress=lambda seen: ""):
    """Return the policy after so many rounds, or seconds, and the mean reward of each round.

    `progress` returns what the lines of progress say about what is seen.
    """
    torch.manual_seed(seed)
    policy = Policy(robots.seen.shape[1], robots.actions, hidden).to(robots.device)
    rate = torch.tensor(1e-3, device=robots.device)
    adam = torch.optim.Adam(policy.parameters(), lr=rate, fused=True)
    begin, said, rewards, over = time.perf_counter(), -3.0, [], False
    while not over:
        rows, reward, fell = act(policy, robots)
        improve(policy, adam, rate, rows)
        rewards.append(reward.item())  # which waits for the device
        took = time.perf_counter() - begin
        over = len(rewards) == rounds or (seconds is not None and took > seconds)
        if over or took > said + 3.0:
            said, steps = took, STEPS * robots.count * len(rewards) / 1e6
            print(
                f"{took:6.1f} s, round {len(rewards)}, {steps:.1f} million steps: "
                f"reward {rewards[-1]:.2f}, {100.0 * fell.item():.2f} % fall, {progress(rows[0])}",
                flush=True,
            )
    return policy, rewards

"""Reinforcement learning: many cart-poles at once, a small network steers them, on a GPU if any.

The model is plain NumPy. With PyTorch (or CuPy) and a GPU its states and the policy's actions stay
there: tensors are read where they lie and states come back as tensors without a copy. Without a GPU
the same script runs on the CPU. The policy learns by an evolution strategy (Salimans et al.,
Evolution strategies as a scalable alternative to reinforcement learning, arXiv:1703.03864).
"""

import importlib.util
import time

import numpy as np

import archimedes as arc

PERIOD, STEPS, HIDDEN = 0.02, 150, 8


def cart_pole(x, force):
    """Rates of (position, angle from upright, and their rates); Barto, Sutton, Anderson 1983."""
    _, angle, speed, rate = x
    mass, pole, length, gravity = 1.0, 0.1, 0.5, 9.81
    sin, cos = np.sin(angle), np.cos(angle)
    push = (force + pole * length * rate**2 * sin) / (mass + pole)
    turn = (gravity * sin - cos * push) / (length * (4.0 / 3.0 - pole * cos**2 / (mass + pole)))
    return np.stack([speed, rate, push - pole * length * turn * cos / (mass + pole), turn])


def one_step(x, force):
    """A period by Runge and Kutta's fourth order, and what it is worth."""
    h = PERIOD
    a = cart_pole(x, force)
    b = cart_pole(x + 0.5 * h * a, force)
    c = cart_pole(x + 0.5 * h * b, force)
    d = cart_pole(x + h * c, force)
    x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    # The reward lies between 0 and 1: upright, near the middle.
    return x, np.exp(-4.0 * x[1] ** 2 - 0.5 * x[0] ** 2)


def found(package):
    """Tell whether a package is installed."""
    return importlib.util.find_spec(package) is not None


def tools():
    """Return what arrays are made with: (name, from NumPy, back to NumPy, from results, tanh)."""
    if found("cupy") and found("torch"):
        import torch

        if torch.cuda.is_available():
            return (
                "PyTorch on the GPU",
                lambda a: torch.from_numpy(np.ascontiguousarray(a)).cuda(),
                lambda t: t.cpu().numpy(),
                torch.from_dlpack,
                torch.tanh,
            )
    if found("cupy"):
        import cupy

        return "CuPy on the GPU", cupy.asarray, cupy.asnumpy, lambda a: a, cupy.tanh
    return "NumPy on the CPU", np.asarray, np.asarray, lambda a: a, np.tanh


name, there, here, adopt, tanh = tools()
step = arc.vmap(arc.compile(one_step))


def rollout(weights, x):
    """Steer carts (P, E) with P policies for a while; return what each policy is worth, (P,)."""
    first, second = weights
    policies, carts = x.shape[:2]
    worth = 0.0
    for _ in range(STEPS):
        force = 10.0 * (tanh(x @ first) @ second)
        states, reward = step(x.reshape(-1, 4), force.reshape(-1))
        x = adopt(states).reshape(policies, carts, 4)
        worth = worth + adopt(reward).reshape(policies, carts).mean(-1)
    return worth / STEPS


def learn(policies=32, carts=16, rounds=36, spread=0.3, rate=0.08):
    """Improve a policy; return what its variations were worth, round by round."""
    rng = np.random.default_rng(0)
    mean, worths = 0.1 * rng.normal(size=5 * HIDDEN), []
    for _ in range(rounds):
        noise = rng.normal(size=(policies // 2, mean.size))
        noise = np.concatenate([noise, -noise])
        tried = mean + spread * noise
        first = tried[:, : 4 * HIDDEN].reshape(policies, 4, HIDDEN)
        second = tried[:, 4 * HIDDEN :, None]
        begun = rng.normal(scale=[0.3, 0.2, 0.3, 0.3], size=(1, carts, 4))
        worth = here(rollout((there(first), there(second)), there(begun.repeat(policies, 0))))
        ranks = np.argsort(np.argsort(worth)) / (policies - 1.0) - 0.5
        mean = mean + rate * ranks @ noise
        worths.append(worth.mean())
    return worths


begin = time.perf_counter()
worth = learn()
took = time.perf_counter() - begin
made = 32 * 16 * STEPS * len(worth)
print(f"{name}: {made:,} steps of carts in {took:.1f} s")
print("worth of the policies, round by round:", " ".join(f"{w:.2f}" for w in worth[::7]))
assert worth[-1] > worth[0] + 0.2, "it has learned to keep the pole up"

# The same rollout with more carts: how fast it goes where it runs.
carts = 2048 if name.startswith("NumPy") else 2_000_000
rng = np.random.default_rng(1)
weights = there(rng.normal(size=(1, 4, HIDDEN))), there(rng.normal(size=(1, HIDDEN, 1)))
x = there(rng.normal(scale=0.1, size=(1, carts, 4)))
here(rollout(weights, x))
begin = time.perf_counter()
here(rollout(weights, x))
took = time.perf_counter() - begin
print(f"{carts:,} carts, {STEPS} steps: {carts * STEPS / took:.3g} steps/s, policy included")

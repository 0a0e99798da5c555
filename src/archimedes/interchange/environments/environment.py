"""An environment for reinforcement learning, made of NumPy functions of one instance.

Legend: ``x`` state of the model, ``u`` its input, ``key`` names a stream of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import random, tree
from archimedes.checks import check_callable, check_choice, check_whole
from archimedes.function import compile
from archimedes.simulate.trajectory.columns import tree_columns
from archimedes.tree import struct
from archimedes.typing import Array, Scalar, Tree

__all__ = ["Environment", "EnvironmentState", "Transition"]

AUTORESET = ("none", "next_step", "same_step")


@struct
class EnvironmentState:
    """All that an environment keeps from step to step.

    Parameters
    ----------
    x : tree
        State of the model.
    key : array (2,)
        Key of the random numbers of the next reset.
    steps : int
        Steps since the last reset.
    over : bool
        Whether the episode has ended.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.interchange.environments import pendulum
    >>> state, _ = pendulum().reset(arc.random.key(0))
    >>> int(state.steps), bool(state.over), state.x.shape
    (0, False, (2,))
    """

    x: Tree
    key: Array
    steps: Scalar
    over: Scalar


@struct
class Transition:
    """What a step returns besides the state.

    Parameters
    ----------
    observation : array
        Observation after the step; after the reset, if the step has reset.
    reward : float
        Reward of the step.
    terminated : bool
        Whether the episode has ended in a terminal state.
    truncated : bool
        Whether the episode has ended because it was long enough.
    nonfinite : bool
        Whether the model returned nan or infinity, which ends the episode.
    final_observation : array
        Observation after the step and before a reset.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.interchange.environments import cart_pole
    >>> cart = cart_pole()
    >>> state, _ = cart.reset(arc.random.key(0))
    >>> state, result = cart.step(state, 1)
    >>> float(result.reward), bool(result.terminated), result.observation.dtype
    (1.0, False, dtype('float32'))
    """

    observation: Array
    reward: Scalar
    terminated: Scalar
    truncated: Scalar
    nonfinite: Scalar
    final_observation: Array


class ActionLimits:
    """Which inputs actions stand for: numbers between -1 and 1, or one of several choices."""

    def __init__(self, action: Any) -> None:
        self.choices: int | None = None
        if isinstance(action, (int, np.integer)) and not isinstance(action, bool):
            self.choices = check_whole(action, "Environment: action, a number of choices,", 2)
            self.shape: tuple[int, ...] = ()
            return
        lower, upper = _limits(action)
        low, self._treedef = tree.flatten(lower)
        high, other = tree.flatten(upper)
        if self._treedef != other:
            raise TypeError(
                "Environment: the lower and upper limits of action are different trees: "
                f"{self._treedef.difference(other)}"
            )
        pairs = [np.broadcast_arrays(*np.atleast_1d(a, b)) for a, b in zip(low, high)]
        self._shapes = [np.broadcast_shapes(np.shape(a), np.shape(b)) for a, b in zip(low, high)]
        self.lower, self.upper = (
            np.concatenate([np.ravel(pair[k]).astype(float) for pair in pairs]) for k in range(2)
        )
        sound = np.isfinite(self.lower) & np.isfinite(self.upper) & (self.lower < self.upper)
        if not sound.all():
            k = int(np.argmin(sound))
            raise ValueError(
                f"Environment: limits of action are {self.lower[k]:g} and {self.upper[k]:g} for "
                f"number {k}, but actions between -1 and 1 are scaled to them: give finite limits, "
                "lower ones first"
            )
        self.shape = self.lower.shape

    def command(self, action: Array) -> Tree:
        """Return the input of the model that an action stands for."""
        if self.choices is not None:
            return action
        scaled = np.clip(np.asarray(action).astype(np.float64), -1.0, 1.0)
        numbers = 0.5 * (self.lower + self.upper) + 0.5 * (self.upper - self.lower) * scaled
        leaves, start = [], 0
        for shape in self._shapes:
            size = int(np.prod(shape))
            leaves.append(numbers[start : start + size].reshape(shape)[()])
            start += size
        return self._treedef.unflatten(leaves)


def _limits(action: Any) -> tuple[Tree, Tree]:
    """Return the least and the largest input, given both, or a struct whose fields have limits."""
    if isinstance(action, (tuple, list)) and len(action) == 2:
        return action[0], action[1]
    columns = tree_columns(action, 0, "action")
    without = [column.name for column in columns if column.limits is None]
    if without or not columns:
        names = ", ".join(without[:3]) or "it is empty"
        raise TypeError(
            f"Environment: action has no limits for {names}: give (lower, upper), a number of "
            "choices, or a struct whose fields have field(limits=...)"
        )
    leaves, treedef = tree.flatten(action)
    ends = []
    for k in range(2):
        of_leaf = {column.leaf: column.limits[k] for column in columns if column.limits}
        ends.append(
            treedef.unflatten([np.full(np.shape(x), of_leaf[j]) for j, x in enumerate(leaves)])
        )
    return ends[0], ends[1]


class Environment:
    """A model with a task: what reinforcement learning acts in.

    All functions are plain NumPy and describe one instance. `reset` and `step` are such functions,
    too: ``arc.vmap(environment.step)`` advances thousands of instances in one kernel, on the CPU or
    a GPU, with the bits of single ones. :meth:`to_gymnasium` and :meth:`to_gymnasium_vector` give
    them Gymnasium's interface.

    Parameters
    ----------
    dynamics : callable
        ``dynamics(x, u)`` returns the state of the model one step later: a step of a discretized
        model (``arc.discretize``), of ``multibody.contact_step``, or anything else.
    initial : callable
        ``initial(key)`` returns a state in which an episode begins, drawn by ``arc.random``. A
        state may be any tree.
    action : int, pair or struct
        What may be done: a number of choices, of which `u` is one (0, 1, ...); the least and the
        largest `u`, numbers, arrays or trees; or an input struct whose fields have
        ``field(limits=...)``. Where there are limits, actions are numbers between -1 and 1 that are
        scaled to them.
    reward : callable
        ``reward(x, u, x_next)`` returns the reward of a step, a number.
    observe : callable, optional
        ``observe(x)`` returns what is seen of a state: an array, or a tree, whose numbers are
        put into one vector. All numbers of the state by default.
    observation_limits : pair, optional
        The least and the largest observation, numbers or arrays; observations are clipped
        to them. By default those that ``field(limits=...)`` gives in the result of `observe`.
    terminated : callable, optional
        ``terminated(x)`` says whether an episode ends in a state. Never by default.
    max_steps : int, optional
        Number of steps after which an episode is truncated. Never by default.
    dtype : {np.float32, np.float64}, optional
        Type of observations, float32 by default.
    name : str, optional
        Name in messages and in Gymnasium, ``"Environment"`` by default.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> cart = arc.Environment(
    ...     dynamics=lambda x, u: x + 0.1 * np.stack([x[1], u]),
    ...     initial=lambda key: arc.random.uniform(key, (2,), -1.0, 1.0),
    ...     action=(-2.0, 2.0),
    ...     reward=lambda x, u, x_next: -(x_next[0] ** 2),
    ...     terminated=lambda x: np.abs(x[0]) > 2.0,
    ...     max_steps=100,
    ... )
    >>> state, observation = cart.reset(arc.random.key(0))
    >>> state, result = cart.step(state, np.array([0.5]))
    >>> bool(result.terminated), int(state.steps)
    (False, 1)
    """

    def __init__(
        self,
        dynamics: Callable[[Any, Any], Any],
        initial: Callable[[Array], Any],
        action: Any,
        reward: Callable[[Any, Any, Any], Any],
        observe: Callable[[Any], Any] | None = None,
        observation_limits: tuple[Any, Any] | None = None,
        terminated: Callable[[Any], Any] | None = None,
        max_steps: int | None = None,
        dtype: Any = np.float32,
        name: str = "Environment",
    ) -> None:
        for what, function in (
            ("dynamics", dynamics),
            ("initial", initial),
            ("reward", reward),
            ("observe", observe or (lambda x: x)),
            ("terminated", terminated or (lambda x: False)),
        ):
            check_callable(function, f"{name}: {what}")
        self.dtype = np.dtype(dtype)
        check_choice(self.dtype.name, f"{name}: dtype", ("float32", "float64"))
        self.max_steps = None
        if max_steps is not None:
            self.max_steps = check_whole(max_steps, f"{name}: max_steps", 1)
        self.dynamics, self.initial, self.reward = dynamics, initial, reward
        self.observe = observe or _same
        self.terminated = terminated or _never
        self.action, self.name = ActionLimits(action), name
        self._check()
        self.lower, self.upper = self._observation_limits(observation_limits)

    def __repr__(self) -> str:
        count = self.action.choices
        action = f"{count} choices" if count else f"{self.action.shape[0]} numbers"
        ends = "" if self.max_steps is None else f", {self.max_steps} steps at most"
        return f"<{self.name}: action {action}, observation {self.lower.shape}{ends}>"

    # ---- checks ----------------------------------------------------------------------------

    def _check(self) -> None:
        """Run everything once, and say which function returns what it should not."""
        x = self.initial(random.key(0))
        zero: Any = np.int64(0) if self.action.choices else np.zeros(self.action.shape)
        u = self.action.command(zero)
        after = self.dynamics(x, u)
        kinds = [
            (tree.structure(value), [(np.shape(leaf)) for leaf in tree.leaves(value)])
            for value in (x, after)
        ]
        if kinds[0] != kinds[1]:
            difference = kinds[0][0].difference(kinds[1][0]) or (
                f"leaves of shapes {kinds[0][1]} and {kinds[1][1]}"
            )
            raise TypeError(
                f"{self.name}: initial(key) and dynamics(x, u) return different states: "
                f"{difference}"
            )
        for what, value in (
            ("reward(x, u, x_next)", self.reward(x, u, after)),
            ("terminated(x)", self.terminated(x)),
        ):
            if np.shape(value) != ():
                raise TypeError(
                    f"{self.name}: {what} must return one number, but it returned an array of "
                    f"shape {np.shape(value)}"
                )

    def _observation_limits(self, limits: tuple[Any, Any] | None) -> tuple[Array, Array]:
        seen = self.observe(self.initial(random.key(0)))
        shape = self._flat(seen).shape
        if limits is not None:
            lower, upper = (np.broadcast_to(np.asarray(x, self.dtype), shape) for x in limits)
        else:
            ends = [column.limits or (-np.inf, np.inf) for column in tree_columns(seen, 0)]
            lower, upper = np.array(ends, self.dtype).reshape(-1, 2).T.reshape(2, *shape)
        if not (lower < upper).all():
            raise ValueError(
                f"{self.name}: observation_limits are {limits!r}, but lower ones must be below "
                "upper ones"
            )
        return lower.copy(), upper.copy()

    # ---- what happens ----------------------------------------------------------------------

    def _flat(self, seen: Tree) -> Array:
        """Return an observation as an array."""
        leaves = tree.leaves(seen)
        if len(leaves) == 1 and np.ndim(leaves[0]):
            return np.asarray(leaves[0]).astype(self.dtype)
        return np.concatenate([np.ravel(np.asarray(x)).astype(self.dtype) for x in leaves])

    def observation(self, x: Tree) -> Array:
        """Return the observation of a state: an array within the limits.

        Parameters
        ----------
        x : tree
            State of the model.
        """
        return np.clip(self._flat(self.observe(x)), self.lower, self.upper)

    def reset(self, key: Array) -> tuple[EnvironmentState, Array]:
        """Begin an episode, and return the state and the observation.

        Parameters
        ----------
        key : array (2,)
            Key of the random numbers: of this reset, and of all that follow.
        """
        x, key = self._restart(key)
        steps: Any = np.int64(0)
        over: Any = np.bool_(False)
        return EnvironmentState(x, key, steps, over), self.observation(x)

    def _restart(self, key: Array) -> tuple[Tree, Array]:
        keys = random.split(key, 2)
        return self.initial(keys[0]), keys[1]

    def step(
        self, state: EnvironmentState, action: Array, autoreset: str = "none"
    ) -> tuple[EnvironmentState, Transition]:
        """Advance by one step, and return the new state and what came of it.

        Parameters
        ----------
        state : EnvironmentState
            The state.
        action : array or int
            Numbers between -1 and 1, or the number of a choice.
        autoreset : {"none", "next_step", "same_step"}, optional
            When an episode that has ended begins anew: never, as by default; in the next step,
            which ignores its action and has no reward; or in the same step, after
            ``final_observation`` was taken.
        """
        check_choice(autoreset, "step: autoreset", AUTORESET)
        u = self.action.command(action)
        proposed = self.dynamics(state.x, u)
        finite: Any = _all_finite(proposed)
        # The last finite state stays.
        x = _select(finite, proposed, state.x)
        reward: Any = np.asarray(self.reward(state.x, u, x)).astype(np.float64)
        finite = finite & np.isfinite(reward)
        reward = _select(finite, reward, 0.0)
        steps: Any = state.steps + 1
        terminated: Any = np.asarray(self.terminated(x)).astype(bool)[()] | ~finite
        truncated: Any = np.bool_(False) if self.max_steps is None else steps >= self.max_steps
        seen = final = self.observation(x)
        over: Any = terminated | truncated
        key: Any = state.key
        if autoreset != "none":
            now: Any = over if autoreset == "same_step" else state.over
            fresh, next_key = self._restart(key)
            x, key = _select(now, fresh, x), _select(now, next_key, key)
            steps = _select(now, 0, steps)
            seen = _select(now, self.observation(fresh), seen)
            if autoreset == "next_step":
                final, reward = seen, _select(now, 0.0, reward)
                terminated, truncated = terminated & ~now, truncated & ~now
                over, finite = over & ~now, finite | now
            else:
                over = np.bool_(False)
        result = Transition(seen, reward, terminated, truncated, ~finite, final)
        return EnvironmentState(x, key, steps, over), result

    # ---- Gymnasium -------------------------------------------------------------------------

    def to_gymnasium(self) -> Any:
        """Return a ``gymnasium.Env`` of one instance.

        Examples
        --------
        >>> from archimedes.interchange.environments import pendulum
        >>> env = pendulum().to_gymnasium()  # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)  # doctest: +SKIP
        """
        from archimedes.interchange.environments.gymnasium_interface import make_env

        return make_env(self)

    def to_gymnasium_vector(
        self, num_envs: int, *, autoreset: str = "next_step", threads: int | None = None
    ) -> Any:
        """Return a ``gymnasium.vector.VectorEnv`` of many instances, which one kernel advances.

        Parameters
        ----------
        num_envs : int
            Number of instances.
        autoreset : {"next_step", "same_step"}, optional
            When episodes that have ended begin anew; Gymnasium's default is the next step.
        threads : int, optional
            Number of threads. By default all CPUs for many instances.

        Examples
        --------
        >>> from archimedes.interchange.environments import pendulum
        >>> envs = pendulum().to_gymnasium_vector(1000)  # doctest: +SKIP
        >>> observations, infos = envs.reset(seed=0)  # doctest: +SKIP
        """
        from archimedes.interchange.environments.gymnasium_interface import make_vector_env

        check_whole(num_envs, "to_gymnasium_vector: num_envs", 1)
        check_choice(autoreset, "to_gymnasium_vector: autoreset", AUTORESET[1:])
        return make_vector_env(self, num_envs, autoreset, threads)

    def compiled_step(self, autoreset: str = "none") -> Any:
        """Return ``step(state, action)`` as a compiled function of one instance.

        Parameters
        ----------
        autoreset : {"none", "next_step", "same_step"}, optional
            As in :meth:`step`.
        """
        check_choice(autoreset, "compiled_step: autoreset", AUTORESET)
        return compile(lambda state, action: self.step(state, action, autoreset), name="step")


def _same(x: Tree) -> Tree:
    return x


def _never(x: Tree) -> bool:
    return False


def _all_finite(x: Tree) -> Scalar:
    """Return whether all numbers of a tree are finite."""
    finite: Any = np.bool_(True)
    for leaf in tree.leaves(x):
        finite = finite & np.all(np.isfinite(leaf))
    return finite


def _select(condition: Scalar, x: Tree, y: Tree) -> Tree:
    """Return one of two trees of one structure."""

    def choose(a: Any, b: Any) -> Any:
        return np.where(condition, a, b)[()]

    return tree.map(choose, x, y)

"""Environments with Gymnasium's interface: one instance, or many that one kernel advances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import random
from archimedes.function import compile, vmap
from archimedes.installation import install_command

if TYPE_CHECKING:
    from archimedes.interchange.environments.environment import Environment
    from archimedes.typing import Array

__all__ = ["make_env", "make_vector_env"]


def make_env(environment: Environment) -> Any:
    """Return a ``gymnasium.Env`` of one instance."""
    return _classes()[0](environment)


def make_vector_env(
    environment: Environment, num_envs: int, autoreset: str, threads: int | None
) -> Any:
    """Return a ``gymnasium.vector.VectorEnv``."""
    return _classes()[1](environment, num_envs, autoreset, threads)


def _gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise ImportError(
            f"this needs Gymnasium ({error}): {install_command('gymnasium')}"
        ) from None
    return gymnasium


def _spaces(environment: Environment) -> tuple[Any, Any]:
    """Return the spaces of observations and of actions."""
    spaces = _gymnasium().spaces
    seen = spaces.Box(environment.lower, environment.upper, dtype=environment.dtype.type)
    action = environment.action
    if action.choices is not None:
        return seen, spaces.Discrete(action.choices)
    return seen, spaces.Box(-1.0, 1.0, action.shape, np.float32)


def _instance_key(seed: int, number: int) -> Array:
    """Return the key of an instance of a seed."""
    return random.fold_in(random.key(seed), number)


def _check_actions(environment: Environment, actions: Any, lead: tuple[int, ...]) -> Any:
    """Return actions, one for each instance, as an array, after a check of shape and choices."""
    array, choices = np.asarray(actions), environment.action.choices
    shape = (*lead, *environment.action.shape)
    if array.shape != shape:
        raise ValueError(
            f"{environment.name}: step needs an action of shape {shape}, got {array.shape}"
        )
    if choices is not None and not (sound := (array >= 0) & (array < choices)).all():
        raise ValueError(
            f"{environment.name}: actions are 0 to {choices - 1}, got {array[~sound].flat[0]}"
        )
    return array


@cache
def _classes() -> tuple[type, type]:
    _gymnasium()
    from gymnasium import Env
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

    class ArchimedesEnv(Env):
        """One instance of an environment."""

        def __init__(self, environment: Environment, render_mode: None = None) -> None:
            self.environment, self.render_mode = environment, render_mode
            self.metadata: dict[str, Any] = {"render_modes": []}
            self.observation_space, self.action_space = _spaces(environment)
            self._reset = compile(environment.reset)
            self._step = environment.compiled_step()
            self._state: Any = None
            self.spec = EnvSpec(
                f"archimedes/{environment.name}-v0", entry_point=lambda **_: make_env(environment)
            )

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
            """Begin an episode: of a seed, or with the random numbers that come next."""
            super().reset(seed=seed)
            if seed is not None:
                key = _instance_key(seed, 0)
            elif self._state is None:
                key = _instance_key(int(self.np_random.integers(2**63)), 0)
            else:
                key = self._state.key
            self._state, observation = self._reset(key)
            return observation, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
            """Advance by one step."""
            if self._state is None:
                raise RuntimeError(f"{self.environment.name}: call reset() before step()")
            actions = _check_actions(self.environment, action, ())
            self._state, result = self._step(self._state, actions)
            info = {"nonfinite": True} if result.nonfinite else {}
            ends = bool(result.terminated), bool(result.truncated)
            return result.observation, float(result.reward), *ends, info

    class ArchimedesVectorEnv(VectorEnv):
        """Many instances of an environment, which one kernel advances."""

        def __init__(
            self, environment: Environment, num_envs: int, autoreset: str, threads: int | None
        ) -> None:
            self.environment, self.num_envs = environment, num_envs
            self.single_observation_space, self.single_action_space = _spaces(environment)
            self.observation_space = batch_space(self.single_observation_space, num_envs)
            self.action_space = batch_space(self.single_action_space, num_envs)
            mode = AutoresetMode.NEXT_STEP
            if autoreset == "same_step":
                mode = AutoresetMode.SAME_STEP
            self.metadata = {"render_modes": [], "autoreset_mode": mode}
            self._same_step = mode is AutoresetMode.SAME_STEP
            self._reset = vmap(environment.reset, threads=threads)
            self._step = vmap(environment.compiled_step(autoreset), threads=threads)
            self._keys = vmap(random.fold_in, in_axes=(None, 0))
            self._state: Any = None

        def reset(
            self, *, seed: int | Sequence[int | None] | None = None, options: Any = None
        ) -> tuple[Any, dict]:
            """Begin all episodes: of a seed, of one per instance, or with what comes next."""
            super().reset(seed=seed if isinstance(seed, int) else None)
            if seed is None and self._state is not None:
                keys = self._state.key
            elif seed is None or isinstance(seed, int):
                root = int(self.np_random.integers(2**63)) if seed is None else seed
                keys = self._keys(random.key(root), np.arange(self.num_envs))
            else:
                if np.asarray(seed).shape != (self.num_envs,):
                    raise ValueError(
                        f"{self.environment.name}: seed must be one int, or one for each of the "
                        f"{self.num_envs} instances, got {seed!r}"
                    )
                seeds = [int(self.np_random.integers(2**63)) if s is None else s for s in seed]
                keys = np.stack([_instance_key(s, 0) for s in seeds])
            self._state, observations = self._reset(keys)
            return observations, {}

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict]:
            """Advance all instances by one step."""
            if self._state is None:
                raise RuntimeError(f"{self.environment.name}: call reset() before step()")
            actions = _check_actions(self.environment, actions, (self.num_envs,))
            self._state, result = self._step(self._state, actions)
            infos: dict[str, Any] = {}
            ended = result.terminated | result.truncated
            if self._same_step and ended.any():
                final = np.full(self.num_envs, None, dtype=object)
                for k in np.flatnonzero(ended):
                    final[k] = result.final_observation[k]
                infos = {"final_obs": final, "_final_obs": ended.copy()}
            if result.nonfinite.any():
                flags = {"nonfinite": result.nonfinite, "_nonfinite": result.nonfinite.copy()}
                infos.update(
                    {"final_info": flags, "_final_info": ended} if self._same_step else flags
                )
            ends = result.terminated, result.truncated
            return result.observation, result.reward, *ends, infos

    return ArchimedesEnv, ArchimedesVectorEnv

"""Moving models through time: ODE solvers, events, batches, campaigns and trajectories.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archimedes.simulate.campaign_results import Campaign, summarize
    from archimedes.simulate.campaign_store import CampaignError
    from archimedes.simulate.campaigns import monte_carlo
    from archimedes.simulate.dae import InconsistentStart, solve_dae
    from archimedes.simulate.distributions import (
        Choice,
        Distribution,
        Integers,
        LogNormal,
        MultivariateNormal,
        Normal,
        RandomAttitude,
        Truncated,
        Uniform,
    )
    from archimedes.simulate.events import Event
    from archimedes.simulate.exports import MissingExtra
    from archimedes.simulate.fixed_step import discretize
    from archimedes.simulate.inputs import InputSeries
    from archimedes.simulate.integration import integrator, odeint
    from archimedes.simulate.methods import METHODS, Method
    from archimedes.simulate.sampled import Sampled
    from archimedes.simulate.sampling import disperse
    from archimedes.simulate.solving import solve_ode
    from archimedes.simulate.statuses import SimulationError
    from archimedes.simulate.trajectory import Trajectory

#: One line a module: the names it gives to users.
_HOMES = {
    "campaign_results": "Campaign summarize",
    "campaign_store": "CampaignError",
    "campaigns": "monte_carlo",
    "distributions": (
        "Choice Distribution Integers LogNormal "
        "MultivariateNormal Normal RandomAttitude Truncated Uniform"
    ),
    "dae": "InconsistentStart solve_dae",
    "events": "Event",
    "exports": "MissingExtra",
    "sampled": "Sampled",
    "sampling": "disperse",
    "fixed_step": "discretize",
    "inputs": "InputSeries",
    "integration": "integrator odeint",
    "methods": "METHODS Method",
    "solving": "solve_ode",
    "statuses": "SimulationError",
    "trajectory": "Trajectory",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "METHODS",
    "Campaign",
    "CampaignError",
    "Choice",
    "Distribution",
    "Event",
    "InconsistentStart",
    "InputSeries",
    "Integers",
    "LogNormal",
    "Method",
    "MissingExtra",
    "MultivariateNormal",
    "Normal",
    "RandomAttitude",
    "Sampled",
    "SimulationError",
    "Trajectory",
    "Truncated",
    "Uniform",
    "discretize",
    "disperse",
    "integrator",
    "monte_carlo",
    "odeint",
    "solve_dae",
    "solve_ode",
    "summarize",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'archimedes.simulate' has no attribute {name!r}")
    value = getattr(import_module(f"archimedes.simulate.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

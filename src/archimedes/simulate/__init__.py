"""Moving models through time: ODE solvers, events, batches, campaigns and trajectories.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.lazy_names import lazy_names

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
        RunKey,
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
    from archimedes.simulate.statuses import SimulationError, SolveInfo
    from archimedes.simulate.trajectory import Trajectory

#: One line a module: the names it gives to users.
_HOMES = {
    "archimedes.simulate.campaign_results": "Campaign summarize",
    "archimedes.simulate.campaign_store": "CampaignError",
    "archimedes.simulate.campaigns": "monte_carlo",
    "archimedes.simulate.distributions": (
        "Choice Distribution Integers LogNormal "
        "MultivariateNormal Normal RandomAttitude RunKey Truncated Uniform"
    ),
    "archimedes.simulate.dae": "InconsistentStart solve_dae",
    "archimedes.simulate.events": "Event",
    "archimedes.simulate.exports": "MissingExtra",
    "archimedes.simulate.sampled": "Sampled",
    "archimedes.simulate.sampling": "disperse",
    "archimedes.simulate.fixed_step": "discretize",
    "archimedes.simulate.inputs": "InputSeries",
    "archimedes.simulate.integration": "integrator odeint",
    "archimedes.simulate.methods": "METHODS Method",
    "archimedes.simulate.solving": "solve_ode",
    "archimedes.simulate.statuses": "SimulationError SolveInfo",
    "archimedes.simulate.trajectory": "Trajectory",
}

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
    "RunKey",
    "Sampled",
    "SimulationError",
    "SolveInfo",
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

__getattr__ = lazy_names(__name__, _HOMES)

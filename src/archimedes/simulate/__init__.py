"""Moving models through time: ODE solvers, events, batches, campaigns and trajectories.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.lazy_names import lazy_names

if TYPE_CHECKING:
    from archimedes.simulate.campaigns.campaign import Campaign, summarize
    from archimedes.simulate.campaigns.chunk_store import CampaignError
    from archimedes.simulate.campaigns.distributions import (
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
    from archimedes.simulate.campaigns.monte_carlo_runs import monte_carlo
    from archimedes.simulate.campaigns.parameter_draws import disperse
    from archimedes.simulate.dae import InconsistentStart, solve_dae
    from archimedes.simulate.events.event import Event
    from archimedes.simulate.fixed_step import discretize
    from archimedes.simulate.methods.method_table import METHODS, Method
    from archimedes.simulate.ode import solve_ode
    from archimedes.simulate.ode_arrays import integrator, odeint
    from archimedes.simulate.problem.input_series import InputSeries
    from archimedes.simulate.problem.sampled_parts import Sampled
    from archimedes.simulate.statuses import SimulationError, SolveInfo
    from archimedes.simulate.trajectory.exports import MissingExtra
    from archimedes.simulate.trajectory.trajectory import Trajectory

#: One line a module: the names it gives to users.
_HOMES = {
    "archimedes.simulate.campaigns.campaign": "Campaign summarize",
    "archimedes.simulate.campaigns.chunk_store": "CampaignError",
    "archimedes.simulate.campaigns.monte_carlo_runs": "monte_carlo",
    "archimedes.simulate.campaigns.distributions": (
        "Choice Distribution Integers LogNormal "
        "MultivariateNormal Normal RandomAttitude RunKey Truncated Uniform"
    ),
    "archimedes.simulate.dae": "InconsistentStart solve_dae",
    "archimedes.simulate.events.event": "Event",
    "archimedes.simulate.trajectory.exports": "MissingExtra",
    "archimedes.simulate.problem.sampled_parts": "Sampled",
    "archimedes.simulate.campaigns.parameter_draws": "disperse",
    "archimedes.simulate.fixed_step": "discretize",
    "archimedes.simulate.problem.input_series": "InputSeries",
    "archimedes.simulate.ode_arrays": "integrator odeint",
    "archimedes.simulate.methods.method_table": "METHODS Method",
    "archimedes.simulate.ode": "solve_ode",
    "archimedes.simulate.statuses": "SimulationError SolveInfo",
    "archimedes.simulate.trajectory.trajectory": "Trajectory",
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

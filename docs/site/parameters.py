"""Parameters that many functions have in common, described once for the reference.

Docstrings describe what is particular to a function. What means the same wherever it occurs is
described here: for all packages, for one, or for a function. A test sees to it that no parameter
of a public function is left without words.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

__all__ = ["described", "wordless"]

EVERYWHERE = {
    "func": "the function, plain NumPy",
    "name": "a name for messages and listings; by default the function's own",
    "static_argnames": "names of arguments that are fixed in a recording, compared by content",
    "static_argnums": "positions of arguments that are fixed in a recording",
    "argnums": "position of the argument to differentiate in, or several; the first by default",
    "return_names": "names of the results, where the function returns a tuple",
    "former": "options of the original that mean nothing here: accepted with a warning",
    "dtype": "np.float64 (default), np.float32, np.int64 or bool",
    "shape": "an int or a tuple of ints; () is one number",
    "is_leaf": "a function of a part of the tree: True where it is to be taken as a leaf",
    "theme": '"light", "dark" or, for pages, "auto"',
    "method": "the name of the method; the guide has a table of them",
    "t_eval": "times (m,) at which results are wanted, within the span, in its direction",
    "rtol": "relative tolerance of each step: a number, or a tree like the state",
    "atol": "absolute tolerance of each step: a number, or a tree like the state",
    "first_step": "length of the first step that is tried, in the unit of time",
    "max_step": "the longest step allowed",
    "max_steps": "the most steps allowed",
    "project": "whether what has a `normalize()` method is normalised after each step",
    "inputs": "a function u(t) or an `InputSeries`, passed to the function after the state",
    "sampled": "parts that act at times of their own, see `Sampled`",
    "progress": "True for a bar, or a function of the part done (0 to 1) and the time",
    "backend": 'what runs it, with the same bits: "auto", "llvm", "interpreter", "cuda"',
    "args": "further arguments of the function",
    "tol": "tolerance at which the iteration ends",
    "max_iter": "the most iterations allowed",
    "options": "options by name, as the function that they are handed to takes them",
    "path": "the file to read",
    "t_span": "(start, end) of the time, in this order",
    "x0": "the first state: a number, an array or any tree of them",
    "title": "a title above the picture",
    "file": "where to save the picture; its ending is the format",
}

PACKAGES = {
    "archimedes.spatial": {
        "matrix": "rotation matrix R_BE (..., 3, 3), which takes E to B coordinates",
        "seq": 'axes of the turns, as in SciPy: lower case fixed, upper case turned; "xyz"',
        "q": "quaternion (..., 4), scalar first",
        "mrp": "modified Rodrigues parameters (..., 3)",
        "rotvec": "rotation vector (..., 3) in rad",
        "xi": "twist (..., 6), linear part first",
        "T": "homogeneous matrix (..., 4, 4)",
        "w_B": "angular velocity (3,) in rad/s, body axes",
        "v_B": "velocity (3,) of the centre of mass in m/s, body axes",
        "v_ref_B": "velocity (3,) of the reference point in m/s, body axes",
        "r_CM_B": "position (3,) of the centre of mass from the reference point in m, body axes",
        "dr_CM_B": "velocity (3,) of the centre of mass within the body in m/s",
        "M_ref_B": "moment (3,) about the reference point in N m, body axes",
        "J_B": "inertia (3, 3) about the centre of mass in kg m^2, body axes",
        "m": "mass in kg",
        "weights": "weights (n,), by default equal",
        "control0": "control quaternion (4,) near q0",
        "control1": "control quaternion (4,) near q1",
    },
    "archimedes.environment": {
        "lat": "geodetic latitude in rad",
        "lon": "longitude in rad, east positive",
        "alt": "height over the ellipsoid in m",
        "p_E": "position (..., 3) in m, Earth-fixed axes",
        "v_E": "velocity (..., 3) relative to the Earth in m/s, Earth-fixed axes",
        "p_I": "position (..., 3) in m, inertial axes",
        "angle": "rotation angle of the Earth in rad",
        "ellipsoid": "shape, gravity and rotation of the planet; `WGS84` by default",
    },
    "archimedes.vehicles": {
        "vehicle": "a vehicle with `state`, `dynamics` and `world`",
        "u": "the vehicle's `Input`",
        "rest": "the other fields of the vehicle's state, by name",
        "source": "the name of a vehicle, or the path of a parameter file",
        "rotor": "fields of `Rotors` that all have in common",
        "world": "`FlatEarth` or `RotatingEarth`",
    },
    "archimedes.vehicles.parts": {
        "mass": "in kg",
        "radius": "in m",
        "length": "in m",
    },
    "archimedes.multibody": {
        "model": "the robot, a `Model`",
        "q": "configuration (..., nq)",
        "v": "velocity (..., nv): m/s and rad/s",
        "a": "acceleration (..., nv): m/s^2 and rad/s^2",
        "tau": "torques (..., nv): N and N m",
        "t": "time in s",
        "x": "a `State` of q and v",
        "u": "torques (nv,) of the actuators, by default none",
        "frame": "name of a frame or body",
        "forces": "forces on bodies at their origins: by name, or (bodies, 6), linear first",
        "passive": "whether damping, friction and springs act",
        "radius": "in m",
        "center": "place (3,) in the frame, in m",
        "actuators": "what drives the joints: `Motor`, `Servo`",
        "packages": "folders of packages that paths in the file name",
        "rng": "a NumPy Generator, or a seed",
        "tolerance": "largest error, weighted, at which the search has succeeded",
        "max_iterations": "the most iterations of the search",
        "seed": "a whole number that the random states follow from",
    },
    "archimedes.viewer": {
        "scene": "the `Scene` to add to",
        "flight": "the `Flight` to show",
        "radius": "in m",
        "length": "in m",
        "axis": "unit vector (3,)",
        "n": "corners around, or along, the shape",
        "look": "fields of `Mesh` that say how it looks, such as its colour",
        "position": "(3,) in m",
        "rotation": "matrix (3, 3)",
    },
    "archimedes.control": {
        "Q": "weights of the states (n, n), symmetric, not negative",
        "R": "weights of the inputs (m, m), symmetric, positive",
        "N": "weights of states times inputs (n, m), by default zero",
    },
    "archimedes.observers": {
        "observer": "the filter",
        "ts": "times (N,)",
        "ys": "measurements (m, N); nan where one is missing",
        "x0": "estimate (n,) one step before the first measurement",
        "P0": "its covariance (n, n)",
        "us": "inputs (k, N), one for each measurement",
    },
    "archimedes.optimize": {
        "x0": "where to start: any tree of numbers",
        "bounds": "(lower, upper): numbers, or trees like x0, None where there is no limit",
        "full_output": "whether to return the status, too",
        "damping": "the first damping of the steps",
        "more": "options of `lm_solve`",
    },
    "archimedes.random": {
        "seed": "a whole number of up to 128 bits",
        "mean": "mean, broadcast against `std`",
        "std": "standard deviation",
    },
    "archimedes.special": {"x": "real numbers"},
    "archimedes.sysid": {
        "dynamics": "the model: dx/dt, or the next state, as `output_error` takes it",
        "outputs": "what is measured of a state",
        "p_guess": "parameters to start from, any tree",
        "x0": "the first state",
        "passes": "how often the fit is made, each time with the weights of the last",
        "lags": "how many lags to look at",
        "level": "the confidence of the bounds, between 0 and 1",
    },
    "archimedes.viz": {
        "methods": "names of methods of `solve_ode`",
        "rtols": "relative tolerances to try",
        "system": "the linear system, or a function of the value that returns it",
        "values": "the values to go through",
        "traj": "the `Trajectory`",
        "results": "rows by name, from `measure_work_precision`",
        "campaign": "what `monte_carlo` returned",
    },
    "archimedes.embedded": {
        "optimize": 'the level of the cross compiler: "-O0" to "-O3", "-Os"',
        "timeout": "seconds after which the emulator is stopped",
    },
}

NAMES = {
    "archimedes.array": {"x": "numbers, arrays, traced values, nested lists of them"},
    "archimedes.codegen": {
        "kwargs": "example values of keyword arguments",
        "float_type": "float (double) or np.float32 (float)",
        "int_type": "the integer type at the interface: int, np.int32, ...",
        "input_descriptions": 'comments for inputs, by name: {"x.pos": "..."}',
        "output_descriptions": "comments for results, by name",
    },
    "archimedes.coloring": {"matrix": "a sparsity pattern, from `sparsity` or `scipy.sparse`"},
    "archimedes.eye": {"n": "rows", "m": "columns, n by default", "k": "which diagonal"},
    "archimedes.field": {
        "metadata": "a mapping kept with the field",
        "kwargs": "those of `dataclasses.field`",
    },
    "archimedes.fori_loop": {"init": "the first x, any tree"},
    "archimedes.interpolant": {"ret_name": "the name of the result"},
    "archimedes.minimize": {
        "multipliers": "those of an earlier result, for a warm start",
        "callback": "a function of an `Iteration`; True stops the solver",
    },
    "archimedes.plot": {"what": "a trajectory, a campaign, modes, a graph, ... (see below)"},
    "archimedes.scan": {"init_carry": "the first carry, any tree"},
    "archimedes.struct": {"cls": "the class", "kwargs": "those of `dataclasses.dataclass`"},
    "archimedes.view": {"note": "a line of text below the title"},
    "archimedes.while_loop": {"init": "the first x, any tree"},
    "archimedes.tree.map": {"rest": "further trees of the same structure"},
    "archimedes.tree.register_dataclass": {"cls": "the class"},
    "archimedes.tree.register_struct": {
        "cls": "the class",
        "flatten_fn": "(x) -> (children, what is fixed)",
        "unflatten_fn": "(what is fixed, children) -> x",
    },
    "archimedes.tree.replace": {"changes": "new values by name"},
    "archimedes.simulate.summarize": {
        "results": "a tree with the runs along the first axis",
        "quantiles": "shares between 0 and 1",
    },
    "archimedes.function.holds_traced": {"x": "anything"},
    "archimedes.function.is_traced": {"x": "anything"},
    "archimedes.errors.explained": {"kind": "a key of `EXPLAINED`"},
}


def described(package: str, name: str, parameter: str, text: str) -> str:
    """Return words about a parameter; none where the docstring mentions it.

    >>> described("archimedes", "jac", "argnums", "The Jacobian in ``argnums``.")
    ''
    >>> described("archimedes", "jac", "static_argnums", "The Jacobian in ``argnums``.")
    'positions of arguments that are fixed in a recording'
    """
    own = NAMES.get(f"{package}.{name}", {}).get(parameter)
    if own or re.search(rf"\b{re.escape(parameter)}\b", text):
        return own or ""
    return PACKAGES.get(package, {}).get(parameter) or EVERYWHERE.get(parameter, "")


def wordless(package: str, name: str, value: Any, text: str) -> list[str]:
    """Return the parameters of a function that nothing describes."""
    return [
        p
        for p in inspect.signature(value).parameters
        if not re.search(rf"\b{re.escape(p)}\b", text) and not described(package, name, p, text)
    ]

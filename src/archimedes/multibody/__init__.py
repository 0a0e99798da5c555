"""Multibody dynamics: robots from files or a builder, and Featherstone's algorithms on them.

Spatial vectors have their linear part first, quaternions their scalar. `q` (nq,) and `v` (nv,)
follow ``model.joint_names``, the base first; a floating base has q = (position, quaternion) and
v = (linear, angular) in its own axes. Plain NumPy: compile, differentiate and batch any of it.
"""

from __future__ import annotations

from archimedes.multibody.algorithms.configurations import (
    coordinate_rates,
    difference,
    integrate,
    neutral,
    random_configuration,
)
from archimedes.multibody.algorithms.coriolis import coriolis_matrix
from archimedes.multibody.algorithms.factorization import inverse_mass_matrix
from archimedes.multibody.algorithms.forward_dynamics import aba, aba_derivatives
from archimedes.multibody.algorithms.inverse_dynamics import (
    gravity_torque,
    rnea,
    rnea_derivatives,
)
from archimedes.multibody.algorithms.inverse_kinematics import KinematicsResult, inverse_kinematics
from archimedes.multibody.algorithms.kinematics import (
    frame_acceleration,
    frame_jacobian,
    frame_jacobian_rate,
    frame_pose,
    frame_twist,
)
from archimedes.multibody.algorithms.mass_matrix import crba
from archimedes.multibody.algorithms.momentum import (
    center_of_mass,
    centroidal_matrix,
    centroidal_momentum,
    kinetic_energy,
    potential_energy,
)
from archimedes.multibody.algorithms.passive_forces import passive_torque
from archimedes.multibody.algorithms.regressor import (
    BaseParameters,
    base_parameters,
    inertial_parameters,
    torque_regressor,
)
from archimedes.multibody.algorithms.user_joints import user_joint
from archimedes.multibody.contact.compliant import contact_forces
from archimedes.multibody.contact.contact_shapes import (
    Contacts,
    Ground,
    Pair,
    box,
    capsule,
    contact_shapes,
    every_pair,
    half_space,
    sphere,
)
from archimedes.multibody.contact.time_stepping import contact_step
from archimedes.multibody.files.loading import load, read
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Mimic, Report
from archimedes.multibody.models.model import Model
from archimedes.multibody.parts.actuators import Drive, Lagged, Motor, Servo, Tendons
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.geometry import Shape, Surface, inertia_of_shapes
from archimedes.multibody.systems.constraints import (
    constrained_acceleration,
    constrained_dynamics,
    constraint_error,
    constraint_jacobian,
    project_configuration,
    project_velocity,
)
from archimedes.multibody.systems.dynamics import (
    DrivenState,
    State,
    actuator_torque,
    driven_state,
    dynamics,
    rest_state,
    with_rotors,
)
from archimedes.multibody.systems.sensors import encoder, imu, joint_wrench

__all__ = [
    "BaseParameters",
    "Builder",
    "Closure",
    "Contacts",
    "Coupling",
    "Drive",
    "DrivenState",
    "Ground",
    "KinematicsResult",
    "Lagged",
    "Mimic",
    "Model",
    "Motor",
    "Pair",
    "Report",
    "Servo",
    "Shape",
    "State",
    "Surface",
    "Tendons",
    "aba",
    "aba_derivatives",
    "actuator_torque",
    "base_parameters",
    "box",
    "capsule",
    "center_of_mass",
    "centroidal_matrix",
    "centroidal_momentum",
    "constrained_acceleration",
    "constrained_dynamics",
    "constraint_error",
    "constraint_jacobian",
    "contact_forces",
    "contact_shapes",
    "contact_step",
    "coordinate_rates",
    "coriolis_matrix",
    "crba",
    "difference",
    "driven_state",
    "dynamics",
    "encoder",
    "every_pair",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "frame_twist",
    "gravity_torque",
    "half_space",
    "imu",
    "inertia_of_shapes",
    "inertial_parameters",
    "integrate",
    "inverse_kinematics",
    "inverse_mass_matrix",
    "joint_wrench",
    "kinetic_energy",
    "load",
    "neutral",
    "passive_torque",
    "potential_energy",
    "project_configuration",
    "project_velocity",
    "random_configuration",
    "read",
    "rest_state",
    "rnea",
    "rnea_derivatives",
    "sphere",
    "torque_regressor",
    "user_joint",
    "with_rotors",
]

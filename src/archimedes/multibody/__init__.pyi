from archimedes.multibody.algorithms.configurations import coordinate_rates as coordinate_rates
from archimedes.multibody.algorithms.configurations import difference as difference
from archimedes.multibody.algorithms.configurations import integrate as integrate
from archimedes.multibody.algorithms.configurations import neutral as neutral
from archimedes.multibody.algorithms.configurations import (
    random_configuration as random_configuration,
)
from archimedes.multibody.algorithms.forward_dynamics import aba as aba
from archimedes.multibody.algorithms.forward_dynamics import aba_derivatives as aba_derivatives
from archimedes.multibody.algorithms.inverse_dynamics import coriolis_matrix as coriolis_matrix
from archimedes.multibody.algorithms.inverse_dynamics import gravity_torque as gravity_torque
from archimedes.multibody.algorithms.inverse_dynamics import rnea as rnea
from archimedes.multibody.algorithms.inverse_dynamics import rnea_derivatives as rnea_derivatives
from archimedes.multibody.algorithms.kinematics import center_of_mass as center_of_mass
from archimedes.multibody.algorithms.kinematics import centroidal_matrix as centroidal_matrix
from archimedes.multibody.algorithms.kinematics import centroidal_momentum as centroidal_momentum
from archimedes.multibody.algorithms.kinematics import frame_acceleration as frame_acceleration
from archimedes.multibody.algorithms.kinematics import frame_jacobian as frame_jacobian
from archimedes.multibody.algorithms.kinematics import frame_jacobian_rate as frame_jacobian_rate
from archimedes.multibody.algorithms.kinematics import frame_pose as frame_pose
from archimedes.multibody.algorithms.kinematics import frame_twist as frame_twist
from archimedes.multibody.algorithms.kinematics import kinetic_energy as kinetic_energy
from archimedes.multibody.algorithms.kinematics import pose as pose
from archimedes.multibody.algorithms.kinematics import potential_energy as potential_energy
from archimedes.multibody.algorithms.lengths import tendon_jacobian as tendon_jacobian
from archimedes.multibody.algorithms.lengths import tendon_length as tendon_length
from archimedes.multibody.algorithms.limits import limit_torque as limit_torque
from archimedes.multibody.algorithms.mass_matrix import crba as crba
from archimedes.multibody.algorithms.mass_matrix import inverse_mass_matrix as inverse_mass_matrix
from archimedes.multibody.algorithms.passive_forces import passive_torque as passive_torque
from archimedes.multibody.algorithms.regressor import BaseParameters as BaseParameters
from archimedes.multibody.algorithms.regressor import base_parameters as base_parameters
from archimedes.multibody.algorithms.regressor import inertial_parameters as inertial_parameters
from archimedes.multibody.algorithms.regressor import torque_regressor as torque_regressor
from archimedes.multibody.algorithms.user_joints import user_joint as user_joint
from archimedes.multibody.contact.contact_dynamics import contact_forces as contact_forces
from archimedes.multibody.contact.contact_dynamics import contact_step as contact_step
from archimedes.multibody.contact.contact_shapes import Contacts as Contacts
from archimedes.multibody.contact.contact_shapes import Ground as Ground
from archimedes.multibody.contact.contact_shapes import Pair as Pair
from archimedes.multibody.contact.contact_shapes import box as box
from archimedes.multibody.contact.contact_shapes import capsule as capsule
from archimedes.multibody.contact.contact_shapes import contact_shapes as contact_shapes
from archimedes.multibody.contact.contact_shapes import cylinder as cylinder
from archimedes.multibody.contact.contact_shapes import ellipsoid as ellipsoid
from archimedes.multibody.contact.contact_shapes import every_pair as every_pair
from archimedes.multibody.contact.contact_shapes import half_space as half_space
from archimedes.multibody.contact.contact_shapes import hull as hull
from archimedes.multibody.contact.contact_shapes import sphere as sphere
from archimedes.multibody.contact.decomposition import convex_parts as convex_parts
from archimedes.multibody.contact.distances import Distance as Distance
from archimedes.multibody.contact.distances import distance as distance
from archimedes.multibody.contact.soft_dynamics import soft_dynamics as soft_dynamics
from archimedes.multibody.files.loading import load as load
from archimedes.multibody.files.loading import read as read
from archimedes.multibody.files.saving import save as save
from archimedes.multibody.models.builder import Builder as Builder
from archimedes.multibody.models.builder_parts import Mimic as Mimic
from archimedes.multibody.models.builder_parts import Report as Report
from archimedes.multibody.models.model import Model as Model
from archimedes.multibody.parts.actuators import Drive as Drive
from archimedes.multibody.parts.actuators import Lagged as Lagged
from archimedes.multibody.parts.actuators import Motor as Motor
from archimedes.multibody.parts.actuators import Muscle as Muscle
from archimedes.multibody.parts.actuators import Servo as Servo
from archimedes.multibody.parts.closures import Closure as Closure
from archimedes.multibody.parts.closures import Coupling as Coupling
from archimedes.multibody.parts.geometry import Shape as Shape
from archimedes.multibody.parts.geometry import Surface as Surface
from archimedes.multibody.parts.geometry import inertia_of_shapes as inertia_of_shapes
from archimedes.multibody.parts.tendons import Pulley as Pulley
from archimedes.multibody.parts.tendons import Tendons as Tendons
from archimedes.multibody.parts.tendons import Wrap as Wrap
from archimedes.multibody.parts.transmissions import Transmission as Transmission
from archimedes.multibody.systems.constraints import (
    constrained_acceleration as constrained_acceleration,
)
from archimedes.multibody.systems.constraints import constrained_dynamics as constrained_dynamics
from archimedes.multibody.systems.constraints import constraint_error as constraint_error
from archimedes.multibody.systems.constraints import constraint_jacobian as constraint_jacobian
from archimedes.multibody.systems.constraints import project_configuration as project_configuration
from archimedes.multibody.systems.constraints import project_velocity as project_velocity
from archimedes.multibody.systems.dynamics import DrivenState as DrivenState
from archimedes.multibody.systems.dynamics import Keyframe as Keyframe
from archimedes.multibody.systems.dynamics import State as State
from archimedes.multibody.systems.dynamics import actuator_torque as actuator_torque
from archimedes.multibody.systems.dynamics import driven_state as driven_state
from archimedes.multibody.systems.dynamics import dynamics as dynamics
from archimedes.multibody.systems.dynamics import rest_state as rest_state
from archimedes.multibody.systems.dynamics import with_rotors as with_rotors
from archimedes.multibody.systems.sensors import encoder as encoder
from archimedes.multibody.systems.sensors import imu as imu
from archimedes.multibody.systems.sensors import joint_wrench as joint_wrench
from archimedes.multibody.tasks.inverse_kinematics import KinematicsResult as KinematicsResult
from archimedes.multibody.tasks.inverse_kinematics import (
    inverse_kinematics as inverse_kinematics,
)

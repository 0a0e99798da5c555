"""Attitudes, transforms, frames and rigid bodies: plain NumPy code on arrays and structs."""

from __future__ import annotations

from archimedes.spatial.attitudes.attitude import Attitude
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.dcm import dcm_angular_velocity, dcm_kinematics, dcm_normalize
from archimedes.spatial.attitudes.estimation import Alignment, align_vectors, mean
from archimedes.spatial.attitudes.euler import (
    dcm_to_euler,
    euler_kinematics,
    euler_to_dcm,
    euler_to_euler,
    euler_to_quaternion,
    quaternion_to_euler,
)
from archimedes.spatial.attitudes.euler_angles import EulerAngles
from archimedes.spatial.attitudes.interpolation import slerp, squad, squad_controls
from archimedes.spatial.attitudes.modified_rodrigues import ModifiedRodrigues
from archimedes.spatial.attitudes.mrp import (
    dcm_to_mrp,
    mrp_kinematics,
    mrp_normalize,
    mrp_shadow,
    mrp_to_dcm,
    mrp_to_quaternion,
    quaternion_to_mrp,
)
from archimedes.spatial.attitudes.quaternion import Quaternion
from archimedes.spatial.attitudes.quaternions import (
    dcm_to_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_inverse,
    quaternion_kinematics,
    quaternion_kinematics_matrix,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_dcm,
)
from archimedes.spatial.attitudes.rotation_matrix import RotationMatrix
from archimedes.spatial.attitudes.rotation_vector import RotationVector
from archimedes.spatial.attitudes.rotvec import (
    dcm_to_rotvec,
    rotvec_kinematics,
    rotvec_to_dcm,
    so3_left_jacobian,
    so3_right_jacobian,
)
from archimedes.spatial.earth_referenced import EarthReferencedBody
from archimedes.spatial.kinematic_tree import KinematicTree
from archimedes.spatial.pseudo_forces import (
    cm_velocity,
    exhaust_thrust,
    gyroscopic_moment,
    inertia_rate_moment,
    mass_rate_force,
    moment_about_cm,
    parallel_axis,
    reference_velocity,
    rotating_frame_acceleration,
)
from archimedes.spatial.rigid_body import RigidBody
from archimedes.spatial.se3 import (
    se3_adjoint,
    se3_exp,
    se3_left_jacobian,
    se3_log,
    se3_right_jacobian,
)
from archimedes.spatial.spatial_vectors import Force, Motion, SpatialInertia
from archimedes.spatial.splines import PoseSpline, QuaternionSpline
from archimedes.spatial.transformation import Transformation

__all__ = [
    "Alignment",
    "Attitude",
    "AttitudeBase",
    "EarthReferencedBody",
    "EulerAngles",
    "Force",
    "KinematicTree",
    "ModifiedRodrigues",
    "Motion",
    "PoseSpline",
    "Quaternion",
    "QuaternionSpline",
    "RigidBody",
    "RotationMatrix",
    "RotationVector",
    "SpatialInertia",
    "Transformation",
    "align_vectors",
    "cm_velocity",
    "dcm_angular_velocity",
    "dcm_kinematics",
    "dcm_normalize",
    "dcm_to_euler",
    "dcm_to_mrp",
    "dcm_to_quaternion",
    "dcm_to_rotvec",
    "euler_kinematics",
    "euler_to_dcm",
    "euler_to_euler",
    "euler_to_quaternion",
    "exhaust_thrust",
    "gyroscopic_moment",
    "inertia_rate_moment",
    "mass_rate_force",
    "mean",
    "moment_about_cm",
    "mrp_kinematics",
    "mrp_normalize",
    "mrp_shadow",
    "mrp_to_dcm",
    "mrp_to_quaternion",
    "parallel_axis",
    "quaternion_conjugate",
    "quaternion_exp",
    "quaternion_inverse",
    "quaternion_kinematics",
    "quaternion_kinematics_matrix",
    "quaternion_log",
    "quaternion_multiply",
    "quaternion_normalize",
    "quaternion_to_dcm",
    "quaternion_to_euler",
    "quaternion_to_mrp",
    "reference_velocity",
    "rotating_frame_acceleration",
    "rotvec_kinematics",
    "rotvec_to_dcm",
    "se3_adjoint",
    "se3_exp",
    "se3_left_jacobian",
    "se3_log",
    "se3_right_jacobian",
    "slerp",
    "so3_left_jacobian",
    "so3_right_jacobian",
    "squad",
    "squad_controls",
]

from archimedes.spatial.attitudes.attitude_base import Attitude as Attitude
from archimedes.spatial.attitudes.attitude_base import AttitudeBase as AttitudeBase
from archimedes.spatial.attitudes.attitude_classes import EulerAngles as EulerAngles
from archimedes.spatial.attitudes.attitude_classes import ModifiedRodrigues as ModifiedRodrigues
from archimedes.spatial.attitudes.attitude_classes import Quaternion as Quaternion
from archimedes.spatial.attitudes.attitude_classes import Rotation as Rotation
from archimedes.spatial.attitudes.attitude_classes import RotationMatrix as RotationMatrix
from archimedes.spatial.attitudes.attitude_classes import RotationVector as RotationVector
from archimedes.spatial.attitudes.davenport import (
    davenport_to_quaternion as davenport_to_quaternion,
)
from archimedes.spatial.attitudes.davenport import (
    quaternion_to_davenport as quaternion_to_davenport,
)
from archimedes.spatial.attitudes.euler import dcm_to_euler as dcm_to_euler
from archimedes.spatial.attitudes.euler import euler_kinematics as euler_kinematics
from archimedes.spatial.attitudes.euler import euler_to_dcm as euler_to_dcm
from archimedes.spatial.attitudes.euler import euler_to_euler as euler_to_euler
from archimedes.spatial.attitudes.euler import euler_to_quaternion as euler_to_quaternion
from archimedes.spatial.attitudes.euler import quaternion_to_euler as quaternion_to_euler
from archimedes.spatial.attitudes.interpolation import Alignment as Alignment
from archimedes.spatial.attitudes.interpolation import align_vectors as align_vectors
from archimedes.spatial.attitudes.interpolation import mean as mean
from archimedes.spatial.attitudes.interpolation import slerp as slerp
from archimedes.spatial.attitudes.interpolation import squad as squad
from archimedes.spatial.attitudes.interpolation import squad_controls as squad_controls
from archimedes.spatial.attitudes.quaternions import dcm_angular_velocity as dcm_angular_velocity
from archimedes.spatial.attitudes.quaternions import dcm_kinematics as dcm_kinematics
from archimedes.spatial.attitudes.quaternions import dcm_normalize as dcm_normalize
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion as dcm_to_quaternion
from archimedes.spatial.attitudes.quaternions import quaternion_conjugate as quaternion_conjugate
from archimedes.spatial.attitudes.quaternions import quaternion_exp as quaternion_exp
from archimedes.spatial.attitudes.quaternions import quaternion_inverse as quaternion_inverse
from archimedes.spatial.attitudes.quaternions import quaternion_kinematics as quaternion_kinematics
from archimedes.spatial.attitudes.quaternions import (
    quaternion_kinematics_matrix as quaternion_kinematics_matrix,
)
from archimedes.spatial.attitudes.quaternions import quaternion_log as quaternion_log
from archimedes.spatial.attitudes.quaternions import quaternion_multiply as quaternion_multiply
from archimedes.spatial.attitudes.quaternions import quaternion_normalize as quaternion_normalize
from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm as quaternion_to_dcm
from archimedes.spatial.attitudes.rotvec import dcm_to_mrp as dcm_to_mrp
from archimedes.spatial.attitudes.rotvec import dcm_to_rotvec as dcm_to_rotvec
from archimedes.spatial.attitudes.rotvec import mrp_kinematics as mrp_kinematics
from archimedes.spatial.attitudes.rotvec import mrp_normalize as mrp_normalize
from archimedes.spatial.attitudes.rotvec import mrp_shadow as mrp_shadow
from archimedes.spatial.attitudes.rotvec import mrp_to_dcm as mrp_to_dcm
from archimedes.spatial.attitudes.rotvec import mrp_to_quaternion as mrp_to_quaternion
from archimedes.spatial.attitudes.rotvec import quaternion_to_mrp as quaternion_to_mrp
from archimedes.spatial.attitudes.rotvec import rotvec_kinematics as rotvec_kinematics
from archimedes.spatial.attitudes.rotvec import rotvec_to_dcm as rotvec_to_dcm
from archimedes.spatial.attitudes.rotvec import so3_left_jacobian as so3_left_jacobian
from archimedes.spatial.attitudes.rotvec import so3_right_jacobian as so3_right_jacobian
from archimedes.spatial.kinematic_tree import KinematicTree as KinematicTree
from archimedes.spatial.pseudo_forces import cm_velocity as cm_velocity
from archimedes.spatial.pseudo_forces import exhaust_thrust as exhaust_thrust
from archimedes.spatial.pseudo_forces import gyroscopic_moment as gyroscopic_moment
from archimedes.spatial.pseudo_forces import inertia_rate_moment as inertia_rate_moment
from archimedes.spatial.pseudo_forces import mass_rate_force as mass_rate_force
from archimedes.spatial.pseudo_forces import moment_about_cm as moment_about_cm
from archimedes.spatial.pseudo_forces import parallel_axis as parallel_axis
from archimedes.spatial.pseudo_forces import reference_velocity as reference_velocity
from archimedes.spatial.pseudo_forces import (
    rotating_frame_acceleration as rotating_frame_acceleration,
)
from archimedes.spatial.rigid_body import EarthReferencedBody as EarthReferencedBody
from archimedes.spatial.rigid_body import RigidBody as RigidBody
from archimedes.spatial.se3 import se3_adjoint as se3_adjoint
from archimedes.spatial.se3 import se3_exp as se3_exp
from archimedes.spatial.se3 import se3_left_jacobian as se3_left_jacobian
from archimedes.spatial.se3 import se3_log as se3_log
from archimedes.spatial.se3 import se3_right_jacobian as se3_right_jacobian
from archimedes.spatial.spatial_vectors import Force as Force
from archimedes.spatial.spatial_vectors import Motion as Motion
from archimedes.spatial.spatial_vectors import SpatialInertia as SpatialInertia
from archimedes.spatial.splines import PoseSpline as PoseSpline
from archimedes.spatial.splines import QuaternionSpline as QuaternionSpline
from archimedes.spatial.transformation import Transformation as Transformation

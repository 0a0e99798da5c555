"""Robots of the package example-robot-data, and the same ones in Pinocchio."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np

from archimedes import multibody as mb

__all__ = ["FILES", "Peer", "path_of"]

#: Files below the folder "robots", by a short name; those at the end float.
FILES = {
    "panda": "panda_description/urdf/panda.urdf",
    "ur3": "ur_description/urdf/ur3_robot.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "ur5_gripper": "ur_description/urdf/ur5_gripper.urdf",
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "ur10_limited": "ur_description/urdf/ur10_joint_limited_robot.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "so100": "so_arm_description/urdf/so100.urdf",
    "so101": "so_arm_description/urdf/so101.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "allegro_right": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "allegro_left": "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "finger_edu": "finger_edu_description/robots/finger_edu.urdf",
    "double_pendulum": "double_pendulum_description/urdf/double_pendulum.urdf",
    "double_pendulum_simple": "double_pendulum_description/urdf/double_pendulum_simple.urdf",
    "pendulum_continuous": "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "two_dofs": "asr_twodof_description/urdf/TwoDofs.urdf",
    "talos_left_arm": "talos_data/robots/talos_left_arm.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "tiago_no_hand": "tiago_description/robots/tiago_no_hand.urdf",
    "tiago_dual": "tiago_description/robots/tiago_dual.urdf",
    "tiago_pro": "tiago_pro_description/robots/tiago_pro.urdf",
}
FLOATING = {
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "b1": "b1_description/urdf/b1.urdf",
    "b1_z1": "b1_description/urdf/b1-z1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "solo": "solo_description/robots/solo.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "anymal_kinova": "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "quadruped": "quadruped_description/urdf/quadruped.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "g1_hands": "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf",
    "talos_reduced": "talos_data/robots/talos_reduced.urdf",
    "talos_full": "talos_data/robots/talos_full_v2.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
    "romeo_small": "romeo_description/urdf/romeo_small.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "icub_reduced": "icub_description/robots/icub_reduced.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "simple_humanoid_classical": "simple_humanoid_description/urdf/simple_humanoid_classical.urdf",
    "centauro": "centauro_description/urdf/centauro.urdf",
    "human": "human_description/robots/human.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
    "borinot": "borinot_description/urdf/borinot_flying_arm_2.urdf",
    "hextilt": "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
    "iris": "iris_description/robots/iris_simple.urdf",
    "quadrotor": "quadrotor_description/urdf/quadrotor_base.urdf",
    "alexander": "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
    "alex": "alex_description/urdf/alex_nub_hands.urdf",
    "alex_sake": "alex_description/urdf/alex_sake_hands.urdf",
    "alex_psyonic": "alex_description/urdf/alex_psyonic_hands.urdf",
}
FILES |= FLOATING


def folder() -> Path:
    """Return the folder of all robots."""
    distribution = importlib.metadata.distribution("example-robot-data")
    return Path(
        str(distribution.locate_file("cmeel.prefix/share/example-robot-data/robots"))
    ).resolve()


def path_of(name: str) -> Path:
    """Return the file of a robot."""
    found = folder() / FILES[name]
    if found.is_file():
        return found
    return next(folder().rglob(Path(FILES[name]).name))


class Peer:
    """One robot, here and in Pinocchio, with states in the convention of each."""

    def __init__(self, name: str, base: str | None = None, file: Path | None = None) -> None:
        import pinocchio as pin

        self.pin = pin
        base = base or ("floating" if name in FLOATING else "fixed")
        saved = file is not None
        file = file or path_of(name)
        self.model = mb.load(file, base, physical=name != "romeo_small")
        root = [pin.JointModelFreeFlyer()] if base == "floating" else []
        # Few algorithms of Pinocchio know mimic joints: there each joint moves by itself, and G
        # takes our velocities to theirs.
        self.peer = pin.buildModelFromUrdf(str(file), *root)
        self.data = self.peer.createData()
        self.mimics = {link.joint for link in self.model.links if link.mimic}
        theirs, ours = [*self.peer.names][1:], [link.joint for link in self.model.links]
        # A file that was saved says in which order its joints come, which only our reader knows.
        assert (sorted(theirs) == sorted(ours)) if saved else (theirs == ours)
        self.G = np.zeros((self.peer.nv, self.model.nv))
        for link in self.model.links:
            start = self.peer.joints[self.peer.getJointId(link.joint)].idx_v
            for k in range(link.kind.nv):
                self.G[start + k, link.v + k] = link.scale

    def states(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return random q (count, nq), v and a (count, nv)."""
        rng = np.random.default_rng(seed)
        q = np.stack([mb.random_configuration(self.model, rng) for _ in range(count)])
        return q, rng.normal(size=(count, self.model.nv)), rng.normal(size=(count, self.model.nv))

    def q_of(self, q: np.ndarray) -> np.ndarray:
        """Return Pinocchio's coordinates: quaternions scalar last, turns as cosine and sine."""
        out = np.zeros(self.peer.nq)
        for link in self.model.links:
            joint = self.peer.joints[self.peer.getJointId(link.joint)]
            own = link.scale * q[link.q : link.q + link.kind.nq] + link.offset
            if joint.nq == 7:
                own = np.concatenate([own[:3], own[4:], own[3:4]])
            elif joint.nq == 2 and joint.nv == 1:
                own = np.array([np.cos(own[0]), np.sin(own[0])])
            out[joint.idx_q : joint.idx_q + joint.nq] = own
        return out

"""An arm from a URDF file: look at it, put its hand somewhere, plan the way, drive it, watch it.

Any robot will do: change the file, the name of the hand and the pose where it starts.
"""

from pathlib import Path

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes.spatial import EulerAngles

# 1. Load the robot. `print` shows its joints, `view` what it looks like.
arm = mb.load(Path(__file__).with_name("arm.urdf"))
print(arm)
home = np.deg2rad([0.0, -30.0, 90.0, 0.0, 60.0, 0.0])
picture = arc.view(arm, mb.rest_state(arm, home), title="The arm at home")
# picture.show() opens it in the browser, picture.save("arm.html") writes it to a file.

# 2. Where should the hand be? A position in m, and an attitude: turned by 180 deg about x, so that
#    its z axis points down, and by 30 deg about the vertical.
target = mb.pose([0.35, 0.30, 0.15], EulerAngles(np.deg2rad([180.0, 0.0, 30.0]), "xyz"))
found = mb.inverse_kinematics(arm, "hand", target, home)
assert found.success, "out of reach: move the target, or start elsewhere"
print("angles in deg:", np.rad2deg(found.q).round(1))
print("the hand is at", mb.frame_pose(arm, found.q, "hand").t.round(6), "m")

# 3. Plan the way: from rest to rest in two seconds, by a polynomial of fifth order.
DURATION = 2.0


def plan(t):
    """Return the wanted angles at a time."""
    s = np.clip(t / DURATION, 0.0, 1.0)
    return home + s**3 * (10.0 - 15.0 * s + 6.0 * s**2) * (found.q - home)


plan_rate = arc.jac(plan)  # exact derivatives: no formulas to write
plan_acceleration = arc.jac(plan_rate)


# 4. Computed torque: what the planned motion takes, plus a correction of errors.
def torque(t, x, gain=20.0):
    """Return the torques of the motors in N m."""
    error, error_rate = plan(t) - x.q, plan_rate(t) - x.v
    a = plan_acceleration(t) + gain**2 * error + 2.0 * gain * error_rate
    return mb.rnea(arm, x.q, x.v, a, passive=True)


# The real arm is 10 % heavier than the controller thinks.
real = arm.replace(masses=1.1 * arm.masses, inertias=1.1 * arm.inertias)


def motion(t, x):
    """Return the rates of the real arm's state."""
    return mb.dynamics(real, t, x, torque(t, x))


t = np.linspace(0.0, 3.0, 151)
run = arc.solve_ode(motion, (0.0, 3.0), mb.rest_state(arm, home), t_eval=t)

# 5. How well did it go?
hand = mb.frame_pose(real, run.x.q, "hand").t
miss = 1e3 * np.linalg.norm(hand[-1] - target.t)
efforts = np.abs(arc.vmap(torque)(run.t, run.x)).max(axis=0)
print(f"the hand misses its target by {miss:.2f} mm")
for name, effort, limit in zip(arm.joint_names, efforts, arm.effort_limits):
    print(f"  {name:6s} {effort:6.1f} of {limit:5.1f} N m")
assert miss < 5.0 and np.all(efforts < arm.effort_limits)

# 6. Watch it: joints by name beside the moving arm.
movie = arc.view(arm, run, title="The hand goes to its target")
print(movie)

"""Multibody dynamics: robots from files or a builder, and Featherstone's algorithms on them.

Spatial vectors have their linear part first, quaternions their scalar. `q` (nq,) and `v` (nv,)
follow ``model.joint_names``, the base first; a floating base has q = (position, quaternion) and
v = (linear, angular) in its own axes. Plain NumPy: compile, differentiate and batch any of it.
"""

from archimedes.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__)

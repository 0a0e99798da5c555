"""Robots from files: URDF and SDF, and MJCF through MuJoCo's compiler."""

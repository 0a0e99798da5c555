"""Robots from files: URDF, and MJCF through MuJoCo's compiler."""

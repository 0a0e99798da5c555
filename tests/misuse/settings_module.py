"""A module whose attributes recorded functions read."""

gain = 2.0
table = [1.0, 2.0]


class Limits:
    """Read as ``settings_module.Limits.low``."""

    low = 1.0


def scaled(x):
    """Read as ``settings_module.scaled``, reads a global of its own."""
    return gain * x

"""A rocket in stages with its guidance, its parameters, its scene."""

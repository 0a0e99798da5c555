"""A satellite: its model, its parameters, its scene."""

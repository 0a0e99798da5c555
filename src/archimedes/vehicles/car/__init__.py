"""A car: its model, its parameters, its scene."""

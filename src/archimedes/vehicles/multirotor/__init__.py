"""A multirotor with its controller, its parameters, its scene."""

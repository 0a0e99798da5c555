"""Robots in simulations: dynamics, actuators, sensors, closed loops, contact."""

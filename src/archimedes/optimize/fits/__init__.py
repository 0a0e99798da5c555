"""Least squares: Levenberg and Marquardt's method, with bounds and robust losses."""

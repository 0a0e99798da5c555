"""Model-predictive control: linear and nonlinear, in recorded code."""

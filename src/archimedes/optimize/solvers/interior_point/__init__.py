"""An interior-point method of our own, for problems whose unknowns form a chain."""

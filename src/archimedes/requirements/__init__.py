"""Requirements on trajectories in signal temporal logic, and the search for runs that violate them."""

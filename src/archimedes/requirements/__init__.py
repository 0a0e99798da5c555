"""Requirements on trajectories in temporal logic, and the search for runs that violate them."""

"""What a robot should do: configurations for targets, torques for tasks, clear of obstacles."""

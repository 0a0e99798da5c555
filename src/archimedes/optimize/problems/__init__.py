"""What solvers are given and give back: blocks of functions, limits, tasks, results."""

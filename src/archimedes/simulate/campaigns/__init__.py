"""Monte Carlo campaigns: seeded, spread over workers, restartable."""

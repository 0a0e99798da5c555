"""Running recordings on numbers: the tiers of the call path."""

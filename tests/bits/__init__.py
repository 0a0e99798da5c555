"""Results whose bits are the same on every processor: ``python -m tests.bits``."""

"""The traced array, and how NumPy's calls reach it."""

"""Linear systems: what they are, in steps, regulated, seen in frequency, reduced."""

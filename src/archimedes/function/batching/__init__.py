"""Functions over many instances at once."""

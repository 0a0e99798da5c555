"""The entry that CPython calls directly."""

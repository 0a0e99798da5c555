"""What a model says of itself before it runs: units, frames, digits.

Every checker returns findings that name the user's line (``findings.py``).
"""

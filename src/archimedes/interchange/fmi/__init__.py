"""Functional Mock-up Units (FMI 2.0 and 3.0): models that leave for other tools, and theirs."""

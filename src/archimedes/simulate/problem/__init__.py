"""What users give to a solver, checked and made ready to record."""

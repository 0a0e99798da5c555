"""What a simulation returns, its tables and its files."""

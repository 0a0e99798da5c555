"""What generated code takes, and where each of its lines comes from."""

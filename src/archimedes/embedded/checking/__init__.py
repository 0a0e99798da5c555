"""What generated code takes and gives, seen on this machine."""

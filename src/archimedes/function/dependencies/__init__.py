"""What a function depends on: its code and all that it reads."""

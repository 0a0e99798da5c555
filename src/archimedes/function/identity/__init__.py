"""What a function is: its code and all that it reads."""

"""Events: what users write, where they happen, what is logged of them."""

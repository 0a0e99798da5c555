"""C types, names and values from trees."""

"""Linear models in NumPy, with their features and losses."""

"""A plan as SQL, in one dialect for each engine."""

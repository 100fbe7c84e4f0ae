"""A plan as compiled passes over columns in memory."""

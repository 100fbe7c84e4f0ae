"""Work: questions run in processes of their own, under a deadline and a memory limit, and appear at their tick."""

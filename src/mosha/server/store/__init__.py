"""What the server remembers: plain SQL over SQLite or PostgreSQL. What was paid is in the ledger, and nowhere else."""

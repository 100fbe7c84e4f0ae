"""Where the book is kept: SQLite or PostgreSQL, the hash chain, the witness, readers and forks."""

"""Everything that Mosha publishes, as targets of its own attacks."""

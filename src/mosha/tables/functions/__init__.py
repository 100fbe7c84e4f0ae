"""What functions of SQL mean: constants, moments, texts, and functions of results."""

"""Names: loaded when they are used, kept under an old spelling for a while, or missing with their extra."""

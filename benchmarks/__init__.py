"""How fast and how accurate Mosha is, next to others, in ratios of one run."""

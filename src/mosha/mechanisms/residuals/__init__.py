"""Residuals of marginals: their axes, one noise for all of them, and how its price is best divided."""

"""Exact sums over examples: what classic models are made of, and how far one unit moves them."""

"""Noise for running sums: buffered and banded Toeplitz, trees, noise for each step."""

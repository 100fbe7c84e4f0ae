"""Synthetic graphs and what is built on them: communities, seeds of influence."""

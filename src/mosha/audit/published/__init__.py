"""Attacks on tables and models that somebody has published."""

"""Whole databases behind glass: tables, keys, and the path by which each row finds its person."""

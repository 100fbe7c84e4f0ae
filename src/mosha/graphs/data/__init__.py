"""Graphs as data: reading, edge lists, labels, sparse and compiled forms."""

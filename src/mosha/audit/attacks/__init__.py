"""Attacks that need only a measurement's step and event."""

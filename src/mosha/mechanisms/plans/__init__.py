"""Runs of many steps that are priced as a whole: who is drawn, how they are clipped, which noise."""

"""Exact statistics on a public grid, each with the sensitivity that follows from its declared bounds."""

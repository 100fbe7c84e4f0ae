"""Secure aggregation: keys, shares, sessions, the client's and the server's side."""

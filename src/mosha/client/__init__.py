"""Asking a server from Python, with the verbs of the library: `lab = mosha.connect_to(url, token=...)`."""

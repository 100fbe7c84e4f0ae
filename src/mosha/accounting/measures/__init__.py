"""One pure function for each measure of privacy: what an event costs in it, and how it converts."""

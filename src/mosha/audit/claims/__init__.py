"""What is claimed, by whom, about which neighbours."""

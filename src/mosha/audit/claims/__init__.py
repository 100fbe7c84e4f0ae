"""What is claimed, by whom, about which neighbors."""

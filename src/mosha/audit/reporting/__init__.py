"""What an audit found, for people and programs."""

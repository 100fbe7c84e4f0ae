"""What an account promised and released: for people, and for public registries."""

"""Plans of federated runs: who adds the noise, what a round releases, and what all of them cost."""

"""The parts of a release: each with its exact numbers, its noise, its price and its error bars."""

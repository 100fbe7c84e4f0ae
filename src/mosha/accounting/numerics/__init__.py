"""Numbers of accounting: rounding to the safe side, exact prices, composition, normal and binomial tails."""

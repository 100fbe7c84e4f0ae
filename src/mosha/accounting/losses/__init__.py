"""The privacy loss as a distribution: pairs that cover events, and the tight accountant that composes them."""

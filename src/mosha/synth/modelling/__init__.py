"""From noisy residuals to a model: what stages measure, the mixture that is fitted to it, and rows drawn from it."""

"""From rows to noisy residuals: columns in cells, marginals of them, and the noise that is drawn."""

"""Gradients of single examples: one file for each kind of layer, and the engine that clips and sums them."""

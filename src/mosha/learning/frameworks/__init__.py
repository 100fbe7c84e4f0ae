"""Private training in loops of somebody else: plain PyTorch, Hugging Face, Lightning, Accelerate."""

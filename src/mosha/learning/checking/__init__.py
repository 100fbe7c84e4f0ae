"""What is tried on made-up rows before anything is paid: a step, per-example gradients, layers that mix examples."""

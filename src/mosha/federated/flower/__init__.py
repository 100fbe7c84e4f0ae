"""The same rounds and questions on Flower, over a network."""

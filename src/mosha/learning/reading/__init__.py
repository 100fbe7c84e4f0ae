"""How the rows of a training are read: what an example is made of, which rows cannot be used, what a loader says."""

"""How far the noise of a running sum reaches in trees that others made, per unit of noise at a node."""

import math


def binary_deviation(steps: int) -> float:
    """The root of the number of nodes of a binary tree that a running sum uses."""
    return math.sqrt(steps.bit_count())


def honaker_deviation(steps: int) -> float:
    """The same where each node is combined with the sums below it (Honaker 2015, from below).

    A node over 2^l leaves has, after combination, the variance v_l = 1 / (1 + 1 / (2 v_(l-1))), v_0 = 1.
    """
    variance, total = 1.0, 0.0
    for level in range(steps.bit_length()):
        if level:
            variance = 1 / (1 + 1 / (2 * variance))
        total += variance * (steps >> level & 1)
    return math.sqrt(total)

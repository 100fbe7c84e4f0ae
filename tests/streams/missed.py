"""How many of the largest 25 of Zipf counts alarms miss: the exact mean, by the law of the noise."""

import math
from typing import Any

import numpy as np

RECORDS, ITEMS, ALARMS = 1_000_000, 10_000, 25
WEIGHTS = 1 / np.arange(1, ITEMS + 1)
COUNTS = np.rint(RECORDS * WEIGHTS / WEIGHTS.sum()).astype(int)
LEVEL = math.ceil((COUNTS[ALARMS - 1] + COUNTS[ALARMS]) / 2)
MOST = 160  # more than so many items above the threshold have a probability below 1e-12


def one_sided(noise: Any, shares: Any) -> Any:
    """P(told) for each item, a row for each share of the threshold's law; geometric noise on both."""
    shift = np.floor(-float(noise.threshold) * np.log1p(-shares))
    missing = LEVEL + noise.offset + shift[:, None] - COUNTS
    return np.exp(-np.maximum(missing, 0) / float(noise.answer))


def two_sided(noise: Any, shares: Any) -> Any:
    """The same for Laplace noise of the same scales: the textbook's noise with the best split."""
    shift = float(noise.threshold) * np.where(shares < 0.5, np.log(2 * shares), -np.log(2 - 2 * shares))
    missing = (LEVEL + shift[:, None] - COUNTS) / float(noise.answer)
    return np.where(missing > 0, np.exp(-np.maximum(missing, 0)) / 2, 1 - np.exp(np.minimum(missing, 0)) / 2)


def missed(told: Any, noise: Any, points: Any = 64) -> Any:
    """The mean share of the top items that are not among the first alarms, items being asked in random order.

    Given the threshold items are told independently. With t of the top and r of the rest above it, the first alarms are
    as likely any as others: t min(1, alarms / (t + r)) of the top are told in the mean.
    """
    chances = told(noise, (np.arange(points) + 0.5) / points)
    top, rest = numbers(chances[:, :ALARMS]), numbers(chances[:, ALARMS:])
    t, r = np.arange(MOST)[:, None], np.arange(MOST)
    kept = t * np.minimum(1, ALARMS / np.maximum(t + r, 1))
    return 1 - float(np.mean(np.einsum("zt,tr,zr->z", top, kept, rest))) / ALARMS


def numbers(chances: Any) -> Any:
    """The law of how many of these are told, a row for each row of chances."""
    law = np.zeros((chances.shape[0], MOST))
    law[:, 0] = 1
    for chance in chances.T[:, :, None]:
        moved = law * chance
        law -= moved
        law[:, 1:] += moved[:, :-1]
    return law

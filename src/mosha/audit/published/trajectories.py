"""How few points of a trajectory single a person out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer

__all__ = ["measure_unicity"]


def measure_unicity(traces: ArrayLike, *, points: int) -> float:
    """The share of people whom so many random points of their own trace single out among all (de Montjoye et al. 2013).

    Units:
        A share of all people who have so many points, from 0 to 1.

    Args:
        traces: people by times: the number of the place where each one was, negative where it is not known.
        points: how many times and places of a person the attacker knows.

    >>> measure_unicity([[1, 2, 3], [1, 2, 4], [1, 2, 4]], points=3)
    0.3333333333333333
    """
    places = np.asarray(traces)
    if places.ndim != 2 or places.dtype.kind not in "iu" or places.size == 0:
        raise InvalidParameter("audit.not_traces", parameter="traces")
    rng, alone = np.random.default_rng(), []
    for trace in places:
        known = np.flatnonzero(trace >= 0)
        if known.size >= positive_integer("points", points):
            times = rng.choice(known, points, replace=False)
            alone.append(int(np.all(places[:, times] == trace[times], axis=1).sum()) == 1)
    return float(np.mean(alone)) if alone else 0.0

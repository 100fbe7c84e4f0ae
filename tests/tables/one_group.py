"""The choice of a quantile for one group, as the tests of its law ask for it."""

from typing import Any

import numpy as np

from mosha.tables.mechanisms.rank_choice import Pieces, Ranked, choose_points


def rank_group(cells: Any, counts: Any) -> Any:
    """All cells of one group, none of them in a lump."""
    starts = np.array([0, len(cells)])
    return Ranked(np.asarray(cells, np.int64), np.asarray(counts), starts, np.zeros(len(cells), bool))


def choose_point(cells: Any, counts: Any, span: Any, share: Any, scale: Any, rng: Any) -> Any:
    (point,) = choose_points(Pieces.from_ranked(rank_group(cells, counts), span), share, scale, rng).tolist()
    return point

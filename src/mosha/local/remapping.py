"""The likeliest true place behind a report, given a public map of where people are: post-processing, free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.local.location import EARTH, Location, Point, check_place

__all__ = ["remap"]


@explain_wrong_calls
def remap(location: Location, reported: Point, *, cells: Sequence[Point], prior: Sequence[float]) -> Point:
    """The cell that is nearest to the true place on average (Chatzikokolakis, ElSalamouny, Palamidessi 2017).

    The chance of each cell, given the report, is in proportion to its prior times e^(-epsilon distance); the cell with
    the least expected distance is chosen. It uses the report and public numbers alone, so it costs nothing; with a
    prior that fits, its error is never above that of the report on average.

    Units:
        Places are (latitude, longitude) in degrees.

    Args:
        location: how the place was reported.
        reported: the report.
        cells: public places to choose from.
        prior: how many people are at each, in any unit.

    >>> city = Location((0.0, 0.0), 5000, 0.01)
    >>> remap(city, (0.0, 0.001), cells=[(0.0, 0.0), (0.0, 0.01)], prior=[1, 1])
    (0.0, 0.0)
    """
    if not isinstance(location, Location):
        raise InvalidParameter("local.no_location", parameter="location")
    try:
        places, weights = np.asarray(cells, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("local.not_cells", parameter="cells") from None
    if places.ndim != 2 or places.shape[1] != 2 or weights.shape != places.shape[:1] or not len(places):
        raise InvalidParameter("local.prior_per_cell", parameter="prior")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any() or not np.isfinite(places).all():
        raise InvalidParameter("local.prior_weights", parameter="prior")
    away = _meters(places, np.asarray([check_place(reported)]))[:, 0]
    with np.errstate(divide="ignore"):
        likely = np.log(weights) - location.epsilon / location.stretch * away
    chances = np.exp(likely - likely.max())
    found = int(np.argmin(_meters(places, places) @ chances))
    return float(places[found, 0]), float(places[found, 1])


def _meters(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """All distances on the sphere."""
    a, c = np.radians(one)[:, None, :], np.radians(other)[None, :, :]
    half = np.sin((c[..., 0] - a[..., 0]) / 2) ** 2
    half = half + np.cos(a[..., 0]) * np.cos(c[..., 0]) * np.sin((c[..., 1] - a[..., 1]) / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.minimum(1.0, np.sqrt(half))))

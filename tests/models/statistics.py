"""Every sum that a classic model is made of, with neighbors that strain it; laws run on all of them."""

from typing import Any

import numpy as np

from mosha import Example, Person
from mosha.learning.linear.losses import SCALE
from mosha.models import MomentSums, Ranges
from mosha.models.bayes import CategoryCounts
from mosha.models.clusters import ClusterSums
from mosha.models.density import CellCounts
from mosha.models.forests import LeafCounts
from mosha.models.sums.group_cells import GroupCells
from mosha.models.sums.residual_sums import BinCounts, ResidualSums

ADD, REPLACE, PERSON = Example(), Example(neighbors="replace-one"), Person("who", at_most=2)  # type: ignore[arg-type]
BOX = Ranges((-1.0, 0.0, 10.0), (1.0, 5.0, 20.0))
CORNERS = [[1.0, 5.0, 20.0], [-1.0, 0.0, 10.0], [1e300, -1e300, float("inf")], [0.0, 2.5, 15.0], [None, 1.0, 12.0]]


def every_sum() -> Any:
    found = {f"moments, {s}": (MomentSums(BOX, None, s), CORNERS, None) for s in ("none", "squares", "products")}
    found["moments, shortened"] = (MomentSums(BOX, norm=1.2), CORNERS, None)
    found["moments by class"] = (MomentSums(BOX, ("a", "b"), "squares"), CORNERS, ["a", "b", "a", "?", None])  # type: ignore[assignment]
    words = [["u", 1], ["v", 2], ["?", None], ["u", 2], ["v", 1]]
    found["categories"] = (CategoryCounts((("u", "v"), (1, 2)), ("a", "b")), words, ["a", "b", "a", "?", None])  # type: ignore[assignment]
    cells = CellCounts(Ranges((0.0,), (8.0,)), 4)
    found["cells"] = (cells, [[0.0], [8.0], [-1e300], [float("nan")], [3.9]], None)  # type: ignore[assignment]
    found["cells by group"] = (GroupCells(cells.ranges, 4, ("a", "b")), found["cells"][1], ["a", "b", "a", "?", None])  # type: ignore[assignment]
    found["clusters"] = (ClusterSums(BOX, np.array([[0, 0, 0], [9, 99, 9999]])), CORNERS, None)  # type: ignore[assignment]
    splits = (((0, 1), (1, 1), (2, 3)), ((2, 2), (0, 2), (0, 3)))
    found["leaves"] = (LeafCounts(BOX, ("a", "b"), 2, 4, splits), CORNERS, ["a", "b", "a", "?", None])  # type: ignore[assignment]
    found["bins"] = (BinCounts(BOX, 4), CORNERS, None)  # type: ignore[assignment]
    found["residuals, two classes"] = (residuals("logistic", 1, ("a", "b")), CORNERS, ["a", "b", "a", "?", None])  # type: ignore[assignment]
    found["residuals, three classes"] = (residuals("softmax", 3, "abc"), CORNERS, ["a", "b", "c", "?", None])  # type: ignore[assignment]
    found["residuals, numbers"] = (  # type: ignore[assignment]
        residuals("squared", 1, None),
        [row[:2] for row in CORNERS],
        [20, 10, 1e300, None, 12],
    )
    return found


def residuals(loss: Any, outputs: Any, classes: Any) -> Any:
    """For scores that are wrong on purpose, so that residuals are as large as they get."""
    scores = np.random.default_rng().integers(-1 << 22, 1 << 22, (3 - (classes is None), 4, outputs))
    clip = int(1.4144 * SCALE) if outputs > 1 else SCALE
    named = None if classes is None else tuple(classes)
    start = np.zeros(outputs, np.int64)
    return ResidualSums(BOX, 4, loss, clip, outputs, 2, named, scores, start, 0, np.array([0, 0, 1, 1]))


def neighbors_of(rows: Any, labels: Any, unit: Any) -> Any:
    """(first, second): one unit more, or one in the place of another, in a crowd and alone."""
    pairs = []
    for crowd in ([], list(range(len(rows)))):
        for odd in range(len(rows)):
            for other in range(len(rows)) if unit is REPLACE else [None]:
                times = 2 if unit is PERSON else 1
                first, second = [*crowd, *[odd] * times], [*crowd, *([] if other is None else [other])]
                pairs.append((_take(rows, labels, first, unit, times), _take(rows, labels, second, unit, 0)))
    return pairs


def _take(rows: Any, labels: Any, places: Any, unit: Any, times: Any) -> tuple[Any, ...]:
    persons = None
    if unit is PERSON:
        persons = [f"p{k}" for k in range(len(places) - times)] + ["odd"] * times
    return [rows[p] for p in places], None if labels is None else [labels[p] for p in places], persons


def random_rows(count: Any, generator: Any = None) -> Any:
    return (generator or np.random.default_rng()).uniform(-1, 1, (count, 3))

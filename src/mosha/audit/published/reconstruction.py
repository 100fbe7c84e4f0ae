"""Many accurate counts give the table away: reconstruction by linear programming, and differencing.

Dinur and Nissim (2003): whoever answers enough counts with an error well below the root of n publishes the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.audit.attacks.interval import at_least
from mosha.audit.reporting.report import Report
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.number import positive_integer, strict_probability

__all__ = ["Differencing", "Reconstruction", "differencing", "reconstruct", "reconstruction_attack"]

Floats = NDArray[np.float64]


def reconstruct(members: ArrayLike, answers: ArrayLike) -> NDArray[np.int64]:
    """The 0/1 column that fits published counts best: least sum of absolute errors, then rounded.

    Args:
        members: one row a question, one column a person: 1 where the person is counted if their secret is 1.
        answers: the published counts.

    >>> reconstruct([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 0, 1]).tolist()
    [1, 0, 0]
    """
    from scipy.optimize import linprog  # noqa: PLC0415  (loaded when it is needed)

    matrix, counts = np.asarray(members, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    if matrix.ndim != 2 or counts.shape != matrix.shape[:1] or not np.isfinite(counts).all():
        raise InvalidParameter("audit.members_and_counts", parameter="members")
    questions, people = matrix.shape
    slack = np.eye(questions)  # minimise sum t with -t <= A x - y <= t, 0 <= x <= 1
    limits = np.block([[matrix, -slack], [-matrix, -slack]])
    cost = np.concatenate([np.zeros(people), np.ones(questions)])
    bounds: list[tuple[float, float | None]] = [(0.0, 1.0)] * people + [(0.0, None)] * questions
    solved = linprog(cost, A_ub=limits, b_ub=np.concatenate([counts, -counts]), bounds=bounds, method="highs")
    if solved.x is None:
        raise InvalidParameter("audit.counts_fit_nothing", parameter="answers")
    return np.asarray(solved.x[:people] > 0.5, dtype=np.int64)


@dataclass(frozen=True)
class Reconstruction(Report):
    """How much of a secret column was rebuilt from answers to counting questions."""

    right: int
    people: int
    questions: int
    baseline: float
    share_at_least: float
    confidence: float

    @property
    def share(self) -> float:
        return self.right / self.people

    def __str__(self) -> str:
        return say("audit.reconstruction", **vars(self), share=self.share)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "share": self.share}


def reconstruction_attack(
    secrets: ArrayLike,
    answer: Callable[[Floats], ArrayLike],
    *,
    questions: int | None = None,
    confidence: float = 0.999,
) -> Reconstruction:
    """Ask for the counts of random subsets and rebuild everybody's secret bit from the answers.

    Args:
        secrets: a made-up 0/1 column, whose owner is the attacker.
        answer: takes the exact counts of all questions and gives what would be published.
        questions: how many subsets are asked about; four times the people by default.
        confidence: of the bound, which takes people as independent.

    >>> import numpy as np
    >>> found = reconstruction_attack(np.arange(40) % 2, lambda counts: counts)
    >>> type(found).__name__
    'Reconstruction'
    """
    truth = np.asarray(secrets)
    if truth.ndim != 1 or truth.size < 2 or not np.isin(truth, (0, 1)).all():
        raise InvalidParameter("audit.not_zeros_and_ones", parameter="secrets")
    asked = 4 * truth.size if questions is None else positive_integer("questions", questions)
    members = np.random.default_rng().integers(0, 2, (asked, truth.size))
    found = reconstruct(members, answer((members @ truth).astype(np.float64)))
    right = int((found == truth).sum())
    alpha = 1 - strict_probability("confidence", confidence)
    share = float(max(truth.mean(), 1 - truth.mean()))
    return Reconstruction(right, truth.size, asked, share, at_least(right, truth.size, alpha=alpha), confidence)


@dataclass(frozen=True)
class Differencing(Report):
    """Who is given away exactly by adding and subtracting exact published totals."""

    exposed: tuple[int, ...]
    values: tuple[float, ...]
    recipes: tuple[str, ...]
    cells: int

    def __str__(self) -> str:
        head = say("audit.differencing", exposed=len(self.exposed), cells=self.cells)
        return "\n".join([head, *(f"  {recipe}" for recipe in self.recipes[:10])])


def differencing(
    members: ArrayLike, totals: ArrayLike, *, cells: Sequence[str] | None = None, questions: Sequence[str] | None = None
) -> Differencing:
    """Find the persons (or small cells) whose value is a combination of exact published totals.

    A cell is exposed iff its unit vector lies in the row space of the questions; the least-squares combination then
    gives its value. Exact totals only: noise of the right size is the cure.

    Args:
        members: one row a published total, one column a cell: 1 where the cell is counted.
        totals: the published totals.
        cells: the names of the columns, for the report.
        questions: the names of the rows.

    >>> print(differencing([[1, 1, 1], [1, 1, 0]], [190, 120], cells=["Ann", "Bo", "Cy"], questions=["all", "not Cy"]))
    Differencing: 1 of 3 cells follow exactly from the published totals.
      Cy = all - not Cy = 70
    """
    matrix, counts = np.asarray(members, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    if matrix.ndim != 2 or counts.shape != matrix.shape[:1]:
        raise InvalidParameter("audit.members_and_totals", parameter="members")
    width = matrix.shape[1]
    names = [f"cell {i}" for i in range(width)] if cells is None else [str(cell) for cell in cells]
    asked = [f"total {i}" for i in range(len(counts))] if questions is None else [str(q) for q in questions]
    if len(names) != width or len(asked) != len(counts):
        raise InvalidParameter("audit.names_of_cells", parameter="cells")
    weights: Floats = np.linalg.pinv(matrix.T).astype(
        np.float64
    )  # weights[:, i] combines the totals to the best guess at cell i
    reached = matrix.T @ weights
    exposed = [i for i in range(width) if np.abs(reached[:, i] - np.eye(width)[i]).max() < 1e-8]
    values = [float(counts @ weights[:, i]) for i in exposed]
    recipes = [
        f"{names[i]} = {_combination(weights[:, i], asked)} = {value:.6g}"
        for i, value in zip(exposed, values, strict=True)
    ]
    return Differencing(tuple(exposed), tuple(values), tuple(recipes), width)


def _combination(weights: Floats, names: Sequence[str]) -> str:
    text = ""
    for weight, name in zip(weights, names, strict=True):
        if abs(weight) > 1e-8:
            size = "" if abs(abs(weight) - 1) < 1e-8 else f"{abs(weight):.3g} * "
            sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
            text += f"{sign}{size}{name}"
    return text

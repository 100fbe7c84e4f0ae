"""Attacks on published (synthetic) data: who was in the original, and what was in one column of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.audit.attacks.canary import OneRun, audit_one_run
from mosha.audit.attacks.interval import at_least, at_most
from mosha.audit.claims.claim import Claim
from mosha.audit.published.table import columns, distances, pick
from mosha.audit.reporting.report import Report
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.guarantee import Guarantee
from mosha.core.language import say
from mosha.core.number import strict_probability

__all__ = ["AttributeAttack", "MembershipAttack", "attribute_attack", "membership_attack", "score_by_marginals"]

_CHUNK = 500  # candidates compared with the published rows at a time


@dataclass(frozen=True)
class MembershipAttack(Report):
    """How well the published data betray who was in the original.

    Fields:
        advantage: true-positive rate minus false-positive rate of the attacker who calls half of the candidates
            present, and a bound that it exceeds with the stated confidence.
        one_run: the same candidates as canaries: a lower bound on mu or epsilon, exact if fair coins put them in.
    """

    scores: NDArray[np.float64]
    advantage: float
    advantage_at_least: float
    true_positives: dict[float, float]
    one_run: OneRun
    confidence: float

    def __str__(self) -> str:
        rates = [say("audit.rate", true=true, false=false) for false, true in self.true_positives.items()]
        said = say(
            "audit.membership",
            advantage=self.advantage,
            least=self.advantage_at_least,
            confidence=self.confidence,
            rates=rates,
        )
        return f"{said}\n{self.one_run}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "advantage": self.advantage,
            "advantage_at_least": self.advantage_at_least,
            "true_positives": {str(rate): value for rate, value in self.true_positives.items()},
            "one_run": self.one_run.to_dict(),
            "confidence": self.confidence,
        }


def _nearest(published: object, candidates: object, names: Sequence[str] | None) -> tuple[Any, Any, list[str]]:
    released, asked = columns(published), columns(candidates)
    shared = list(names) if names is not None else [name for name in asked if name in released]
    if not shared:
        raise InvalidParameter("audit.no_shared_column", parameter="names")
    columns(published, needs=shared), columns(candidates, needs=shared)
    return released, asked, shared


def closeness(published: object, candidates: object, *, names: Sequence[str] | None = None, near: int = 3) -> Any:
    """A score for each candidate: how close its nearest published row is, and next to it the few nearest (0: equal)."""
    released, asked, shared = _nearest(published, candidates, names)
    scores = []
    total = len(asked[shared[0]])
    for start in range(0, total, _CHUNK):
        apart = distances(pick(asked, slice(start, start + _CHUNK)), released, shared)
        kept = min(near, apart.shape[1])
        nearest = np.partition(apart, kept - 1, axis=1)[:, :kept]
        scores.append(-nearest.min(axis=1) - 0.1 * nearest.mean(axis=1))
    return np.concatenate(scores)


_FEW, _BINS = 20, 10


def _number_cells(tables: Sequence[Any], name: str) -> tuple[list[NDArray[np.int64]], int]:
    """The cells of one column in several tables; numbers with many values fall into bins of the last table."""
    values = [table[name] for table in tables]
    if all(column.dtype.kind in "iuf" for column in values) and len(np.unique(values[-1])) > _FEW:
        edges = np.unique(np.nanquantile(values[-1].astype(np.float64), np.linspace(0, 1, _BINS + 1)[1:-1]))
        return [np.searchsorted(edges, column, side="right").astype(np.int64) for column in values], len(edges) + 1
    texts = np.concatenate([column.astype(str) for column in values])
    _, codes = np.unique(texts, return_inverse=True)
    ends = np.cumsum([len(column) for column in values])[:-1]
    return [part.astype(np.int64) for part in np.split(codes, ends)], int(codes.max(initial=0)) + 1


def score_by_marginals(
    published: object, candidates: object, reference: object, *, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """A score for each candidate: how much more often the published table has its pairs of values than the world does.

    The attacker knows a reference, rows of the same world that were not in the data. A synthetic table that follows the
    marginals of its data too closely has the pairs of values of those who were in too often; nearness to single rows
    (what `membership_attack` looks at by itself) shows nothing of that. Hand the scores to `membership_attack`.

    Args:
        published: the synthetic table, a mapping of columns or a data frame.
        candidates: the rows in question, with the same columns.
        reference: other rows of the same world.
        names: the columns to look at; all that the published table and the candidates share by default.

    >>> world, people = {"a": [0, 1, 2, 3] * 9, "b": [0, 1] * 18}, {"a": [0, 3], "b": [0, 1]}
    >>> scores = score_by_marginals({"a": [0, 0, 1], "b": [0, 0, 1]}, people, world)
    >>> bool(scores[0] > scores[1])
    True
    """
    released, asked, shared = _nearest(published, candidates, names)
    tables = (released, asked, columns(reference, needs=shared))
    coded = {name: _number_cells(tables, name) for name in shared}
    scores = np.zeros(len(asked[shared[0]]))
    for first, second in itertools.combinations_with_replacement(shared, 2):
        (left, _), (right, width) = coded[first], coded[second]
        shown, mine, known = (a * width + b for a, b in zip(left, right, strict=True))
        size = 1 + max(int(cells.max(initial=0)) for cells in (shown, mine, known))
        usual = (np.bincount(known, minlength=size) + 0.5) / (len(known) + 0.5 * size)
        there = np.bincount(shown, minlength=size) / max(len(shown), 1)
        scores += ((there - usual) / usual)[mine]
    return scores


def membership_attack(
    published: object,
    candidates: object,
    included: ArrayLike,
    *,
    confidence: float = 0.999,
    delta: float | None = None,
    claim: Claim | Guarantee | Event | None = None,
    names: Sequence[str] | None = None,
    scores: ArrayLike | None = None,
) -> MembershipAttack:
    """Guess which candidates were in the data that a published table was made from.

    Put each candidate in by a fair coin (`draw_inclusion` of `attacks/canary.py`): then the statement about privacy is
    exact. Candidates that merely happen to be in or out give an honest advantage, but no bound.

    Args:
        published: the released or synthetic table, a mapping of columns or a data frame.
        candidates: the rows in question, with the same columns.
        included: which of them were in.
        confidence: of each of the two statements.
        delta: as for `audit_one_run`, and so is `claim`.
        claim: what the publisher promises.
        names: the columns to compare; all they share by default.
        scores: a stronger attacker's own scores, such as those of `score_by_marginals`, in the place of closeness to
            published rows.

    >>> import numpy as np
    >>> people = {"age": list(range(200))}
    >>> included = np.arange(200) % 2 == 0
    >>> published = {"age": [age for age in range(200) if age % 2 == 0]}
    >>> membership_attack(published, people, included).advantage > 0.9
    True
    """
    truth = np.asarray(included)
    values = closeness(published, candidates, names=names) if scores is None else np.asarray(scores, dtype=np.float64)
    if truth.dtype != bool or truth.shape != values.shape or truth.all() or not truth.any():
        raise InvalidParameter("audit.bad_included", parameter="included")
    alpha = (1 - strict_probability("confidence", confidence)) / 2
    order = np.lexsort((np.random.default_rng().random(len(values)), values))  # ties are broken blindly
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    called = ranks >= len(values) // 2
    hits, misses = int((called & truth).sum()), int((called & ~truth).sum())
    inside, outside = int(truth.sum()), int((~truth).sum())
    low = at_least(hits, inside, alpha=alpha) - at_most(misses, outside, alpha=alpha)
    rates = {rate: float((values[truth] > np.quantile(values[~truth], 1 - rate)).mean()) for rate in (0.01, 0.1)}
    run = audit_one_run(ranks, truth, confidence=confidence, delta=delta, claim=claim)
    return MembershipAttack(values, hits / inside - misses / outside, max(0.0, float(low)), rates, run, confidence)


@dataclass(frozen=True)
class AttributeAttack(Report):
    """How often one column of a known person is guessed from the published data.

    What matters is the difference: somebody who was never in the data is guessed as well as science allows; that is
    what the data teach about the world and no leak.
    """

    members: float
    others: float
    difference_at_least: float
    baseline: float
    confidence: float

    def __str__(self) -> str:
        return say("audit.attribute", **vars(self))


def attribute_attack(
    published: object,
    candidates: object,
    included: ArrayLike,
    *,
    sensitive: str,
    known: Sequence[str],
    confidence: float = 0.999,
) -> AttributeAttack:
    """Guess the sensitive column of people whose other columns are known, from the nearest published row.

    `published` is the released table, `candidates` one of people with all their columns, and `included` says which of
    them were in the data. The attacker knows the columns `known` and guesses `sensitive`. `confidence` is that of the
    lower bound on how much more is guessed about those who were included.

    >>> import numpy as np
    >>> people = {"age": list(range(40)), "ill": [age % 2 for age in range(40)]}
    >>> included = np.arange(40) < 20
    >>> found = attribute_attack(people, people, included, sensitive="ill", known=["age"])
    >>> type(found).__name__
    'AttributeAttack'
    """
    released = columns(published, needs=[*known, sensitive])
    asked = columns(candidates, needs=[*known, sensitive])
    truth = np.asarray(included)
    if truth.dtype != bool or truth.shape != asked[sensitive].shape or truth.all() or not truth.any():
        raise InvalidParameter("audit.bad_included", parameter="included")
    guessed = []
    for start in range(0, len(truth), _CHUNK):
        apart = distances(pick(asked, slice(start, start + _CHUNK)), released, list(known))
        guessed.append(released[sensitive][apart.argmin(axis=1)])
    right = np.concatenate(guessed).astype(str) == asked[sensitive].astype(str)
    alpha = (1 - strict_probability("confidence", confidence)) / 2
    inside, outside = int(truth.sum()), int((~truth).sum())
    hits, others = int(right[truth].sum()), int(right[~truth].sum())
    low = at_least(hits, inside, alpha=alpha) - at_most(others, outside, alpha=alpha)
    _, counts = np.unique(asked[sensitive].astype(str), return_counts=True)
    return AttributeAttack(
        hits / inside, others / outside, max(0.0, float(low)), float(counts.max() / len(truth)), confidence
    )

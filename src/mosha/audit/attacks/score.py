"""Scores: functions of an answer that are high where the first world is likely, learned on training answers.

A threshold on a score is an event. Scores are learned on one part of the training answers and their thresholds
are chosen on another; neither part is used again for the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosha.audit.attacks.features import Feature
from mosha.audit.claims.answers import Answers
from mosha.core.language import Phrase, phrase

__all__ = ["BinnedScore", "CombinedScore", "PlainScore", "Score", "combine_scores", "learn_bins", "order_by_number"]

Floats = NDArray[np.float64]
_LEVELS = np.unique(
    np.concatenate([np.linspace(0, 1, 65), np.geomspace(1e-4, 1 / 64, 13), 1 - np.geomspace(1e-4, 1 / 64, 13)])
)
CODES = 2048  # different codes that get a bin of their own


@dataclass(frozen=True, eq=False)
class Score:
    """A function of an answer, and the words for the event that it is at least (or at most) a threshold."""

    name: str
    doubt: ClassVar[float] = 3.0  # standard deviations by which the choice of its threshold is mistrusted

    def __call__(self, answers: Answers) -> Floats:
        raise NotImplementedError

    def describe(self, threshold: float, *, high: bool) -> Phrase:
        return phrase("audit.is_at_least" if high else "audit.is_at_most", what=self.name, threshold=f"{threshold:.4g}")


@dataclass(frozen=True, eq=False)
class PlainScore(Score):
    """One feature as it is, or its negative: its events are half-lines."""

    feature: Feature
    sign: int
    missing: bool  # some training answers have none
    doubt: ClassVar[float] = 2.0  # only the threshold was learned, though of many features

    def __call__(self, answers: Answers) -> Floats:
        values = self.sign * self.feature.read(answers).astype(np.float64)
        return np.where(np.isnan(values), -np.inf, values)

    def describe(self, threshold: float, *, high: bool) -> Phrase:
        if threshold == -np.inf:
            return phrase("audit.is_anything" if high else "audit.is_missing", what=self.name)
        side = "least" if high == (self.sign > 0) else "most"
        missing = "_or_missing" if self.missing and not high else ""
        said = phrase(f"audit.is_at_{side}{missing}", what=self.name, threshold=f"{self.sign * threshold:.6g}")
        return _add_meaning(self.feature, said)


def order_by_number(feature: Feature, first: Answers, second: Answers) -> list[PlainScore]:
    """A feature of numbers in both directions; codes have no order and give none."""
    if feature.category:
        return []
    missing = any(np.isnan(feature.read(world)).any() for world in (first, second))
    return [PlainScore(feature.name, feature, sign, missing) for sign in (1, -1)]


@dataclass(frozen=True, eq=False)
class BinnedScore(Score):
    """The logarithm of the likelihood ratio of the bin into which one feature falls.

    Numbers: bins 0, 2, 4, ... lie between the cuts, bins 1, 3, 5, ... are the cuts themselves, so that an
    atom has a bin of its own; the last bin holds NaN. Codes: one bin a known code, the last for all others.
    """

    feature: Feature
    cuts: NDArray[np.float64] | NDArray[np.uint64]
    logs: Floats
    examples: tuple[str, ...] = ()

    def __call__(self, answers: Answers) -> Floats:
        return self.logs[_bins(self.feature, self.cuts, answers)]

    def describe(self, threshold: float, *, high: bool) -> Phrase:
        chosen = self.logs >= threshold if high else self.logs <= threshold
        if self.feature.category:
            names = [text for text, inside in zip(self.examples, chosen, strict=False) if inside]
            names += [phrase("audit.anything_else")] if chosen[-1] else []
            return phrase("audit.is_one_of", what=self.feature.name, values=_shorten(names))
        intervals = _shorten(list(_intervals(self.cuts.astype(np.float64), chosen)))
        return _add_meaning(self.feature, phrase("audit.is_in", what=self.feature.name, values=intervals))


def _add_meaning(feature: Feature, sentence: Phrase) -> Phrase:
    """The sentence, after what it means for people, where there is something to say."""
    if not feature.meaning:
        return sentence
    return phrase("audit.with_meaning", meaning=feature.meaning, sentence=sentence)


def _shorten(words: list[str]) -> list[str]:
    """The first few of them, and how many more there are."""
    return [*words[:6], *([phrase("audit.more", number=len(words) - 6)] if len(words) > 6 else [])]


def _intervals(cuts: Floats, chosen: NDArray[np.bool_]) -> list[str]:
    """The chosen bins as a few intervals, neighboring bins joined."""
    words: list[str] = []
    ordered, start = chosen[:-1], None
    for i in range(len(ordered) + 1):
        inside = i < len(ordered) and bool(ordered[i])
        if inside and start is None:
            start = i
        if not inside and start is not None:
            words.append(_interval(cuts, start, i - 1))
            start = None
    return [*words, "NaN"] if chosen[-1] else words


def _interval(cuts: Floats, first: int, last: int) -> str:
    """The union of the bins first .. last."""
    low = "(-inf" if first == 0 else f"{'[' if first % 2 else '('}{cuts[(first - 1) // 2]:.6g}"
    high = "inf)" if last == 2 * len(cuts) else f"{cuts[last // 2]:.6g}{']' if last % 2 else ')'}"
    return f"{cuts[first // 2]:.6g}" if first == last and first % 2 else f"{low}, {high}"


def _bins(feature: Feature, cuts: NDArray[np.float64] | NDArray[np.uint64], answers: Answers) -> NDArray[np.intp]:
    values = feature.read(answers)
    left = np.searchsorted(cuts, values)
    equal = cuts[np.minimum(left, len(cuts) - 1)] == values
    if feature.category:
        return np.where(equal, left, len(cuts))
    return np.where(np.isnan(values), 2 * len(cuts) + 1, 2 * left + equal)


def _cuts(
    feature: Feature, first: Answers, second: Answers
) -> tuple[NDArray[np.float64] | NDArray[np.uint64], tuple[str, ...]]:
    pooled = np.concatenate([feature.read(first), feature.read(second)])
    if not feature.category:
        finite = np.sort(pooled[~np.isnan(pooled)])
        if not len(finite):
            return np.zeros(1), ()
        places = np.round(_LEVELS * (len(finite) - 1)).astype(np.intp)
        return np.unique(finite[places]), ()
    codes, rows, counts = np.unique(pooled, return_index=True, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:CODES])
    examples = (first.show(row) if row < len(first) else second.show(row - len(first)) for row in map(int, rows[kept]))
    return codes[kept], tuple(examples)


def learn_bins(feature: Feature, first: Answers, second: Answers) -> BinnedScore:
    """Learn the likelihood ratio of one feature; bins that were seldom seen are drawn towards none."""
    cuts, examples = _cuts(feature, first, second)
    size = len(cuts) + 1 if feature.category else 2 * len(cuts) + 2
    one, two = (
        np.bincount(_bins(feature, cuts, world), minlength=size).astype(np.float64) for world in (first, second)
    )
    logs = np.log((one + 1) / (len(first) + 1)) - np.log((two + 1) / (len(second) + 1))
    return BinnedScore(feature.name, feature, cuts, logs, examples)


@dataclass(frozen=True, eq=False)
class CombinedScore(Score):
    """A weighted sum of binned scores and of plain numbers: logistic regression."""

    inputs: tuple[Callable[[Answers], Floats], ...]
    centres: Floats
    scales: Floats
    weights: Floats

    def __call__(self, answers: Answers) -> Floats:
        total = np.zeros(len(answers))
        for read, centre, scale, weight in zip(self.inputs, self.centres, self.scales, self.weights, strict=False):
            total += weight * _standard(read(answers), centre, scale)
        return total


def _standard(column: Floats, centre: float, scale: float) -> Floats:
    """A column in units of its spread, with what is missing in the middle and what is far away held."""
    held = np.clip((column - centre) / scale, -8.0, 8.0)
    held[np.isnan(held)] = 0.0
    return held


def combine_scores(
    scores: Sequence[BinnedScore], first: Answers, second: Answers, *, rows: int = 10_000
) -> CombinedScore:
    """Learn how to weigh scores of single features, with their plain numbers beside them."""
    inputs: list[Callable[[Answers], Floats]] = list(scores)
    inputs += [_numbers(score.feature) for score in scores if not score.feature.category]
    first, second = first.part(0, rows), second.part(0, rows)
    raw = [np.concatenate([read(first), read(second)]) for read in inputs]
    finite = [column[np.isfinite(column)] for column in raw]
    centres = np.array([np.median(column) if len(column) else 0.0 for column in finite])
    scales = np.array([_spread(column) for column in finite])
    columns = [_standard(column, *place) for column, *place in zip(raw, centres, scales, strict=True)]
    design = np.stack([*columns, np.ones(len(first) + len(second))], axis=1)
    label = np.repeat([1.0, 0.0], [len(first), len(second)])
    name = phrase("audit.weighted_score", parts=[score.name for score in scores])
    return CombinedScore(name, tuple(inputs), centres, scales, _logistic(design, label))


def _numbers(feature: Feature) -> Callable[[Answers], Floats]:
    return lambda answers: feature.read(answers).astype(np.float64)


def _spread(column: Floats) -> float:
    if not len(column):
        return 1.0
    low, high = np.quantile(column, [0.1, 0.9])
    spread = float(high - low) / 2.56 or float(column.std())
    return spread if np.isfinite(spread) and spread > 0 else 1.0


def _logistic(design: Floats, label: Floats, *, penalty: float = 1.0, rounds: int = 15) -> Floats:
    """Newton's method on the penalised likelihood; stops when a step no longer improves it.

    The sums are einsum's, on one core: matrices this small are not worth waking the others.
    """
    weights = np.zeros(design.shape[1])
    ridge = penalty * np.eye(len(weights))
    best = np.inf
    for _ in range(rounds):
        margin = np.clip(np.einsum("ni,i->n", design, weights), -30.0, 30.0)
        chance = 1 / (1 + np.exp(-margin))
        loss = float(np.sum(np.logaddexp(0, margin) - label * margin) + penalty / 2 * weights @ weights)
        if loss > best - 1e-3:
            break
        best = loss
        curvature = np.einsum(
            "ni,n,nj->ij", design, chance * (1 - chance), design, optimize=["einsum_path", (0, 1), (0, 1)]
        )
        slope = np.einsum("ni,n->i", design, label - chance) - penalty * weights
        weights = weights + np.linalg.solve(curvature + ridge, slope)
    return weights

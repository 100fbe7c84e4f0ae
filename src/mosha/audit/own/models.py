"""Classic models as the attacker meets them: one example more, at a corner of the declared ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mosha import models as c
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.own.tables import rows_of
from mosha.audit.registry import Entry
from mosha.core.measurement import Measurement
from mosha.core.unit import Example, Neighbors, Person
from mosha.models.paying import Price, add_noise_to
from mosha.models.sums.table_sums import table_moments
from mosha.tables import protect

__all__ = ["own_entries"]

REPLACED = Example(neighbors=Neighbors.REPLACE_ONE)
TWO = Person("who", at_most=2)
CLASSES = (0, 1)
Rows = Sequence[Sequence[object]]


def own_entries() -> list[Entry]:
    """One entry or more for each classic model."""
    return [*_moment_models(), *_counting_models(), *_stepwise_models(), *_tests(), *_table_models()]


def _entry(name: str, build: Callable[[], Measurement], proposals: Sequence[Proposal]) -> Entry:
    return Entry(f"models: {name}", build, tuple(proposals), name.partition(":")[0])


def _data(rows: Rows, labels: Sequence[object] | None, persons: Sequence[object] | None = None) -> object:
    return [list(row) for row in rows], None if labels is None else list(labels), persons


def _corners(*, labels: bool = False) -> list[Proposal]:
    """One example or none, far outside of the ranges, and against a crowd."""
    none = _data([], [] if labels else None)
    crowd, own = [[1.0, -1.0]] * 4, [1, 1, 1, 1]
    one = _data([[1.0, 1.0]], [1] if labels else None)
    far = _data([[-1e300, float("inf")]], [0] if labels else None)
    more = _data([*crowd, [-1.0, 1.0]], [*own, 0] if labels else None)
    return [
        Proposal("one example or none", one, none),
        Proposal("one far outside", far, none),
        Proposal("one against a crowd", more, _data(crowd, own if labels else None)),
    ]


def _replacements() -> list[Proposal]:
    return [Proposal("from corner to corner", _data([[1.0, 1.0]], None), _data([[-1.0, -1.0]], None))]


def _moment_models() -> list[Entry]:
    box = (-1, 1)
    target = [
        Proposal("one example or none", _data([[1.0, 1.0]], [1.0]), _data([], [])),
        Proposal("one without a target", _data([[1.0, 1.0]], [None]), _data([], [])),
    ]
    return [
        _entry("StandardScaler: pure", lambda: c.StandardScaler(between=box, epsilon=1).measurement(2), _corners()),
        _entry("PCA: Gaussian", lambda: c.PCA(between=box, mu=1).measurement(2), _corners()),
        _entry("PCA: shortened", lambda: c.PCA(between=box, norm=1.0, mu=1).measurement(2), _corners()),
        _entry("PCA: replaced", lambda: c.PCA(between=box, mu=1, unit=REPLACED).measurement(2), _replacements()),
        _entry(
            "LinearRegression: pure",
            lambda: c.LinearRegression(between=box, target=(-1, 1), epsilon=1).measurement(2),
            target,
        ),
        _entry("Ridge: Gaussian", lambda: c.Ridge(between=box, target=(-1, 1), mu=1).measurement(2), target),
        _entry("Lasso: Gaussian", lambda: c.Lasso(between=box, target=(-1, 1), rho=0.5).measurement(2), target),
        _entry(
            "GaussianNB: pure",
            lambda: c.GaussianNB(classes=CLASSES, between=box, epsilon=1).measurement(2),
            _corners(labels=True),
        ),
    ]


def _counting_models() -> list[Entry]:
    lists = ((1.0, -1.0), (1.0, -1.0))
    single = [
        Proposal("one number or none", _data([[1.0]], None), _data([], None)),
        Proposal("one that is missing", _data([[None]], None), _data([], None)),
    ]
    return [
        _entry(
            "CategoricalNB: pure",
            lambda: c.CategoricalNB(classes=CLASSES, categories=lists, epsilon=1).measurement(),
            _corners(labels=True),
        ),
        _entry(
            "HistogramDensity: pure",
            lambda: c.HistogramDensity(bins=2, between=(0, 1), epsilon=1).measurement(),
            single,
        ),
    ]


def _stepwise_models() -> list[Entry]:
    """Models that ask several times, or choose before they count."""
    box = (-1, 1)
    followed = [
        Proposal("one with an event or none", _data([[1.0, 1.0]], [[0.5, 1.0]]), _data([], [])),
        Proposal("one that is followed to the end", _data([[1.0, -1.0]], [[9.0, 0.0]]), _data([], [])),
    ]
    clusters = c.KMeans(n_clusters=2, net=2, steps=1, between=box, mu=1)
    return [
        _entry("KMeans: two looks", lambda: clusters.measurement(2).map(_flatten), _corners()),
        _entry(
            "DecisionTreeClassifier: one split",
            lambda: (
                c.DecisionTreeClassifier(classes=CLASSES, between=box, depth=1, bins=2, epsilon=1)
                .measurement(2)
                .map(_flatten_tree)
            ),
            _corners(labels=True),
        ),
        _entry(
            "RandomForestClassifier: two trees",
            lambda: c.RandomForestClassifier(
                classes=CLASSES, between=box, n_estimators=2, depth=1, bins=2, epsilon=1, random_state=0
            ).measurement(2),
            _corners(labels=True),
        ),
        _entry(
            "GradientBoostingClassifier: one round",
            lambda: (
                c.GradientBoostingClassifier(classes=CLASSES, between=box, rounds=1, bins=2, leaves=2, mu=1)
                .measurement(2)
                .map(_flatten)
            ),
            _corners(labels=True),
        ),
        _entry(
            "PoissonRegressor: one step",
            lambda: c.PoissonRegressor(most=2, examples=4, between=box, steps=1, mu=1).measurement(2),
            _corners(labels=True),
        ),
        _entry(
            "CoxRegression: one step",
            lambda: c.CoxRegression(horizon=1, intervals=2, examples=4, between=box, steps=1, mu=1).measurement(2),
            followed,
        ),
    ]


def _flatten(answer: object) -> list[float]:
    return [float(number) for number in np.ravel(np.asarray(answer))]


def _flatten_tree(answer: object) -> list[float]:
    assert isinstance(answer, dict)
    return _flatten([*np.ravel(answer["splits"]), *answer["leaves"]])


def _tests() -> list[Entry]:
    numbers = [
        Proposal("one number or none", _data([[1.0]], ["a"]), _data([], [])),
        Proposal("one far outside", _data([[-1e300]], ["b"]), _data([], [])),
    ]
    words = [Proposal("one row or none", _data([["x"]], ["a"]), _data([], []))]
    return [
        _entry(
            "ChiSquareTest: pure",
            lambda: c.ChiSquareTest(categories=("x", "y"), groups=("a", "b"), epsilon=1).measurement(),
            words,
        ),
        _entry("TTest: pure", lambda: c.TTest(between=(0, 1), groups=("a", "b"), epsilon=1).measurement(), numbers),
        _entry("Anova: Gaussian", lambda: c.Anova(between=(0, 1), groups=("a", "b"), mu=1).measurement(), numbers),
        _entry(
            "KolmogorovSmirnovTest: pure",
            lambda: c.KolmogorovSmirnovTest(between=(0, 1), groups=("a", "b"), bins=2, epsilon=1).measurement(),
            numbers,
        ),
    ]


def _table_models() -> list[Entry]:
    crowd: list[tuple[str | None, str | None, float | None]] = [(f"p{i}", "ab"[i % 2], 4.0) for i in range(4)]
    many: list[tuple[str | None, str | None, float | None]] = [("odd", "a", 8.0)] * 9

    def build() -> Measurement:
        sums = c.MomentSums(c.Ranges((0.0,), (8.0,)), ("a", "b"), "squares")
        exact = table_moments(protect(rows_of(crowd), unit=TWO), sums, ["x"], "g")
        return add_noise_to(exact, TWO, Price(mu=1.0))

    pairs = [Proposal("a person with many rows", rows_of([*crowd, *many]), rows_of(crowd))]
    return [_entry("GaussianNB: of a table, persons", build, pairs)]

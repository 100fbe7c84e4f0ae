"""Hypothesis tests on noisy counts and moments, whose p-values know about the noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mosha.connect.language.expression import col, lit
from mosha.connect.language.value import Rows
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.measurement import Measurement
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.core.unit import Example, Unit
from mosha.models.bayes import CategoryCounts
from mosha.models.density import MOST_BINS
from mosha.models.null_worlds import (
    NoiseDraw,
    anova_statistic,
    distance_statistic,
    draw_counts,
    draw_moments,
    independence_statistic,
    null_moments,
    null_shares,
    welch_statistic,
)
from mosha.models.paying import Price, add_noise_to, noise_deviation, pay_for_table, pay_from
from mosha.models.ranges import read_ranges
from mosha.models.sums.group_cells import GroupCells
from mosha.models.sums.moments import Moments, MomentSums, check_labels
from mosha.models.sums.row_sums import Floats, RowSums
from mosha.models.sums.table_sums import TableSums, is_remote, table_cells, table_moments
from mosha.tables import Table

__all__ = ["Anova", "ChiSquareTest", "KolmogorovSmirnovTest", "TTest", "TestResult"]

WORLDS = 4999
"""Simulated worlds in which the null hypothesis is true."""


@dataclass(frozen=True, repr=False)
class TestResult(Shown):
    """What a test found: its `statistic`, and how often a world without any effect shows one as large (`p_value`).

    `receipt` says who paid.

    >>> TestResult(3.2, 0.004, None).rejects(0.05)
    True
    """

    __test__ = False  # no test of pytest's

    statistic: float
    p_value: float
    receipt: Receipt | None

    def __repr__(self) -> str:
        return f"TestResult(statistic {self.statistic:.4g}, p-value {self.p_value:.4g})"

    def make_card(self) -> Card:
        """The statistic, the p-value and the receipt."""
        facts = [(say("models.shown_statistic"), f"{self.statistic:.4g}"), ("p", f"{self.p_value:.4g}")]
        notes = () if self.receipt is None else (str(self.receipt),)
        return Card(title=say("models.shown_test"), facts=facts, notes=notes)

    def rejects(self, level: float) -> bool:
        """Whether the null hypothesis is rejected at this `level`."""
        return self.p_value <= level


@dataclass(frozen=True, kw_only=True)
class HypothesisTest(ABC):
    """What all tests share: a price, one release, and worlds in which the null hypothesis is true.

    Methods take the protected `table` with its two `columns` (values, groups), or the `noisy` numbers of a release, the
    standard `deviation` of their `noise`, and a way to draw that noise again.

    Args:
        epsilon: the price, by Laplace noise; or
        delta: with epsilon, the better of Laplace and Gaussian noise; or
        rho: the price in zero-concentrated privacy; or
        mu: the price in Gaussian privacy.
        unit: whose presence is hidden: an Example (the default), or a Person with `at_most` examples.

    Guarantee:
        One release of counts or moments; the p-value is post-processing. It compares the statistic of the noisy numbers
        with that of `WORLDS` simulated ones, noise of the same law included, drawn from what the release says about
        everything but the hypothesis (Gaboardi et al. 2016): (1 + as large) / (1 + WORLDS).
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    unit: Unit | None = None

    @property
    def price(self) -> Price:
        """What a run costs."""
        return Price(self.epsilon, self.delta, self.rho, self.mu)

    @property
    def protected(self) -> Unit:
        """Whose presence is hidden."""
        return Example() if self.unit is None else self.unit

    @abstractmethod
    def sums(self) -> RowSums:
        """What is counted or summed."""

    @abstractmethod
    def of_table(self, table: Table, columns: tuple[str, str]) -> TableSums:
        """The same of two columns of a protected table: values, then groups."""

    @abstractmethod
    def judge(self, noisy: Floats, deviation: float, noise: NoiseDraw) -> tuple[float, Floats]:
        """The statistic, and those of the simulated worlds."""

    def measurement(self) -> Measurement:
        """What `run` opens: data are (values, groups, persons)."""
        return add_noise_to(self.sums(), self.protected, self.price)

    def run(
        self,
        values: object,
        groups: object = None,
        *,
        account: Account | None = None,
        persons: object = None,
        key: str | None = None,
        columns: tuple[str, str] | None = None,
    ) -> TestResult:
        """Pay, ask once, and compare with worlds without an effect.

        Args:
            values: one for each example, or a protected table, whose own account pays.
            groups: the group of each example.
            account: who pays for examples.
            persons: whose each example is, where the unit is a Person.
            key: makes a retry free.
            columns: of a table, the columns of the values and of the groups.
        """
        if isinstance(values, Table):
            if columns is None or len(columns) != 2:
                raise InvalidParameter("models.two_columns", parameter="columns", spent="nothing")
            exact = self.of_table(values, columns)
            measurement = add_noise_to(exact, values.unit, self.price)
            release = pay_for_table(values.account, measurement, exact.look, remote=is_remote(exact.relation), key=key)
        else:
            measurement = self.measurement()
            release = pay_from(account, measurement, (_as_rows(values), groups, persons), key)
        deviation = noise_deviation(measurement)
        noise = NoiseDraw(deviation, laplace=measurement.name.startswith("laplace"))
        found, worlds = self.judge(np.asarray(release.value, np.float64), deviation, noise)
        larger = int((worlds >= found).sum())
        return TestResult(found, (1 + larger) / (1 + len(worlds)), release.receipt)


def _as_rows(values: object) -> list[list[object]]:
    """One row for each value."""
    listed = values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload]
    return [[value] for value in listed]


@explain_wrong_calls
@dataclass(frozen=True, kw_only=True)
class ChiSquareTest(HypothesisTest):
    """Whether two columns of categories are independent.

    Args:
        categories: the values of the first column, declared in advance.
        groups: the values of the second.

    Guarantee:
        `CategoryCounts` of one feature, released once.

    >>> from mosha import Example, Ledger
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> test = ChiSquareTest(categories=("tea", "coffee"), groups=("a", "b"), epsilon=1)
    >>> test.run(["tea", "coffee"] * 2000, ["a", "b"] * 2000, account=account).p_value < 0.001
    True
    """

    categories: Sequence[object]
    groups: Sequence[object]

    def sums(self) -> CategoryCounts:
        return CategoryCounts((check_labels(self.categories),), check_labels(self.groups))

    def of_table(self, table: Table, columns: tuple[str, str]) -> TableSums:
        sums = self.sums()
        return table_cells(table, sums, {columns[0]: sums.categories[0]}, columns[1], sums.classes)

    def judge(self, noisy: Floats, deviation: float, noise: NoiseDraw) -> tuple[float, Floats]:
        table = noisy.reshape(len(self.groups), len(self.categories))
        count, shares = null_shares(table, deviation)
        worlds = draw_counts(count, shares, WORLDS) + noise.draw((WORLDS, *table.shape))
        return float(independence_statistic(table, deviation)), independence_statistic(worlds, deviation)


@explain_wrong_calls
@dataclass(frozen=True, kw_only=True)
class KolmogorovSmirnovTest(HypothesisTest):
    """Whether a number has the same distribution in two groups: the largest distance of two cumulative curves.

    Args:
        between: the declared range of the number.
        groups: the two groups, declared in advance.
        bins: into so many equal parts the range is split; curves are compared at their ends.

    Guarantee:
        `GroupCells`, released once.

    >>> from mosha import Example, Ledger
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> test = KolmogorovSmirnovTest(between=(0, 10), groups=("a", "b"), epsilon=1)
    >>> test.run([1.0, 5.0] * 2000, ["a", "b"] * 2000, account=account).p_value < 0.001
    True
    """

    between: tuple[float, float]
    groups: Sequence[object]
    bins: int = 32

    def sums(self) -> GroupCells:
        labels = check_labels(self.groups)
        if len(labels) != 2:
            raise InvalidParameter("models.two_groups", parameter="groups")
        if (bins := positive_integer("bins", self.bins)) > MOST_BINS:
            raise InvalidParameter("models.too_many_bins", parameter="bins", most=MOST_BINS)
        return GroupCells(read_ranges(self.between, 1), bins, labels)

    def of_table(self, table: Table, columns: tuple[str, str]) -> TableSums:
        sums = self.sums()
        low, width = sums.ranges.lows[0], 2 * float(sums.ranges.halves[0]) / self.bins
        place = ((col(columns[0]).cast("real") - lit(low)) / lit(width)).floor().clamp(0, self.bins - 1).cast("integer")
        relation = table.relation.where(~col(columns[0]).is_null() & col(columns[1]).is_in(*sums.classes))
        second = (col(columns[1]) == sums.classes[1]).cast("integer") * lit(self.bins)
        cells = tuple(range(2 * self.bins))
        return TableSums(sums, relation, table.unit, (("rows", Rows()),), place + second, cells)

    def judge(self, noisy: Floats, deviation: float, noise: NoiseDraw) -> tuple[float, Floats]:
        del deviation
        table = noisy.reshape(2, self.bins)
        counts = np.maximum(table.sum(axis=1), 1.0)
        pooled = np.maximum(table.sum(axis=0), 0.0) + 1e-9
        worlds = np.stack([draw_counts(n, pooled / pooled.sum(), WORLDS) for n in counts], axis=1)
        worlds = worlds + noise.draw(worlds.shape)
        return float(distance_statistic(table)), distance_statistic(worlds)


@dataclass(frozen=True, kw_only=True)
class _MeansTest(HypothesisTest):
    """Tests on the number, mean and variance of each group."""

    between: tuple[float, float]
    groups: Sequence[object]

    def sums(self) -> MomentSums:
        return MomentSums(read_ranges(self.between, 1), check_labels(self.groups), "squares")

    def of_table(self, table: Table, columns: tuple[str, str]) -> TableSums:
        return table_moments(table, self.sums(), [columns[0]], columns[1])

    def _moments(self, noisy: Floats, deviation: float) -> Moments:
        return self.sums().read_moments(noisy, deviation)


@explain_wrong_calls
@dataclass(frozen=True, kw_only=True)
class TTest(_MeansTest):
    """Whether two groups have the same mean, their variances unequal as they may be (Welch's t, two-sided).

    Args:
        between: the declared range of the number.
        groups: the two groups, declared in advance.

    Guarantee:
        `MomentSums` with squares by group, released once.

    >>> from mosha import Example, Ledger
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> test = TTest(between=(0, 10), groups=("a", "b"), epsilon=1)
    >>> test.run([1.0, 5.0] * 2000, ["a", "b"] * 2000, account=account).p_value < 0.001
    True
    """

    def sums(self) -> MomentSums:
        if len(check_labels(self.groups)) != 2:
            raise InvalidParameter("models.two_groups", parameter="groups")
        return super().sums()

    def judge(self, noisy: Floats, deviation: float, noise: NoiseDraw) -> tuple[float, Floats]:
        moments = self._moments(noisy, deviation)
        worlds = draw_moments(null_moments(moments, pooled=False), noise.rescale(moments.deviation), WORLDS)
        return float(welch_statistic(*_parts(moments))), welch_statistic(*worlds)


@explain_wrong_calls
@dataclass(frozen=True, kw_only=True)
class Anova(_MeansTest):
    """Whether several groups have the same mean, for one variance in all of them (F of the analysis of variance).

    Args:
        between: the declared range of the number.
        groups: the groups, declared in advance.

    Guarantee:
        `MomentSums` with squares by group, released once.

    >>> from mosha import Example, Ledger
    >>> account = Ledger.memory().account("demo", unit=Example(), epsilon=1)
    >>> test = Anova(between=(0, 10), groups=("a", "b", "c"), epsilon=1)
    >>> test.run([1.0, 5.0, 5.0] * 2000, ["a", "b", "c"] * 2000, account=account).p_value < 0.001
    True
    """

    def judge(self, noisy: Floats, deviation: float, noise: NoiseDraw) -> tuple[float, Floats]:
        moments = self._moments(noisy, deviation)
        worlds = draw_moments(null_moments(moments, pooled=True), noise.rescale(moments.deviation), WORLDS)
        return float(anova_statistic(*_parts(moments))), anova_statistic(*worlds)


def _parts(moments: Moments) -> tuple[Floats, Floats, Floats]:
    return moments.counts, moments.firsts[:, 0], moments.seconds[:, 0, 0]

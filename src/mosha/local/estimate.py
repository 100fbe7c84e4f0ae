"""What the collector learns: shares with error bars, sums, and a bound on what fake devices can do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, say
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.names.deprecation import renamed_method
from mosha.core.number import positive_integer, strict_probability
from mosha.core.showing import Card, Shown, make_list_card
from mosha.local.collect.consistency import consistent
from mosha.local.collect.shrinkage import shrink_shares
from mosha.local.labels import identify_label
from mosha.local.protocols.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Interval", "Shares", "deviations", "poisoning", "write_footer"]


def write_footer(epsilon: float) -> str:
    """What stands beneath a picture of reports: what each of them keeps by itself, and the day.

    >>> write_footer(1.5).startswith("Private before it left the device: epsilon 1.5")
    True
    """
    return say("local.picture_promise", epsilon=epsilon, date=datetime.now(UTC).date().isoformat())


@dataclass(frozen=True)
class Interval:
    """A number, `value`, and `error`, the half-width of its error bar.

    Where the number is known to lie `within` a range, the ends of the bar do as well: no true value is cut off.

    >>> Interval(0.02, 0.05, within=(0.0, 1.0)).low
    0.0
    """

    value: float
    error: float
    within: tuple[float, float] = (-math.inf, math.inf)

    @property
    def low(self) -> float:
        return max(self.within[0], self.value - self.error)

    @property
    def high(self) -> float:
        return min(self.within[1], self.value + self.error)

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g}"


@dataclass(frozen=True, eq=False, repr=False)
class Shares(Shown):
    """The estimated share of each value among the devices that reported.

    `shares` are consistent: none negative, together one, and of less error than `raw` in all values together. `raw` are
    unbiased and carry the error bars; sums are made of them, because the bias of many small consistent shares would add
    up.

    Fields:
        values: the labels.
        reports: how many reports were counted.
        raw: the unbiased estimate of each share; may be negative.
        protocol: how devices reported.

    >>> from mosha.local import Frequency
    >>> survey = Frequency(["tea", "coffee"], epsilon=8)
    >>> shares = survey.estimate(survey.reports(["tea"] * 900 + ["coffee"] * 100))
    >>> shares.reports, shares.share("tea") > shares.share("coffee")
    (1000, True)
    """

    values: Sequence[Any]
    reports: int
    raw: NDArray[np.float64]
    protocol: Protocol

    def __repr__(self) -> str:
        return f"Shares({len(self.values):,} values, {self.reports:,} reports)"

    def make_card(self) -> Card:
        """Each value with its share and the bar of 95%."""
        heads = say("local.shown_value"), say("local.shown_share")
        facts = [(say("local.shown_reports"), f"{self.reports:,}")]
        numbers, errors = self.shares.tolist(), self.error().tolist()
        return make_list_card(say("local.shown_shares"), heads, self.values, numbers, errors, facts=facts)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Consistent shares: shrunk towards where most shares are, if there are values enough, then Norm-Sub."""
        return consistent(shrink_shares(self.raw, self.protocol, self.reports))

    @property
    def counts(self) -> NDArray[np.float64]:
        """Consistent shares, in devices."""
        return self.shares * self.reports

    def share(self, value: object) -> float:
        """The consistent share of `value`."""
        return float(self.shares[self._place(value)])

    def error(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """The half-width of the error bar of each raw share at `confidence`.

        Units:
            Shares. Supports are coins, n of them nearly normal: the bar holds the share in the population that the
            devices were drawn from with about this probability, each value on its own.
        """
        truth, lie = float(self.protocol.truth), float(self.protocol.lie)
        support = lie + np.clip(self.raw, 0.0, 1.0) * (truth - lie)
        return deviations(confidence) * np.sqrt(support * (1 - support) / self.reports) / (truth - lie)

    def sum(self, values: Iterable[object], *, confidence: float = 0.95) -> Interval:
        """The share of several `values` together, unbiased, with its error bar at `confidence`."""
        places = sorted(self._places(values))
        if not places:
            return Interval(0.0, 0.0)
        total = float(self.raw[places].sum())
        spread = _sum_variance(self.protocol, len(places), min(1.0, max(0.0, total)))
        return Interval(total, deviations(confidence) * math.sqrt(spread / self.reports))

    def bound_poisoning(self, fakes: int, *, of: Iterable[object] | None = None) -> float:
        """How far `fakes` fake devices among those that reported can have moved a share, or the sum `of` several.

        Guarantee:
            A report adds between -s lie and (m - s lie) to the sum over s values, over n (truth - lie), where m is the
            most of them that one report supports. So one report moves it by at most m / (n (truth - lie)).
        """
        count = 1 if of is None else max(1, len(self._places(of)))
        return poisoning(self.protocol, fakes, self.reports, values=count)

    poisoned = renamed_method("poisoned", "bound_poisoning")

    def table(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """One row a value, its error bar at `confidence`."""
        columns = zip(
            self.values, self.shares.tolist(), self.raw.tolist(), self.error(confidence).tolist(), strict=True
        )
        return [{"value": v, "share": share, "raw": raw, "error": error} for v, share, raw, error in columns]

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Figure:  # fmt: skip
        """The shares as bars with the error bars of the raw ones (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the numbers are counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        from mosha.pictures.curves import draw_with
        from mosha.pictures.figure import BAND, INK
        from mosha.pictures.grouped import slant

        order = np.argsort(-self.shares, kind="stable")[:30]
        places, labels = np.arange(len(order)), [str(self.values[int(i)]) for i in order]

        def paint(axes: Axes) -> None:
            axes.bar(places, self.shares[order], color=BAND, label=say("local.picture_share"))
            bars = say("local.picture_unbiased")
            axes.errorbar(places, self.raw[order], yerr=self.error()[order], fmt=".", color=INK, label=bars)
            axes.set_xticks(places, labels, **slant(labels))
            axes.legend(frameon=False)

        def draw() -> Figure:
            said = say("local.picture_reports", reports=self.reports, epsilon=self.protocol.epsilon)
            return draw_with(paint, title=said, up=say("local.picture_share"), size=(7, 4))

        footer = partial(write_footer, self.protocol.epsilon)
        return cast("Figure", draw_as_asked(draw, ax=ax, title=title, unit=unit, lang=lang, footer=footer))

    def _places(self, values: object) -> set[int]:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidParameter("local.not_values", parameter="values")
        return {self._place(value) for value in values}

    def _place(self, value: object) -> int:
        try:
            return self._numbers[identify_label(value)]
        except (KeyError, TypeError):
            raise InvalidParameter("local.not_a_value", parameter="value") from None

    @cached_property
    def _numbers(self) -> dict[tuple[str, Any], int]:
        return {identify_label(label): number for number, label in enumerate(self.values)}


@explain_wrong_calls
def poisoning(protocol: Protocol, fakes: int, reports: int, *, values: int = 1) -> float:
    """How far `fakes` of `reports` reports under `protocol` can move the sum of the shares of so many `values`.

    >>> from mosha.local.protocols.k_ary import KAry
    >>> round(poisoning(KAry(2, 1.0), 10, 1000), 4)
    0.0216
    """
    if not isinstance(protocol, Protocol):
        raise InvalidParameter("local.not_a_protocol", parameter="protocol")
    fakes, reports = positive_integer("fakes", fakes), positive_integer("reports", reports)
    if fakes > reports:
        raise InvalidParameter("local.more_fakes_than_reports", parameter="fakes")
    most = min(positive_integer("values", values), protocol.largest_support)
    return float(Fraction(fakes * most, reports) / (protocol.truth - protocol.lie))


def deviations(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + strict_probability("confidence", confidence)) / 2)


def _sum_variance(protocol: Protocol, count: int, share: float) -> float:
    """N times the variance of the sum of `count` raw shares that is `share`."""
    truth, lie = float(protocol.truth), float(protocol.lie)
    true_pair, false_pair = (float(pair) for pair in protocol.pairs)
    others = count - 1
    inside = truth + others * lie
    inside_square = inside + 2 * others * true_pair + others * (others - 1) * false_pair
    outside = count * lie
    outside_square = outside + count * others * false_pair
    mean = share * inside + (1 - share) * outside
    square = share * inside_square + (1 - share) * outside_square
    return max(0.0, square - mean**2) / (truth - lie) ** 2

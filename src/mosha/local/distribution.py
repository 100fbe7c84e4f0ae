"""How one number is distributed over the devices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from mosha.core.canvas import draw_as_asked
from mosha.core.language import Language, say
from mosha.core.number import positive, probability, real
from mosha.core.options import DensitySmoothing, choose
from mosha.local.mean import check_range, share_of_range, shares_of_range
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.window import Window
from mosha.local.survey import Survey, require_reports

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from mosha.local.estimate import Interval

__all__ = ["Density", "Distribution", "square_wave"]

BINS = 128
OUTPUTS = 1024
REPEATS = 20  # collections simulated for an error bar


@dataclass(frozen=True, eq=False)
class Density:
    """An estimated distribution: the share of each of equal bins of `between`.

    Fields:
        between: the range.
        shares: of each bin.
        reports: how many reports were counted.
        epsilon: of each of them.
        again: the estimate from another collection of as many reports of these very shares, for error bars.

    >>> from mosha.local import Distribution
    >>> survey = Distribution(between=(0, 10), epsilon=4)
    >>> density = survey.estimate(survey.reports([5.0] * 2000))
    >>> density.between, 3 < density.mean < 7
    ((0.0, 10.0), True)
    """

    between: tuple[float, float]
    shares: NDArray[np.float64]
    reports: int
    epsilon: float
    again: Callable[[np.random.Generator], NDArray[np.float64]]

    @property
    def edges(self) -> NDArray[np.float64]:
        import numpy as np

        return np.linspace(*self.between, len(self.shares) + 1)

    @property
    def mean(self) -> float:
        edges = self.edges
        return float(self.shares @ (edges[1:] + edges[:-1]) / 2)

    @cached_property
    def _resamples(self) -> NDArray[np.float64]:
        """Estimates from simulated collections; made of public numbers alone, so the same each time and free."""
        import numpy as np

        generator = np.random.default_rng(self.reports)
        return np.array([self.again(generator) for _ in range(REPEATS)])

    def error(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """The half-width, at `confidence`, of the error bar of the share below each edge.

        Units:
            Shares. Collections like this one are simulated from the estimate itself, and estimated again; the bar is
            the root mean square of what they miss, so that what smoothing takes away is in it, in normal deviations.
            Shapes that are too fine for this epsilon to show are not: the bar is of the smooth part.
        """
        import numpy as np

        from mosha.local.estimate import deviations

        missed = np.cumsum(self._resamples - self.shares, axis=1)
        spread = np.sqrt(np.mean(missed**2, axis=0))
        return np.concatenate([[0.0], deviations(confidence) * spread[:-1], [0.0]])

    def below_interval(self, value: float, *, confidence: float = 0.95) -> Interval:
        """The share of devices whose number is at most `value`, with its bar at `confidence`, which stays in [0, 1]."""
        import numpy as np

        from mosha.local.estimate import Interval

        share = self.below(value)
        error = float(np.interp(value, self.edges, self.error(confidence)))
        return Interval(share, error, within=(0.0, 1.0))

    def mean_interval(self, *, confidence: float = 0.95) -> Interval:
        """The mean, its error bar at `confidence`; `mosha.local.Mean` asks for it alone and with less error."""
        import numpy as np

        from mosha.local.estimate import Interval, deviations

        middles = (self.edges[1:] + self.edges[:-1]) / 2
        missed = (self._resamples - self.shares) @ middles
        return Interval(self.mean, deviations(confidence) * float(np.sqrt(np.mean(missed**2))))

    def below(self, value: float) -> float:
        """The share of devices whose number is at most `value`."""
        import numpy as np

        reached = np.concatenate([[0.0], np.cumsum(self.shares)])
        return min(1.0, max(0.0, float(np.interp(real("value", value), self.edges, reached))))

    def quantile(self, share: float) -> float:
        """The number that a `share` of the devices does not exceed."""
        import numpy as np

        wanted = probability("share", share)
        reached = np.concatenate([[0.0], np.cumsum(self.shares)])
        return float(np.interp(wanted, reached, self.edges))

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Figure:  # fmt: skip
        """The density as a picture (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the values are counted in, beneath the axis of values.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        from mosha.local.estimate import write_footer
        from mosha.pictures.curves import draw_with
        from mosha.pictures.figure import BAND

        low, high = self.between

        def paint(axes: Axes) -> None:
            axes.stairs(self.shares * len(self.shares) / (high - low), self.edges, fill=True, color=BAND)

        def draw() -> Figure:
            said = say("local.picture_reports", reports=self.reports, epsilon=self.epsilon)
            across = say("local.picture_value") if unit is None else unit
            return draw_with(paint, title=said, up=say("local.picture_density"), across=across)

        footer = partial(write_footer, self.epsilon)
        return cast("Figure", draw_as_asked(draw, ax=ax, title=title, lang=lang, footer=footer))


class Distribution(Survey):
    """A survey of one number a device, clamped into `between`; how it is distributed, by square waves.

    Guarantee:
        That of `Window`.

    Units:
        `between` is in the unit of the data, the estimate is shares of 128 equal bins.

    Args:
        between: (low, high), public.
        epsilon: what one report may reveal.
        smoothing: "averaged" densities (less error on smooth data), or "em": expectation maximization with smoothing.

    >>> import numpy as np
    >>> survey = Distribution(between=(0, 10), epsilon=3)
    >>> density = survey.estimate(survey.reports(np.linspace(2, 6, 20_000)))
    >>> 3 < density.quantile(0.5) < 5
    True
    """

    kind = "distribution"
    randomizer: Window

    def __init__(
        self, *, between: tuple[float, float], epsilon: float, smoothing: DensitySmoothing = "averaged"
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.between = check_range(between)
        self.smoothing = choose("smoothing", smoothing, DensitySmoothing)
        self.randomizer = square_wave(self.epsilon)

    def _question_fields(self) -> dict[str, Any]:
        return {"between": list(self.between), "smoothing": self.smoothing}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Distribution:
        low, high = fields["between"]
        return cls(between=(low, high), epsilon=fields["epsilon"], smoothing=fields["smoothing"])

    def _describe(self) -> str:
        return f"between {self.between[0]:g} and {self.between[1]:g}, {self.smoothing}"

    def _encode(self, value: object) -> float:
        return share_of_range(value, self.between)

    def _encode_many(self, values: object) -> NDArray[np.float64]:
        return shares_of_range(values, self.between)

    def decode(self, counters: NDArray[np.int64], reports: int) -> Density:
        from mosha.local.collect.smoothing import average_densities, expectation_maximization, law_of_cells

        count = require_reports(reports)
        law = law_of_cells(self.randomizer, BINS)
        smooth = average_densities if self.smoothing == "averaged" else expectation_maximization
        shares = smooth(law, counters)
        expected = law @ shares

        def again(generator: np.random.Generator) -> NDArray[np.float64]:
            return smooth(law, generator.multinomial(count, expected / expected.sum()))

        return Density(self.between, shares, count, self.epsilon, again)


def half_width(epsilon: float) -> float:
    """Half the width of the square wave over a value between 0 and 1 (Li et al. 2020): where reports tell most.

    >>> round(half_width(1.0), 4)
    0.2561
    """
    e = epsilon
    if e < 0.01:
        return 0.5 - e / 3  # the quotient below loses its digits there
    power = math.exp(e)
    return (e * power - math.expm1(e)) / (2 * power * (math.expm1(e) - e))


def square_wave(epsilon: float) -> Window:
    """The window whose length is that of the square wave, in 1024 cells."""
    Odds.of(epsilon)
    half = half_width(epsilon)
    return Window(epsilon, OUTPUTS, max(1, round(OUTPUTS * 2 * half / (1 + 2 * half))))

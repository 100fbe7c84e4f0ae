"""What trust is worth: the error of one histogram in the central, the shuffle and the local model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mosha.accounting.measures import blanket, shuffle
from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, current_language, phrase, say, translate
from mosha.core.names.calls import renamed_argument
from mosha.core.number import positive, positive_integer, strict_probability
from mosha.local.protocols.choice import best
from mosha.local.protocols.k_ary import KAry
from mosha.local.protocols.odds import LARGEST_EPSILON
from mosha.local.protocols.protocol import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Model", "compare"]

_MOST_PEOPLE = 10**12

_DRAWN = 20_000  # times the noise of the central model
_SIMULATED = 200_000  # devices at most; errors are then scaled to the number asked for


@dataclass(frozen=True)
class Model:
    """One model: whom it trusts, what a device reports with, and the standard deviation of one count.

    `deviation` is by theory, `simulated` the root mean square of what `runs` simulated collections missed (of the
    central model: draws of the noise).
    """

    name: str
    trusts: str
    how: str
    local_epsilon: float | None
    deviation: float
    simulated: float
    runs: int

    def describe(self) -> tuple[str, str, str]:
        """Its name, whom it trusts and how it works, in the reader's language."""
        language = current_language()
        name = say(f"local.model_{self.name}", language)
        return name, translate(self.trusts, language), translate(self.how, language)


@dataclass(frozen=True)
class Comparison:
    """The same question in three `models`, at one `epsilon` (and `delta`, for the shuffle model).

    So many `people` hold one of `size` values each.

    >>> comparison = compare(100_000, 10, 1.0)
    >>> [model.name for model in comparison.models]
    ['central', 'shuffle', 'local']
    """

    people: int
    size: int
    epsilon: float
    delta: float
    models: tuple[Model, ...]

    def table(self) -> list[dict[str, Any]]:
        """One row a model: its name, whom it trusts, its error in people and as a share of them."""
        return [vars(model) | {"share": model.deviation / self.people} for model in self.models]

    def __str__(self) -> str:
        return "\n".join([self.title, *(say("local.model", **vars(model)) for model in self.models)])

    @property
    def title(self) -> str:
        """The question in the reader's language."""
        return say("local.compared", people=self.people, size=self.size, epsilon=self.epsilon, delta=self.delta)

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Figure:  # fmt: skip
        """The three errors as bars on a logarithmic scale (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the deviations are counted in, in place of people.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        from mosha.pictures.curves import draw_with
        from mosha.pictures.figure import BAND, INK

        def paint(axes: Axes) -> None:
            places = list(range(len(self.models)))
            names = [say(f"local.picture_{model.name}") for model in self.models]
            axes.bar(places, [model.deviation for model in self.models], color=BAND, width=0.6)
            simulated = [model.simulated for model in self.models]
            axes.plot(places, simulated, "_", color=INK, markersize=30, label=say("local.picture_simulated"))
            axes.set_xticks(places, names)
            axes.set_yscale("log")
            axes.legend(frameon=False)

        def draw() -> Figure:
            said = say("local.picture_compared", people=self.people, size=self.size, epsilon=self.epsilon)
            return draw_with(paint, title=said, up=say("local.picture_deviation"))

        return cast("Figure", draw_as_asked(draw, ax=ax, title=title, unit=unit, lang=lang))


@renamed_argument(n="population")
def compare(population: int, size: int, epsilon: float, *, delta: float = 1e-6) -> Comparison:
    """The error of a count of `size` values among `population` people in three models, by theory and by simulation.

    Central: discrete Laplace noise on each count, where one person's value is replaced. Shuffle: the largest local
    epsilon whose shuffled reports keep (epsilon, delta). Local: every report keeps epsilon by itself.

    Each person's value is hidden with `epsilon`; `delta` is for the shuffler alone.

    Units:
        Standard deviations are in people, of the count of a rare value.

    >>> comparison = compare(100_000, 10, 1.0)
    >>> central, shuffled, local = (model.deviation for model in comparison.models)
    >>> central < shuffled < local
    True
    """
    people, size = positive_integer("population", population), positive_integer("size", size)
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    if not 2 <= people <= _MOST_PEOPLE or size < 2:
        raise InvalidParameter("local.comparison_size", most=_MOST_PEOPLE)
    local = best(size, epsilon).protocol
    shuffled = _shuffled_model(people, size, epsilon, delta)
    models = (
        _central_model(epsilon),
        _local_model("shuffle", phrase("local.trusts_shuffler"), shuffled, people),
        _local_model("local", phrase("local.trusts_nobody"), local, people),
    )
    return Comparison(people, size, epsilon, delta, models)


def _central_model(epsilon: float) -> Model:
    from mosha.noise import discrete_laplace

    scale = 2 / epsilon
    decay = math.exp(-1 / scale)
    drawn = discrete_laplace(scale, _DRAWN)
    return Model(
        "central", phrase("local.trusts_curator"), phrase("local.how_central"), None,
        math.sqrt(2 * decay) / (1 - decay), float(np.sqrt(np.mean(drawn.astype(float) ** 2))), _DRAWN,
    )  # fmt: skip


def _shuffled_model(people: int, size: int, epsilon: float, delta: float) -> Protocol:
    """Of general and of k-ary reports, those with the smaller error among all whose batch keeps the promise."""
    general = _largest_epsilon(lambda local: shuffle.delta(local, people, epsilon), epsilon, delta)
    k_ary = _largest_epsilon(lambda local: blanket.delta(local, people, epsilon, categories=size), epsilon, delta)
    return min(best(size, general).protocol, KAry(size, k_ary), key=lambda protocol: protocol.variance)


def _largest_epsilon(price: Callable[[float], float], epsilon: float, delta: float) -> float:
    """The largest local epsilon whose batch costs at most `delta` at `epsilon`; a report alone always keeps its own."""
    low, high = epsilon, LARGEST_EPSILON
    if epsilon >= LARGEST_EPSILON:
        return epsilon
    while high - low > 1e-3 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) <= delta else (low, middle)
    return low


def _local_model(name: str, trusts: str, protocol: Protocol, people: int) -> Model:
    how = phrase("local.how_reports", protocol=protocol.name, epsilon=protocol.epsilon, bytes=1 + protocol.width)
    deviation = math.sqrt(people * protocol.variance)
    runs = max(1, 60 // protocol.size)
    return Model(name, trusts, how, protocol.epsilon, deviation, _simulate_error(protocol, people, runs), runs)


def _simulate_error(protocol: Protocol, people: int, runs: int) -> float:
    """The root mean squared error of the counts of values that nobody holds, scaled to so many people."""
    from mosha.noise import secure

    tried = max(1000, min(people, _SIMULATED, 40_000_000 // protocol.width))
    squares: list[float] = []
    truth, lie = float(protocol.truth), float(protocol.lie)
    for _ in range(runs):
        rows = protocol.draw_many(np.zeros(tried, np.int64), secure())
        supported = protocol.supports(protocol.tally(rows))[1:]
        squares.extend(((supported - tried * lie) / (truth - lie)) ** 2)
    return math.sqrt(float(np.mean(squares)) * people / tried)

"""`mosha explain`: what a guarantee means, in words, numbers and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.terminal import Json, console, number, percent, write_json
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.language import say
from mosha.core.number import non_negative, positive, strict_probability

if TYPE_CHECKING:
    from rich.table import Table

    from mosha.accounting.tradeoff import TradeOff

__all__ = ["Meaning", "explain", "meaning"]

FALSE_POSITIVE_RATES = (0.0001, 0.001, 0.01, 0.05, 0.1)


@dataclass(frozen=True)
class Meaning:
    """What an attacker can make of one guarantee at most.

    Fields:
        bounded: the guarantee with a bound on the odds, Pure or Approx; None where no bound was asked for.
        curve: the trade-off, false-positive rate to least false-negative rate.
        prior: what the attacker believed before.
    """

    guarantee: Guarantee
    bounded: Pure | Approx | None
    curve: TradeOff
    prior: float

    @property
    def odds_factor(self) -> float:
        """By how much the odds can grow or shrink (infinite where there is no bound)."""
        try:
            return math.inf if self.bounded is None else math.exp(self.bounded.epsilon)
        except OverflowError:
            return math.inf

    @property
    def delta(self) -> float:
        """How likely the bound on the odds may fail to hold."""
        return getattr(self.bounded, "delta", 0.0)

    def belief(self, factor: float) -> float:
        """The belief after the odds of the prior were multiplied by `factor`."""
        if math.isinf(factor):
            return 1.0
        return self.prior * factor / (1 - self.prior + self.prior * factor)

    def attacks(self) -> list[dict[str, float]]:
        """What an attacker who accuses finds at most, and how probably an accusation is right at most."""
        return [
            {
                "false_positive_rate": rate,
                "true_positive_rate": self.curve.true_positive_rate(rate),
                "posterior": self.curve.posterior(self.prior, false_positive_rate=rate),
            }
            for rate in FALSE_POSITIVE_RATES
        ]

    def to_dict(self) -> dict[str, Any]:
        """The meaning as plain data; the keys are documented in docs/reference/cli.md."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "bound": None if self.bounded is None else self.bounded.to_dict(),
            "odds_factor": self.odds_factor,
            "prior": self.prior,
            "posterior": {
                "lowest": self.belief(1 / self.odds_factor),
                "highest": self.belief(self.odds_factor),
                "except_with_probability": self.delta,
            },
            "advantage": self.curve.advantage(),
            "true_positive_rates": self.attacks(),
            "trade_off": [[i / 100, self.curve(i / 100)] for i in range(101)],
            "words": self.words(),
        }

    def words(self) -> list[str]:
        """The meaning in sentences."""
        caught, wrongly = (1 + self.curve.advantage()) / 2, (1 - self.curve.advantage()) / 2
        guess = say("cli.explain_guess", caught=_of_100(caught), wrongly=_of_100(wrongly))
        return [*self._odds(), *self._delta(), guess]

    def _odds(self) -> list[str]:
        if self.bounded is None:
            return [say("cli.explain_no_bound")]
        if math.isinf(self.odds_factor):
            return [say("cli.explain_hides_nothing")]
        before, after = percent(self.prior), percent(self.belief(self.odds_factor))
        odds = say("cli.explain_odds", factor=number(self.odds_factor))
        return [odds, say("cli.explain_belief", before=before, after=after)]

    def _delta(self) -> list[str]:
        return [say("cli.explain_delta", delta=number(self.delta))] if self.delta else []


def _of_100(share: float) -> str:
    return percent(share).removesuffix("%")


def meaning(guarantee: Guarantee, *, prior: float, delta: float | None) -> Meaning:
    """What `guarantee` means to somebody whose belief was `prior`; `delta` bounds the odds of rho and mu."""
    from mosha.accounting.tradeoff import tradeoff  # noqa: PLC0415  (numerics are loaded when they are needed)

    return Meaning(guarantee, _bound_odds(guarantee, delta), tradeoff(guarantee), strict_probability("prior", prior))


def _bound_odds(guarantee: Guarantee, delta: float | None) -> Pure | Approx | None:
    if isinstance(guarantee, Pure | Approx):
        return guarantee
    if delta is None:
        return None
    from mosha.accounting.measures import concentrated, gaussian  # noqa: PLC0415

    if isinstance(guarantee, Gaussian):
        return Approx(gaussian.epsilon(guarantee.mu, delta), delta)
    assert isinstance(guarantee, ZeroConcentrated)
    return Approx(concentrated.epsilon_from_rho(guarantee.rho, delta), delta)


def _guarantee(epsilon: float | None, delta: float | None, rho: float | None, mu: float | None) -> Guarantee:
    given = [name for name, value in (("--epsilon", epsilon), ("--rho", rho), ("--mu", mu)) if value is not None]
    if len(given) != 1:
        raise typer.BadParameter(say("cli.one_guarantee"))
    if epsilon is not None:
        epsilon = non_negative("epsilon", epsilon)
        return Pure(epsilon) if delta is None else Approx(epsilon, delta)
    if delta is not None:
        strict_probability("delta", delta)
    return ZeroConcentrated(positive("rho", rho)) if rho is not None else Gaussian(positive("mu", mu))


def explain(
    *,
    epsilon: Annotated[float | None, typer.Option(help="Pure or, with --delta, approximate privacy.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Part of the guarantee with --epsilon; of the bound else.")
    ] = None,
    rho: Annotated[float | None, typer.Option(help="Zero-concentrated privacy.")] = None,
    mu: Annotated[float | None, typer.Option(help="Gaussian privacy.")] = None,
    prior: Annotated[float, typer.Option(help="What the attacker believes before, as a probability.")] = 0.01,
    plot: Annotated[Path | None, typer.Option(help="Write the curve to this file (.png, .svg, .pdf).")] = None,
    as_json: Json = False,
) -> None:
    """Say what a guarantee means: in words, in numbers and as a curve."""
    found = meaning(_guarantee(epsilon, delta, rho, mu), prior=prior, delta=delta)
    if plot is not None:
        from mosha.cli.curve import save  # noqa: PLC0415

        save(found.curve, plot, title=str(found.guarantee), rates=[i / 500 for i in range(501)])
    if as_json:
        write_json(found.to_dict() | ({} if plot is None else {"plot": str(plot)}))
    else:
        _show(found, plot)


def _show(found: Meaning, plot: Path | None) -> None:
    from rich.padding import Padding  # noqa: PLC0415

    from mosha.cli.curve import draw  # noqa: PLC0415

    screen = console()
    screen.print(str(found.guarantee), style="bold")
    for sentence in found.words():
        screen.print(Padding(sentence, (0, 0, 0, 2), expand=False))
    screen.print(_numbers(found))
    screen.print(_rates(found))
    screen.print("\n" + say("cli.explain_trade_off"))
    screen.print(draw(found.curve, unicode=screen.encoding.lower().startswith("utf")))
    if plot is not None:
        screen.print(say("cli.explain_picture", path=plot))


def _numbers(found: Meaning) -> Table:
    from rich.table import Table  # noqa: PLC0415

    table = Table(show_header=False, box=None, padding=(0, 2))
    lowest, highest = found.belief(1 / found.odds_factor), found.belief(found.odds_factor)
    table.add_row(say("cli.explain_largest_change"), number(found.odds_factor))
    between = say("cli.explain_between", lowest=percent(lowest), highest=percent(highest))
    table.add_row(say("cli.explain_belief_becomes", prior=percent(found.prior)), between)
    if found.delta:
        table.add_row(say("cli.explain_except"), number(found.delta))
    table.add_row(say("cli.explain_advantage"), percent(found.curve.advantage()))
    return table


def _rates(found: Meaning) -> Table:
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=say("cli.explain_accusing", prior=percent(found.prior)), title_justify="left")
    for heading in ("cli.explain_false_alarms", "cli.explain_finds", "cli.explain_right"):
        table.add_column(say(heading), justify="right")
    for attack in found.attacks():
        table.add_row(*map(percent, attack.values()))
    return table

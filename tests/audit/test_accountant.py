"""Accountants: what is proved is not believed, and what is wrong is found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosha import accounting, events
from mosha.audit import audit_accountant
from mosha.audit.contracts.accountant import accountant_events
from mosha.audit.contracts.worlds import worlds_of
from mosha.cli import main
from mosha.core.errors import InvalidParameter
from mosha.core.event import compose
from tests.chance import look_for_fault

FALSE_ALARMS = 1e-9


def test_no_price_of_mosha_is_below_what_leaks() -> None:
    report = audit_accountant(runs=40_000, confidence=1 - FALSE_ALARMS)
    assert report.broken == (), str(report)
    assert report.events >= 25


def test_where_the_worlds_are_the_worst_the_price_is_tight() -> None:
    """False-alarm rate 1e-9: the price of a composition that is dominated by these worlds is inside the interval."""
    worst = [events.Laplace(2.0) * 8, events.Gaussian(1.5), events.Pure(0.5) * 5, events.RandomizedResponse(1.0, 5) * 4]
    report = audit_accountant(prices_of=worst, runs=40_000, confidence=1 - FALSE_ALARMS)
    assert all(price.claimed <= price.at_most * (1 + 1e-3) for price in report.prices)


def without_counts(event: Any, epsilon: Any) -> Any:
    return accounting.delta(compose((part, 1) for part, _ in event.parts()), epsilon)


def sampling_in_both_worlds(event: Any, epsilon: Any) -> float:
    """The price of the cheaper direction alone: a classic mistake, by Monte Carlo."""
    losses = worlds_of(event).swap().losses(200_000, True, np.random.default_rng())
    return float(-np.expm1(np.minimum(0.0, epsilon - losses)).mean())


def deviation_five_percent_off(event: Any, epsilon: Any) -> Any:
    (part, count), *_ = event.parts()
    return accounting.delta(events.Gaussian(part.noise_multiplier * 1.05) * count, epsilon)


@pytest.mark.parametrize(
    ("price", "event"),
    [
        (without_counts, events.Gaussian(1.5) * 3),
        (without_counts, events.RandomizedResponse(0.1) * 100),
        (sampling_in_both_worlds, events.Gaussian(0.7).sample(0.1)),
        (deviation_five_percent_off, events.Gaussian(1.0) * 4),
        (lambda event, epsilon: accounting.delta(event.event, epsilon), events.Group(events.Gaussian(1.5), 2)),
        (lambda event, epsilon: 0.0, events.Approx(0.5, 0.01)),
    ],
    ids=["a count forgotten", "a hundred forgotten", "one direction", "noise 5% off", "a group of one", "no delta"],
)
def test_an_accountant_that_is_too_cheap_is_found(price: Any, event: Any) -> None:
    """Asserted power: found at the false-alarm rate of 1e-9 with 200,000 draws."""
    sure: dict[str, Any] = {"runs": 200_000, "confidence": 1 - FALSE_ALARMS}
    assert look_for_fault(lambda: audit_accountant(price, prices_of=[event], **sure)).broken


@pytest.mark.parametrize("event", [e for e in accountant_events() if worlds_of(e)], ids=str)
def test_the_two_worlds_are_laws(event: Any) -> None:
    """Under q the mean of e^loss is at most 1, so a ratio above 4 has probability at most 1/4: at most 0.3 of 4,000
    are, but for a chance below 1e-12."""
    rng = np.random.default_rng()
    for worlds in (worlds_of(event), worlds_of(event).swap()):
        ratios = np.exp(np.minimum(worlds.losses(4_000, False, rng), 700.0))
        assert not np.isnan(ratios).any()
        assert (ratios > 4).mean() <= 0.3


def test_events_without_worlds_are_named() -> None:
    report = audit_accountant(prices_of=[events.Pure(1.0), events.ZeroConcentrated(0.1)], runs=1_000)
    assert report.without_worlds == ("ZeroConcentrated(rho=0.1)",)
    assert "not tried" in str(report)
    with pytest.raises(InvalidParameter):
        audit_accountant(prices_of=[])


def test_the_command_says_it_in_words_and_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "accounting.html"
    sure: dict[str, Any] = ["--confidence", "0.999999999"]  # type: ignore[assignment]  # false-alarm rate 1e-9
    assert main(["audit", "accounting", "--runs", "1000", *sure, "--html", str(page)]) == 0
    assert "0 below what really leaks" in " ".join(capsys.readouterr().out.split())
    assert "without worlds" in page.read_text("utf-8")

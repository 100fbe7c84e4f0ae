"""Laws of every measurement."""

import secrets
from typing import Any, NoReturn

import numpy as np
import pytest

import mosha
from mosha.accounting.measures import concentrated, pure
from mosha.core.errors import BudgetExceeded, HorizonExceeded
from mosha.events import from_json
from mosha.noise import SeededRandom, secure
from tests.mechanisms.every_measurement import DELTA, every_measurement

CASES = pytest.mark.parametrize("case", every_measurement(), ids=str)


class Unreadable:
    """Data that must not be touched."""

    def _touched(self, *_: Any) -> NoReturn:
        raise AssertionError("the data were read")

    __iter__ = __len__ = __getitem__ = __array__ = __eq__ = __hash__ = keys = _touched


def account_for(measurement: Any, **limit: Any) -> Any:
    limit = limit or {"epsilon": 500.0, "delta": 1e-3}
    return mosha.Ledger.memory().account("test", unit=measurement.unit, **limit)


def run(measurement: Any, data: Any, rng: Any) -> Any:
    state, answers = measurement.init(), []
    for _ in range(measurement.horizon):
        answer, state = measurement.step(state, data, None, rng)
        answers.append(answer)
    return answers


@CASES
def test_the_price_is_known_before_any_data_and_keeps_the_budget(case: Any) -> None:
    event = case.make(0.5).event
    epsilon, delta = pure.approx(event)
    rho, failing = concentrated.rho(event)
    assert (epsilon <= 0.5 and delta <= DELTA) or (rho <= 0.125 and failing <= DELTA) or tight(event) <= 0.5


def tight(event: Any) -> Any:
    mu, failing = mosha.accounting.gaussian.mu(event)
    return mosha.accounting.gaussian.epsilon(mu, DELTA - failing)


@CASES
def test_the_same_randomness_gives_the_same_answer(case: Any) -> None:
    seed = secrets.randbits(64)
    first, second = (run(case.make(1.0), case.data, SeededRandom(seed)) for _ in range(2))
    np.testing.assert_equal(first, second)


@CASES
def test_an_account_that_refuses_has_not_read_the_data(case: Any) -> None:
    measurement = case.make(1.0)
    account = account_for(measurement, epsilon=0.01, delta=1e-9)
    with pytest.raises(BudgetExceeded):
        account.open(measurement).step(Unreadable())


@CASES
def test_one_step_more_than_was_paid_for_is_refused_unread(case: Any) -> None:
    measurement = case.make(1.0)
    with account_for(measurement).open(measurement) as paid:
        for _ in range(measurement.horizon):
            paid.step(case.data)
        with pytest.raises(HorizonExceeded):
            paid.step(Unreadable())


@CASES
def test_empty_data_are_answered(case: Any) -> None:
    assert len(run(case.make(1.0), case.empty, secure())) == case.make(1.0).horizon


@CASES
def test_the_event_survives_json(case: Any) -> None:
    event = case.make(0.7).event
    assert from_json(event.to_json()) == event


@CASES
def test_more_noise_never_costs_more(case: Any) -> None:
    prices = [price(case.make(epsilon).event) for epsilon in (0.25, 0.5, 1.0, 2.0)]
    assert prices == sorted(prices)
    assert prices[0] < prices[-1]


def price(event: Any) -> Any:
    rho, _ = concentrated.rho(event)
    return rho


@CASES
def test_less_epsilon_never_means_a_narrower_error_bar(case: Any) -> None:
    small, large = case.make(0.5), case.make(2.0)
    if case.name == "smooth_sensitivity":  # how wide its noise is depends on the data: there is no bar to compare
        assert small.error is None
        return
    for confidence in (0.5, 0.99):
        assert widest(small.forecast(confidence)) >= widest(large.forecast(confidence))
    assert widest(small.forecast(0.99)) >= widest(small.forecast(0.5))


def widest(bars: Any) -> Any:
    return max(bars.values()) if isinstance(bars, dict) else float(np.max(bars))


@CASES
def test_a_release_has_value_receipt_and_error_bar(case: Any) -> None:
    measurement = case.make(1.0)
    release = account_for(measurement).open(measurement).step(case.data)
    sold = release.receipt.event  # what is bought by epsilon and delta may be paid for as that pair
    assert measurement.event in (sold, getattr(sold, "event", sold))
    if measurement.error is not None:
        assert widest(release.error(0.9)) >= 0


@CASES
def test_what_one_row_holds_makes_no_step_fail(case: Any) -> None:
    measurement = case.make(1.0)
    for garbage in (
        None,
        float("nan"),
        float("inf"),
        -float("inf"),
        "text",
        b"bytes",
        10**400,
        object(),
        [1, 2],
        {},
        True,
    ):
        for data in (spoiled(case.data, garbage), spoiled(case.neighbor, garbage)):
            run(measurement, data, secure())


def spoiled(data: Any, garbage: Any) -> Any:
    """The data with one entry replaced by something nobody expected."""
    if isinstance(data, str):
        return garbage
    if isinstance(data, tuple):
        return list(data[0]), [garbage, *list(data[1])[1:]]
    return [garbage, *list(data)[1:]]


@CASES
def test_a_unit_of_the_wrong_type_is_refused(case: Any) -> None:
    with pytest.raises(mosha.errors.WrongUnit):
        mosha.Ledger.memory().account("x", unit=mosha.Edge(), epsilon=9.0).open(case.make(1.0)).step(Unreadable())


@pytest.mark.parametrize(
    "epsilon", [0, -1, float("nan"), float("inf"), "1", None, True, 10**400], ids=lambda e: str(e)[:6]
)
@CASES
def test_a_budget_that_is_none_is_refused_at_once(case: Any, epsilon: Any) -> None:
    with pytest.raises(mosha.errors.InvalidParameter):
        case.make(epsilon)


# choices have no noise to overflow; with a delta there is finite noise for every epsilon
NO_LIMIT = {"exponential", "permute_and_flip", "top_k", "randomized_response", "gaussian epsilon", "additive"}


@pytest.mark.parametrize("epsilon", [1e-30, 1e-300])
@CASES
def test_noise_that_would_leave_the_integers_is_refused_at_once(case: Any, epsilon: float) -> None:
    if case.name in NO_LIMIT:
        case.make(epsilon).step(None, case.data, None, secure())
    else:
        with pytest.raises(mosha.errors.InvalidParameter):
            case.make(epsilon)


def test_too_many_rows_a_unit_are_refused_before_any_data() -> None:
    for rows in (20_000, 10**9):
        with pytest.raises(mosha.errors.InvalidParameter):
            mosha.mechanisms.mean(between=(0, 8), unit=mosha.Person("who", at_most=rows), epsilon=1)
    many = mosha.mechanisms.mean(between=(0, 8), unit=mosha.Person("who", at_most=10_000), epsilon=1)
    many.step(None, ([1, 2], [3, 4]), None, secure())

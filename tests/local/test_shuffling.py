"""The shuffler lets go sorted batches of enough reports; the comparison of models keeps its order."""

import json
from typing import Any

import numpy as np
import pytest

from mosha import accounting
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.event import from_json
from mosha.events import Shuffled
from mosha.local import Frequency, Mean, Repeated, Shuffler, compare, shuffled_event

SURVEY = Frequency(["a", "b", "c"], epsilon=1.0, protocol="k-ary")


def test_fewer_reports_than_promised_stay_where_they_are() -> None:
    shuffler = Shuffler(SURVEY, at_least=100)
    assert shuffler.add([SURVEY.report("a") for _ in range(99)]) == 99
    with pytest.raises(DataError, match="none is lost"):
        shuffler.release()
    shuffler.add([SURVEY.report("b")])
    assert len(shuffler.release()) == 100
    assert len(shuffler) == 0


def test_a_batch_does_not_depend_on_the_order_of_its_reports() -> None:
    batch = SURVEY.reports(["a", "b", "c"] * 50)
    reports = list(batch)
    released = []
    for order in (reports, reports[::-1], sorted(reports)):
        shuffler = Shuffler(SURVEY, at_least=150)
        shuffler.add(order)
        released.append(shuffler.release())
    assert all(np.array_equal(released[0].rows, other.rows) for other in released)
    assert len({other.number for other in released} | {batch.number}) == 4
    assert SURVEY.collector().add(released[0]) == 150


def test_what_is_foreign_or_impossible_is_not_shuffled() -> None:
    shuffler = Shuffler(SURVEY, at_least=1)
    other = Frequency(["x", "y"], epsilon=3.0)
    assert shuffler.add(other.reports(["x"] * 7)) == 0
    assert shuffler.add([b"", b"?", None, bytes([SURVEY.report("a")[0], 9]), SURVEY.report("a")]) == 1
    assert shuffler.rejected == 11


def test_a_batch_is_priced_by_its_protocol() -> None:
    assert Shuffler(SURVEY, at_least=5000).event == Shuffled(1.0, 5000, categories=3)
    assert shuffled_event(Mean(between=(0, 1), epsilon=2.0), 10) == Shuffled(2.0, 10)
    assert accounting.epsilon(Shuffler(SURVEY, at_least=5000).event, 1e-6) < 0.1


def test_batches_that_share_permanent_answers_have_no_price_of_their_own() -> None:
    shuffler = Shuffler(Repeated(["a", "b"], permanent=2.0, epsilon=1.0), at_least=1000)
    with pytest.raises(InvalidParameter, match="not independent"):
        shuffler.event  # noqa: B018


def test_an_event_of_before_categories_reads_back_at_the_general_price() -> None:
    old = from_json('{"epsilon": 1.0, "kind": "Shuffled", "mosha": 1, "people": 100}')
    assert old == Shuffled(1.0, 100)
    assert from_json(Shuffled(1.0, 100, categories=7).to_json()) == Shuffled(1.0, 100, categories=7)


def test_trust_is_worth_accuracy() -> None:
    comparison = compare(50_000, 8, 1.0)
    central, shuffled, local = comparison.models
    assert central.deviation < shuffled.deviation < local.deviation
    assert accounting.epsilon(Shuffled(shuffled.local_epsilon, 50_000), 1e-6) > 0
    for model in comparison.models:  # a mean of 50 squares and more: a factor of 2 is ten deviations of its root
        assert 0.5 < model.simulated / model.deviation < 2
    assert "trusts nobody" in str(comparison)
    json.dumps(comparison.table())
    pytest.importorskip("matplotlib")
    comparison.plot()


def test_the_shuffle_model_keeps_the_promise_of_the_comparison() -> None:
    from mosha.accounting.measures import blanket

    model = compare(20_000, 8, 0.5).models[1]
    assert "k-ary" in model.how
    assert blanket.delta(model.local_epsilon, 20_000, 0.5, categories=8) <= 1e-6


@pytest.mark.parametrize("arguments", [(0, 8, 1.0), (100, 1, 1.0), (100, 8, 0.0), (100, 8, float("nan")), (1, 8, 1.0)])
def test_comparisons_that_mean_nothing_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidParameter):
        compare(*arguments)

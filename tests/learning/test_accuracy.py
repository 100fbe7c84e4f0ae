"""Releases about a model: accuracy with its error bar, the best of several, calibration, and votes of teachers."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from mosha import Example, Ledger, Person, Row, accounting, noise
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import Exponential, Pure
from mosha.learning.choosing.accuracy import Correct, accuracy, accuracy_interval, choose_model
from mosha.learning.choosing.calibration import Calibration, ConfidenceTable, calibration, with_temperature
from mosha.learning.choosing.pate import Votes, deal, teachers_labels

CLASSES = (0, 1)


def sign(rows: Any) -> Any:
    return (np.asarray(rows)[:, 0] > 0).astype(int)


def never(rows: Any) -> Any:
    return np.zeros(len(rows), int)


def examples(count: int = 400) -> tuple[Any, ...]:
    rows = np.random.default_rng().uniform(-1, 1, (count, 1))
    return rows, (rows[:, 0] > 0).astype(int)


def test_an_example_moves_each_count_by_one_at_most_and_all_the_same_way() -> None:
    rows, labels = examples(30)
    right = Correct({"sign": sign, "never": never}, CLASSES)
    whole = right.evaluate((rows, labels), Example())
    for leaver in range(30):
        rest = np.arange(30) != leaver
        moved = whole - right.evaluate((rows[rest], labels[rest]), Example())
        assert set(moved.tolist()) <= {0, 1}
    assert right.sensitivity(Example()).span == 1
    assert right.sensitivity(Example(neighbors="replace-one")).span == 2  # type: ignore[arg-type]
    assert right.sensitivity(Row(at_most=4)).linf == 4


def test_unknown_labels_are_never_right_and_no_examples_are_answered() -> None:
    right = Correct({"never": never}, CLASSES)
    assert right.evaluate(([[1.0]] * 3, [0, None, "0"]), Example()).tolist() == [1]
    assert right.evaluate((np.zeros((0, 1)), []), Example()).tolist() == [0]


def test_persons_count_with_few_of_their_examples() -> None:
    unit = Person("who", at_most=2)
    right = Correct({"never": never}, CLASSES)
    assert right.evaluate(([[1.0]] * 9, [0] * 9, ["ann"] * 9), unit).tolist() == [2]
    with pytest.raises(DataError, match="triple"):
        right.evaluate(([[1.0]], [0]), unit)


def test_the_accuracy_lies_within_its_error_bar() -> None:
    rows, labels = examples(2000)
    account = Ledger.memory().account("a", unit=Example(), epsilon=1)
    asked = accuracy(sign, classes=CLASSES, examples=2000, unit=Example(), epsilon=1)
    with account.open(asked) as run:
        release = run.step((rows, np.where(np.arange(2000) < 1500, labels, 1 - labels)))
    assert abs(release.value - 0.75) <= release.error(1 - 1e-9)
    assert release.error(0.95) == asked.forecast(0.95) == pytest.approx(3 / 2000, rel=0.2)
    low, high = accuracy_interval(release, examples=2000, confidence=0.95)
    assert low < release.value < high
    assert 0.03 < high - low < 0.06
    assert accuracy_interval(release, examples=2000, confidence=0.999)[0] < low


@pytest.mark.parametrize("budget", [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.5}])
def test_the_accuracy_is_paid_in_either_measure_and_held_within_one(budget: Any) -> None:
    asked = accuracy(sign, classes=CLASSES, examples=10, unit=Example(), **budget)
    value, _ = asked.step(None, examples(5000), None, noise.secure())
    assert value == 1.0
    assert math.isfinite(accounting.epsilon(asked.event, 1e-6))


@pytest.mark.parametrize("wrong", [{"examples": 0}, {"epsilon": 0}, {"classes": (1,)}, {"epsilon": None}, {"rho": 1}])
def test_wrong_questions_about_accuracy_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        accuracy(sign, **{"classes": CLASSES, "examples": 10, "unit": Example(), "epsilon": 1} | wrong)


@pytest.mark.parametrize(("bounded_range", "event"), [(False, Pure(1.0)), (True, Exponential(1.0))])
def test_the_better_model_is_chosen(bounded_range: bool, event: Any) -> None:
    choice = choose_model(
        {"never": never, "sign": sign}, classes=CLASSES, unit=Example(), epsilon=1, bounded_range=bounded_range
    )
    assert choice.event == event
    assert choice.step(None, examples(400), None, noise.secure())[0] == "sign"  # wrong with probability e**-150


def test_a_model_that_answers_with_too_few_labels_is_named() -> None:
    short = Correct({"short": lambda rows: [0]}, CLASSES)
    with pytest.raises(DataError, match="one label"):
        short.evaluate(examples(3), Example())


def sure(confidence: Any) -> Any:
    return lambda rows: np.column_stack([1 - np.full(len(rows), confidence), np.full(len(rows), confidence)])


def test_an_example_is_in_one_cell_of_the_table_at_most() -> None:
    table = ConfidenceTable(sure(0.83), CLASSES, bins=6)
    assert table.evaluate(([[0.0]] * 4, [1, 1, 0, "?"]), Example()).sum() == 3
    assert table.sensitivity(Example()).l1 == 1
    assert (
        ConfidenceTable(lambda rows: [[math.nan, math.nan]] * len(rows), CLASSES).evaluate(([[0]], [1]), Row()).sum()
        == 1
    )


def test_a_model_that_is_too_sure_is_cooled() -> None:
    rows, labels = np.zeros((6000, 1)), np.array([1, 1, 1, 0] * 1500)
    asked = calibration(sure(0.99), classes=CLASSES, unit=Example(), epsilon=2, bins=10)
    found, _ = asked.step(None, (rows, labels), None, noise.secure())
    temperature = found.temperature()
    cooled = with_temperature(sure(0.975)(rows[:1]), temperature)[0, 1]
    assert temperature > 2
    assert abs(cooled - 0.75) < 0.05
    assert 0.15 < found.expected_error < 0.3


def test_a_model_that_is_as_sure_as_it_should_be_stays() -> None:
    exact = Calibration(np.array([0.0, 250.0]), np.array([0.0, 750.0]), 0.5)
    assert exact.confidence.tolist() == [0.625, 0.875]
    assert math.isnan(exact.accuracy[0])
    same = Calibration(np.array([0.0, 125.0]), np.array([0.0, 875.0]), 0.5)
    assert same.temperature() == pytest.approx(1.0, rel=0.02)
    assert same.expected_error == pytest.approx(0.0, abs=1e-9)


def majority(rows: Any, labels: Any) -> Any:
    if len(labels) == 0:
        raise ValueError
    most = max(set(labels.tolist()), key=labels.tolist().count)
    return lambda asked: [most] * len(asked)


def test_where_an_example_goes_does_not_depend_on_the_others() -> None:
    rows, labels = examples(50)
    whole = deal(7, rows, labels)
    rest = np.arange(50) != 13
    assert np.array_equal(deal(7, rows[rest], labels[rest]), whole[rest])
    assert np.array_equal(deal(7, rows[::-1], labels[::-1]), whole[::-1])
    assert len(set(deal(7, rows, labels, ["ann"] * 50).tolist())) == 1
    assert len(set(whole.tolist())) > 1  # 7 ** -49


def test_no_examples_at_all_are_answered_like_any_others() -> None:
    """Found by the attacker: an empty table failed, which told it from a table of one example."""
    assert deal(4, np.zeros((0, 1)), []).tolist() == []
    plan = teachers_labels(majority, teachers=3, classes=CLASSES, questions=1, unit=Example(), mu=1)
    told, _ = plan.step(None, (np.zeros((0, 1)), []), np.zeros((1, 1)), noise.secure())
    assert told[0] in CLASSES


def test_one_example_changes_one_vote() -> None:
    from mosha.learning.choosing.pate import _count_votes

    rows, labels = examples(60)
    asked = np.zeros((3, 1))
    whole = _count_votes(majority, 9, CLASSES, (rows, labels), asked, Example())
    votes = Votes(CLASSES)
    for leaver in range(0, 60, 7):
        rest = np.arange(60) != leaver
        moved = whole - _count_votes(majority, 9, CLASSES, (rows[rest], labels[rest]), asked, Example())
        assert all(np.linalg.norm(row) <= votes.sensitivity(Example()).l2 for row in moved)


def test_teachers_label_public_questions_for_the_declared_price() -> None:
    """200 votes against noise whose difference has a deviation of 22.3: a question is lost with probability 1e-19."""
    rows, labels = examples(3000)
    plan = teachers_labels(majority, teachers=200, classes=CLASSES, questions=25, unit=Example(), epsilon=2, delta=1e-6)
    assert 1.99 < accounting.epsilon(plan.event, 1e-6) <= 2
    told, _ = plan.step(None, (rows, np.ones_like(labels)), np.zeros((25, 1)), noise.secure())
    assert told.mean() > 0.9
    with pytest.raises(InvalidParameter, match="at most 25"):
        plan.step(None, (rows, labels), np.zeros((26, 1)), noise.secure())


def test_teachers_of_persons_and_of_several_rows() -> None:
    votes = Votes(CLASSES)
    one = votes.sensitivity(Example()).l2
    assert votes.sensitivity(Person("who")).l2 == one
    assert votes.sensitivity(Row(at_most=3)).l2 == pytest.approx(3 * one)
    assert votes.sensitivity(Example(neighbors="replace-one")).l2 == pytest.approx(2 * one)  # type: ignore[arg-type]
    plan = teachers_labels(majority, teachers=5, classes=CLASSES, questions=2, unit=Person("who"), mu=2)
    rows, labels = examples(100)
    told, _ = plan.step(None, (rows, labels, np.arange(100) // 10), np.zeros((2, 1)), noise.secure())
    assert set(told.tolist()) <= {0, 1}


def test_a_warning_of_a_teacher_stays_unheard(recwarn: pytest.WarningsRecorder) -> None:
    def complain(rows: Any, labels: Any) -> Any:
        warnings.warn(f"{len(rows)} rows are few", stacklevel=1)
        return majority(rows, labels)

    plan = teachers_labels(complain, teachers=5, classes=CLASSES, questions=2, unit=Example(), mu=2)
    plan.step(None, examples(3), np.zeros((2, 1)), noise.secure())
    assert not recwarn.list


@pytest.mark.parametrize("wrong", [{"teachers": 0}, {"questions": 0}, {"classes": (1, 1)}, {"rho": -1}])
def test_wrong_ensembles_are_refused(wrong: Any) -> None:
    arguments = {"teachers": 5, "classes": CLASSES, "questions": 2, "unit": Example(), "rho": 0.1} | wrong
    with pytest.raises(InvalidParameter):
        teachers_labels(majority, **arguments)


def test_data_of_the_wrong_shape_say_so() -> None:
    plan = teachers_labels(majority, teachers=5, classes=CLASSES, questions=2, unit=Example(), rho=0.1)
    for data in ((np.zeros(3), [0] * 3), (np.zeros((3, 1)), [0] * 2), (np.array([["a"]]), [0]), np.zeros((3, 1))):
        with pytest.raises(DataError):
            plan.step(None, data, np.zeros((1, 1)), noise.secure())

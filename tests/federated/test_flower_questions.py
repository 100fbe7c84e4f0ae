"""Questions on Flower: right answers through masks, refusals on both sides, one payment. On a grid in this process."""

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")
from flwr.clientapp import ClientApp

import mosha
from mosha import errors
from mosha.federated import flower_answer, flower_ask, histogram, mean, quantile
from tests.federated.flower_grid import Nodes
from tests.federated.parties import purse

TERMS: dict[str, Any] = {
    "clients": 8,
    "survivors": 6,
    "epsilon": 2000.0,
    "delta": 1e-5,
}  # so little noise that answers can be read
COLOURS = histogram(keys=["red", "green"], **TERMS)


def rich(**how: Any) -> Any:
    return purse(epsilon=1e6, **how)


def answering(question: Any, value: Any, action: str = "default", **how: Any) -> Any:
    app = ClientApp()
    app.query(action)(flower_answer(question, value, **how))
    return app


def eight(question: Any, value: Any, *, vanishing: Any = lambda node, config: False, **how: Any) -> Any:
    return Nodes({100 + i: answering(question, lambda c: value(c.node_id - 100), **how) for i in range(8)}, vanishing)


def ask(question: Any, nodes: Any, account: Any = None, **how: Any) -> Any:
    return flower_ask(question, account or rich(), nodes, **how)


def colour(i: Any) -> Any:
    return "red" if i < 5 else "green"


def test_a_histogram_a_mean_and_a_quantile_come_out_of_masked_answers() -> None:
    assert np.allclose(ask(COLOURS, eight(COLOURS, colour)).value, [5, 3], atol=0.9)
    asked = mean(between=(0, 10), **TERMS)
    assert ask(asked, eight(asked, float)).value == pytest.approx(3.5, abs=0.9)
    asked = quantile(at=0.5, between=(0, 8), bins=8, **TERMS)
    assert ask(asked, eight(asked, float)).value == pytest.approx(4, abs=1.5)


@pytest.mark.parametrize("stage", ["keys", "letters", "masked", "unmask"])
def test_nodes_that_vanish_at_any_step_are_missing_in_the_answer_alone(stage: str) -> None:
    gone = lambda node, config: node in (100, 107) and config["mosha-stage"] == stage
    found = ask(COLOURS, eight(COLOURS, colour, vanishing=gone)).value
    assert np.allclose(found, [5, 3] if stage == "unmask" else [4, 2], atol=0.9)


@pytest.mark.parametrize(
    ("stage", "left"), [("keys", 0), ("letters", 0), ("masked", 5)], ids=["keys", "letters", "masked"]
)
def test_too_few_clients_open_nothing_and_are_found_out_before_values_leave_where_that_can_be(
    stage: str, left: int
) -> None:
    gone = lambda node, config: node > 104 and config["mosha-stage"] == stage
    nodes, account = eight(COLOURS, colour, vanishing=gone, at_most=2), rich()
    with pytest.raises(errors.SourceUnavailable):
        ask(COLOURS, nodes, account, key="k")
    assert sum(config["mosha-stage"] == "masked" and node <= 104 for node, config in nodes.sent) == left
    assert account.spent == 0  # nothing was opened, so the price is handed back
    nodes.vanishing = lambda node, config: False
    assert np.allclose(ask(COLOURS, nodes, account, key="k").value, [5, 3], atol=0.9)
    assert 1900 < account.spent <= 2000


def test_the_same_key_gives_the_same_answer_and_asks_nobody() -> None:
    account, nodes = rich(), eight(COLOURS, colour)
    first = ask(COLOURS, nodes, account, key="k")
    asked, spent = len(nodes.sent), account.spent
    assert (ask(COLOURS, nodes, account, key="k").value == first.value).all()
    assert (len(nodes.sent), account.spent) == (asked, spent)


def test_a_client_answers_once() -> None:
    nodes = eight(COLOURS, colour)
    ask(COLOURS, nodes)
    with pytest.raises(errors.SourceUnavailable):
        ask(COLOURS, nodes)


def test_the_question_that_counts_is_the_clients_own() -> None:
    for other in ({"survivors": 3}, {"epsilon": 3000.0}, {"delta": 1e-4}):
        with pytest.raises(errors.SourceUnavailable):
            ask(histogram(keys=["red", "green"], **TERMS | other), eight(COLOURS, colour))
    with pytest.raises(errors.SourceUnavailable):
        ask(mean(between=(0, 1), **TERMS), eight(COLOURS, colour))
    for field, value in (("noise_multiplier", 400.0), ("square", 4), ("clients", 7)):  # would be paid for less
        with pytest.raises(errors.SourceUnavailable):
            ask(dataclasses.replace(COLOURS, **{field: value}), eight(COLOURS, colour))  # type: ignore[arg-type]


def test_a_value_that_cannot_be_had_counts_as_none_and_nothing_is_said() -> None:
    def value(i: Any) -> Any:
        if i == 0:
            raise ValueError("patient 4711")
        return colour(i)

    nodes = eight(COLOURS, value)
    assert np.allclose(ask(COLOURS, nodes).value, [4, 3], atol=0.9)


def test_an_app_answers_several_questions_by_name() -> None:
    other = mean(between=(0, 10), **TERMS)
    apps = {}
    for i in range(8):
        apps[i + 1] = answering(COLOURS, lambda c: colour(c.node_id - 1), "colours")
        apps[i + 1].query("numbers")(flower_answer(other, lambda c: c.node_id))
    nodes = Nodes(apps)
    assert np.allclose(ask(COLOURS, nodes, action="colours").value, [5, 3], atol=0.9)
    assert ask(other, nodes, action="numbers").value == pytest.approx(4.5, abs=0.9)


def test_who_cannot_pay_asks_nobody() -> None:
    nodes = eight(COLOURS, colour)
    with pytest.raises(errors.BudgetExceeded):
        ask(COLOURS, nodes, purse(epsilon=1.0))
    with pytest.raises(errors.WrongUnit):
        ask(COLOURS, nodes, rich(unit=mosha.Row()))
    assert nodes.sent == []


@pytest.mark.parametrize(
    "how",
    [
        {"question": None},
        {"question": mosha.federated.ServerSide(rounds=1, clients=3, clip=1.0)},
        {"account": None},
        {"account": "phones"},
        {"action": "two words"},
        {"action": 3},
        {"wait_for": 0},
        {"wait_for": None, "patience": 0},
        {"timeout": float("nan")},
        {"timeout": -1},
        {"key": ""},
    ],
    ids=str,
)
def test_bad_asks_are_refused_and_nothing_is_spent(how: Any) -> None:
    account, nodes = rich(), eight(COLOURS, colour)
    given = {"question": COLOURS, "account": account, "grid": nodes, "wait_for": 8} | how
    with pytest.raises(errors.InvalidParameter):
        flower_ask(**given)
    assert account.spent == 0
    assert nodes.sent == []


def test_far_more_clients_than_planned_are_refused_before_anything_is_spent() -> None:
    account = rich()
    small = histogram(keys=["red", "green"], **TERMS | {"clients": 3, "survivors": 2})
    with pytest.raises(errors.InvalidParameter, match="twice"):
        ask(small, eight(small, colour), account)
    assert account.spent == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: flower_answer(None, lambda context: 1),
        lambda: flower_answer(COLOURS, "red"),  # type: ignore[arg-type]
        lambda: flower_answer(COLOURS, lambda context: 1, at_most=0),
    ],
)
def test_bad_answers_are_refused(make: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        make()

"""Optimisers, layouts, checkpoints, histories and pictures: the parts that carry no promise but must be right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosha import errors
from mosha.federated import Checkpoint, FedAdam, FedAvg, History, ServerSide, accuracy_against_epsilon, train
from mosha.federated.layout import Layout
from tests.federated.parties import Listed, purse, unit_vectors

MODEL = {"w": np.ones((2, 3), np.float32), "seen": np.array([4]), "b": np.zeros(2, np.float64)}


def test_momentum_is_a_sum_of_decaying_updates() -> None:
    outer, weights = FedAvg(rate=0.5, momentum=0.9), np.zeros(1)
    memory = outer.begin(1)
    for _ in range(3):
        weights, memory = outer.advance(weights, np.ones(1), memory)
    assert weights[0] == pytest.approx(0.5 * (1 + 1.9 + 2.71))


def test_adam_takes_steps_of_its_rate_when_updates_do_not_change() -> None:
    outer, weights = FedAdam(rate=0.1, floor=1e-9), np.zeros(2)
    memory = outer.begin(2)
    for _ in range(5):
        weights, memory = outer.advance(weights, np.array([3.0, -7.0]), memory)
    assert np.allclose(weights, [0.5, -0.5])


@pytest.mark.parametrize("bad", [{"rate": 0}, {"momentum": 1.0}, {"momentum": -0.1}, {"rate": np.nan}])
def test_bad_optimisers_are_refused(bad: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        FedAvg(**bad)


def test_a_layout_goes_there_and_back_and_freezes_integers() -> None:
    layout = Layout.of(MODEL)
    assert layout.coordinates == 8
    back = layout.arrays(layout.flatten(MODEL) + 1.0, MODEL)
    assert (back["w"] == 2).all()
    assert back["w"].dtype == np.float32
    assert back["seen"].tolist() == [4]
    assert back["b"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "sent",
    [{}, {"w": MODEL["w"]}, MODEL | {"w": np.ones((3, 2))}, MODEL | {"b": np.array(["x", "y"])}, MODEL | {"b": 7}],
)
def test_a_layout_never_raises_on_what_a_client_sent(sent: Any) -> None:
    layout = Layout.of(MODEL)
    assert layout.change(sent, layout.flatten(MODEL)) is None


def test_a_model_without_weights_is_refused() -> None:
    with pytest.raises(errors.InvalidParameter):
        Layout.of({"seen": np.array([1])})


def test_a_checkpoint_keeps_where_a_training_began(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "kept")
    assert kept.latest() is None
    first = kept.initial(MODEL)
    assert all((first[name] == MODEL[name]).all() and first[name].dtype == MODEL[name].dtype for name in MODEL)
    again = kept.initial({"w": np.zeros(1)})
    assert list(again) == list(MODEL)
    kept.keep({"w": np.full(2, 5.0)})
    assert kept.latest()["w"].tolist() == [5.0, 5.0]
    (tmp_path / "kept" / "latest.sealed").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(errors.InvalidParameter):
        kept.latest()


def test_a_checkpoint_of_an_earlier_version_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "initial.npz").write_bytes(b"")
    with pytest.raises(errors.InvalidParameter, match="earlier version"):
        Checkpoint(tmp_path).initial(MODEL)


def test_a_model_that_somebody_else_put_into_a_checkpoint_is_refused(tmp_path: Path) -> None:
    mine, other = Checkpoint(tmp_path / "mine"), Checkpoint(tmp_path / "other")
    mine.initial(MODEL)
    other.initial({"w": np.full(2, 5.0)})
    (tmp_path / "mine" / "initial.sealed").write_bytes((tmp_path / "other" / "initial.sealed").read_bytes())
    with pytest.raises(errors.InvalidParameter):
        mine.initial(MODEL)


def test_histories_have_tables_and_pictures() -> None:
    plan = ServerSide(rounds=3, clients=5, clip=1.0, noise_multiplier=5.0, delta=1e-4)
    federation = Listed(dict(enumerate(unit_vectors(5, 3))))
    rounds = list(
        train(plan, federation, np.zeros(3), account=purse(), evaluate=lambda w: {"size": float(abs(w).sum())})
    )
    history = History(rounds, name="server")
    assert [line["round"] for line in history.table()] == [1, 2, 3]
    assert (history.weights == rounds[-1].weights).all()
    figure = accuracy_against_epsilon([history, History(name="empty")], metric="size")
    assert len(figure.axes[0].lines) == 1
    assert history.plot().axes[0].get_xlabel() == "epsilon paid so far"
    for bad in (lambda: History().weights, lambda: accuracy_against_epsilon([])):
        with pytest.raises(errors.InvalidParameter):
            bad()


def test_what_is_shown_after_the_last_round_is_no_more_than_what_was_paid() -> None:
    plan = ServerSide(rounds=4, clients=5, rate=0.1, clip=1.0).calibrate(epsilon=2, delta=1e-5)
    account = purse(epsilon=2, delta=1e-5)
    rounds = list(train(plan, Listed({}), np.zeros(3), account=account))
    assert rounds[-1].epsilon <= account.spent * (1 + 1e-12) <= 2 * (1 + 1e-9)

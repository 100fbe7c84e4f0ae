"""Distributed noise and noise on the client: laws of the noise, bounds on what is encoded, sums as in the clear."""

import math
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import accounting, errors
from mosha.federated import Ask, ClientSide, Distributed, securely_summed, train
from mosha.federated.clipping import STEPS
from mosha.federated.secure.rotation import Rotation
from mosha.noise import secure
from tests.federated.parties import Listed, purse, unit_vectors

WIDTH = 4096
LABEL = b"a label of sixty"


def distributed(**changes: Any) -> Any:
    known = {"rounds": 2, "clients": 10, "clip": 1.0, "survivors": 8, "noise_multiplier": 1.0}
    return Distributed(**(known | changes))


def client_side(**changes: Any) -> Any:
    return ClientSide(**({"rounds": 3, "clients": 10, "clip": 1.0, "noise_multiplier": 1.0} | changes))


def spread(values: Any, sigma: Any) -> Any:
    """Whether the mean square fits sigma: 7 sd of a chi-square, a false alarm of 3e-12."""
    ratio = float((values.astype(np.float64) ** 2).mean()) / sigma**2
    return abs(ratio - 1) < 7 * math.sqrt(2 / values.size)


@pytest.mark.parametrize("survivors", [2, 8])
def test_the_shares_of_the_least_surviving_cohort_add_up_to_the_noise_that_is_charged(survivors: int) -> None:
    plan = distributed(survivors=survivors)
    total = sum(plan.encode(np.zeros(WIDTH), LABEL, secure()).view(np.int32).astype(np.int64) for _ in range(survivors))
    sigma = plan.event_after(1).noise_multiplier * plan.event_after(1).sensitivity
    assert spread(total, sigma)
    assert not spread(total, 0.85 * sigma)
    assert not spread(total, 1.18 * sigma)


def test_where_clients_collude_the_shares_of_the_others_are_enough() -> None:
    plan = distributed(survivors=8, colluding=5)
    total = sum(plan.encode(np.zeros(WIDTH), LABEL, secure()).view(np.int32).astype(np.int64) for _ in range(3))
    assert spread(total, plan.event_after(1).noise_multiplier * plan.event_after(1).sensitivity)
    assert not spread(total, 1.18 * plan.event_after(1).noise_multiplier * plan.event_after(1).sensitivity)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_report_of_a_client_has_the_noise_that_it_pays_for(noise: str) -> None:
    plan = client_side(noise=noise)
    report = plan.report(np.zeros((1, 20_000)), secure())[0]
    sigma = 2 * STEPS * (1.0 if noise == "gaussian" else math.sqrt(2))
    heavy = 1.0 if noise == "gaussian" else 1.6  # a Laplace square has a relative sd of sqrt(5)
    ratio = float((report.astype(float) ** 2).mean()) / sigma**2
    assert abs(ratio - 1) < heavy * 7 * math.sqrt(2 / 20_000)
    for wrong in (0.8, 1.25):
        assert abs(ratio / wrong**2 - 1) > heavy * 7 * math.sqrt(2 / 20_000)


@pytest.mark.parametrize(
    "update", [[5.0] * 6, [0.01] * 6, [1e30] * 6, [math.nan] * 6, [math.inf] + [0.0] * 5, [0.0] * 6]
)
def test_an_encoded_update_is_no_longer_than_the_sensitivity(update: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = distributed()
    monkeypatch.setattr(
        "mosha.federated.plans.shared_noise.discrete_gaussian", lambda sigma, n, rng: np.zeros(n, np.int64)
    )
    for _ in range(10):
        steps = plan.encode(np.array(update), secure().bytes(16), secure()).view(np.int32)
        assert sum(int(s) ** 2 for s in steps) <= plan.event_after(1).sensitivity ** 2


def test_an_encoded_update_decodes_to_the_clipped_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = distributed(survivors=2)
    monkeypatch.setattr(
        "mosha.federated.plans.shared_noise.discrete_gaussian", lambda sigma, n, rng: np.zeros(n, np.int64)
    )
    rows = unit_vectors(2, 5000, 3.0)
    total = np.add.reduce([plan.encode(row, LABEL, secure()) for row in rows], dtype=np.uint32)
    answer = {"steps": total.view(np.int32).astype(np.int64), "clip": 1.0, "survivors": 2, "label": LABEL}
    found = plan.decoder()(answer | {"coordinates": 5000})
    assert np.allclose(found, rows.mean(axis=0) / 3.0, atol=3e-6)


def test_rotations_keep_lengths_and_come_back() -> None:
    for width in (1, 3, 4096, 5000):
        vector = unit_vectors(1, width)[0]
        turn = Rotation(width, secure().bytes(16))
        assert np.linalg.norm(turn(vector)) == pytest.approx(1.0)
        assert np.allclose(turn.back(turn(vector)), vector)


def test_a_rotation_flattens_a_spike() -> None:
    """One coordinate of 4096 becomes 4096 equal ones: largest entry 1/64 instead of 1."""
    spike = np.zeros(4096)
    spike[17] = 1.0
    assert np.abs(Rotation(4096, secure().bytes(16))(spike)).max() == pytest.approx(1 / 64)


def test_the_sum_in_a_simulation_is_the_sum_that_the_protocol_opens() -> None:
    plan = distributed()
    inputs = {m: plan.encode(row, LABEL, secure()) for m, row in enumerate(unit_vectors(10, 100), 1)}
    session = plan.session(list(inputs), len(inputs[1]), secure())
    expected = np.add.reduce([inputs[m] for m in range(3, 11)], dtype=np.uint32)
    assert (securely_summed(session, inputs, secure(), vanished=[1, 2]) == expected).all()


def test_training_with_shares_learns_and_pays_once() -> None:
    plan = distributed(clients=50, survivors=40, noise_multiplier=0.05, delta=1e-5, rounds=3)
    account = purse(epsilon=1e9)
    rounds = list(train(plan, Listed(dict(enumerate(np.tile([0.3, 0.4, 0.0], (50, 1))))), np.zeros(3), account=account))
    assert np.allclose(rounds[-1].weights, [0.9, 1.2, 0.0], atol=0.1)
    assert account.spent == pytest.approx(plan.epsilon(1e-5), rel=1e-6)


def test_too_few_clients_are_not_summed_and_nothing_more_is_paid() -> None:
    plan = distributed(noise_multiplier=4.0, delta=1e-5)
    account = purse()
    training = train(plan, Listed({i: np.ones(3) for i in range(7)}), np.zeros(3), account=account)
    spent = account.spent
    with pytest.raises(errors.SourceUnavailable):
        next(training)
    assert account.spent == spent


def test_a_report_is_bounded_in_the_norm_that_is_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = lambda scale, shape, rng: np.zeros(shape, np.int64)
    monkeypatch.setattr("mosha.federated.plans.client_side.discrete_gaussian", zeros)
    monkeypatch.setattr("mosha.federated.plans.client_side.discrete_laplace", zeros)
    for row in ([9.0, -9.0, 9.0], [1e300] * 3, [math.nan, 1, 1], [0.1, 0.1, 0.1]):
        steps = client_side().report(np.array([row]), secure())[0]
        assert sum(int(s) ** 2 for s in steps) <= STEPS**2
        steps = client_side(noise="laplace").report(np.array([row]), secure())[0]
        assert sum(abs(int(s)) for s in steps) <= STEPS


def test_the_local_model_is_priced_by_the_number_of_reports() -> None:
    everything = client_side(rounds=12)
    turns = client_side(rounds=12, period=4)
    assert turns.reports == 3
    assert turns.epsilon(1e-5) < everything.epsilon(1e-5)
    assert turns.event_after(12) == everything.event_after(3)
    pure = client_side(noise="laplace", noise_multiplier=4.0, rounds=12, period=4)
    assert pure.epsilon(0.0) == pytest.approx(3 / 4)


def test_a_device_pays_for_all_its_reports_and_can_be_restarted() -> None:
    plan = client_side(delta=1e-5)
    ledger = mosha.Ledger.memory()
    account = purse(unit=mosha.Own(), ledger=ledger)
    run = account.open(plan.device(3), key="training")
    first = run.step(np.ones(3)).value
    spent = account.spent
    again = account.open(plan.device(3), key="training")
    assert (again.step(None).value["steps"] == first["steps"]).all()
    again.step(np.zeros(3))
    again.step("nonsense")
    assert account.spent == spent
    with pytest.raises(errors.HorizonExceeded):
        again.step(np.ones(3))


def test_calibrated_plans_keep_their_promise() -> None:
    for plan in (
        distributed(noise_multiplier=None).calibrate(epsilon=4, delta=1e-5),
        client_side(noise_multiplier=None).calibrate(epsilon=4, delta=1e-5),
        client_side(noise_multiplier=None, noise="laplace").calibrate(epsilon=4, delta=0.0),
    ):
        assert 4 * 0.999 < accounting.epsilon(plan.event_after(plan.rounds), plan.delta) <= 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: distributed(survivors=1),
        lambda: distributed(survivors=11),
        lambda: distributed(colluding=8),
        lambda: distributed(clip=-1),
        lambda: distributed(noise_multiplier=1e-7),
        lambda: distributed(noise_multiplier=1e9),
        lambda: distributed(noise_multiplier=None).measurement(3),
        lambda: distributed(coordinates=100).measurement(5000),
        lambda: client_side(noise="uniform"),
        lambda: client_side(clip=math.nan),
        lambda: client_side(noise_multiplier=None).device(3),
        lambda: client_side(delta=1.0),
        lambda: client_side(noise_multiplier=1e-12),
    ],
)
def test_bad_plans_are_refused(make: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        make()


def test_every_round_has_a_label_of_its_own() -> None:
    plan = distributed()
    measurement = plan.measurement(3)
    federation = Listed({i: np.ones(3) for i in range(10)})
    labels = {
        measurement.step(measurement.init(), federation, Ask(1, np.zeros(3)), secure())[0]["label"] for _ in range(3)
    }
    assert len(labels) == 3


def test_plans_are_told_apart_by_their_colluders_and_those_without_are_known_as_before() -> None:
    alone, some = distributed(), distributed(colluding=1)
    assert "colluding" not in repr(alone)
    assert alone.measurement(3).question != some.measurement(3).question
    assert alone.agreed != some.agreed

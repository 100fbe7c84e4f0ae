"""A newcomer's mistakes: every public function answers with a typed, data-free sentence, and nothing is spent."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import errors
from mosha.federated import (
    AdaptiveClip,
    Checkpoint,
    ClientSide,
    Distributed,
    ExampleLevel,
    FedAdam,
    FedAvg,
    History,
    SecureClient,
    SecureServer,
    ServerSide,
    Session,
    Simulation,
    Weights,
    accuracy_against_epsilon,
    average_rounds,
    histogram,
    mean,
    quantile,
    securely_summed,
    train,
)
from mosha.noise import secure
from tests.federated.parties import Listed, purse

NEVER = [math.nan, math.inf, -math.inf, "x", [1], {}, 1j, True, object(), np.array([1.0, 2.0]), -1]
COUNTS = [*NEVER, None, 0, 2.5, 10**400]
SIZES = [*NEVER, None, 0, 10**400]
NOISE: dict[str, Any] = {"noise_multiplier": 1.0, "delta": 1e-5}
PLANS: dict[str, Any] = {
    ServerSide: {"rounds": 2, "clients": 5, "clip": 1.0},  # type: ignore[dict-item]
    ClientSide: {"rounds": 2, "clients": 5, "clip": 1.0},  # type: ignore[dict-item]
    Distributed: {"rounds": 2, "clients": 5, "clip": 1.0, "survivors": 3},  # type: ignore[dict-item]
}
PLAN = ServerSide(**PLANS[ServerSide], **NOISE)  # type: ignore[index]
QUESTION: dict[str, Any] = {"clients": 10, "survivors": 5, "epsilon": 1.0, "delta": 1e-5}


def refused(make: Any, *arguments: Any, **named: Any) -> None:
    with pytest.raises(errors.InvalidParameter) as caught:
        make(*arguments, **named)
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) > 20


FIELDS = [
    *[(kind, PLANS[kind] | NOISE, field, COUNTS) for kind in PLANS for field in ("rounds", "clients")],
    *[(kind, PLANS[kind] | NOISE, field, [*NEVER, 0]) for kind in PLANS for field in ("noise_multiplier", "period")],
    *[(kind, PLANS[kind] | NOISE, "clip", SIZES) for kind in PLANS],
    *[(kind, PLANS[kind] | NOISE, "delta", [*NEVER, 1]) for kind in PLANS],
    *[(kind, PLANS[kind] | NOISE, "proximal", NEVER) for kind in PLANS],
    *[(kind, PLANS[kind] | NOISE, "outer", [*NEVER, None, FedAvg]) for kind in PLANS],
    *[(ServerSide, PLANS[ServerSide] | NOISE, field, [*NEVER, 0]) for field in ("rate", "cohort", "bands", "weights")],  # type: ignore[index]
    (ServerSide, PLANS[ServerSide] | NOISE, "cohort", [6]),  # type: ignore[index]
    (ClientSide, PLANS[ClientSide] | NOISE, "noise", [*NEVER, None, "Gauss"]),  # type: ignore[index]
    *[(Distributed, PLANS[Distributed] | NOISE, field, COUNTS) for field in ("survivors", "coordinates")],  # type: ignore[index]
    (Distributed, PLANS[Distributed] | NOISE, "survivors", [6]),  # type: ignore[index]
    (AdaptiveClip, {"start": 1.0}, "start", SIZES),
    (AdaptiveClip, {"start": 1.0}, "quantile", [*NEVER, 0, 1]),
    (AdaptiveClip, {"start": 1.0}, "rate", SIZES),
    *[(Weights, {"at_most": 1.0, "typical": 1.0}, field, SIZES) for field in ("at_most", "typical")],
    (FedAvg, {}, "rate", SIZES),
    (FedAvg, {}, "momentum", [*NEVER, 1]),
    *[(FedAdam, {}, field, SIZES) for field in ("rate", "floor")],
    *[(FedAdam, {}, field, [*NEVER, 1]) for field in ("first", "second")],
    (histogram, QUESTION | {"keys": ["a"]}, "keys", [None, 3, "ab", [], ["a", "a"], [["a"]]]),
    (mean, QUESTION | {"between": (0, 1)}, "between", [None, 3, (1, 0), (0, math.nan), (0, 1, 2), ("a", "b")]),
    (quantile, QUESTION | {"at": 0.5, "between": (0, 1)}, "at", [*NEVER, 0, 1]),
    (quantile, QUESTION | {"at": 0.5, "between": (0, 1)}, "bins", COUNTS),
    *[(histogram, QUESTION | {"keys": ["a"]}, field, COUNTS) for field in ("clients", "survivors")],
    *[(histogram, QUESTION | {"keys": ["a"]}, field, [*NEVER, 0]) for field in ("epsilon", "delta")],
]


@pytest.mark.parametrize(("kind", "given", "field", "bad"), FIELDS, ids=lambda part: getattr(part, "__name__", None))
def test_what_is_written_into_a_plan_or_a_question_is_checked_at_once(
    kind: Any, given: Any, field: Any, bad: Any
) -> None:
    for value in bad:
        refused(kind, **given | {field: value})


@pytest.mark.parametrize("kind", PLANS, ids=lambda kind: kind.__name__)
def test_promises_and_sizes_that_make_no_sense_are_refused(kind: Any) -> None:
    bare, plan = kind(**PLANS[kind]), kind(**PLANS[kind], **NOISE)
    for bad in [*NEVER, None, 0]:
        refused(bare.calibrate, epsilon=bad, delta=1e-5)
    for bad in [*NEVER, None, 1]:
        refused(bare.calibrate, epsilon=1.0, delta=bad)
    for bad in [*NEVER, 1]:
        refused(plan.epsilon, bad)
    for bad in COUNTS:
        refused(plan.measurement, bad)
    for bad in [*NEVER, None, 2.5, 3]:
        refused(plan.event_after, bad)
    refused(bare.measurement, 3)


@pytest.mark.parametrize(
    "bad",
    [
        *({"plan": plan} for plan in (None, "x", FedAvg(), histogram(keys=["a"], **QUESTION))),
        *({"federation": federation} for federation in (None, 5, [])),  # type: ignore[var-annotated]
        *({"initial": initial} for initial in (None, "x", [], [[1.0]], [math.nan], ["a"], [1j], object(), {})),
        *({"account": account} for account in (None, "phones", mosha.Ledger.memory())),
        *({"key": key} for key in ("", 5, b"k", "a" * 10_000, "a\nb")),
        *({"retries": retries} for retries in (None, -1, "x", 2.5, True)),
        *({"evaluate": evaluate} for evaluate in ("x", 5)),
    ],
    ids=lambda bad: " ".join(f"{name}={type(value).__name__}" for name, value in bad.items()),
)
def test_a_training_that_could_not_run_is_refused_before_it_is_paid(bad: Any) -> None:
    account, federation = purse(epsilon=1e6), Listed({"a": np.zeros(3)})
    given = {"plan": PLAN, "federation": federation, "initial": np.zeros(3), "account": account} | bad
    refused(train, **given)
    assert account.spent == 0
    assert federation.asked == []


def test_a_closed_ledger_pays_nothing(tmp_path: Path) -> None:
    ledger, federation = mosha.Ledger(tmp_path / "privacy.db"), Listed({"a": np.zeros(3)})
    account = purse(epsilon=1e6, ledger=ledger)
    ledger.close()
    with pytest.raises(errors.LedgerError):
        train(PLAN, federation, np.zeros(3), account=account)
    assert federation.asked == []


def test_an_account_of_another_unit_pays_nothing() -> None:
    for plan, unit in ((PLAN, mosha.Own()), (ClientSide(**PLANS[ClientSide], **NOISE), mosha.Client())):  # type: ignore[index]
        account = purse(epsilon=1e6, unit=unit)
        with pytest.raises(errors.WrongUnit):
            train(plan, Listed({}), np.zeros(3), account=account)
        assert account.spent == 0


def test_a_round_of_secure_aggregation_is_checked() -> None:
    terms: dict[str, Any] = {"partners": 3, "survivors": 2, "width": 2, "rng": secure()}
    for members in (None, [], [1], [1, 1, 2], ["a", "b", "c"], [0, 1, 2], [1.5, 2, 3]):
        refused(Session.begin, members, **terms)
    for field in ("partners", "survivors", "width"):
        for bad in [*NEVER, None, 0, 2.5]:
            refused(Session.begin, [1, 2, 3, 4], **terms | {field: bad})
    refused(Session.begin, [1, 2, 3, 4], **terms | {"rng": None})
    session = Session.begin([1, 2, 3, 4], **terms)
    refused(securely_summed, None, {}, secure())
    refused(securely_summed, session, None, secure())
    refused(SecureClient, 1, None, secure())
    refused(SecureServer, None)
    with pytest.raises(errors.DataError):
        SecureClient(9, session, secure())


def test_folders_and_pictures_are_checked(tmp_path: Path) -> None:
    for folder in (None, 5, "a\0b"):
        refused(Checkpoint, folder)
    refused(Checkpoint(tmp_path).initial, None)
    for histories in (None, [], ["x"], History(), [History()]):
        refused(accuracy_against_epsilon, histories)
    evaluated = train(PLAN, Listed({}), np.zeros(3), account=purse(epsilon=1e6), evaluate=lambda weights: {"a": 1.0})
    refused(accuracy_against_epsilon, [History(list(evaluated))], metric="b")


def test_a_simulation_is_checked_and_one_of_another_size_is_not_paid_for() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.randn(3, 5, 4), torch.randint(0, 2, (3, 5))
    given = {"model": torch.nn.Linear(4, 2), "loss": torch.nn.functional.cross_entropy, "examples": (x, y)}
    given |= {"local_steps": 1, "batch": 2, "rate": 0.1}
    bad = {
        "model": [None, 5, torch.nn.ReLU()],
        "loss": [None, 5],
        "examples": [None, 5, (x,), (x, y[:2]), (None, None), ([1], [2]), (x[:0], y[:0]), (x, y[:, :4])],
        "local_steps": COUNTS,
        "batch": COUNTS,
        "rate": SIZES,
        "sizes": [5, "x", [1], [0, 1, 1], [6, 1, 1], [1.5, 1, 1], [None, 1, 1]],
        "proximal": NEVER,
        "seed": [None, "x", math.nan, 2.5],
        "vectorized": ["x", 5, None],
    }
    for field, values in bad.items():
        for value in values:
            refused(Simulation, **given | {field: value})
    federation, account = Simulation(**given), purse(epsilon=1e6)
    refused(train, PLAN, federation, np.zeros(3), account=account)
    assert account.spent == 0
    refused(federation.load, np.zeros(3))


def test_clients_that_train_privately_are_checked() -> None:
    torch = pytest.importorskip("torch")
    from mosha.learning import DPSGD

    x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
    account = purse(unit=mosha.Example(), epsilon=1e6)
    plan = DPSGD(steps=2, rate=0.5, clip=1.0, noise_multiplier=1.0)
    given = {"model": torch.nn.Linear(4, 2), "loss": torch.nn.CrossEntropyLoss(reduction="none")}
    given |= {"data": {"a": torch.utils.data.TensorDataset(x, y)}, "plan": plan, "accounts": {"a": account}}
    given |= {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)}
    bad = {
        "model": [None, 5],
        "loss": [None],
        "data": [None, 5, {}],
        "plan": [None, PLAN, 5],
        "accounts": [None, 5, {"b": account}, {"a": 5}],
        "optimizer": [None, 5],
    }
    for field, values in bad.items():
        for value in values:  # type: ignore[attr-defined]
            refused(ExampleLevel, **given | {field: value})
    clients = ExampleLevel(**given)
    for more in (
        {"federation": None},
        {"initial": "x"},
        {"initial": np.zeros(3)},
        *({"rounds": bad} for bad in COUNTS),
        {"outer": "x"},
    ):
        refused(average_rounds, **{"federation": clients, "initial": clients.initial(), "rounds": 1} | more)  # type: ignore[operator]
    assert account.spent == 0

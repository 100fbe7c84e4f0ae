"""Flower's own messages through our strategy and modifier, on a grid inside this process."""

import dataclasses
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

pytest.importorskip("flwr")
import mosha
from mosha import errors
from mosha.federated import ClientSide, Distributed, ServerSide, Weights, flower, flower_mod
from tests.federated.flower_grid import Nodes, app, model, towards
from tests.federated.parties import purse

START = {"w": np.zeros(3, np.float32), "seen": np.array([5])}
STEP = [0.3, 0.4, 0.0]
TINY = 0.01  # a noise multiplier at which the answer can be read


def server_side(**changes: Any) -> Any:
    return ServerSide(**({"rounds": 3, "clients": 5, "clip": 1.0, "noise_multiplier": TINY, "delta": 1e-4} | changes))


def rich(**how: Any) -> Any:
    return purse(epsilon=1e12, **how)


def started(strategy: Any, nodes: Any, **how: Any) -> tuple[Any, ...]:
    result = strategy.start(grid=nodes, initial_arrays=model(**START), **how)
    return {name: array.numpy() for name, array in result.arrays.items()}, result


def five(train: Any = None, mod: Any = None, **how: Any) -> dict[Any, Any]:
    return {100 + i: app(train or towards(STEP), *([] if mod is None else [mod]), **how) for i in range(5)}


def test_a_plain_app_is_trained_without_any_change() -> None:
    arrays, result = started(flower(server_side(), rich()), Nodes(five()))
    assert np.allclose(arrays["w"], [0.9, 1.2, 0.0], atol=0.15)
    assert arrays["w"].dtype == np.float32
    assert list(result.train_metrics_clientapp) == [1, 2, 3]
    assert result.train_metrics_clientapp[3]["epsilon"] == pytest.approx(server_side().epsilon(), rel=0.01)


def test_probe_4_integer_arrays_stay_as_they_were() -> None:
    counting = lambda arrays: towards(STEP)(arrays) | {"seen": arrays["seen"] + 100}
    arrays, _ = started(flower(server_side(), rich()), Nodes(five(counting)))
    assert arrays["seen"].tolist() == [5]


def test_metrics_of_clients_are_not_released() -> None:
    _, result = started(flower(server_side(), rich()), Nodes(five()))
    assert "0.123" not in repr(result)


@pytest.mark.parametrize(
    "bad",
    [
        lambda arrays: {"w": np.full(3, np.nan, np.float32)},
        lambda arrays: {"w": np.full(3, np.inf, np.float32)},
        lambda arrays: {"w": np.zeros((3, 1), np.float32)},
        lambda arrays: {"w": np.zeros(4, np.float32)},
        lambda arrays: {"other": np.zeros(3, np.float32)},
        lambda arrays: {"w": np.array(["a", "b", "c"])},
        lambda arrays: {"w": np.zeros(3, complex)},
        lambda arrays: {},
        lambda arrays: 1 / 0,
    ],
    ids=["nan", "inf", "shape", "length", "name", "text", "complex", "empty", "crash"],
)
def test_a_client_that_sends_nonsense_counts_as_nothing(bad: Any) -> None:
    nodes = five()
    nodes[100] = app(bad)
    arrays, _ = started(flower(server_side(rounds=1), rich()), Nodes(nodes))
    assert np.allclose(arrays["w"], np.array(STEP) * 4 / 5, atol=0.05)


def test_a_huge_update_and_a_claimed_weight_move_no_more_than_the_clip() -> None:
    nodes = five(lambda arrays: arrays)
    nodes[100] = app(towards([1e30, 0, 0]), examples=1e6)
    arrays, _ = started(flower(server_side(rounds=1), rich()), Nodes(nodes))
    assert np.allclose(arrays["w"], [0.2, 0, 0], atol=0.05)


def test_bounded_weights_are_taken_from_num_examples() -> None:
    nodes = five(lambda arrays: arrays)
    nodes[100], nodes[101] = app(towards([1.0, 0, 0]), examples=5), app(towards([0, 1.0, 0]), examples=1e9)
    plan = server_side(rounds=1, weights=Weights(at_most=10, typical=10))
    arrays, _ = started(flower(plan, rich()), Nodes(nodes))
    assert np.allclose(arrays["w"], [0.1, 0.2, 0], atol=0.05)


def test_dropouts_and_fewer_clients_than_planned_divide_by_the_plan() -> None:
    plan = server_side(rounds=1, clients=10)
    arrays, _ = started(flower(plan, rich()), Nodes(five(), lambda node, config: node == 104))
    assert np.allclose(arrays["w"], np.array(STEP) * 4 / 10, atol=0.05)


def test_a_killed_server_resumes_from_ledger_and_checkpoint(tmp_path: Path) -> None:
    plan = server_side()
    asked = []

    class Killed(Exception):
        pass

    def die(done: Any) -> None:
        if done.number == 2:
            raise Killed

    def again(**how: Any) -> tuple[Any, ...]:
        account = rich(ledger=mosha.Ledger(tmp_path / "privacy.db"))
        strategy = flower(plan, account, key="k", checkpoint=tmp_path / "kept", **how)
        nodes = Nodes(five())
        asked.append(nodes.sent)
        return strategy, nodes, account

    strategy, nodes, account = again(on_round=die)
    with pytest.raises(Killed):
        started(strategy, nodes)
    spent = account.spent
    strategy, nodes, account = again()
    other = {"w": np.full(3, 9.0, np.float32), "seen": np.array([0])}
    strategy.start(grid=nodes, initial_arrays=model(**other))
    assert account.spent == spent
    assert [config["server-round"] for _, config in asked[1]] == [3] * 5
    assert len(strategy.history.rounds) == 3
    assert np.allclose(strategy.history.weights, [0.9, 1.2, 0.0], atol=0.2)


def test_nothing_is_sent_when_the_account_cannot_pay() -> None:
    nodes = Nodes(five())
    with pytest.raises(errors.BudgetExceeded):
        started(flower(server_side(), purse(epsilon=1)), nodes)
    assert nodes.sent == []


def test_more_rounds_than_planned_are_refused() -> None:
    with pytest.raises(errors.InvalidParameter):
        started(flower(server_side(), rich()), Nodes(five()), num_rounds=4)
    strategy = flower(server_side(), rich())
    for half in (lambda: strategy.configure_train(1, None, None, None), lambda: strategy.aggregate_train(1, [])):
        with pytest.raises(errors.InvalidParameter, match="start"):
            half()


def test_reports_of_clients_are_paid_by_each_from_its_own_account() -> None:
    plan = ClientSide(rounds=2, clients=5, clip=1.0, noise_multiplier=TINY, delta=1e-4)
    accounts = {node: purse(unit=mosha.Own(), epsilon=1e12) for node in five()}
    nodes = Nodes({node: app(towards(STEP), flower_mod(plan, accounts[node])) for node in accounts})
    arrays, _ = started(flower(plan), nodes)
    assert np.allclose(arrays["w"], [0.6, 0.8, 0.0], atol=0.1)
    assert {account.spent for account in accounts.values()} == {accounts[100].spent}
    assert accounts[100].spent == pytest.approx(plan.epsilon(1e-4))


def test_a_server_that_starts_again_gets_the_reports_that_were_made_and_nobody_pays_twice() -> None:
    plan = ClientSide(rounds=2, clients=5, clip=1.0, noise_multiplier=TINY, delta=1e-4)
    accounts = {node: purse(unit=mosha.Own(), epsilon=1e12) for node in five()}
    again = lambda: Nodes({node: app(towards(STEP), flower_mod(plan, accounts[node], key="k")) for node in accounts})
    first, _ = started(flower(plan), again(), num_rounds=1)
    spent = accounts[100].spent
    second, _ = started(flower(plan), again(), num_rounds=1)
    assert (first["w"] == second["w"]).all()
    assert accounts[100].spent == spent


def broken(weights: Any) -> NoReturn:
    raise ValueError("patient 4711 has no label")


@pytest.mark.parametrize("kind", ["reports", "shares"])
def test_an_app_that_breaks_sends_zeros_as_usual_and_not_a_word(kind: str) -> None:
    if kind == "reports":
        plan = ClientSide(rounds=1, clients=5, clip=1.0, noise_multiplier=TINY, delta=1e-4)
    else:
        plan = Distributed(rounds=1, clients=5, clip=1.0, survivors=5, noise_multiplier=TINY, delta=1e-4)  # type: ignore[assignment]
    accounts = {node: purse(unit=mosha.Own(), epsilon=1e12) for node in five()}
    more = lambda node: (accounts[node],) if kind == "reports" else ()
    nodes = Nodes({n: app(broken if n == 100 else towards(STEP), flower_mod(plan, *more(n))) for n in accounts})
    arrays, _ = started(flower(plan) if kind == "reports" else flower(plan, rich()), nodes)
    assert np.allclose(arrays["w"], 0.8 * np.array(STEP), atol=0.1)  # zeros count among five
    assert len({account.spent for account in accounts.values()}) == 1


def test_a_client_whose_account_cannot_be_opened_says_no_more() -> None:
    plan = ClientSide(rounds=1, clients=5, clip=1.0, noise_multiplier=TINY, delta=1e-4)
    mod = flower_mod(plan, broken)
    with pytest.raises(errors.RunError) as caught:
        mod._purse(None)
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_client_that_cannot_pay_sends_nothing() -> None:
    plan = ClientSide(rounds=1, clients=5, clip=1.0, noise_multiplier=TINY, delta=1e-4)
    accounts = {node: purse(unit=mosha.Own(), epsilon=1e12 if node > 100 else 1.0) for node in five()}
    nodes = Nodes({node: app(towards(STEP), flower_mod(plan, accounts[node])) for node in accounts})
    arrays, _ = started(flower(plan), nodes)
    assert np.allclose(arrays["w"], STEP, atol=0.1)  # the mean of four
    assert accounts[100].spent == 0


@pytest.mark.parametrize("stage", ["keys", "letters", "masked", "unmask", None])
def test_secure_aggregation_survives_a_node_that_vanishes_at_any_step(stage: Any) -> None:
    plan = Distributed(rounds=2, clients=5, clip=1.0, survivors=4, noise_multiplier=TINY, delta=1e-4)
    vanishing = lambda node, config: node == 102 and config.get("mosha-stage") == stage
    nodes = Nodes(five(mod=flower_mod(plan)), vanishing)
    arrays, _ = started(flower(plan, rich()), nodes)
    assert np.allclose(arrays["w"], [0.6, 0.8, 0.0], atol=0.1)


def test_too_few_survivors_open_nothing_and_can_be_retried() -> None:
    plan = Distributed(rounds=3, clients=5, clip=1.0, survivors=4, noise_multiplier=TINY, delta=1e-4)
    seen = []

    def vanishing(node: Any, config: Any) -> Any:
        seen.append(config.get("mosha-stage"))
        return node in (101, 102) and config.get("mosha-stage") == "masked" and seen.count("keys") <= 5

    nodes = Nodes(five(mod=flower_mod(plan)), vanishing)
    arrays, _ = started(flower(plan, rich()), nodes, num_rounds=1)
    assert np.allclose(arrays["w"], STEP, atol=0.1)
    assert seen.count("keys") == 10


def test_a_server_with_other_terms_is_refused_by_the_clients() -> None:
    """The plan on the client counts: a server that would open sums of two, or ask once more, gets nothing."""
    strict = Distributed(rounds=1, clients=5, clip=1.0, survivors=4, noise_multiplier=TINY, delta=1e-4)
    loose = Distributed(rounds=3, clients=5, clip=1.0, survivors=2, noise_multiplier=TINY, delta=1e-4)
    with pytest.raises(errors.SourceUnavailable):
        started(flower(loose, rich()), Nodes(five(mod=flower_mod(strict))))
    for other in ({"noise_multiplier": 1000 * TINY}, {"clip": 2.0}, {"coordinates": 64}, {"clients": 6}):
        with pytest.raises(errors.SourceUnavailable):  # it would pay for more noise than the clients add
            started(flower(dataclasses.replace(strict, **other), rich()), Nodes(five(mod=flower_mod(strict))))
    longer = Distributed(rounds=3, clients=5, clip=1.0, survivors=4, noise_multiplier=TINY, delta=1e-4)
    strategy = flower(longer, rich())
    with pytest.raises(errors.SourceUnavailable):
        started(strategy, Nodes(five(mod=flower_mod(strict))))
    assert len(strategy.history.rounds) == 1


def test_a_server_that_asks_in_the_clear_gets_nothing_from_a_masking_client() -> None:
    plan = Distributed(rounds=1, clients=5, clip=1.0, survivors=4, noise_multiplier=TINY, delta=1e-4)
    arrays, _ = started(flower(server_side(rounds=1), rich()), Nodes(five(mod=flower_mod(plan))))
    assert np.allclose(arrays["w"], 0.0, atol=0.05)


@pytest.mark.parametrize(
    "make",
    [
        lambda: flower(server_side()),
        lambda: flower(ClientSide(rounds=1, clients=3, clip=1.0), rich()),
        lambda: flower_mod(ClientSide(rounds=1, clients=3, clip=1.0)),
        lambda: flower_mod(Distributed(rounds=1, clients=3, clip=1.0, survivors=2), rich()),
    ],
)
def test_who_pays_is_asked_for(make: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        make()


@pytest.mark.parametrize(
    "bad",
    [
        *({"plan": plan} for plan in (None, "x", 5)),
        *({"account": account} for account in (None, "x", 5)),
        *({"checkpoint": folder} for folder in (5, "a\0b")),
        *({"wait_for": count} for count in (None, -1, 0, "x", 2.5)),
        *({"patience": seconds} for seconds in (None, -1, "x", float("nan"))),
        *({"on_round": call} for call in ("x", 5)),
        {"key": ""},
        {"secret": "not needed"},
    ],
    ids=lambda bad: " ".join(f"{name}={value!r}" for name, value in bad.items()),
)
def test_a_strategy_that_could_not_run_is_refused_before_it_is_paid(bad: Any) -> None:
    account, nodes = rich(), Nodes(five())
    with pytest.raises(errors.InvalidParameter):
        started(flower(**{"plan": server_side(), "account": account} | bad), nodes)
    assert account.spent == 0
    assert nodes.sent == []


@pytest.mark.parametrize(
    "bad",
    [
        *({"grid": grid} for grid in (None, 5)),
        *({"initial_arrays": arrays} for arrays in (None, 5, model(), model(w=np.array([5])), {"w": np.zeros(3)})),
        {"initial_arrays": model(w=np.array([float("nan")]))},
        *({"num_rounds": rounds} for rounds in (0, -1, "x", 1.5)),
        *({"timeout": seconds} for seconds in (None, -1, "x", float("nan"))),
        *({"train_config": config} for config in (5, "x")),
        *({"evaluate_fn": call} for call in (5, "x")),
    ],
    ids=lambda bad: " ".join(f"{name}={type(value).__name__}" for name, value in bad.items()),
)
def test_a_start_that_could_not_run_is_refused_before_it_is_paid(bad: Any) -> None:
    account, nodes = rich(), Nodes(five())
    with pytest.raises(errors.InvalidParameter):
        flower(server_side(), account).start(**{"grid": nodes, "initial_arrays": model(**START)} | bad)
    assert account.spent == 0
    assert nodes.sent == []


def test_a_modifier_takes_the_plans_of_clients_and_their_own_accounts() -> None:
    plan = ClientSide(rounds=1, clients=3, clip=1.0, noise_multiplier=1.0)
    for bad in (None, "x", server_side(), 5):
        with pytest.raises(errors.InvalidParameter):
            flower_mod(bad)  # type: ignore[arg-type]
    for account in ("x", 5, rich()):
        with pytest.raises(errors.InvalidParameter):
            flower_mod(plan, account)  # type: ignore[arg-type]
    for key in ("", 5):
        with pytest.raises(errors.InvalidParameter):
            flower_mod(plan, purse(unit=mosha.Own()), key=key)  # type: ignore[arg-type]

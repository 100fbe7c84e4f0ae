"""Contracts: every planted fault breaks the clause it should, and what is right is left alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosha import Row, events, mechanisms
from mosha.audit import entries
from mosha.audit.contracts.contract import additive_contract
from mosha.audit.contracts.trainer import trainer_contract
from mosha.core.errors import InvalidParameter
from tests.audit.trainers import DPSGD, FAULTY, Signs


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda trainer: trainer.__doc__.splitlines()[0])
def test_a_faulty_trainer_breaks_the_clause_that_names_its_fault(faulty: Any) -> None:
    assert FAULTY[faulty] in trainer_contract(faulty()).broken


def test_a_correct_trainer_keeps_its_contract_every_time() -> None:
    """False-alarm rate 1e-9 each."""
    for trainer in (DPSGD(), Signs()):
        assert all(trainer_contract(trainer).kept for _ in range(5))


def test_a_trainer_that_meets_nan_breaks_its_contract() -> None:
    trainer = DPSGD()
    trainer.gradients[0] = np.nan
    assert trainer_contract(trainer, examples=[0, 1]).broken == ("sensitivity at most clip",)


def test_a_contract_can_be_read_by_people_and_programs() -> None:
    contract = trainer_contract(DPSGD(), name="plan")
    assert str(contract).startswith("plan: contract kept")
    assert contract.to_dict()["kept"] is True
    assert len(contract.to_dict()["checks"]) == len(contract.checks)


SUM = mechanisms.ClippedSum(between=(0, 10))
REPLACE = Row(neighbors="replace-one")  # type: ignore[arg-type]
ADDITIVE = [
    (mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=1), ([], [1])),
    (mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=4), ([], [1])),
    (mechanisms.laplace(SUM, unit=REPLACE, epsilon=1), ([0], [10])),
    (mechanisms.gaussian(SUM, unit=Row(), mu=1), ([], [99])),
    (mechanisms.gaussian(mechanisms.Histogram(keys=["a", "b"]), unit=REPLACE, rho=1), (["a"], ["b"])),
]


@pytest.mark.parametrize(("measurement", "neighbors"), ADDITIVE, ids=lambda part: getattr(part, "name", None))
def test_additive_noise_fits_its_price(measurement: Any, neighbors: Any) -> None:
    assert additive_contract(measurement, neighbors=neighbors, draws=1_500).kept


@pytest.mark.parametrize(("measurement", "neighbors"), ADDITIVE, ids=lambda part: getattr(part, "name", None))
def test_noise_for_half_the_sensitivity_breaks_the_contract(measurement: Any, neighbors: Any) -> None:
    event = replace(measurement.event, noise_multiplier=2 * measurement.event.noise_multiplier)
    contract = additive_contract(replace(measurement, event=event), neighbors=neighbors, draws=1_500)
    assert not contract.kept
    assert "noise as large as the price says" in contract.broken[0]


def additive_entries() -> list[Any]:
    kinds = (events.DiscreteLaplace, events.DiscreteGaussian)
    return [entry for entry in entries() if entry.kind == "mechanisms" and isinstance(entry.build().event, kinds)]


@pytest.mark.parametrize("entry", additive_entries(), ids=lambda entry: entry.name)
def test_every_additive_mechanism_of_mosha_keeps_its_contract(entry: Any) -> None:
    for proposal in entry.proposals[:3]:
        contract = additive_contract(entry.build(), neighbors=proposal.pair, draws=150)
        assert contract.kept, str(contract)


def test_a_step_that_draws_its_own_randomness_breaks_the_contract() -> None:
    own = lambda state, data, ask, rng: (len(data) + np.random.default_rng().laplace(), state)
    measurement = replace(ADDITIVE[0][0], step=own, event=events.Laplace(1.0))
    assert "same randomness, same answer" in additive_contract(measurement, neighbors=([], [1]), draws=200).broken


def test_neighbors_that_do_not_move_the_statistic_show_nothing() -> None:
    contract = additive_contract(ADDITIVE[3][0], neighbors=([], [0]), draws=50)
    assert contract.kept
    assert "does not move" in contract.checks[-1].seen


def test_what_is_not_additive_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        additive_contract(mechanisms.mean(between=(0, 1), unit=Row(), epsilon=1), neighbors=([], [1]))

"""Events of dp-accounting are read by what their authors define, and written so that they come back."""

import math
import sys
from typing import Any

import dp_accounting
import pytest
from dp_accounting import dp_event, rdp

from mosha.accounting import interop
from mosha.accounting.measures import concentrated, renyi
from mosha.core.errors import InvalidParameter, MissingExtra
from mosha.events import (
    NOTHING,
    Approx,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    Pure,
    RandomizedResponse,
    Renyi,
    Sampled,
    Selected,
    Tree,
    ZeroConcentrated,
)

BOTH = ["add-remove", "replace-one"]
ADDED, REPLACED = BOTH

ROUND_TRIPS = [
    (NOTHING, BOTH),
    (Gaussian(2), BOTH),
    (Laplace(3), BOTH),
    (DiscreteLaplace(0.5, 4), BOTH),
    (RandomizedResponse(0.7, 5), [REPLACED]),
    (Gaussian(2) * 7 + Laplace(3), BOTH),
    (Gaussian(1.1).sample(0.01) * 1000, [ADDED]),
    (Sampled(Gaussian(1.1) + Laplace(2), 0.01, REPLACED), [REPLACED]),  # type: ignore[arg-type]
    (FixedSizeSampled(Gaussian(1.1), 10, 1000), [REPLACED]),
    (FixedSizeSampled(Laplace(1.1), 10, 1000, True), [REPLACED]),
    (Tree(4, 10), BOTH),
    (Selected(Gaussian(4), 10, shape=0.5), BOTH),
    (Selected(Gaussian(4) * 3, 10, "poisson"), BOTH),
    (ZeroConcentrated(0.3), BOTH),
]
cases = [(event, relation) for event, relations in ROUND_TRIPS for relation in relations]


@pytest.mark.parametrize(("event", "relation"), cases, ids=str)
def test_what_is_written_is_read_again(event: Any, relation: Any) -> None:
    theirs = interop.to_dp_event(event, neighbors=relation)
    again = interop.from_dp_event(theirs, neighbors=relation)
    for order in (1.5, 8.0):
        assert renyi.cost_of(again, order).amount == pytest.approx(renyi.cost_of(event, order).amount, rel=1e-9)


@pytest.mark.parametrize(("event", "relation"), cases, ids=str)
def test_named_tuples_are_read_without_the_library(event: Any, relation: Any) -> None:
    theirs = interop.to_dp_event(event, neighbors=relation)
    assert interop.from_dp_event(theirs.to_named_tuple(), neighbors=relation) == interop.from_dp_event(
        theirs, neighbors=relation
    )


def test_a_multiplier_of_one_contribution_is_half_as_much_under_replacement() -> None:
    theirs = dp_accounting.GaussianDpEvent(2.0)
    assert interop.from_dp_event(theirs, neighbors=ADDED) == Gaussian(2.0)
    assert interop.from_dp_event(theirs, neighbors=REPLACED) == Gaussian(1.0)
    assert interop.to_dp_event(Gaussian(1.0), neighbors=REPLACED) == theirs


def test_discrete_laplace_keeps_its_parameter() -> None:
    theirs = dp_event.DiscreteLaplaceDpEvent(0.25, 2)
    assert interop.from_dp_event(theirs, neighbors=ADDED) == DiscreteLaplace(2.0, 2)
    assert interop.from_dp_event(theirs, neighbors=REPLACED) == DiscreteLaplace(1.0, 4)


def test_randomized_response_keeps_its_epsilon() -> None:
    theirs = dp_accounting.RandomizedResponseDpEvent(0.4, 3)
    found = interop.from_dp_event(theirs, neighbors=REPLACED)
    assert found.epsilon == pytest.approx(math.log((0.6 + 0.4 / 3) / (0.4 / 3)), rel=1e-12)  # type: ignore[attr-defined]
    assert interop.from_dp_event(dp_accounting.RandomizedResponseDpEvent(1.0, 3), neighbors=REPLACED) == NOTHING


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(2) * 30,
        Laplace(5) * 30,
        Gaussian(1.1).sample(0.01) * 1000,
        (Gaussian(2) * 4).sample(0.1) * 10,
        ZeroConcentrated(0.2),
        Selected(Gaussian(4), 10),
        Selected(Gaussian(4), 10, shape=0.0),
    ],
    ids=str,
)
def test_their_renyi_accountant_agrees(event: Any) -> None:
    accountant = rdp.RdpAccountant()
    accountant.compose(interop.to_dp_event(event, neighbors=ADDED))
    theirs, ours = accountant.get_epsilon(1e-6), renyi.epsilon(event, 1e-6)
    assert ours <= theirs * (1 + 1e-6)
    assert ours == pytest.approx(theirs, rel=0.03)


@pytest.mark.parametrize("event", [RandomizedResponse(0.3, 4) * 20, RandomizedResponse(1.0) * 20], ids=str)
def test_their_renyi_accountant_agrees_on_randomized_response(event: Any) -> None:
    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(interop.to_dp_event(event, neighbors=REPLACED))
    theirs, ours = accountant.get_epsilon(1e-6), renyi.epsilon(event, 1e-6)
    assert ours == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize("event", [Pure(0.5), Exponential(0.5), DiscreteGaussian(4), DiscreteLaplace(2, 3)], ids=str)
def test_what_they_have_no_word_for_is_covered_by_its_rho(event: Any) -> None:
    theirs = interop.to_dp_event(event, neighbors=REPLACED)
    assert theirs.rho >= concentrated.rho(event)[0]


def test_groups_and_matrices_are_written_as_what_they_are() -> None:
    assert interop.to_dp_event(Group(Gaussian(6), 3), neighbors=ADDED) == dp_accounting.GaussianDpEvent(2.0)
    assert interop.to_dp_event(Matrix(6, 3), neighbors=ADDED) == dp_accounting.GaussianDpEvent(2.0)
    laplace = dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(8.0), 5)
    assert interop.to_dp_event(Tree(8, 5, "laplace"), neighbors=ADDED) == laplace


def test_an_offset_in_their_concentrated_event_is_kept_order_by_order() -> None:
    found = interop.from_dp_event(dp_accounting.ZCDpEvent(rho=0.1, xi=0.2), neighbors=ADDED)
    assert isinstance(found, Renyi)
    assert renyi.divergence(found, 8.0) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("event", [Approx(1, 1e-6), Failure(Gaussian(2), 1e-6), Renyi((2.0,), (0.1,))], ids=str)
def test_what_cannot_be_written_is_refused(event: Any) -> None:
    with pytest.raises(InvalidParameter):
        interop.to_dp_event(event, neighbors=ADDED)


@pytest.mark.parametrize(
    ("theirs", "relation"),
    [
        (dp_accounting.NonPrivateDpEvent(), ADDED),
        (dp_accounting.UnsupportedDpEvent(), ADDED),
        (dp_accounting.RandomizedResponseDpEvent(0.0, 3), REPLACED),
        (dp_accounting.RandomizedResponseDpEvent(0.5, 3), ADDED),
        (dp_accounting.SampledWithoutReplacementDpEvent(10, 2, dp_accounting.GaussianDpEvent(1.0)), ADDED),
        (dp_accounting.GaussianDpEvent(0.0), ADDED),
        (dp_accounting.GaussianDpEvent(1.0), "nearby"),
        (dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.0), -1), ADDED),
        ("gaussian", ADDED),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused(theirs: Any, relation: Any) -> None:
    with pytest.raises(InvalidParameter):
        interop.from_dp_event(theirs, neighbors=relation)


def test_writing_says_which_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.delitem(sys.modules, "dp_accounting.dp_event")
    with pytest.raises(MissingExtra, match="interop"):
        interop.to_dp_event(Gaussian(1), neighbors=ADDED)


def test_a_sample_is_written_for_its_own_neighbors() -> None:
    with pytest.raises(InvalidParameter):
        interop.to_dp_event(Gaussian(1).sample(0.1), neighbors=REPLACED)
    with pytest.raises(InvalidParameter):
        interop.to_dp_event(FixedSizeSampled(Gaussian(1), 1, 10), neighbors=ADDED)
    with pytest.raises(InvalidParameter):
        interop.to_dp_event(0.5, neighbors=ADDED)  # type: ignore[arg-type]

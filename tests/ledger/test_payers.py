"""Trees and blocks: all pay or none, and no person's loss exceeds any account's limit."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mosha
from mosha import errors, events
from mosha.accounting.rules import rule_for
from mosha.ledger.terms.payers import payers
from mosha.ledger.terms.terms import Terms
from tests.ledger.place import PERSON, asking


def spent(*accounts: Any) -> list[Any]:
    return [pytest.approx(account.spent) for account in accounts]


def test_a_release_is_paid_by_every_ancestor(ledger: Any) -> None:
    hospital = ledger.account("hospital", unit=PERSON, epsilon=10)
    visits = hospital.child("visits", epsilon=3)
    zhang = visits.child("zhang", epsilon=1)
    zhang.open(asking(events.Laplace(2)))
    assert [zhang.name, zhang.parent.name] == ["hospital/visits/zhang", "hospital/visits"]
    assert [hospital.spent, visits.spent, zhang.spent] == [0.5, 0.5, 0.5]
    assert [child.name for child in hospital.children()] == ["hospital/visits"]


def test_colluding_analysts_cannot_exceed_the_limit_of_the_data_set(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=2)
    analysts = [visits.child(name, epsilon=1) for name in ("zhang", "li", "wang")]
    for analyst in analysts[:2]:
        analyst.open(asking())
    with pytest.raises(errors.BudgetExceeded) as refusal:
        analysts[2].open(asking(events.Laplace(100)))
    assert refusal.value.account == "visits"
    assert analysts[2].spent == 0


def test_all_pay_or_none(ledger: Any) -> None:
    accounts = [ledger.account(name, unit=PERSON, epsilon=limit) for name, limit in [("a", 3), ("b", 1), ("c", 3)]]
    both = ledger.together(accounts)
    both.open(asking())
    with pytest.raises(errors.BudgetExceeded, match="'b'"):
        both.open(asking())
    assert [account.spent for account in accounts] == [1.0, 1.0, 1.0]
    assert ledger.verify().ok


def test_each_account_charges_by_its_own_rule(ledger: Any) -> None:
    top = ledger.account("top", unit=PERSON, rho=1)
    pure = top.child("pure", epsilon=5)
    pure.open(asking(events.Laplace(1)))
    assert pure.spent == 1.0
    assert top.spent_price == rule_for(rho=1).price(events.Laplace(1))


def test_a_child_inherits_the_unit_and_accepts_no_other(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=2)
    assert visits.child("zhang", epsilon=1).unit == PERSON
    with pytest.raises(errors.WrongUnit):
        visits.child("li", unit=mosha.Row(), epsilon=1)
    with pytest.raises(errors.WrongUnit):
        ledger.together([visits, ledger.account("rows", unit=mosha.Row(), epsilon=1)])


def test_a_child_needs_its_parent(ledger: Any) -> None:
    with pytest.raises(errors.UnknownAccount, match="'visits'"):
        ledger.account("visits/zhang", unit=PERSON, epsilon=1)
    with pytest.raises(errors.UnknownAccount):
        ledger.account("zhang", parent="visits", epsilon=1)
    ledger.account("visits", unit=PERSON, epsilon=1)
    assert ledger.account("visits/zhang", epsilon=1) is not None
    assert ledger.account("zhang", parent="visits").name == "visits/zhang"


def test_blocks_that_may_share_people_are_added(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=2)
    october, november = visits.block("2026-10"), visits.block("2026-11")
    october.open(asking())
    november.open(asking())
    assert visits.spent == 2.0
    with pytest.raises(errors.BudgetExceeded):
        october.open(asking())


def test_one_release_on_several_blocks_is_one_release_for_their_parent(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=2)
    blocks = [visits.block(name) for name in "abc"]
    ledger.together(blocks).open(asking())
    assert visits.spent == 1.0
    assert [block.spent for block in blocks] == [1.0, 1.0, 1.0]


def test_disjoint_blocks_cost_their_parent_the_dearest_one(ledger: Any) -> None:
    visits = ledger.account("visits", unit=mosha.Reading(), epsilon=2, disjoint_blocks=True)
    months = [visits.block(f"2026-{month:02}") for month in range(1, 13)]
    for month in months:
        month.open(asking(unit=mosha.Reading()))
    assert visits.spent == 1.0
    months[0].open(asking(unit=mosha.Reading()))
    assert visits.spent == 2.0
    with pytest.raises(errors.BudgetExceeded):
        months[0].open(asking(events.Laplace(100), unit=mosha.Reading()))
    months[1].open(asking(unit=mosha.Reading()))
    assert ledger.verify().ok


def test_a_release_on_everything_counts_for_every_block(ledger: Any) -> None:
    unit = mosha.Reading()
    visits = ledger.account("visits", unit=unit, epsilon=2, disjoint_blocks=True)
    block = visits.block("2026-11")
    visits.open(asking(unit=unit))
    block.open(asking(unit=unit))
    assert visits.spent == 2.0
    with pytest.raises(errors.BudgetExceeded, match="'visits'"):
        block.open(asking(events.Laplace(100), unit=unit))


def test_the_organisation_above_counts_disjoint_blocks_as_their_parent_does(ledger: Any) -> None:
    unit = mosha.Reading()
    hospital = ledger.account("hospital", unit=unit, epsilon=3)
    visits = hospital.child("visits", epsilon=2, disjoint_blocks=True)
    stays = hospital.child("stays", epsilon=2, disjoint_blocks=True)
    for block in [visits.block("1"), visits.block("2"), stays.block("1"), stays.block("2"), stays.block("3")]:
        block.child("zhang", epsilon=2).open(asking(unit=unit))
    assert [hospital.spent, visits.spent, stays.spent] == [2.0, 1.0, 1.0]
    ledger.together([visits.block("1"), stays.block("1")]).open(asking(unit=unit))
    assert hospital.spent == 3.0
    assert ledger.verify().ok


def test_an_analyst_beside_the_blocks_makes_the_parent_pay_for_all_of_them(ledger: Any) -> None:
    unit = mosha.Reading()
    visits = ledger.account("visits", unit=unit, epsilon=5, disjoint_blocks=True)
    inside, outside = visits.child("zhang", epsilon=5), ledger.account("zhang", unit=unit, epsilon=5)
    blocks = [visits.block("1"), visits.block("2")]
    for block in blocks:
        ledger.together([block, outside]).open(asking(unit=unit))
    assert [visits.spent, outside.spent] == [1.0, 2.0]
    for block in blocks:
        ledger.together([block, inside]).open(asking(unit=unit))
    assert [visits.spent, inside.spent] == [3.0, 2.0]


@pytest.mark.parametrize("unit", [mosha.Row(at_most=2), mosha.Reading(neighbors="replace-one"), mosha.Own()])  # type: ignore[arg-type]
def test_blocks_are_not_called_disjoint_where_one_change_touches_two(ledger: Any, unit: Any) -> None:
    with pytest.raises(errors.InvalidParameter, match="disjoint_blocks"):
        ledger.account("visits", unit=unit, epsilon=1, disjoint_blocks=True)
    assert ledger.accounts() == []


def test_unused_steps_go_back_to_the_lanes_they_came_from(ledger: Any) -> None:
    unit = mosha.Reading()
    visits = ledger.account("visits", unit=unit, epsilon=2, disjoint_blocks=True)
    one, two = visits.block("1"), visits.block("2")
    two.open(asking(events.Laplace(2), unit=unit))
    with one.open(asking(events.Laplace(10) * 10, horizon=10, unit=unit)) as run:
        run.step(None)
        assert visits.spent == pytest.approx(1.0)
    assert [visits.spent, one.spent, two.spent] == [0.5, pytest.approx(0.1), 0.5]
    assert ledger.verify().ok


def test_a_retired_account_pays_no_more_and_neither_do_those_beneath_it(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=5)
    block, other = visits.block("2026-10"), visits.block("2026-11")
    analyst = block.child("zhang", epsilon=1)
    run = block.open(asking(answer=4))
    block.retire()
    block.retire()
    assert (block.retired, visits.retired) == (True, False)
    for account in (block, analyst, ledger.together([other, analyst])):
        with pytest.raises(errors.AccountRetired, match="2026-10"):
            account.open(asking())
    assert run.step(None).value == 4  # it was paid
    assert other.open(asking(answer=5)).step(None).value == 5
    assert ledger.verify().ok


def test_a_block_is_opened_once_and_as_a_block(ledger: Any) -> None:
    visits = ledger.account("visits", unit=PERSON, epsilon=2)
    visits.child("zhang", epsilon=1)
    with pytest.raises(errors.AccountMismatch, match="child"):
        visits.block("zhang", epsilon=1)
    assert visits.block("2026-11").rule == visits.rule
    assert visits.block("2026-12", epsilon=1).limit == pytest.approx(1)
    with pytest.raises(errors.InvalidParameter, match="colour"):
        visits.block("x", colour=1)


def test_the_event_of_a_parent_knows_which_blocks_exclude_each_other(ledger: Any) -> None:
    unit = mosha.Reading()
    visits = ledger.account("visits", unit=unit, epsilon=9, disjoint_blocks=True)
    one, two = visits.block("1"), visits.block("2")
    for account, scale in [(visits, 1), (one, 2), (two, 4), (ledger.together([one, two]), 8)]:
        account.open(asking(events.Laplace(scale), unit=unit))
    first, second = events.Laplace(2) + events.Laplace(8), events.Laplace(4) + events.Laplace(8)
    assert visits.event() == events.Laplace(1) + events.Parallel((first, second))


# A small world of accounts, and every kind of person that can live in it: whoever is added or removed touches one
# block of each disjoint parent and all ordinary children. What an account counts must cover every such person.
WORLD = ["o", "o/v", "o/v/1", "o/v/2", "o/v/1/z", "o/v/2/z", "o/v/a", "o/s", "o/s/1", "o/s/2", "o/x", "q"]
DISJOINT = {"o/v", "o/s"}
BLOCKS = {"o/v/1", "o/v/2", "o/s/1", "o/s/2"}
TERMS = {name: Terms(name, mosha.Reading(), rule_for(epsilon=100), name in BLOCKS, name in DISJOINT) for name in WORLD}


def touches(person: Any, leaves: Any) -> bool:
    """Whether a release on `leaves` can read the data of a person who lives in these blocks (one per family).

    Leaves in blocks of one family read those blocks; any other set of leaves may read everything of its account.
    """
    return any(
        all(block in person for block in BLOCKS if leaf == block or leaf.startswith(block + "/")) for leaf in leaves
    )


LEAVES = st.sets(st.sampled_from(WORLD), min_size=1, max_size=3) | st.sets(
    st.sampled_from(sorted(BLOCKS)), min_size=1, max_size=2
)


@settings(max_examples=200)
@given(
    st.lists(LEAVES, min_size=1, max_size=6)
    | st.lists(st.sets(st.sampled_from(sorted(BLOCKS)), min_size=1), min_size=2, max_size=4)
)
def test_what_is_counted_covers_every_person(releases: Any) -> None:
    people = [set(blocks) for blocks in itertools.product(["o/v/1", "o/v/2"], ["o/s/1", "o/s/2"])]
    for name in WORLD:
        own, families = 0, {}  # type: ignore[var-annotated]
        for leaves in releases:
            for payer in payers(leaves, TERMS):
                if payer.terms.name == name and payer.lanes:
                    for lane in payer.lanes:
                        lanes = families.setdefault(payer.family, {})
                        lanes[lane] = lanes.get(lane, 0) + 1
                elif payer.terms.name == name:
                    own += 1
        counted = own + sum(max(lanes.values()) for lanes in families.values())
        for person in people:
            beneath = [{leaf for leaf in leaves if (leaf + "/").startswith(name + "/")} for leaves in releases]
            suffered = sum(touches(person, leaves) for leaves in beneath if leaves)
            assert suffered <= counted


def test_a_hundred_random_releases_leave_a_book_that_verifies(ledger: Any) -> None:
    unit = mosha.Reading()
    rng = random.SystemRandom()
    for name in WORLD:
        if name in BLOCKS:
            ledger.account(name.rpartition("/")[0]).block(name.rpartition("/")[2], epsilon=4)
        else:
            top = {"unit": unit} if "/" not in name else {}
            ledger.account(name, epsilon=6, disjoint_blocks=name in DISJOINT, **top)
    accounts = ledger.accounts()
    refused = 0
    for _ in range(100):
        chosen = ledger.together(rng.sample(accounts, rng.randint(1, 3)))
        try:
            with chosen.open(asking(events.Laplace(8) * 4, horizon=4, unit=unit)) as run:
                for _ in range(rng.randint(0, 4)):
                    run.step(None)
        except errors.BudgetExceeded:
            refused += 1
    assert refused < 100
    report = ledger.verify()
    assert report.ok, report.problems
    for account in accounts:
        assert account.spent_price <= account.terms.limit
        assert account.rule.price(account.event()) <= account.spent_price

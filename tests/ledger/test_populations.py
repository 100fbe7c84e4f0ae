"""One cap over all tables, graphs, streams and trainings about the same people: it always pays."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mosha
from mosha import errors, events
from mosha.accounting.rules import rule_for
from mosha.cli import main
from mosha.ledger.storage.chain import follow
from mosha.ledger.terms.payers import payers
from mosha.ledger.terms.terms import Terms
from tests.core.every_word import every_unit
from tests.ledger.place import asking

PATIENTS = "patients of X"
VISITS = mosha.Person("patient_id", of=PATIENTS)
LABS = mosha.Person("pid", at_most=5, of=PATIENTS)


@pytest.fixture
def patients(ledger: Any) -> Any:
    return ledger.population(PATIENTS, epsilon=2, size=100_000)


def test_accounts_of_one_population_are_charged_together_with_it(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=2)
    labs = ledger.account("labs", unit=LABS, epsilon=2)
    contacts = ledger.account("contacts", unit=mosha.Node(of=PATIENTS), epsilon=2)
    visits.open(asking(events.Laplace(2), unit=VISITS))
    labs.open(asking(events.Laplace(4), unit=LABS))
    contacts.open(asking(events.Laplace(1), unit=mosha.Node(of=PATIENTS)))
    assert [visits.spent, labs.spent, contacts.spent, patients.spent] == [0.5, 0.25, 1.0, 1.75]
    with pytest.raises(errors.BudgetExceeded) as refusal:
        labs.open(asking(events.Laplace(2), unit=LABS))
    assert refusal.value.account == PATIENTS
    assert labs.spent == 0.25
    assert patients.population is None
    assert visits.population.name == PATIENTS
    assert ledger.verify().ok


def test_children_blocks_and_leases_pay_into_the_population_too(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=2)
    zhang, block = visits.child("zhang", epsilon=1), visits.block("2026")
    zhang.open(asking(events.Laplace(4), unit=VISITS))
    block.open(asking(events.Laplace(4), unit=VISITS))
    with visits.lease(events.Laplace(4)) as lease:
        assert lease.unit == VISITS
        lease.open(asking(events.Laplace(4), unit=VISITS)).step(None)
    assert patients.spent == 0.75
    assert zhang.unit == VISITS
    assert ledger.verify().ok


def test_the_population_may_be_the_parent_and_pays_once(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=2, parent=patients)
    assert visits.name == f"{PATIENTS}/visits"
    visits.open(asking(unit=VISITS))
    team = patients.child("team", epsilon=1)
    assert team.unit == patients.unit
    ledger.together([visits, team]).open(asking(events.Laplace(2), unit=VISITS))
    assert [patients.spent, visits.spent, team.spent] == [1.5, 1.5, 0.5]
    assert ledger.verify().ok


def test_the_population_itself_pays_for_whole_persons_of_it(ledger: Any, patients: Any) -> None:
    patients.open(asking(events.Laplace(2), unit=LABS))
    for unit in (mosha.Person("pid"), mosha.Person("pid", of="others"), mosha.Row(), mosha.Edge(), mosha.Reading()):
        with pytest.raises(errors.WrongUnit):
            patients.open(asking(unit=unit))
    assert patients.spent == 0.5


def test_accounts_of_one_population_pay_together_under_whatever_column(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=2)
    labs = ledger.account("labs", unit=LABS, epsilon=2)
    both = ledger.together([visits, labs])
    both.open(asking(unit=VISITS))
    assert [visits.spent, labs.spent, patients.spent] == [1.0, 1.0, 1.0]
    stranger = ledger.account("staff", unit=mosha.Person("pid"), epsilon=1)
    with pytest.raises(errors.WrongUnit):
        ledger.together([labs, stranger])


def test_what_names_a_population_is_not_paid_from_outside_it(ledger: Any, patients: Any) -> None:
    plain = ledger.account("plain", unit=mosha.Person("patient_id"), epsilon=5)
    ledger.population("staff", epsilon=1)
    staff = ledger.account("staff table", unit=mosha.Person("patient_id", of="staff"), epsilon=1)
    head = ledger.head
    for account in (plain, staff):
        with pytest.raises(errors.WrongUnit, match="Nothing was spent"):
            account.open(asking(unit=VISITS))
    assert ledger.head == head


def test_what_names_no_population_takes_that_of_its_account(ledger: Any, patients: Any) -> None:
    rounds = ledger.account("rounds", unit=mosha.Client(of=PATIENTS), epsilon=2)
    rounds.open(asking(unit=mosha.Client()))
    assert patients.spent == 1.0


@pytest.mark.parametrize("unit", every_unit(), ids=repr)
def test_only_units_that_hide_whole_persons_enter_a_population(ledger: Any, patients: Any, unit: Any) -> None:
    """The law over all units: an account either pays into the population, or is refused beneath it."""
    before = ledger.head
    fits = unit.whole_person and unit.of == "patients" and unit.neighbors == "add-remove"
    if fits and not isinstance(unit, mosha.Member):
        inside = mosha.Unit.from_dict(unit.to_dict() | {"of": PATIENTS})
        account = ledger.account("part", unit=inside, epsilon=1, parent=patients)
        account.open(asking(events.Laplace(4), unit=inside))
        assert patients.spent == 0.25
    else:
        with pytest.raises(errors.WrongUnit):
            ledger.account("part", unit=unit, epsilon=1, parent=patients)
        assert ledger.head == before


def test_neighbors_of_a_population_agree(ledger: Any, patients: Any) -> None:
    with pytest.raises(errors.WrongUnit, match="kind of neighbors"):
        ledger.account("phones", unit=mosha.Own(of=PATIENTS), epsilon=1)
    owners = ledger.population("owners", neighbors="replace-one", epsilon=1)
    phones = ledger.account("phones", unit=mosha.Own(of="owners"), epsilon=1)
    phones.open(asking(events.Laplace(2), unit=mosha.Own()))
    assert owners.spent == 0.5
    assert ledger.population("owners").unit.neighbors == "replace-one"


def test_a_population_is_opened_before_its_accounts_and_never_by_chance(ledger: Any) -> None:
    with pytest.raises(errors.UnknownAccount, match="population"):
        ledger.account("visits", unit=VISITS, epsilon=1)
    ledger.account(PATIENTS, unit=mosha.Person("patient_id"), epsilon=1)
    with pytest.raises(errors.UnknownAccount, match="population"):
        ledger.account("visits", unit=VISITS, epsilon=1)
    with pytest.raises(errors.AccountMismatch):
        ledger.population(PATIENTS, epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="population"):
        ledger.account("visits", unit=mosha.Member(of=PATIENTS), epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="without '/'"):
        ledger.population("a/b", epsilon=1)


def test_a_population_is_reopened_under_its_terms_alone(ledger: Any, patients: Any) -> None:
    assert ledger.population(PATIENTS).terms == patients.terms
    assert ledger.account(PATIENTS).terms == patients.terms
    for terms in ({"epsilon": 3}, {"neighbors": "replace-one"}, {"size": 7}):
        with pytest.raises(errors.AccountMismatch):
            ledger.population(PATIENTS, **terms)
    visits = ledger.account("visits", unit=VISITS, epsilon=1)
    assert ledger.account("visits", unit=mosha.Person("patient_id")).terms == visits.terms  # left out, not contradicted
    with pytest.raises(errors.AccountMismatch):
        ledger.account("visits", unit=mosha.Person("patient_id", of="others"))


def test_disjoint_blocks_of_a_part_are_counted_once_by_the_population(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=2, disjoint_blocks=True)
    for name in "abcd":
        visits.block(name).open(asking(unit=VISITS))
    assert [visits.spent, patients.spent] == [1.0, 1.0]
    labs = ledger.account("labs", unit=LABS, epsilon=2)
    labs.open(asking(unit=LABS))
    assert patients.spent == 2.0
    assert patients.rule.price(patients.event()) <= patients.spent_price
    assert ledger.verify().ok


def test_a_retired_population_stops_all_its_accounts(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=1)
    patients.retire()
    with pytest.raises(errors.AccountRetired, match=PATIENTS):
        visits.open(asking(unit=VISITS))


def test_two_tables_with_other_columns_share_the_cap(ledger: Any) -> None:
    ledger.population(PATIENTS, epsilon=1)
    visits = {"patient_id": [1, 2, 3], "days": [3, 4, 5]}
    labs = {"pid": [1, 1, 2], "value": [0.5, 0.1, 0.7]}
    import pandas as pd

    tables = [
        mosha.protect(
            pd.DataFrame(data),
            unit=mosha.Person(column, at_most=2, of=PATIENTS),
            account=ledger.account(name, unit=mosha.Person(column, of=PATIENTS), epsilon=1),
        )
        for name, column, data in (("visits", "patient_id", visits), ("labs", "pid", labs))
    ]
    tables[0].count().release(epsilon=0.6)
    with pytest.raises(errors.BudgetExceeded, match=PATIENTS):
        tables[1].count().release(epsilon=0.6)
    tables[1].count().release(epsilon=0.4)
    plain = ledger.account("plain", unit=mosha.Person("pid"), epsilon=9)
    with pytest.raises(errors.WrongUnit):
        mosha.protect(pd.DataFrame(labs), unit=mosha.Person("pid", of=PATIENTS), account=plain)


def test_a_declaration_names_the_population(ledger: Any, patients: Any) -> None:
    import pandas as pd

    frame, declared = pd.DataFrame({"pid": [1, 2]}), {"unit": {"person": "pid", "at_most": 2, "of": PATIENTS}}
    labs = ledger.account("labs", unit=LABS, epsilon=1)
    mosha.protect(frame, schema=declared, account=labs).count().release(epsilon=0.5)
    assert patients.spent == pytest.approx(0.5)
    less = mosha.protect(frame, unit=mosha.Person("pid", at_most=1), schema=declared)
    assert less.unit == mosha.Person("pid", at_most=1, of=PATIENTS)
    with pytest.raises(errors.WrongUnit):
        mosha.protect(frame, unit=mosha.Person("pid", of="others"), schema=declared)


@pytest.mark.parametrize("missing", ["population", "other unit", "not paid"])
def test_a_book_that_passes_its_population_by_is_found(place: Any, missing: str) -> None:
    ledger = place.open()
    ledger.population(PATIENTS, epsilon=1)
    visits = ledger.account("visits", unit=VISITS, epsilon=1)
    visits.open(asking(unit=VISITS))
    content = ledger.entries()[-1].content()
    if missing == "not paid":
        kind, forged = "pay", content | {"charges": [c for c in content["charges"] if c["account"] != PATIENTS]}
    else:
        kind, forged = "open", visits.terms.to_dict() | {"name": "elsewhere"}
        of = "nobody" if missing == "population" else PATIENTS
        replaced = {} if missing == "population" else {"neighbours": "replace-one"}
        forged["unit"] = VISITS.to_dict() | {"of": of} | replaced
    entry = follow(ledger.head, 2**52, kind, forged)
    body = entry.body.replace("'", "''")
    place.tamper(f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, '{kind}', '{body}', '{entry.hash}')")
    problems = place.open().verify().problems
    assert any(f"row {entry.sequence}" in problem for problem in problems)


def test_the_statement_of_a_population_lists_who_pays_into_it(ledger: Any, patients: Any) -> None:
    visits = ledger.account("visits", unit=VISITS, epsilon=1)
    ledger.account("elsewhere", unit=mosha.Row(), epsilon=1)
    visits.open(asking(events.Laplace(2), unit=VISITS, name="stays"))
    found = ledger.statement(PATIENTS)
    assert [balance.terms.name for balance in found.accounts] == ["visits"]
    assert [line.name for line in found.releases] == ["stays"]
    assert f"population | {PATIENTS}" in ledger.statement("visits").markdown()


# A small world: a population with blocks of its own, a table of it with disjoint blocks, a graph, a child, a stranger.
UNITS = {"v": VISITS, "g": mosha.Node(of=PATIENTS), "P": mosha.Member(of=PATIENTS), "s": mosha.Person("patient_id")}
WORLD = ["P", "P/1", "P/2", "P/1/t", "P/x", "v", "v/1", "v/2", "v/1/z", "v/a", "g", "g/z", "s"]
DISJOINT = {"P", "v"}
BLOCKS = {"P/1", "P/2", "v/1", "v/2"}


def _renamed(name: Any) -> Any:
    return name.replace("P", PATIENTS, 1) if name[0] == "P" else name


TERMS = {
    _renamed(name): Terms(_renamed(name), UNITS[name[0]], rule_for(epsilon=9), name in BLOCKS, name in DISJOINT)
    for name in WORLD
}
BLOCK_NAMES = {_renamed(name) for name in BLOCKS}


def _is_read(person: Any, leaf: Any) -> bool:
    """Whether a release on this leaf can read the data of a person who lives in these blocks, one of each family."""
    return all(block in person for block in BLOCK_NAMES if leaf == block or leaf.startswith(block + "/"))


@settings(max_examples=200)
@given(st.lists(st.sets(st.sampled_from(sorted(set(TERMS) - {"s"})), min_size=1, max_size=3), min_size=1, max_size=6))
def test_what_a_population_counts_covers_every_person_of_it(releases: Any) -> None:
    """Everybody lives in one block of the population and one of the table; all that reads them is counted."""
    families = [[name for name in sorted(BLOCK_NAMES) if name.startswith(top)] for top in (PATIENTS, "v")]
    own, lanes = 0, {}  # type: ignore[var-annotated]
    for leaves in releases:
        (payer,) = [payer for payer in payers(leaves, TERMS) if payer.terms.name == PATIENTS]
        for lane in payer.lanes:
            lanes[payer.family, lane] = lanes.get((payer.family, lane), 0) + 1
        own += not payer.lanes
    counted = own + sum(
        max(count for (family, _), count in lanes.items() if family == each) for each in {family for family, _ in lanes}
    )
    for person in map(set, itertools.product(*families)):
        assert sum(any(_is_read(person, leaf) for leaf in leaves) for leaves in releases) <= counted


def test_random_releases_on_parts_of_a_population_leave_a_book_that_verifies(ledger: Any) -> None:
    population = ledger.population(PATIENTS, epsilon=3)
    parts = [
        ledger.account("visits", unit=VISITS, epsilon=2, disjoint_blocks=True),
        ledger.account("labs", unit=LABS, epsilon=2),
        ledger.account("rounds", unit=mosha.Client(of=PATIENTS), rho=1),
    ]
    accounts = [*parts, parts[0].block("a"), parts[0].block("b"), parts[1].child("li", epsilon=1), population]
    rng, refused = random.SystemRandom(), 0
    for _ in range(60):
        chosen = ledger.together(rng.sample(accounts, rng.randint(1, 3)))
        try:
            with chosen.open(asking(events.Laplace(16) * 2, horizon=2, unit=rng.choice([VISITS, LABS]))) as run:
                for _ in range(rng.randint(0, 2)):
                    run.step(None)
        except (errors.BudgetExceeded, errors.WrongUnit):
            refused += 1
    assert refused < 60
    report = ledger.verify()
    assert report.ok, report.problems
    for account in accounts:
        assert account.spent_price <= account.terms.limit
        assert account.rule.price(account.event()) <= account.spent_price


def test_populations_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = str(tmp_path / "privacy.db")
    limit = ("--epsilon", "1")
    labs = ("ledger", "open", book, "labs", "--unit", "person:pid", "--of", "patients", *limit)
    assert main([*labs]) == 1
    assert "population" in capsys.readouterr().err
    assert main(["ledger", "population", book, "patients", *limit, "--size", "1000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["population"], found["size"], found["unit"]["unit"]) == ("patients", 1000, "Member")
    assert main([*labs]) == 0
    assert main(["ledger", "population", book, "patients", "--neighbors", "replace-one"]) == 1
    assert main(["ledger", "population", book, "patients", "--neighbors", "sideways"]) == 1
    assert main(["ledger", "open", book, "labs", "--of", "patients"]) == 1
    with mosha.Ledger(book) as ledger:
        assert ledger.account("labs").population.name == "patients"


def _graph(ledger: Any) -> None:
    unit = mosha.Node(max_degree=3, of=PATIENTS)
    account = ledger.account("contacts", unit=unit, epsilon=1)
    graph = mosha.graphs.protect([(0, 1), (1, 2)], unit=unit, account=account, vertices=[0, 1, 2])
    graph.edges().release(epsilon=1)


def _stream(ledger: Any) -> None:
    unit = mosha.Person("pid", at_most=3, of=PATIENTS)
    counted = mosha.streams.best(unit=unit, horizon=8, epsilon=1)
    run = ledger.account("arrivals", unit=unit, epsilon=1).open(counted)
    run.step({"pid": [1, 2, 3]})


def _rounds(ledger: Any) -> None:
    asked = mosha.federated.histogram(keys=["a", "b"], clients=100, survivors=80, epsilon=0.5, delta=1e-6)
    ledger.account("rounds", unit=mosha.Client(of=PATIENTS), epsilon=1, delta=1e-5).open(asked.measurement())


def _model(ledger: Any) -> None:
    account = ledger.account("model", unit=mosha.Example(of=PATIENTS), mu=1, delta=1e-6)
    model = mosha.learning.LogisticRegression(classes=(0, 1), examples=100, norm=1.0, mu=0.9)
    model.fit([[-0.5], [0.5]] * 50, [0, 1] * 50, account=account)


def _survey(ledger: Any) -> None:
    account = ledger.account("phone", unit=mosha.Own(of="owners"), epsilon=1)
    mosha.local.Device(account=account).report(mosha.local.Repeated(["on", "off"], permanent=1.0, epsilon=0.5), "on")


@pytest.mark.parametrize("ask", [_graph, _stream, _rounds, _model, _survey])
def test_every_kind_of_data_pays_into_its_population(ask: Any) -> None:
    ledger = mosha.Ledger.memory()
    patients = ledger.population(PATIENTS, epsilon=9, delta=1e-4)
    owners = ledger.population("owners", neighbors="replace-one", epsilon=9)  # type: ignore[arg-type]
    ask(ledger)
    paid = owners if ask is _survey else patients
    assert paid.spent > 0.3
    assert ledger.verify().ok

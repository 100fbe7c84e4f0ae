"""A failure of a paid step may tell something about a row: an account tells a few, and is frozen until it is lifted."""

import contextlib
import random
import sqlite3
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors, events
from mosha.ledger.storage.chain import follow
from tests.ledger.place import PERSON, SQLitePlace, asking

CHEAP = events.Laplace(10_000)


@pytest.fixture
def account(ledger: Any) -> Any:
    return ledger.account("visits", unit=PERSON, epsilon=10)


def failing(kind: Any = ValueError, event: Any = CHEAP, **more: Any) -> Any:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        raise kind("one row did this")

    return asking(event, step=step, **more)


def fail(account: Any, kind: Any = ValueError, **options: Any) -> Any:
    with pytest.raises(errors.DataError if issubclass(kind, errors.DataError) else errors.StepFailed) as told:
        account.open(failing(kind), **options).step(None)
    return told.value


def test_the_error_oracle_of_a_failing_row_ends_after_three_errors(account: Any) -> None:
    """Binary search on one person's value, a bit for each error at a price of nearly nothing."""
    secret, low, high, asked = random.randrange(2**20), 0, 2**20, 0
    frozen = False
    while high - low > 1 and not frozen:
        middle, asked = (low + high) // 2, asked + 1
        step = lambda state, data, ask, rng: (1 / 0 if secret >= middle else 0, state)  # noqa: B023
        try:
            account.open(asking(CHEAP, step=step)).step(None)
            high = middle
        except errors.StepFailed:
            low = middle
        except errors.AccountFrozen:
            frozen = True
    assert account.failures == min((secret).bit_count(), 3)
    assert frozen == ((secret).bit_count() > 3 or (account.failures == 3 and high - low > 1))


def test_a_frozen_account_pays_for_nothing_until_it_is_lifted(account: Any, ledger: Any) -> None:
    for _ in range(3):
        assert not account.frozen
        fail(account)
    assert account.frozen
    spent, rows = account.spent, len(ledger.entries())
    for refused in (lambda: account.open(asking()), lambda: account.lease(CHEAP)):
        with pytest.raises(errors.AccountFrozen, match=r"Nothing was spent") as told:
            refused()
        assert told.value.to_dict()["account"] == "visits"
        assert told.value.failures == 3
    assert (account.spent, len(ledger.entries())) == (spent, rows)
    assert account.lift() == 3
    assert account.failures == account.lift() == 0
    assert account.open(asking(answer=5)).step(None).value == 5
    assert [entry.kind for entry in ledger.entries()].count("lift") == 1
    assert ledger.verify().ok


def test_failures_under_all_children_together_are_what_the_parent_allows(account: Any, ledger: Any) -> None:
    """An allowance for each child would be worth as many bits as somebody opens children."""
    children = [account.child(f"analyst{n}", epsilon=1) for n in range(5)]
    for child in children[:3]:
        fail(child)
    for child in children:
        with pytest.raises(errors.AccountFrozen, match="'visits' is frozen"):
            child.open(asking(CHEAP))
        assert child.frozen
    children[0].lift()  # which has failed once, and is not what is frozen
    assert children[0].frozen
    account.lift()
    assert not any(child.frozen or child.failures for child in children)
    assert ledger.verify().ok


def test_all_that_pay_together_count_a_failure(ledger: Any) -> None:
    accounts = [ledger.account(name, unit=PERSON, epsilon=10) for name in ("a", "b", "b/c", "d")]
    fail(ledger.together([accounts[0], accounts[2]]))
    assert [account.failures for account in accounts] == [1, 1, 1, 0]


def test_an_account_may_allow_more_or_fewer_failures_and_its_children_inherit_that(ledger: Any, place: Any) -> None:
    account = ledger.account("strict", unit=PERSON, epsilon=10, failures=1)
    fail(account.child("a", epsilon=1))
    assert account.frozen
    assert place.open().account("strict").terms.failures == 1
    assert place.open().account("strict/a").terms.failures == 1
    with pytest.raises(errors.AccountMismatch, match="failures"):
        ledger.account("strict", failures=9)
    for wrong in (0, -1, 1.5, "3", True):
        with pytest.raises(errors.InvalidParameter):
            ledger.account("other", unit=PERSON, epsilon=10, failures=wrong)


def test_runs_that_were_opened_before_the_freeze_tell_nothing_more(account: Any, ledger: Any) -> None:
    """Whoever pays for many questions first cannot have an error of each: answers and errors wait alike."""
    dice = random.SystemRandom()
    fates = [dice.random() < 0.5 for _ in range(12)] + [True] * 5 + [False] * 3
    runs = [account.open(failing() if fate else asking(CHEAP, answer=n), key=str(n)) for n, fate in enumerate(fates)]
    told, waiting = 0, {}
    for number, run in enumerate(runs):
        try:
            run.step(None)
        except errors.StepFailed:
            told += 1
        except errors.AccountFrozen as frozen:
            waiting[number] = str(frozen)
    assert told == 3
    assert len(set(waiting.values())) == 1
    assert {fates[number] for number in waiting} == {True, False}
    assert "stays paid" in next(iter(waiting.values()))
    account.lift()
    (answered,) = [number for number in waiting if not fates[number]][-1:]
    assert runs[answered].step(None).value == answered
    assert account.open(asking(CHEAP, answer=None), key=str(answered)).step(None).value == answered
    assert ledger.verify().ok


def test_threads_that_fail_at_once_tell_no_more_than_the_allowance(account: Any) -> None:
    gate, told = threading.Barrier(8), []

    def step(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        gate.wait(120)
        raise ValueError

    def ask() -> None:
        try:
            account.open(asking(CHEAP, step=step)).step(None)
        except errors.MoshaError as error:
            told.append(type(error))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kind.__name__ for kind in told) == ["AccountFrozen"] * 5 + ["StepFailed"] * 3


def test_a_question_that_was_broken_off_counts_and_its_key_asks_once_more(account: Any, ledger: Any) -> None:
    troubles = [errors.Interrupted("broken off."), errors.DeadlineExceeded("too late.")]

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        if troubles:
            raise troubles.pop(0)
        return 7, state

    with pytest.raises(errors.Interrupted, match="same key asks once more"):
        account.open(asking(CHEAP, step=step), key="k").step(None)
    assert account.failures == 1
    run = account.open(asking(CHEAP, step=step), key="k")
    with pytest.raises(errors.DeadlineExceeded):
        run.step(None)
    with pytest.raises(errors.StepFailed, match="started 2 times"):
        account.open(asking(CHEAP, step=step), key="k").step(None)
    assert account.failures == 2
    troubles[:] = [errors.Interrupted("broken off.")]
    with pytest.raises(errors.Interrupted):
        account.open(asking(CHEAP, step=step), key="l").step(None)
    account.lift()
    assert account.open(asking(CHEAP, step=step), key="l").step(None).value == 7
    assert ledger.verify().ok


def test_a_source_that_was_away_and_a_caller_who_gave_up_do_not_count(account: Any) -> None:
    for kind in (errors.SourceUnavailable, KeyboardInterrupt):
        for _ in range(5):
            with pytest.raises(kind):
                account.open(failing(kind)).step(None)
    assert account.failures == 0


def test_errors_of_mosha_inside_of_a_step_count_as_well(account: Any) -> None:
    """Their words are free of data; that there was one need not be."""
    fail(account, errors.DataError)
    assert account.failures == 1


def test_a_kept_answer_is_read_again_from_a_frozen_account(account: Any) -> None:
    account.open(asking(CHEAP, answer=4), key="k").step(None)
    for _ in range(3):
        fail(account)
    assert account.open(asking(CHEAP), key="k").step(None).value == 4


def test_a_lease_counts_its_failures_in_the_book_and_ends_with_the_allowance(account: Any, ledger: Any) -> None:
    with account.lease(CHEAP * 20) as lease, account.lease(CHEAP * 20) as other:
        for _ in range(3):
            with pytest.raises(errors.StepFailed):
                lease.open(failing()).step(None)
        assert account.frozen
        with pytest.raises(errors.AccountFrozen):
            lease.open(asking(CHEAP))
        assert other.open(asking(CHEAP, answer=3)).step(None).value == 3
        with pytest.raises(errors.AccountFrozen):  # a lease of somebody else learns of it at its first failure
            other.open(failing()).step(None)
        with pytest.raises(errors.AccountFrozen):
            other.open(asking(CHEAP))
    assert ledger.verify().ok


def test_a_run_that_goes_on_after_its_failures_is_frozen_too(account: Any) -> None:
    def step(state: Any, data: Any, trouble: Any, rng: Any) -> tuple[Any, ...]:
        if trouble:
            raise ValueError
        return state, state + 1

    run = account.open(mosha.core.measurement.Measurement(
        unit=PERSON, event=CHEAP * 9, step=step, init=lambda: 0, horizon=9, name="stream",
    ))  # fmt: skip
    assert run.step(None).value == 0
    for _ in range(3):
        with pytest.raises(errors.StepFailed):
            run.step(None, ask=True)
    for _ in range(2):
        with pytest.raises(errors.AccountFrozen):
            run.step(None)
    account.lift()
    assert [run.step(None).value for _ in range(2)] == [1, 2]


@pytest.mark.parametrize(
    ("kind", "content", "sentence"),
    [
        ("failure", {"payment": 3, "step": 1, "failures": {"visits": 4}}, "tells a failure of a frozen account"),
        ("lift", {"account": "visits", "failures": {"visits": 2}}, "lifts what had not failed"),
        ("claim", {"payment": 3, "step": 1, "claim": 2}, "frozen"),
    ],
)
def test_forged_rows_about_failures_are_found(
    place: Any, account: Any, ledger: Any, kind: str, content: Any, sentence: str
) -> None:
    for _ in range(3):
        fail(account)
    assert ledger.verify().ok
    entry = follow(ledger.head, 2**60, kind, content)
    place.tamper(f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, '{kind}', '{entry.body}', '{entry.hash}')")
    assert any(sentence in problem for problem in ledger.verify().problems)


def test_a_payment_and_a_release_of_a_frozen_account_are_found(place: Any, account: Any, ledger: Any) -> None:
    run = account.open(asking(CHEAP))
    for _ in range(3):
        fail(account)
    paid = next(row for row in ledger.entries() if row.kind == "pay")
    for kind, content, sentence in (
        ("pay", paid.content(), "charges the frozen account"),
        ("release", {"payment": paid.sequence, "step": 1, "claim": 1}, "releases an answer of a frozen account"),
    ):
        entry = follow(ledger.head, 2**60, kind, content)
        place.tamper(
            f"INSERT INTO entries VALUES ({entry.sequence}, {entry.at}, '{kind}', '{entry.body}', '{entry.hash}')"
        )
        assert any(sentence in problem for problem in ledger.verify().problems)
        place.tamper(f"DELETE FROM entries WHERE sequence = {entry.sequence}")
    assert run.receipt


def test_a_count_of_failures_that_was_reset_behind_the_book_is_found(place: Any, account: Any, ledger: Any) -> None:
    fail(account)
    place.tamper("DELETE FROM failures")
    assert any("'failures'" in problem for problem in ledger.verify().problems)


def test_a_book_from_before_failures_were_counted_goes_on(tmp_path: Path) -> None:
    place = SQLitePlace(tmp_path / "old.db")
    ledger = place.open()
    account = ledger.account("visits", unit=PERSON, epsilon=10)
    account.open(asking(CHEAP, answer=1), key="k").step(None)
    ledger.close()
    with contextlib.closing(sqlite3.connect(place.path)) as raw, raw:
        raw.execute("DROP TABLE failures")
    again = place.open().account("visits")
    for _ in range(3):
        fail(again)
    assert again.frozen
    assert place.open().verify().ok
    place.close()


def test_of_two_threads_under_one_key_the_second_is_told_that_the_answer_is_on_its_way(account: Any) -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        calls.append(1)
        begun.set()
        assert go_on.wait(120)
        return 42, state

    answers = []
    first = threading.Thread(target=lambda: answers.append(account.open(asking(step=step), key="k").step(None).value))
    first.start()
    assert begun.wait(120)
    for _ in range(3):
        with pytest.raises(errors.AnswerPending, match=r"Ask again with the same key.*Nothing was spent"):
            account.open(asking(step=step), key="k").step(None)
    go_on.set()
    first.join()
    assert answers == [42]
    assert account.open(asking(step=step), key="k").step(None).value == 42
    assert calls == [1]
    assert account.failures == 0
    assert account.spent == 1.0


def test_a_key_whose_caller_gave_up_can_be_asked_again(account: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        account.open(failing(KeyboardInterrupt, events.Laplace(1)), key="k").step(None)
    assert account.open(asking(answer=9), key="k").step(None).value == 9

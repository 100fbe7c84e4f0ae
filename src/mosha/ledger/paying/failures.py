"""Failures of paid steps: counted at every account that paid, until the account is frozen and its owner lifts it.

An error that leaves a step may depend on the rows, and then its existence tells something that no noise covers. Engines
are kept from failing at a row (`compile.py`); this is the second line behind that one. Each failure is a row of
the book (`failure`), written before the error leaves. An account whose failures since its last `lift` have reached its
allowance is frozen: it pays for nothing, and neither an answer nor an error leaves a step that was under way.

Guarantee:
    Between two lifts of an account, at most `allowance` steps that it paid for end in an error (and one more for each
    lease that was open when it froze). Proof: `payment.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mosha.core.errors import AccountFrozen, UnknownAccount
from mosha.ledger.storage.transactions import Transaction
from mosha.ledger.terms.payers import Payer
from mosha.ledger.terms.terms import Terms

__all__ = ["count_failure", "failures_of", "is_frozen", "lift", "refuse_frozen"]


def _counts(transaction: Transaction, payers: Sequence[Payer]) -> dict[str, int]:
    """The failures of each payer since its last lift."""
    names = [payer.terms.name for payer in payers]
    marks = ", ".join("?" * len(names))
    rows = transaction.rows(f"SELECT account, count FROM failures WHERE account IN ({marks})", *names)  # noqa: S608
    return dict.fromkeys(names, 0) | {name: int(count) for name, count in rows}


def is_frozen(transaction: Transaction, payers: Sequence[Payer]) -> bool:
    """Whether one of the payers has used up its allowance."""
    counts = _counts(transaction, payers)
    return any(counts[payer.terms.name] >= payer.terms.failures for payer in payers)


def refuse_frozen(transaction: Transaction, payers: Sequence[Payer], *, paid: bool) -> None:
    """Raise AccountFrozen where one of the payers is frozen; of several, the one nearest to the root.

    `paid` tells whether the step was paid for already. Nothing else about it is told: not whether it has an answer.
    """
    counts = _counts(transaction, payers)
    for payer in payers:  # parents come before their children
        if counts[payer.terms.name] >= payer.terms.failures:
            raise AccountFrozen(account=payer.terms.name, failures=payer.terms.failures, paid=paid)


def count_failure(transaction: Transaction, payers: Sequence[Payer], payment: int, step: int) -> Terms | None:
    """Note a failure at every payer, or raise AccountFrozen; the account that is frozen from now on, if one is."""
    refuse_frozen(transaction, payers, paid=True)
    counts = {name: count + 1 for name, count in _counts(transaction, payers).items()}
    transaction.append("failure", {"payment": payment, "step": step, "failures": counts})
    statement = "INSERT INTO failures VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET count = excluded.count"
    for name, count in counts.items():
        transaction.run(statement, name, count)
    return next((payer.terms for payer in payers if counts[payer.terms.name] >= payer.terms.failures), None)


def failures_of(transaction: Transaction, name: str) -> int:
    """How many steps that an account paid for have failed since its last lift."""
    row = transaction.row("SELECT count FROM failures WHERE account = ?", name)
    return 0 if row is None else int(row[0])


def lift(transaction: Transaction, name: str) -> dict[str, int]:
    """Forget the failures of an account and of all beneath it; what was forgotten, by account."""
    if transaction.row("SELECT name FROM accounts WHERE name = ?", name) is None:
        raise UnknownAccount("ledger.no_account", account=name)
    rows = transaction.rows("SELECT account, count FROM failures")
    lifted: dict[str, Any] = {a: int(n) for a, n in rows if a == name or a.startswith(name + "/")}
    if lifted:
        transaction.append("lift", {"account": name, "failures": lifted})
        for account in lifted:
            transaction.run("DELETE FROM failures WHERE account = ?", account)
    return lifted

"""A quote is what a payment would be, and it pays nothing."""

from typing import Any

import pytest

import mosha
from mosha.errors import AccountRetired
from mosha.events import Gaussian, Laplace


def _tree() -> tuple[Any, ...]:
    ledger = mosha.Ledger.memory()
    ledger.population("patients", epsilon=2, delta=1e-6)
    ledger.account("visits", unit=mosha.Person("pid", of="patients"), epsilon=1, delta=1e-6)
    return ledger, ledger.account("visits/li", epsilon=0.5, delta=1e-7)


@pytest.mark.parametrize("event", [Laplace(4), Laplace(2), Gaussian(20)])
def test_a_quote_is_the_receipt_of_the_payment_that_follows(event: Any) -> None:
    _, account = _tree()
    quote = account.quote(event)
    measurement = mosha.Measurement(unit=mosha.Person("pid"), event=event, step=lambda s, d, a, r: (1, s))
    assert account.open(measurement).step(None).receipt.payers == quote.shares


def test_a_quote_pays_nothing_and_names_who_cannot_pay() -> None:
    ledger, account = _tree()
    before = ledger.head
    quote = account.quote(Laplace(1))
    assert quote.lacking == ("visits/li",)
    assert not quote.fits
    assert ledger.head == before


def test_a_quote_of_a_retired_account_is_refused() -> None:
    _, account = _tree()
    account.retire()
    with pytest.raises(AccountRetired):
        account.quote(Laplace(4))

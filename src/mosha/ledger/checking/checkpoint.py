"""A checkpoint: what the rows of a book said up to a head that was found well, so that later rows alone are read.

It is kept outside the book, by whoever verifies, and is never looked for in the book: a check must not read the file
that it should distrust. Where there is a key, the checkpoint is signed with it and nobody else can write one; without a
key it is refused in the folder of the book, where whoever can write the book could write it too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mosha.accounting.numerics.price import FREE, Price
from mosha.core.errors import InvalidParameter
from mosha.core.language import describe_system_error
from mosha.files.atomic import replace_file
from mosha.ledger.checking.replay import Balance, Replay
from mosha.ledger.checking.state import PaymentState
from mosha.ledger.paying.charge import Charge
from mosha.ledger.storage.chain import Content, Head, canonical
from mosha.ledger.storage.key import LedgerKey
from mosha.ledger.terms.policy import Policy
from mosha.ledger.terms.terms import Terms

__all__ = ["Checkpoint", "check_apart"]

VERSION = 2
SHARED = ("kind", "name", "event", "scope", "horizon", "charges", "replays", "returned", "purchase")
OWN = tuple(field.name for field in fields(PaymentState) if field.name not in SHARED)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a book at a head, as plain data; `at` is the date of its last row."""

    head: Head
    entries: int
    at: int
    state: dict[str, Any]

    @staticmethod
    def of(said: Replay, head: Head, entries: int, at: int) -> Checkpoint:
        return Checkpoint(head, entries, at, _describe(said))

    def replay(self) -> Replay:
        """What reads on from the head."""
        plain = {name: part for name, part in self.state.items() if name != "payments"}
        return _restore(json.loads(canonical(plain)), self.state["payments"])

    def save(self, path: Path, key: LedgerKey | None) -> None:
        """Write the file, signed with the key where there is one; whole or not at all."""
        content = {"head": str(self.head), "entries": self.entries, "at": self.at, "state": self.state}
        text = canonical(content)
        named: Content = {"mosha": "ledger checkpoint", "version": VERSION, "key": key.id if key else None}
        document = canonical(named | {"sign": _sign(text, key)})
        try:
            replace_file(path, [document.encode() + b"\n" + text.encode() + b"\n"])
        except OSError as error:
            raise InvalidParameter(
                "ledger.checkpoint_not_writable", path=str(path), reason=describe_system_error(error)
            ) from None

    @staticmethod
    def load(path: Path, keys: Sequence[LedgerKey]) -> Checkpoint:
        """Read the file, which must bear the sign of one of these keys; without keys, one that was saved without."""
        try:
            first, text, *_ = path.read_text(encoding="utf-8").split("\n")
            named = json.loads(first)
            known = (named["mosha"], named["version"]) == ("ledger checkpoint", VERSION)
            signer, sign = named["key"], str(named["sign"])
        except OSError as error:
            raise InvalidParameter(
                "ledger.checkpoint_not_readable", path=str(path), reason=describe_system_error(error)
            ) from None
        except (ValueError, KeyError, TypeError):
            known, signer, sign, text = False, None, "", ""
        if not known:
            raise InvalidParameter("ledger.not_a_checkpoint", path=str(path))
        _check_sign(path, text, signer, sign, keys)
        content = json.loads(text)
        return Checkpoint(Head.parse(content["head"]), content["entries"], content["at"], content["state"])


def _sign(text: str, key: LedgerKey | None) -> str:
    return hashlib.sha256(text.encode()).hexdigest() if key is None else key.sign(text.encode())


def _check_sign(path: Path, text: str, signer: str | None, sign: str, keys: Sequence[LedgerKey]) -> None:
    key = next((key for key in keys if key.id == signer), None)
    if (key is None) != (signer is None) or (signer is None and keys):
        if signer is None:
            raise InvalidParameter("ledger.checkpoint_without_key", path=str(path))
        raise InvalidParameter("ledger.checkpoint_other_key", path=str(path), key=signer)
    if not hmac.compare_digest(_sign(text, key).encode(), sign.encode()):
        raise InvalidParameter("ledger.checkpoint_edited", path=str(path))


def check_apart(path: Path, book: Path | None) -> None:
    """Refuse a checkpoint without a key that lies where whoever can write the book can write it."""
    if book is not None and path.resolve().parent == book.resolve().parent:
        raise InvalidParameter("ledger.checkpoint_beside_book", path=str(path))


def _describe(said: Replay) -> dict[str, Any]:
    shared: dict[str, int] = {}
    payments = [_describe_payment(payment, shared) for payment in said.payments.values()]
    return {
        "accounts": [_describe_balance(balance) for balance in said.accounts.values()],
        "shared": list(shared),
        "payments": payments,
        "purchases": said.purchases,
        "policy": None if said.policy is None else said.policy.to_dict(),
        "book_keys": said.book_keys,
        "edition": said.edition,
        "cheap": said.opinion.cheap,
    }


def _restore(state: dict[str, Any], payments: list[list[Any]]) -> Replay:
    said = Replay()
    for stored in state["accounts"]:
        balance = _restore_balance(stored)
        said.admit(balance)
    shared = [_restore_shared(json.loads(text)) for text in state["shared"]]
    for stored in payments:
        payment = _restore_payment(stored, shared)
        said.payments[payment.sequence] = payment
        if payment.key is not None:
            said.keys[payment.scope, payment.key] = payment.sequence
    said.purchases = {name: [(a, b) for a, b in pieces] for name, pieces in state["purchases"].items()}
    said.policy = None if state["policy"] is None else Policy.of(state["policy"])
    said.book_keys = list(state["book_keys"])
    said.edition = int(state["edition"])
    said.opinion.cheap |= state["cheap"]
    return said


def _describe_price(price: Price) -> list[str]:
    return [str(part) for part in price.parts]


def _restore_price(stored: list[str]) -> Price:
    return Price(*map(int, stored))


def _describe_balance(balance: Balance) -> dict[str, Any]:
    families = {
        family: {lane: _describe_price(price) for lane, price in lanes.paid.items()}
        for family, lanes in balance.families.items()
    }
    plain = {"retired": balance.retired, "failures": balance.failures, "entry": balance.entry, "way": balance.way}
    return plain | {"terms": balance.terms.to_dict(), "own": _describe_price(balance.own), "families": families}


def _restore_balance(stored: Content) -> Balance:
    plain = {name: stored[name] for name in ("retired", "failures", "entry", "way")}
    balance = Balance(Terms.from_dict(stored["terms"]), own=_restore_price(stored["own"]), **plain)
    for family, lanes in stored["families"].items():
        for lane, price in lanes.items():
            balance.families[family].change([lane], lambda before, price=price: before + _restore_price(price))  # type: ignore[misc]
    return balance


def _describe_payment(payment: PaymentState, shared: dict[str, int]) -> list[Any]:
    what = {name: getattr(payment, name) for name in SHARED}
    for name in ("charges", "returned"):  # what was spent in all by then is of no use later, and differs every time
        what[name] = [replace(charge, spent=FREE).to_dict() for charge in what[name]]
    place = shared.setdefault(canonical(what), len(shared))
    own = [getattr(payment, name) for name in OWN if name != "steps"]
    return [place, own, [[step, row, kind] for step, (row, kind) in payment.steps.items()]]


def _restore_shared(what: Content) -> dict[str, Any]:
    for name in ("charges", "returned"):
        what[name] = [Charge.from_dict(stored) for stored in what[name]]
    return what | {"scope": tuple(what["scope"])}


def _restore_payment(stored: list[Any], shared: list[dict[str, Any]]) -> PaymentState:
    place, own, steps = stored
    values = dict(zip((name for name in OWN if name != "steps"), own, strict=True))
    return PaymentState(**shared[place], **values, steps={step: (row, kind) for step, row, kind in steps})

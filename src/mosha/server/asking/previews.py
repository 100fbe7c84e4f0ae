"""Previews: the price for every payer, error bars, what is left, what half and double the price would give.

No data are read: the question is checked and forecast on a table that has columns and no rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mosha.core.errors import InvalidParameter, LedgerError
from mosha.core.release import Quote
from mosha.ledger import JointAccount, Ledger
from mosha.server.asking.answers import plain_number
from mosha.server.asking.questions import Asked, build_question, fingerprint_of, settle_price
from mosha.server.catalogue.datasets import declaration_of, find_dataset
from mosha.server.catalogue.declarations import public_table_of
from mosha.server.catalogue.grants import choose_grant, paying_accounts
from mosha.server.errors import BadRequest, Conflict, NotFound
from mosha.server.people.permissions import Principal, Thing, may
from mosha.server.store.database import Database, Row

__all__ = ["Prepared", "describe_quote", "prepare", "preview"]

MOST_ROWS = 200


@dataclass(frozen=True)
class Prepared:
    """A question that was checked against the dataset as it is declared now, and priced under a grant."""

    dataset: Row
    asked: Asked
    said: dict[str, Any]
    price: dict[str, Any]
    block: str | None
    grant: Row | None
    accounts: tuple[str, ...]
    payer: JointAccount | None
    fingerprint: str

    def quote(self) -> Quote:
        assert self.payer is not None
        return self.payer.quote(self.asked.question, **self.price)


def prepare(
    database: Database, ledger: Ledger, principal: Principal, body: Mapping[str, Any], *, paying: bool
) -> Prepared:
    """Check a question; with `paying`, somebody must be able to pay for it."""
    if ("sql" in body) == ("plan" in body):
        raise BadRequest("server.one_of", names="sql, plan")
    dataset = find_dataset(database, body["dataset"])
    if dataset["state"] != "open":
        raise Conflict("server.dataset_closed", state=dataset["state"])
    kept, version = declaration_of(database, dataset["name"], dataset["version"])
    said = {part: body[part] for part in ("sql", "plan", "ranges", "keys", "bars") if body.get(part) is not None}
    table = public_table_of(dataset["name"], kept)
    try:
        asked = build_question(table, dataset["name"], said, _condition(database, body))
        price = settle_price(asked, body["price"])
        asked.question.measurement_for(**price)
    except RecursionError:
        raise BadRequest("server.too_deep", spent="nothing") from None
    try:
        grant = choose_grant(database, principal, dataset["name"], body.get("grant"))
    except Conflict:
        if paying:
            raise
        grant = None
    accounts = [] if grant is None else paying_accounts(database, ledger, grant, body.get("block"))
    payer = ledger.together(accounts) if accounts else None
    fingerprint = fingerprint_of(asked, said, price, version, "" if grant is None else grant["id"])
    names = tuple(account.name for account in accounts)
    return Prepared(dataset, asked, said, price, body.get("block"), grant, names, payer, fingerprint)


def _condition(database: Database, body: Mapping[str, Any]) -> dict[str, Any] | None:
    if body.get("block") is None:
        return None
    row = database.row("SELECT * FROM blocks WHERE dataset = ? AND name = ?", body["dataset"], body["block"])
    if row is None:
        raise NotFound("server.not_found")
    condition: dict[str, Any] = json.loads(row["condition"])
    return condition


def describe_quote(quote: Quote, grant: Row, principal: Principal, dataset: str) -> list[dict[str, Any]]:
    """The price for every payer: the caller's own accounts in full, those of others only with the right to see them."""
    all_of_it = may(principal, "budget.see", Thing(dataset))
    shown = []
    for share in quote.shares:
        mine = share.account.startswith(grant["account"])
        described: dict[str, Any] = {"account": share.account, "own": mine, "fits": share.account not in quote.lacking}
        described |= {"measure": share.measure, "cost": share.cost, "delta": share.delta}
        if mine or all_of_it:
            described |= {part: value for part, value in asdict(share).items() if part in ("spent", "limit", "left")}
        shown.append(described)
    return shown


def preview(database: Database, ledger: Ledger, principal: Principal, body: Mapping[str, Any]) -> dict[str, Any]:
    """All that can be known about a question before it is asked."""
    ready = prepare(database, ledger, principal, body, paying=False)
    question, rows = ready.asked.question, body.get("rows")
    level = body.get("confidence", 0.95)
    described: dict[str, Any] = {
        "dataset": ready.dataset["name"],
        "block": ready.block,
        "version": ready.dataset["version"],
        "timing": ready.dataset["timing"],
        "deadline": ready.dataset["deadline"],
        "price": ready.price,
        "fingerprint": ready.fingerprint,
        "groups": "from data" if question.private_keys else len(question.only or ((),)),
        "forecast": _forecast(ready.asked, ready.price, rows, level),
        "alternatives": [_alternative(ready, factor, rows, level) for factor in (0.5, 2.0)],
        "grant": None,
    }
    if ready.grant is not None:
        described |= _paid_by(ready, principal)
    return described


def _paid_by(ready: Prepared, principal: Principal) -> dict[str, Any]:
    assert ready.grant is not None
    assert ready.payer is not None
    grant, name = ready.grant, ready.dataset["name"]
    described: dict[str, Any] = {"grant": grant["id"]}
    try:
        quote = ready.quote()
        more = ready.payer.how_many(ready.asked.question, **ready.price)
    except LedgerError as error:
        return described | {"payers": [], "fits": False, "refused": type(error).__name__, "more": 0}
    own = next(share for share in quote.shares if share.account.startswith(grant["account"]))
    above = grant["approve_above"]
    return described | {
        "payers": describe_quote(quote, grant, principal, name),
        "fits": quote.fits and not is_above_most(own.cost, grant, principal),
        "more": more,
        "needs_approval": above is not None and own.cost > above,
        "most_per_question": grant["most_per_question"],
    }


def is_above_most(cost: float, grant: Row, principal: Principal) -> bool:
    """Whether one question costs more than the grant, or the token, allows."""
    most = [limit for limit in (grant["most_per_question"], principal.scope.most_per_question) if limit is not None]
    return any(cost > limit for limit in most)


def _forecast(asked: Asked, price: Mapping[str, Any], rows: float | None, level: float) -> dict[str, Any]:
    question = asked.question
    bars = question.forecast(**price, rows=rows, confidence=level)
    groups = [] if question.private_keys else list(question.only or ())
    return {
        "confidence": level,
        "rows_assumed": rows,
        "keys": [name for name, _ in question.keys],
        "groups": [[plain_number(value) for value in group] for group in groups[:MOST_ROWS]],
        "bars": {
            name: [plain_number(bar) for bar in np.asarray(bar).tolist()[:MOST_ROWS]] for name, bar in bars.items()
        },
    }


def _alternative(ready: Prepared, factor: float, rows: float | None, level: float) -> dict[str, Any]:
    """What a cheaper and a dearer question would give: the widest bar of each number."""
    price: dict[str, Any] = {
        part: value * factor if part in ("epsilon", "rho") else value for part, value in ready.price.items()
    }
    try:
        bars = ready.asked.question.forecast(**price, rows=rows, confidence=level)
    except InvalidParameter:
        return {"price": price, "widest": None}
    return {"price": price, "widest": {name: plain_number(float(np.max(bar))) for name, bar in bars.items()}}

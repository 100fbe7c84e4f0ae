"""Previews: the price for every payer, error bars, what is left, what half and double the price would give.

No data are read: the question is checked and forecast on a table that has columns and no rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mosha.core.errors import InvalidParameter, LedgerError, LedgerUnavailable
from mosha.core.measurement import Measurement
from mosha.core.release import Quote
from mosha.ledger import JointAccount, Ledger
from mosha.server.asking.answers import plain_number
from mosha.server.asking.questions import Asked, build_question, fingerprint_of, settle_price
from mosha.server.catalogue.datasets import declaration_of, find_dataset
from mosha.server.catalogue.declarations import public_table_of
from mosha.server.catalogue.grants import choose_grant, find_grants_above, is_beneath, paying_accounts
from mosha.server.errors import BadRequest, Conflict, NotFound
from mosha.server.people.permissions import Principal, Thing, may
from mosha.server.store.database import Database, Row

__all__ = ["Prepared", "describe_quote", "find_limits", "is_above_most", "needs_approval", "prepare", "preview"]

MOST_ROWS = 200
SHOWN = ("spent", "limit", "left", "left_as")  # of accounts that the caller may see


@dataclass(frozen=True)
class Prepared:
    """A question that was checked against the dataset as it is declared now, and priced under a grant."""

    dataset: Row
    asked: Asked
    said: dict[str, Any]
    price: dict[str, Any]
    measurement: Measurement
    block: str | None
    grant: Row | None
    accounts: tuple[str, ...]
    payer: JointAccount | None
    fingerprint: str

    def quote(self) -> Quote:
        assert self.payer is not None
        return self.payer.quote(self.measurement)


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
        measurement = asked.question.measurement_for(**price)
    except RecursionError:
        raise BadRequest("server.too_deep", spent="nothing") from None
    try:
        grant = choose_grant(database, principal, dataset["name"], body.get("grant"))
    except Conflict:
        if paying:
            raise
        grant = None
    try:
        accounts = [] if grant is None else paying_accounts(database, ledger, grant, body.get("block"))
    except LedgerUnavailable:  # what a question would cost and how exact it would be needs no ledger
        if paying:
            raise
        grant, accounts = None, []
    payer = ledger.together(accounts) if accounts else None
    fingerprint = fingerprint_of(asked, said, price, version, "" if grant is None else grant["id"])
    names = tuple(account.name for account in accounts)
    return Prepared(dataset, asked, said, price, measurement, body.get("block"), grant, names, payer, fingerprint)


def _condition(database: Database, body: Mapping[str, object]) -> dict[str, Any] | None:
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
        mine = is_beneath(share.account, grant["account"])
        described: dict[str, Any] = {"account": share.account, "own": mine}
        described |= {"measure": share.measure, "cost": share.cost, "delta": share.delta}
        if mine or all_of_it:
            described["fits"] = share.account not in quote.lacking
            described |= {part: value for part, value in share.to_dict().items() if part in SHOWN}
        shown.append(described)
    return shown


def preview(database: Database, ledger: Ledger, principal: Principal, body: Mapping[str, Any]) -> dict[str, Any]:
    """All that can be known about a question before it is asked."""
    ready = prepare(database, ledger, principal, body, paying=False)
    groups, level = _count_groups(ready.asked), body.get("confidence", 0.95)
    declared = _spread_declared_size(ready.dataset, groups)
    rows = body.get("rows", declared)
    ahead = {"rows": rows, "level": level, "at_most": body.get("at_most")}
    described: dict[str, Any] = {
        "dataset": ready.dataset["name"],
        "block": ready.block,
        "version": ready.dataset["version"],
        "timing": ready.dataset["timing"],
        "deadline": ready.dataset["deadline"],
        "price": ready.price,
        "fingerprint": ready.fingerprint,
        "kind": ready.asked.kind,
        "groups": groups,
        "forecast": _forecast(ready.asked, ready.price, **ahead) | {"rows_declared": declared},
        "alternatives": [_alternative(ready, factor, **ahead) for factor in (0.5, 2.0)],
        "grant": None,
    }
    if ready.grant is not None:
        described |= _paid_by(database, ledger, ready, principal)
    return described


def _paid_by(database: Database, ledger: Ledger, ready: Prepared, principal: Principal) -> dict[str, Any]:
    """Who pays. Of accounts that others share an analyst learns what a question costs there, not what is left.

    Whether all of them can pay is told only where the own ones can: else one could ask it of any price.
    """
    assert ready.grant is not None
    assert ready.payer is not None
    grant, name = ready.grant, ready.dataset["name"]
    described: dict[str, Any] = {"grant": grant["id"]}
    try:
        quote = ready.quote()
        seen = ready.accounts
        if not may(principal, "budget.see", Thing(name)):
            seen = tuple(account for account in ready.accounts if is_beneath(account, grant["account"]))
        more = ledger.together([ledger.account(account) for account in seen]).how_many(ready.measurement)
    except LedgerError as error:
        return described | {"payers": [], "fits": False, "refused": type(error).__name__, "more": 0}
    limits = find_limits(database, grant, quote)
    return described | {
        "payers": describe_quote(quote, grant, principal, name),
        "fits": quote.fits and not is_above_most(limits, principal),
        "more": more,
        "needs_approval": needs_approval(limits),
        "most_per_question": grant["most_per_question"],
    }


Limits = list[tuple[Row, float]]
"""A grant and those it was taken from, each with what a question costs its own account."""


def find_limits(database: Database, grant: Row, quote: Quote) -> Limits:
    """What a question costs under each of the agreements that hold for it: a grant cannot be passed on to lose them."""
    costs = {share.account: share.cost for share in quote.shares}
    return [(row, costs[row["account"]]) for row in find_grants_above(database, grant)]


def is_above_most(limits: Limits, principal: Principal) -> bool:
    """Whether one question costs more than a grant, or the token, allows."""
    most = principal.scope.most_per_question
    return (most is not None and limits[0][1] > most) or any(
        grant["most_per_question"] is not None and cost > grant["most_per_question"] for grant, cost in limits
    )


def needs_approval(limits: Limits) -> bool:
    """Whether somebody has to agree to a question of this price."""
    return any(grant["approve_above"] is not None and cost > grant["approve_above"] for grant, cost in limits)


def _count_groups(asked: Asked) -> int | str:
    if asked.kind != "table":
        return 1
    return "from data" if asked.question.private_keys else len(asked.question.only or ((),))


def _spread_declared_size(dataset: Row, groups: int | str) -> float | None:
    """How many rows a group has where the public size of a dataset is spread evenly; None where it has none."""
    size = json.loads(dataset["promise"])["dataset"].get("size")
    return None if size is None or isinstance(groups, str) else max(1.0, size / max(1, groups))


_GUESSES = {"tables.forecast_needs_at_most": "at_most", "tables.forecast_needs_range": "between"}
"""What a forecast asks for where a bound is bought with the answer: how many rows a person has, or a range."""


def _bars(
    asked: Asked, price: Mapping[str, object], *, rows: float | None, level: float, at_most: int | None
) -> dict[str, list[Any]]:
    """The error bar of every number, group by group."""
    if asked.kind == "graph":
        from mosha.server.asking.graph_questions import forecast_graph  # noqa: PLC0415  (loaded with the first graph)

        return forecast_graph(asked.question, price, level)
    if asked.kind == "synthetic":
        from mosha.server.asking.synthesis import forecast_synthesis  # noqa: PLC0415  (the same)

        return forecast_synthesis(asked.question, price, rows, level)
    import numpy as np  # noqa: PLC0415  (the question has loaded it)

    bars = asked.question.forecast(**price, rows=rows, at_most=at_most, confidence=level)
    return {name: [plain_number(bar) for bar in np.asarray(bar).tolist()] for name, bar in bars.items()}


def _forecast(asked: Asked, price: Mapping[str, Any], **ahead: Any) -> dict[str, Any]:
    """Error bars before asking; none where they need a guess that was not made, and then `needs` says which."""
    try:
        bars, needs = _bars(asked, price, **ahead), None
    except InvalidParameter as error:
        if error.code not in _GUESSES:
            raise
        bars, needs = {}, _GUESSES[error.code]
    question, is_table = asked.question, asked.kind == "table"
    groups = [] if not is_table or question.private_keys else list(question.only or ())
    return {
        "confidence": ahead["level"],
        "rows_assumed": ahead["rows"],
        "at_most_assumed": ahead["at_most"],
        "needs": needs,
        "keys": [name for name, _ in question.keys] if is_table else [],
        "groups": [[plain_number(value) for value in group] for group in groups[:MOST_ROWS]],
        "bars": {name: found[:MOST_ROWS] for name, found in bars.items()},
    }


def _alternative(ready: Prepared, factor: float, **ahead: Any) -> dict[str, Any]:
    """What a cheaper and a dearer question would give: the widest bar of each number."""
    price: dict[str, Any] = {
        part: value * factor if part in ("epsilon", "rho") else value for part, value in ready.price.items()
    }
    try:
        bars = _bars(ready.asked, price, **ahead)
    except InvalidParameter:
        return {"price": price, "widest": None}
    widest = {name: max((bar for bar in found if bar is not None), default=None) for name, found in bars.items()}
    return {"price": price, "widest": widest}

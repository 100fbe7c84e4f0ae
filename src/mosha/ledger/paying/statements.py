"""What a row states about disjoint blocks, so that an index of lanes that was edited is refused at the next charge.

A row that moves money states, beside the balance of each payer, the sums that the index `lanes` holds afterwards:

    sums    of the lanes that it moved
    tops    the greatest lane of every family of the account
    apart   of lanes that were moved by a row which does not move the account of the lane itself (a lease may hand
            back to one payer alone); carried on until a row moves that account

Each lane bears the name of an account that pays with it. So the sum of a lane stands in the last row about that
account, or `apart` in the last row about the payer, where the tops stand as well: one row each, which is read anyway.
Rows of earlier versions state nothing, and nothing is compared with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mosha.accounting.numerics.price import Price
from mosha.core.errors import LedgerTampered

__all__ = ["Row", "check_lanes", "state_lanes", "states_tops"]

Row = Mapping[str, Any]  # the content of a row


def check_lanes(
    account: str, family: str, lanes: Iterable[str], paid: Mapping[str, Price], rows: Mapping[str, Row]
) -> None:
    """Refuse sums of these lanes, and a greatest one, that are not what the last rows say.

    Args:
        account: the payer.
        family: of the lanes.
        lanes: their names.
        paid: what the index holds; the lane "" is the greatest of the family.
        rows: the last row about each account.
    """
    for lane, said in ((lane, _find_sum(account, lane, rows)) for lane in lanes):
        _compare(account, lane, said, paid.get(lane))
    _compare(account, family, _find_top(rows[account], account, family), paid.get(""))


def _compare(account: str, what: str, said: tuple[Price | None] | None, stands: Price | None) -> None:
    if said is not None and said[0] != stands:
        raise LedgerTampered("ledger.paid_amount_edited", account=account, what=what, spent="nothing")


def _find_sum(account: str, lane: str, rows: Mapping[str, Row]) -> tuple[Price | None] | None:
    """What the rows say about a lane: its sum, or that there is none yet; None where they say nothing."""
    apart = _statement(rows[account], account).get("apart", {})
    if lane in apart:
        return (_restore_price(apart[lane]),)
    row = rows.get(lane)
    if row is None:
        return None
    if _is_opening(row):
        return (None,)
    sums = _statement(row, account).get("sums", {})
    return (_restore_price(sums[lane]),) if lane in sums else None


def _find_top(row: Row, account: str, family: str) -> tuple[Price | None] | None:
    if _is_opening(row):
        return (None,)
    tops = _statement(row, account).get("tops")
    if tops is None:
        return None
    return (_restore_price(tops[family]) if family in tops else None,)


def state_lanes(
    account: str, family: str, changed: Mapping[str, Price], tops: Mapping[str, Price], row: Row, movers: set[str]
) -> dict[str, Any]:
    """What the next row states about one payer; empty for an account without lanes.

    Args:
        account: the payer.
        family: of the lanes that are moved, if any are.
        changed: their sums afterwards, with the greatest of the family as "".
        tops: the greatest lane of each family before, where the last row does not say.
        row: the last row about the account.
        movers: the accounts that the next row moves.
    """
    before = _statement(row, account)
    said = before.get("tops", {name: _describe_price(price) for name, price in tops.items()})
    sums = {lane: _describe_price(price) for lane, price in changed.items() if lane}
    said = said | ({family: _describe_price(changed[""])} if changed else {})
    apart = {lane: price for lane, price in before.get("apart", {}).items() if lane not in movers}
    apart |= {lane: price for lane, price in sums.items() if lane not in movers}
    stated = {"sums": sums, "tops": said, "apart": apart}
    return {name: value for name, value in stated.items() if value}


def states_tops(row: Row, account: str) -> bool:
    """Whether the greatest lanes of an account can be known from the last row about it."""
    return _is_opening(row) or "tops" in _statement(row, account)


def _is_opening(row: Row) -> bool:
    return "rule" in row


def _statement(row: Row, account: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = row.get("lanes", {}).get(account, {})
    return found


def _describe_price(price: Price) -> list[str]:
    return [str(part) for part in price.parts]


def _restore_price(stored: list[str]) -> Price:
    return Price(*map(int, stored))

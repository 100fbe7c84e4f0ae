"""Receipts: who paid how much for a release, and what each of them has left, in words and numbers for people."""

from __future__ import annotations

from collections.abc import Sequence

from mosha.accounting.rules import EitherRule, Rule
from mosha.core.event import Event
from mosha.core.guarantee import Approx, Guarantee
from mosha.core.release import PaidShare, Quote, Receipt
from mosha.ledger.paying.charge import Charge
from mosha.ledger.terms.payers import Payer

__all__ = ["make_quote", "make_receipt"]


def make_receipt(
    scope: Sequence[str],
    payers: Sequence[Payer],
    charges: Sequence[Charge],
    *,
    event: Event,
    entry: str,
    leased: bool = False,
) -> Receipt:
    """The receipt for `event`, paid by these payers with these charges: of its first account, with all the others.

    What was paid from a lease does not say how many more like it would fit: most of them go through the lease.
    """
    pairs = list(zip(payers, charges, strict=True))
    shares = tuple(_share(payer.terms.rule, paid) for payer, paid in pairs)
    fitting = [count for payer, paid in pairs if (count := _count_more(payer.terms.rule, paid)) is not None]
    position = [payer.terms.name for payer in payers].index(scope[0])
    own, rule, paid = shares[position], payers[position].terms.rule, charges[position]
    return Receipt(
        account=" + ".join(scope),
        entry=entry,
        unit=payers[position].terms.unit,
        event=event,
        measure=own.measure,
        cost=own.cost,
        delta=own.delta,
        spent=own.spent,
        limit=own.limit,
        left=own.left,
        spent_as=_find_meaning(rule, paid),
        payers=shares,
        more=None if leased else min(fitting, default=None),
    )


def make_quote(foreseen: Sequence[tuple[Charge, bool]], payers: Sequence[Payer]) -> Quote:
    """The quote for charges that were not taken."""
    shares = tuple(_share(payer.terms.rule, paid) for payer, (paid, _) in zip(payers, foreseen, strict=True))
    return Quote(shares=shares, lacking=tuple(paid.account for paid, fits in foreseen if not fits))


def _share(rule: Rule, paid: Charge) -> PaidShare:
    return PaidShare(
        account=paid.account,
        measure=rule.measure,
        cost=rule.amount_of(paid.price, paid.way),
        delta=rule.delta_of(paid.price),
        spent=rule.amount_of(paid.spent, paid.way),
        limit=rule.amount_limit,
        left=rule.amount_left(paid.spent, paid.way),
    )


def _count_more(rule: Rule, paid: Charge) -> int | None:
    """How often an account could pay the same once more; unknown where disjoint blocks share what they cost."""
    return None if paid.lanes else rule.repeats(paid.price, paid.way, paid.spent)


def _find_meaning(rule: Rule, paid: Charge) -> Guarantee | None:
    """What has been spent as epsilon and delta, where the rule counts in another measure or in two."""
    meant = rule.spent_as(paid.spent, paid.way) if rule.measure != "epsilon" or isinstance(rule, EitherRule) else None
    return meant if isinstance(meant, Approx) and meant.delta else None

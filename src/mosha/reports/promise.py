"""What a report says of its privacy: whose presence is hidden, how well, what this edition cost and what is left."""

from __future__ import annotations

import math

from mosha.core.guarantee import Approx, Pure
from mosha.core.language import Language, say
from mosha.core.release import describe_as, write_left
from mosha.ledger.publishing.words import words_in
from mosha.reports.content import Content

__all__ = ["describe_promise"]

PRIOR = 0.01


def describe_promise(edition: Content, lang: Language) -> list[str]:
    """Sentences for readers, the important ones first."""
    words, limit = words_in(lang), edition.split.limit
    units = dict.fromkeys(receipt.unit.describe(lang) for receipt in edition.receipts)
    said = [say("reports.hidden", lang, unit=unit) for unit in units]
    if limit.epsilon is not None:
        promise = Approx(limit.epsilon, limit.delta) if limit.delta else Pure(limit.epsilon)
        said.append(say("reports.promised", lang, promise=words.promise(promise)))
        after = PRIOR / (PRIOR + (1 - PRIOR) * math.exp(-limit.epsilon))
        said.append(words.belief("1%", f"{100 * after:.3g}%", f"{math.exp(min(limit.epsilon, 700)):,.3g}"))
        said += [words.failing(limit.delta)] if limit.delta else []
    else:
        said.append(say("reports.promised", lang, promise=str(limit)))
    for receipt in edition.receipts:
        paid = {"measure": receipt.measure, "cost": f"{receipt.cost:.4g}", "account": receipt.account}
        left = {
            "left": write_left(receipt.remaining, receipt.limit, receipt.measure, receipt.more),
            "limit": f"{receipt.limit:.4g}",
        }
        said.append(say("reports.paid", lang, meaning=describe_as(receipt.left_as, lang), **left, **paid))
    return said

"""ClientSide plans on Flower: the server adds up reports that are private already; it pays nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.release import Receipt
from mosha.federated.clipping import STEPS
from mosha.federated.federation import Ask
from mosha.federated.plans.client_side import ClientSide
from mosha.federated.training import Round, Spending
from mosha.noise import secure

__all__ = ["REPORT", "collect_reports"]

REPORT = "mosha-report"


def collect_reports(plan: ClientSide, nodes: Any, weights: NDArray[np.float64]) -> Iterator[Round]:
    """The rounds of a plan whose price the clients pay: each report is a release of its own client's account."""
    memory, decode, spending = plan.outer.begin(weights.size), plan.decoder(), Spending(plan)
    for number in range(1, plan.rounds + 1):
        ask = Ask(number, weights)
        chosen = plan.sampling.draw(nodes.clients(), plan.clients, number, secure())
        content = nodes.asking(ask)
        total, reports = np.zeros(weights.size, np.int64), 0
        for reply in nodes.exchange(dict.fromkeys(chosen, content)).values():
            report = reply.arrays.get(REPORT)
            if report is not None and report.shape == (weights.size,) and report.dtype == np.int64:
                total += np.clip(report, -_LARGEST, _LARGEST)
                reports += 1
        update = decode({"steps": total, "clip": plan.clip, "reports": reports})
        weights, memory = plan.outer.advance(weights, update, memory)
        yield Round(number, weights, plan.clip, spending.after(number), _no_receipt(plan))


_LARGEST = STEPS << 30  # what is beyond can only be meant to do harm


def _no_receipt(plan: ClientSide) -> Receipt:
    """Nothing was paid at the server: every client has a receipt of its own."""
    said = {"unit": plan.unit, "event": plan.event, "measure": "paid by each client"}
    return Receipt(account="the clients", entry="none", cost=0.0, spent=0.0, limit=0.0, **said)  # type: ignore[arg-type]

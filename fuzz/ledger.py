"""Random histories of a ledger: see `tests/ledger/model.py` for what none of them may do."""

from __future__ import annotations

import random

from tests.ledger.model import live


def attempt() -> None:
    live(random.SystemRandom(), actions=75, checks=2).ledger.close()

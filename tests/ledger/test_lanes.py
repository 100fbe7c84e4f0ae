"""The dearest lane of a family, kept up to date: what a reader would find by looking at all of them."""

import random
from typing import Any

import pytest

import mosha
from mosha import events
from mosha.accounting.numerics.price import FREE, Price, cover_prices
from mosha.ledger.paying.lanes import Lanes
from tests.ledger.place import asking
from tests.ledger.test_second_opinion import EVENT, read


def test_the_top_is_the_greatest_lane_whatever_was_paid_and_handed_back() -> None:
    dice = random.SystemRandom()
    lanes, plain = Lanes(), {}  # type: ignore[var-annotated]
    for _ in range(3000):
        chosen = dice.sample(range(12), dice.randint(1, 3))
        moved = Price(*(dice.randrange(5) for _ in range(4)))
        if dice.random() < 0.5:
            chosen = [lane for lane in chosen if moved <= plain.get(str(lane), FREE)]
            moves = lambda before, moved=moved: before - moved
        else:
            moves = lambda before, moved=moved: before + moved
        names = list(map(str, chosen))
        lanes.change(names, moves)
        plain |= {name: moves(plain.get(name, FREE)) for name in names}
        assert lanes.paid == plain
        assert lanes.top == cover_prices(plain.values())


def test_reading_refunds_of_many_blocks_costs_what_the_rows_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in prices that are looked at: each hand-back once looked at the lanes of all blocks."""

    def rows(blocks: Any) -> Any:
        ledger = mosha.Ledger.memory()
        visits = ledger.account("visits", unit=EVENT, epsilon=20, disjoint_blocks=True)
        for number in range(blocks):
            with visits.block(str(number)).open(asking(events.Laplace(2) * 4, unit=EVENT, horizon=4)) as run:
                run.step(None)
        return ledger.entries()

    books, looked = {blocks: rows(blocks) for blocks in (16, 128)}, []
    parts = Price.parts.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Price, "parts", property(lambda price: (looked.append(1), parts(price))[1]))
    counted = {}
    for blocks, book in books.items():
        looked.clear()
        assert read(book).problems == []
        counted[blocks] = len(looked)
    assert counted[128] <= 10 * counted[16]

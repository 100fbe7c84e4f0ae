"""The compiled loops make of given words what their proofs say; batches have one law with and without them."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

pytest.importorskip("numba", reason="the compiled loops need the extra `fast`")

from mosha.local.protocols import compiled, randomizer
from mosha.local.protocols.coin_bytes import CoinBytes
from mosha.local.protocols.subset import SubsetSelection
from mosha.local.protocols.unary import OptimisedUnary
from mosha.noise import SeededRandom, secure

DEVIATIONS = 7.0


@pytest.fixture(params=["compiled", "plain"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Large batches with the compiler, and without."""
    if request.param == "plain":
        monkeypatch.setattr(randomizer, "_load_compiled", lambda: None)
    return request.param


def parted(size: Any, value: Any, wanted: Any, first: Any, second: Any) -> tuple[Any, ...]:
    """What `split_values` makes of every given pair of words."""
    shape = len(first), (size + 63) // 64
    words = [np.ascontiguousarray(coins, np.uint64).reshape(shape) for coins in (first, second)]
    sets, missing = np.zeros(shape, np.uint64), np.full(len(first), wanted)
    compiled.split_values(*words, np.full(len(first), value), size, sets, missing)  # type: ignore[arg-type, call-arg]
    return sets, missing


@pytest.mark.parametrize(("size", "value", "wanted"), [(4, 0, 1), (5, 3, 2), (6, 5, 1), (6, 2, 3)])
def test_given_its_size_the_first_set_is_any_set_of_others_equally_often(size: int, value: int, wanted: int) -> None:
    """Every pair of words is tried, so this is the law itself."""
    first, second = np.array(list(product(range(1 << size), repeat=2)), np.uint64).T
    sets, missing = parted(size, value, wanted, first, second)
    counts = Counter(int(word) for word in sets[:, 0])
    assert all(wanted - word.bit_count() == lacks for word, lacks in zip(map(int, sets[:, 0]), missing, strict=True))
    assert not any(word >> value & 1 or word >> size for word in counts)
    for held in range(size):
        alike = [counts[word] for word in range(1 << size) if word.bit_count() == held and not word >> value & 1]
        assert len(set(alike)) == 1
        assert len(alike) == comb(size - 1, held)


def test_the_set_that_is_taken_is_never_farther_than_the_first_of_the_four() -> None:
    words = np.random.default_rng().integers(0, 1 << 63, (2, 500, 2), np.uint64)
    sets, missing = parted(100, 70, 27, *words)
    mask = np.array([(1 << 64) - 1, ((1 << 36) - 1) & ~(1 << 6)], np.uint64)
    plain = 27 - np.bitwise_count(words[0] & words[1] & mask).sum(axis=1).astype(np.int64)
    assert (missing == 27 - np.bitwise_count(sets).sum(axis=1).astype(np.int64)).all()
    cost = lambda lacks: np.where(lacks > 0, 3 * lacks, -8 * lacks)
    assert (cost(missing) <= cost(plain)).all()
    assert (cost(missing) < cost(plain)).any()


@pytest.mark.parametrize(
    ("size", "value", "start", "lacks"), [(5, 0, 0b00110, 1), (6, 5, 0b01011, -1), (100, 99, 0b1, 1)]
)
def test_one_step_takes_each_that_fits_equally_often(size: int, value: int, start: int, lacks: int) -> None:
    """Every word of 16 bits is tried: those that change something change each value that fits equally often."""
    count = 1 << 16
    values, held = np.full(count, value), np.zeros(count, np.bool_)
    found: Any = Counter()
    for word in range(0, count, 1 if size < 10 else 16):
        sets, missing = np.array([[start] + [0] * ((size - 1) // 64)], np.uint64), np.array([lacks])
        pool = np.array([word], np.uint16)
        done = compiled.even_out(sets, values[:1], held[:1], missing, size - 1, pool, 16, 0)
        changed = sum(int(part) << 64 * j for j, part in enumerate(sets[0])) ^ start
        assert (done == 1) == (missing[0] == 0) == (changed != 0)
        if changed:
            found[changed.bit_length() - 1] += 1
    fitting = [v for v in range(size) if v != value and (start >> v & 1) == (lacks < 0)]
    assert sorted(found) == fitting
    if size < 10:
        assert set(found.values()) == {count // (size - 1)}


def test_work_goes_on_where_a_pool_ended() -> None:
    """One long pool and many short ones give the same sets."""
    words = secure().words(400, "<u2").copy()
    values, held = np.arange(9), np.arange(9) % 2 == 0
    whole, parts = np.zeros((9, 1), np.uint64), np.zeros((9, 1), np.uint64)
    wanted = np.full(9, 4)
    assert compiled.even_out(whole, values, held, wanted.copy(), 9, words, 16, 0) == 9
    row = 0
    for start in range(0, 400, 3):
        row = compiled.even_out(parts, values, held, wanted, 9, words[start : start + 3], 16, row)
        if row == 9:
            break
    assert row == 9
    assert (whole == parts).all()
    assert np.bitwise_count(whole)[:, 0].tolist() == [4 + own for own in held]


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(27, 100), Fraction(3, 4), Fraction(1)])
def test_bytes_of_coins_are_looked_up_alike_with_and_without_a_compiler(
    chance: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, count = CoinBytes(chance), randomizer._MANY
    with_compiler = law.draw(count, SeededRandom(7))
    monkeypatch.setattr(randomizer, "_load_compiled", lambda: None)
    assert (law.draw(count, SeededRandom(7)) == with_compiler).all()


@pytest.mark.parametrize(
    "protocol",
    [SubsetSelection(100, 1.0), SubsetSelection(64, 3.0), SubsetSelection(70, 0.1), OptimisedUnary(100, 1.0)],
    ids=lambda p: f"{p.name} {p.size} {p.epsilon}",
)
def test_large_batches_support_values_and_pairs_as_often_as_claimed(protocol: Any, path: Any) -> None:
    """Counts of values, and of pairs with the true one and without it, by exact tails: a false alarm of 1e-10."""
    count, own = 40_000, protocol.size - 3
    assert count * protocol.width >= randomizer._MANY
    rows = protocol.draw_many(np.full(count, own), secure())
    assert protocol.find_possible(rows).all()
    bits = np.unpackbits(rows, axis=1, bitorder="little")[:, : protocol.size].astype(np.float64)
    together = bits.T @ bits
    claimed = np.full((protocol.size, protocol.size), float(protocol.pairs[1]))
    claimed[own] = claimed[:, own] = float(protocol.pairs[0])
    np.fill_diagonal(claimed, float(protocol.lie))
    claimed[own, own] = float(protocol.truth)
    tails = np.minimum(binom.cdf(together, count, claimed), binom.sf(together - 1, count, claimed))
    assert tails.min() > 1e-10 / claimed.size  # each pair stands there twice, and has two tails


def test_the_test_of_pairs_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set that starts with its neighbors together is found, many deviations out."""
    protocol, count = SubsetSelection(100, 1.0), 40_000
    rows = protocol.draw_many(np.full(count, 97), secure())
    rows[:, 0] &= np.uint8(0b11111110)
    rows[:, 0] |= rows[:, 0] >> np.uint8(1) & np.uint8(1)  # value 0 whenever value 1
    bits = np.unpackbits(rows, axis=1, bitorder="little").astype(np.float64)
    pair = float(protocol.pairs[1])
    assert abs((bits[:, 0] * bits[:, 1]).mean() - pair) > 2 * DEVIATIONS * np.sqrt(pair * (1 - pair) / count)


def test_a_small_batch_loads_no_compiler() -> None:
    assert randomizer.compiled_loops(1000) is None

"""What devices draw has exactly the law that is claimed, and batches have the law of devices."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha.core.errors import InvalidParameter
from mosha.local import DeviceRandom
from mosha.local.protocols import device, numeric, projective
from mosha.local.protocols.choice import PROTOCOLS
from mosha.local.protocols.coin_bytes import CoinBytes
from mosha.local.protocols.hashing import PRIME, LocalHashing
from mosha.local.protocols.numeric import Numeric
from mosha.local.protocols.odds import BITS, Odds
from mosha.local.protocols.projective import Projective
from mosha.local.protocols.unary import SymmetricUnary
from mosha.local.protocols.window import Window
from mosha.noise import secure
from tests.local.every_path import law_of

DEVIATIONS = 7.0  # two-sided false alarm 3e-12 for each of the few hundred assertions of this file
SIZES = (2, 3, 5)
every_protocol = pytest.mark.parametrize("kind", PROTOCOLS, ids=lambda kind: kind.name)


@pytest.fixture
def small_odds(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Odds of 3 : 1, small enough to follow every path."""
    odds = Odds(3, 1)
    monkeypatch.setattr(Odds, "of", staticmethod(lambda epsilon: odds))
    return odds


def exact_law(protocol: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if isinstance(protocol, LocalHashing):
        seeds = {PRIME: 12345}
        return law_of(lambda rng: protocol.draw(value, rng), monkeypatch, fixed=seeds)
    if not isinstance(protocol, Projective):
        return law_of(lambda rng: protocol.draw(value, rng), monkeypatch)
    return projective_law(protocol, value, monkeypatch)


def projective_law(protocol: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A zero vector is drawn again: the law of the first round, given that it was not zero."""
    told: dict[Any, Any] = {}
    for orthogonal, share in ((True, protocol.truth), (False, 1 - protocol.truth)):
        monkeypatch.setattr(projective, "flip_coin", lambda *_, fixed=orthogonal: fixed)
        once = protocol.coordinates + (0 if orthogonal else 1)
        law = law_of_one_round(lambda rng: protocol.draw(value, rng), monkeypatch, once)
        total = sum(law.values())
        for report, weight in law.items():
            told[report] = told.get(report, 0) + share * weight / total
    return told


def law_of_one_round(draw: Any, monkeypatch: pytest.MonkeyPatch, once: Any) -> Any:
    from tests.local import every_path

    script, law = every_path.Script({}), {}  # type: ignore[var-annotated]

    def below(bound: Any, rng: Any) -> Any:
        if script.place == once:
            raise every_path.TooLong
        return script.below(bound, rng)

    monkeypatch.setattr(projective, "draw_below", below)
    while True:
        try:
            report = draw(None)
        except every_path.TooLong:
            report = None
        if report is not None:
            weight = math.prod((Fraction(1, bound) for bound in script.bounds[: script.place]), start=Fraction(1))
            law[report] = law.get(report, 0) + weight
        if not script.advance():
            return law


@every_protocol
@pytest.mark.parametrize("size", SIZES)
def test_no_report_is_more_than_the_odds_likelier_under_another_value(
    kind: Any, size: Any, small_odds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = kind(size, math.log(3))
    laws = [exact_law(protocol, value, monkeypatch) for value in range(size)]
    allowed = small_odds.ratio ** (2 if isinstance(protocol, SymmetricUnary) else 1)
    worst = Fraction(1)
    for law in laws:
        assert sum(law.values()) == 1
        for other in laws:
            assert law.keys() == other.keys()
            worst = max(worst, *(law[report] / other[report] for report in law))
    if isinstance(protocol, LocalHashing):
        assert worst in (1, allowed)  # of one seed, which may hash two values alike
    else:
        assert worst == allowed


@every_protocol
@pytest.mark.parametrize("size", SIZES)
def test_reports_support_values_as_often_as_claimed(
    kind: Any, size: Any, small_odds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = kind(size, math.log(3))
    for value in range(size) if kind is not LocalHashing else ():
        law = exact_law(protocol, value, monkeypatch)
        for other in range(size):
            supported = sum(weight for report, weight in law.items() if supports(protocol, report)[other])
            assert supported == (protocol.truth if other == value else protocol.lie)


def supports(protocol: Any, report: Any) -> Any:
    rows = np.frombuffer(report, np.uint8)[None]
    assert protocol.find_possible(rows).all()
    return protocol.supports(protocol.tally(rows)).astype(bool)


@every_protocol
@pytest.mark.parametrize("size", [2, 3, 5, 9, 64, 100])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_batches_support_values_as_often_as_claimed(kind: Any, size: int, epsilon: float) -> None:
    protocol = kind(size, epsilon)
    count, value = 6_000, size // 2
    rows = protocol.draw_many(np.full(count, value), secure())
    assert rows.shape == (count, protocol.width)
    assert protocol.find_possible(rows).all()
    found = protocol.supports(protocol.tally(rows))
    claimed = np.full(size, float(protocol.lie))
    claimed[value] = protocol.truth
    assert unlikely(found, count, claimed) > 1e-11  # of 180 tests: 2e-9 together


@every_protocol
def test_devices_support_values_as_often_as_claimed(kind: Any) -> None:
    protocol = kind(6, 1.0)
    reports = [protocol.draw(2, DeviceRandom()) for _ in range(4_000)]
    found = protocol.supports(protocol.tally(np.array([list(report) for report in reports], np.uint8)))
    claimed = np.full(6, float(protocol.lie))
    claimed[2] = protocol.truth
    assert deviations(found, len(reports), claimed).max() < DEVIATIONS


def unlikely(found: Any, count: Any, claimed: Any) -> Any:
    """A bound on the chance that some count is so far out: rare reports are not normal, so it is exact."""
    tail = np.minimum(binom.cdf(found, count, claimed), binom.sf(found - 1, count, claimed))
    return 2 * len(found) * tail.min()


def deviations(found: Any, count: Any, claimed: Any) -> Any:
    return np.abs(found - count * claimed) / np.sqrt(count * claimed * (1 - claimed))


@pytest.mark.parametrize("epsilon", [0.9, 1.1])
def test_the_test_of_supports_can_fail(epsilon: float) -> None:
    """Reports at another epsilon, less or more, are found out (by 15 deviations on average, 7 are enough)."""
    told, claimed = SymmetricUnary(5, epsilon), SymmetricUnary(5, 1.0)
    count = 400_000
    found = told.supports(told.tally(told.draw_many(np.zeros(count, np.int64), secure())))
    expected = np.full(5, float(claimed.lie))
    expected[0] = claimed.truth
    assert deviations(found, count, expected).max() > DEVIATIONS


@pytest.mark.parametrize("start", [0, 1, 4])
def test_a_window_has_exactly_its_law(start: int, small_odds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window(math.log(3), outputs=7, length=3)
    law = law_of(lambda rng: window.cell(start, rng), monkeypatch)
    inside = range(start, start + 3)
    assert law == {cell: Fraction(3 if cell in inside else 1, 3 * 3 + 4) for cell in range(7)}


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_the_two_ends_have_exactly_their_law(value: float, small_odds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "_GRID", 4)
    monkeypatch.setattr(numeric, "_COINS", 4)
    law = law_of(lambda rng: Numeric(math.log(3), 0).draw(value, rng), monkeypatch)
    upper = law[(numeric.OUTPUTS + 1).to_bytes(2, "little")]
    assert upper == Fraction(1, 4) + Fraction(value) / 2
    assert sum(law.values()) == 1


def test_draws_below_a_bound_are_uniform_whatever_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte is tried: those that are kept give each number equally often."""
    for bound in (1, 2, 3, 5, 8, 100, 256):
        counts = dict.fromkeys(range(bound), 0)
        for byte in range(256):
            drawn = iter([bytes([byte]), bytes(1)])

            class Rng:
                secure = True

                def bytes(self, n: Any, drawn: Any = drawn) -> Any:
                    return next(drawn)[:n]

            value = device.draw_below(bound, Rng())
            if len(list(drawn)) == 1 or bound == 1:
                counts[value] += 1
        assert len(set(counts.values())) == 1, bound


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(27, 100), Fraction(1, 2), Fraction(0), Fraction(1)])
def test_bytes_of_coins_have_their_bias_and_are_independent(chance: Any) -> None:
    drawn = CoinBytes(chance).draw(60_000, secure())
    bits = np.unpackbits(drawn[:, None], axis=1).astype(np.int64)
    share = float(chance)
    spread = max(1e-9, share * (1 - share))
    assert np.abs(bits.mean(axis=0) - share).max() <= DEVIATIONS * math.sqrt(spread / len(bits)) + 1e-12
    together = bits.T @ bits / len(bits)
    both = share**2 * (1 - share**2)
    off = together[~np.eye(8, dtype=bool)]
    assert np.abs(off - share**2).max() <= DEVIATIONS * math.sqrt(max(both, 1e-9) / len(bits)) + 1e-12


def test_coins_that_sixteen_bits_do_not_decide_are_decided_exactly() -> None:
    """All words that tie are settled by more bits; here by bytes that lie at both sides of the end."""
    law = CoinBytes(Fraction(1, 3))
    end = law._ends[0]
    word = int(end * 2**64)

    class Below:
        secure = True

        def bytes(self, n: Any) -> bytes:
            return bytes(n)

    class Above(Below):
        def bytes(self, n: Any) -> Any:
            return b"\xff" * n

    assert law._draw_exactly(word, Below()) == 0
    assert law._draw_exactly(word, Above()) == 1


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 1.0, 5.0, 23.9])
def test_odds_are_below_e_to_the_epsilon_and_close(epsilon: float) -> None:
    import mpmath

    with mpmath.workdps(80):
        exact = mpmath.exp(mpmath.mpf(epsilon))
        ratio = mpmath.mpf(Odds.of(epsilon).top) / Odds.of(epsilon).bottom
        assert ratio <= exact
        assert (exact - ratio) / exact < mpmath.mpf(2) ** -BITS


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 25.0, 1e-14, "1", None, True])
def test_an_epsilon_that_means_nothing_is_refused(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter):
        Odds.of(epsilon)


def test_the_points_of_a_space_are_numbered_one_to_one() -> None:
    for q, t in ((2, 4), (3, 3), (5, 2), (7, 3)):
        count = projective.count_points(q, t)  # type: ignore[attr-defined]
        vectors = [projective._vector(number, q, t) for number in range(count)]
        assert [projective._number(vector, q) for vector in vectors] == list(range(count))
        if q > 2:
            doubled = [[2 * x % q for x in vector] for vector in vectors]
            assert [projective._number(vector, q) for vector in doubled] == list(range(count))
        whole = [sum(x * q ** (t - 1 - i) for i, x in enumerate(v)) for v in vectors]
        for size in (1, 2, count // 2, count):
            assert projective._vectors(q, t, size).tolist() == whole[:size]


@pytest.mark.parametrize(("size", "epsilon"), [(13, 1.0), (100, 0.5), (40, 2.0), (300, 3.0), (7, 4.0)])
def test_the_fast_transform_counts_what_is_orthogonal(size: int, epsilon: float) -> None:
    protocol = Projective(size, epsilon)
    counters = np.random.default_rng().integers(0, 1000, protocol.points)
    q, t = protocol.prime, protocol.coordinates
    vectors = np.array([projective._vector(number, q, t) for number in range(protocol.points)])
    orthogonal = (vectors[:size] @ vectors.T) % q == 0
    assert protocol.supports(counters).tolist() == (orthogonal @ counters).tolist()

"""Where floats decide, integers agree; where floats cannot, integers decide. Nothing here is left to chance."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosha.noise import (
    SeededRandom,
    bernoulli,
    bernoulli_exp,
    box,
    coins,
    envelope,
    exponential_choice,
    flips,
    selection,
)
from mosha.noise.envelope import Envelope
from mosha.noise.exponential import exp_bounds, exp_negative, falls_below
from mosha.noise.gaussian import GaussianLaw
from mosha.noise.laplace import LaplaceLaw
from tests.noise.scripted import Scripted, little

exponents = st.one_of(
    st.fractions(min_value=0, max_value=800),
    st.floats(min_value=0, max_value=800).map(Fraction),
    st.integers(min_value=0, max_value=10**30).map(lambda n: Fraction(n, 10**40)),
)
scales = st.one_of(
    st.floats(min_value=2.0**-10, max_value=2.0**50),
    st.fractions(min_value=Fraction(1, 100), max_value=10**6),
    st.integers(min_value=1, max_value=2**50),
).map(Fraction)  # type: ignore[arg-type]


@given(exponents, st.sampled_from([1, 16, 64, 200]))
@settings(max_examples=300)
def test_integers_enclose_the_exponential(exponent: Any, bits: Any) -> None:
    low, high = exp_bounds(exponent, bits)
    with mpmath.workprec(3000):
        value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** bits
        assert low <= value <= high
    assert high - low <= 2


@given(st.lists(st.floats(min_value=0, max_value=700), min_size=1, max_size=50))
def test_the_float_exponential_keeps_its_proved_error(values: Any) -> None:
    got = exp_negative(np.array(values))
    for t, value in zip(values, got, strict=True):
        low, high = exp_bounds(Fraction(t), 1100)
        truth_low, truth_high = Fraction(low, 2**1100), Fraction(high, 2**1100)
        assert truth_low * (1 - Fraction(1, 2**48)) <= Fraction(float(value)) <= truth_high * (1 + Fraction(1, 2**48))


def test_the_float_exponential_is_flat_beyond_700() -> None:
    assert exp_negative(np.array([700.0, 701.0, 1e300])).tolist() == [exp_negative(np.array([700.0]))[0]] * 3


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@given(scale=scales)
@settings(max_examples=15)
def test_no_sure_slot_is_above_the_curve_and_no_curve_above_its_slots(law: Any, scale: Any) -> None:
    """The two inequalities on which the proof of the envelope rests, checked in exact arithmetic."""
    rule = law(scale)
    table = Envelope(rule)
    column, b = table._column, 1 << table.shift
    sure = np.bincount(column[: table.sure].astype(int) + 2**15, minlength=2**16)
    unsure = np.bincount(column[table.sure : table._tail].astype(int) + 2**15, minlength=2**16)
    columns = table._tail_start // b
    assert set(np.flatnonzero(sure + unsure) - 2**15) == set(range(-columns, columns))
    for c in {0, 1, columns // 3, columns // 2, columns - 1}:
        for number, near, far in ((c, c * b, c * b + b - 1), (-1 - c, c * b + 1, c * b + b)):
            if not -columns <= number < columns:
                continue
            slots = int(sure[number + 2**15] + unsure[number + 2**15])
            assert table.height * exp_bounds(rule.exponent(near), 200)[1] <= slots << 200
            assert table.height * exp_bounds(rule.exponent(far), 200)[0] >= int(sure[number + 2**15]) << 200
    start = exp_bounds(rule.exponent(table._tail_start), 200)[1]
    assert table._tail_amplitude * start <= 1 << 200
    decay = rule.decay(table._tail_start)
    assert exp_bounds((1 << table._tail_shift) / decay, 200)[1] <= 1 << 199
    assert table._tail + 2 <= 2**16


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
def test_levels_of_unsure_slots_run_from_the_last_sure_one(law: Any) -> None:
    table = Envelope(law(Fraction(1000)))
    for number in (0, 5, -1, -40):
        sure = int((table._column[: table.sure] == number).sum())
        at = np.flatnonzero(table._column[table.sure : table._tail] == number)
        assert table._level[at].tolist() == list(range(sure, sure + len(at)))
    assert np.isinf(table._level[table._tail - table.sure :]).all()


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [0.7, 10, 1000, 2**40])
def test_floats_and_integers_decide_alike(monkeypatch: pytest.MonkeyPatch, law: Any, scale: Any) -> None:
    """The same stream gives the same noise, whether the quick or the exact test judges."""
    table = Envelope(law(Fraction(scale)))
    quick = table.draw_many(50_000, SeededRandom(20))
    monkeypatch.setattr(envelope, "_MARGIN", float("inf"))
    assert (table.draw_many(50_000, SeededRandom(20)) == quick).all()


def test_floats_and_integers_decide_alike_for_flips_and_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = np.arange(3000) % 97
    widths = [Fraction(7, 3), Fraction(1, 5)]
    quick = flips(distances, 9.5, rng=SeededRandom(3)), box.box_noise(4.5, widths, 2000, rng=SeededRandom(4))
    monkeypatch.setattr(coins, "_MARGIN", float("inf"))
    monkeypatch.setattr(box, "_MARGIN", float("inf"))
    exact = flips(distances, 9.5, rng=SeededRandom(3)), box.box_noise(4.5, widths, 2000, rng=SeededRandom(4))
    assert (quick[0] == exact[0]).all()
    assert (quick[1] == exact[1]).all()


def tie(amplitude: Any, exponent: Any, whole: Any, words: Any = 1, first: Any = 64) -> Any:
    """The bits of U that lie on the threshold, as the pieces in which they are asked for."""
    bits = first + 64 * (words - 1)
    value = int(amplitude * exp_bounds(exponent, bits + 80)[0]) >> 80
    value -= whole << bits
    pieces = [little((value >> (bits - first)), first // 8)]
    return pieces + [little((value >> (bits - first - 64 * i)) & (2**64 - 1), 8) for i in range(1, words)]


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [10, 1000, 2**40])
@pytest.mark.parametrize("last", [b"\x00" * 8, b"\xff" * 8])
def test_a_tie_of_128_bits_is_settled_by_the_next_ones(law: Any, scale: Any, last: Any) -> None:
    """A point that agrees with the curve in all bits drawn so far is neither accepted nor refused."""
    rule = law(Fraction(scale))
    table = Envelope(rule)
    size = table._word.itemsize
    slot, word = next(
        (slot, slot << (8 * size - 16) | 3 % (1 << table.shift))
        for slot in range(table.sure, table._tail)
        if 0
        < table.height * exp_negative(rule.exponents(np.array([abs(place(table, slot))], float)))[0]
        - table._level[slot - table.sure]
        < 1
    )
    x = place(table, slot)
    level = int(table._level[slot - table.sure])
    ties = tie(table.height, rule.exponent(abs(x)), level, words=2)
    sure = little(0, size)
    one = Scripted(little(word, size), *ties, last, sure)
    assert table.draw_one(one) == (x if last[0] == 0 else place(table, 0, low=0))
    assert len(one.pieces) == (1 if last[0] == 0 else 0)

    ordinary = little(0, size)
    many = Scripted(little(word, size) + ordinary * 16, ties[0], *ties[1:], last, sure)
    rest = [place(table, 0, low=0)] * 16
    assert table.draw_many(17, many).tolist() == [x if last[0] == 0 else rest[0], *rest]


def place(table: Any, slot: Any, low: Any = 3) -> Any:
    return (int(table._column[slot]) << table.shift) | (low % (1 << table.shift))


def test_a_tail_block_may_have_more_than_64_ones() -> None:
    table = Envelope(LaplaceLaw(Fraction(10)))
    script = Scripted(b"\xff" * 8, b"\xff" * 8, little(0b0111, 8), little(5, 8), little(0, 8))
    block = 131
    assert table._draw_beyond(0, script) == table._tail_start + (block << table._tail_shift) + 5


def test_noise_beyond_two_to_the_62_is_never_given() -> None:
    table = Envelope(LaplaceLaw(Fraction(2**50)))
    blocks = (2**62 - table._tail_start) >> table._tail_shift
    ones = [b"\xff" * 8] * (blocks // 64 + 1)
    assert table._draw_beyond(1, Scripted(*ones, little(0, 8), little(0, 8))) is None


@pytest.mark.parametrize(("p", "last", "heads"), [(Fraction(1, 3), 0, True), (Fraction(1, 3), 255, False)])
def test_a_tied_coin_is_settled_by_more_bits(p: Any, last: int, heads: bool) -> None:
    pieces = [little(2**16 // 3, 2), little((2**64 - 1) // 3, 8), bytes([last] * 8)]
    assert bernoulli(p, rng=Scripted(*pieces)) is heads
    assert bernoulli(p, 1, rng=Scripted(*pieces)).tolist() == [heads]


@pytest.mark.parametrize(("last", "heads"), [(0, True), (255, False)])
def test_a_tied_exponential_coin_is_settled_by_more_bits(last: int, heads: bool) -> None:
    pieces = [*tie(1, Fraction(2, 3), 0, words=3, first=16), bytes([last] * 8)]
    assert bernoulli_exp(Fraction(2, 3), rng=Scripted(*pieces)) is heads
    assert bernoulli_exp(Fraction(2, 3), 1, rng=Scripted(*pieces)).tolist() == [heads]


@pytest.mark.parametrize(("last", "heads"), [(0, True), (255, False)])
def test_a_tied_flip_is_settled_by_more_bits(last: int, heads: bool) -> None:
    pieces = [*tie(1, Fraction(7, 2), 0, words=2), bytes([last] * 8)]
    assert flips(np.array([7]), 2, rng=Scripted(*pieces)).tolist() == [heads]


def test_a_dyadic_probability_never_ties() -> None:
    assert bernoulli(0.5, rng=Scripted(little(2**15 - 1, 2))) is True
    assert bernoulli(0.5, rng=Scripted(little(2**15, 2))) is False


@pytest.mark.parametrize(("last", "component"), [(0, 0), (255, 1)])
def test_a_tied_component_is_settled_by_more_bits(last: int, component: int) -> None:
    """Weights 1 and r = q / (1 - q): component 0 has probability 1 - q."""
    exponent = Fraction(1, 7)
    bits = 62 + 64
    threshold = (1 << bits) - exp_bounds(exponent, bits)[1]
    blend = box.PowerMixture([Fraction(1), Fraction(1)], exponent)
    script = Scripted(little((threshold >> 64) << 2, 8), little(threshold & (2**64 - 1), 8), bytes([last] * 8))
    assert blend.draw(1, script).tolist() == [component]


def test_an_unsure_unit_of_a_choice_is_judged_exactly() -> None:
    units = selection._Units.of(np.array([0, 3], np.uint64), (2, 1), np.array([1, 1]))
    level = int(units.sure[1])
    unit = int(units.ends[0]) + level
    total = int(units.ends[-1])
    drawn = little(unit, 8)
    amplitude, exponent = Fraction(2) ** units.exponent, Fraction(3, 2)
    for known in (0, 2**64 - 1):
        expected = falls_below(
            Scripted(little(0, 8)), amplitude=amplitude, exponent=exponent, whole=level, known=known, bits=64
        )
        script = Scripted(drawn, little(known, 8), little(0, 8))
        got = exponential_choice([5, 2], 2, rng=script)
        assert got == (1 if expected else 0)
    assert total < 2**60


@given(exponents, st.integers(min_value=0, max_value=2**64 - 1))
def test_the_exact_comparison_agrees_with_high_precision(exponent: Any, known: Any) -> None:
    low, high = exp_bounds(exponent, 400)
    point = known << 336
    expected = True if point + (1 << 336) <= low else False if point >= high else None
    if expected is not None:
        answer = falls_below(Scripted(), amplitude=Fraction(1), exponent=exponent, known=known, bits=64)
        assert answer is expected


@given(
    st.lists(st.integers(min_value=-(2**63), max_value=2**63 - 1), min_size=1, max_size=30),
    scales,
    st.data(),
)
def test_every_candidate_owns_enough_units_and_no_sure_one_too_many(scores: Any, scale: Any, data: Any) -> None:
    """The two inequalities on which the proof of the exponential choice rests, in exact arithmetic."""
    best = max(scores)
    near = [best - (best - score) % 2 ** data.draw(st.integers(min_value=1, max_value=64)) for score in scores]
    weights = data.draw(
        st.lists(st.integers(min_value=1, max_value=2**62), min_size=len(near), max_size=len(near)), label="weights"
    )
    distances = np.array([max(near) - score for score in near], np.uint64)
    units = selection._Units.of(distances, (scale.numerator, scale.denominator), np.array(weights))
    for i, (weight, distance) in enumerate(zip(weights, distances.tolist(), strict=True)):
        amplitude = weight * Fraction(2) ** units.exponent
        low, high = exp_bounds(distance / scale, 300)
        assert int(units.owned[i]) * 2**300 >= amplitude * low
        assert int(units.sure[i]) * 2**300 <= amplitude * high
    assert 0 < int(units.ends[-1]) < 2**61
    assert (np.diff(units.ends) > 0).all()


@given(
    st.lists(st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=50), min_size=1, max_size=16),
    scales,
)
@settings(max_examples=40)
def test_the_mixture_of_a_box_is_its_polynomial(widths: Any, scale: Any) -> None:
    blend = box._mixture(scale.numerator, scale.denominator, tuple(widths))
    assert all(factor >= 0 for factor in blend._factors)
    for radius in (0, 1, 2, 5, 17, 40):
        product, total = Fraction(1), Fraction(0)
        for width in widths:
            product *= 2 * width * radius + 1
        for j, factor in enumerate(blend._factors):
            total += factor * math.comb(radius, j)
        assert total == product


@given(st.lists(st.fractions(min_value=0, max_value=100), min_size=1, max_size=16), scales)
@settings(max_examples=40)
def test_cumulative_chances_of_a_mixture_are_enclosed_narrowly(rest: Any, scale: Any) -> None:
    blend = box.PowerMixture([Fraction(1), *rest], 1 / scale)
    low, high = blend._enclose(62)
    with mpmath.workprec(4000):
        ratio = 1 / mpmath.expm1(mpmath.mpf(scale.denominator) / scale.numerator)
        weights = [mpmath.mpf(f.numerator) / f.denominator * ratio**j for j, f in enumerate(blend._factors)]
        for j in range(len(rest)):
            chance = mpmath.fsum(weights[: j + 1]) / mpmath.fsum(weights) * mpmath.mpf(2) ** 62
            assert low[j] <= chance <= high[j]
    assert all(b - a <= 2 for a, b in zip(low, high, strict=True))


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [Fraction(1, 3), 5, 1000, 2**21, 2**40])
@pytest.mark.parametrize("margin", [None, 2.0**-4])  # so wide that whole numbers decide hundreds of samples
def test_compiled_passes_give_the_samples_of_the_others(
    law: Any, scale: Any, margin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    if margin is not None:
        monkeypatch.setattr(envelope, "_MARGIN", margin)
    table, count = Envelope(law(Fraction(scale))), 200_000
    ours, theirs = np.arange(count), np.arange(count)
    table.add_to(ours, SeededRandom(5), compiled=True)
    table.add_to(theirs, SeededRandom(5))
    assert (ours == theirs).all()
    assert (ours != np.arange(count)).any()


@pytest.mark.parametrize("scale", [5, 1000, 2**21, 2**40])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [1, 255, 999, 150_001, 1_100_001])
@pytest.mark.parametrize("margin", [None, 2.0**-4])
def test_scaled_noise_is_noise_on_whole_numbers_that_is_rounded_afterwards(
    scale: Any, compiled: bool, size: int, margin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled:
        pytest.importorskip("numba")
    if margin is not None:
        monkeypatch.setattr(envelope, "_MARGIN", margin)
    table, factor = Envelope(GaussianLaw(Fraction(scale))), np.float32(1e-7)
    single = (np.random.default_rng(1).normal(size=size) * 1e6).astype(np.float32)
    single[0] = -0.9
    right = np.trunc(single).astype(np.int64)
    table.add_to(right, SeededRandom(8))
    table.scale_with(single, 1e-7, SeededRandom(8), compiled=compiled)
    assert (single == right.astype(np.float32) * factor).all()

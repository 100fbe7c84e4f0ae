"""Alarms: told when it matters, quiet when not, paid by the alarm, refused when all are given."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha import Person, Reading, Window, errors, noise
from mosha.accounting.measures import concentrated, pure
from mosha.core.budget import Budget
from mosha.mechanisms import ClippedSum, Histogram
from mosha.noise.unbounded import unbounded_geometric
from mosha.streams import Sliding, alarm
from mosha.streams.alarms import alarm_noise
from tests.streams import missed

RNG = noise.secure()


def run(bell: Any, batches: Any) -> Any:
    state, answers = bell.init(), []
    for batch in batches:
        answer, state = bell.step(state, batch, None, RNG)
        answers.append(answer)
    return answers


def test_the_price_does_not_grow_with_time() -> None:
    short, long = (alarm(unit=Reading(), threshold=9, alarms=3, horizon=h, epsilon=1).event for h in (10, None))
    assert short == long
    assert pure.cost_of(short).amount == pytest.approx(1)


def test_the_split_is_the_best_one_and_better_than_others() -> None:
    for monotone, power in ((True, 8.0), (False, 16.0)):
        made = alarm_noise(Budget(epsilon=1.0), alarms=8, moved=1, monotone=monotone)
        assert made.event.answer_epsilon / made.event.threshold_epsilon == pytest.approx(power ** (2 / 3))  # type: ignore[attr-defined]

        def deviation(first: Any, c: Any = 8 if monotone else 16) -> Any:
            return math.sqrt(1 / first**2 + (c / (1 - first)) ** 2)

        assert made.deviation <= min(deviation(share) for share in np.linspace(0.02, 0.98, 97)) * (1 + 1e-9)


def test_quiet_below_told_above_and_refused_at_the_end() -> None:
    """False alarm: noise of scale 4 strays by 4000 with probability below 1e-400."""
    bell = alarm(unit=Reading(), threshold=[5000, 20000], alarms=2, horizon=None, epsilon=1)
    answers = run(bell, [[1] * 10, [1] * 9000, [], [1] * 40000])
    assert [answer["alarm"] for answer in answers] == [False, True, False, True]
    assert [answer["threshold"] for answer in answers] == [None, 5000.0, None, 20000.0]
    assert answers[1]["gap"] == pytest.approx(4000, abs=1000)
    with pytest.raises(errors.HorizonExceeded):
        run(bell, [[1] * 9000] * 3)


def test_a_sliding_sum_and_a_running_one_are_compared_as_far_as_persons_move_them() -> None:
    asked: dict[str, Any] = {"threshold": 5, "alarms": 1, "horizon": 100, "epsilon": 1}
    scale = lambda bell: bell.forecast(0.95)
    once = alarm(unit=Reading(), **asked)
    assert scale(alarm(unit=Reading(), release=Sliding(10), **asked)) == scale(once)
    person = Person("who", at_most=4)
    assert scale(alarm(unit=person, **asked)) == scale(once)
    wide = scale(alarm(unit=person, release=Sliding(3), **asked))
    assert wide == pytest.approx(3 * scale(once), rel=0.15)
    assert scale(alarm(unit=person, release="running", **asked)) == pytest.approx(4 * scale(once), rel=0.15)
    with pytest.raises(errors.InvalidParameter):
        alarm(unit=Window("who", 5), release="running", **asked)


def test_many_alarms_are_composed_by_zcdp_where_that_is_cheaper() -> None:
    many = alarm_noise(Budget(epsilon=1.0, delta=1e-6), alarms=1000, moved=1, monotone=True)
    alone = alarm_noise(Budget(epsilon=1.0), alarms=1000, moved=1, monotone=True)
    assert many.renewed
    assert many.deviation < 0.6 * alone.deviation
    rho = concentrated.rho(many.event)[0]
    assert concentrated.epsilon_from_rho(rho, 1e-6) <= 1


def test_a_value_above_the_threshold_is_told_as_often_as_the_law_says() -> None:
    """20 above it: missed by exp(-(20 - m) / b) b / (a + b) = 0.011; noise to both sides would miss 0.087.

    What 4,000 runs show is refused at 1e-10 by the binomial law; the planted 0.087 lies 14 deviations beyond that.
    """
    bell = alarm(unit=Reading(), threshold=1000, alarms=8, horizon=None, epsilon=1)
    missed = sum(not bell.step(bell.init(), [1] * 1020, None, RNG)[0]["alarm"] for _ in range(4000)) / 4000
    a, b = 10, 5
    m = a * math.log(2 * a / (a + b))
    expected = math.exp(-(20 - round(m)) / b) * b / (a + b)

    def refused(rate: Any) -> Any:
        count = round(4000 * rate)
        return min(binom.cdf(count, 4000, expected), binom.sf(count - 1, 4000, expected)) < 5e-11

    assert not refused(missed)
    both_sides = (a**2 * math.exp(-20 / a) - b**2 * math.exp(-20 / b)) / (2 * (a**2 - b**2))
    assert refused(both_sides - 13 * math.sqrt(both_sides / 4000))
    assert refused(0.0)  # too little noise never misses


def law_of_one_alarm(values: Any, scales: Any, side: Any = 1, reach: Any = 400) -> dict[Any, Any]:
    """log P of (no, ..., no, yes with a gap) for every place and gap, and of no alarm at all; threshold 3."""
    z = np.arange(reach)
    on_threshold = -z / scales[0]
    outside = 3 + side * z[:, None] - np.array(values)  # what an answer's noise must reach
    quiet = np.where(outside > 0, np.log1p(-np.exp(-np.maximum(outside, 1e-300) / scales[1])), -np.inf)
    found = {"never": np.logaddexp.reduce(on_threshold + quiet.sum(axis=1))}
    for place in range(len(values)):
        for gap in range(40):
            need = outside[:, place] + gap
            told = np.where(need >= 0, -need / scales[1], -np.inf)
            found[place, gap] = np.logaddexp.reduce(on_threshold + quiet[:, :place].sum(axis=1) + told)  # type: ignore[index]
    never = np.logaddexp.reduce(on_threshold)
    point = np.log(-np.expm1(-1 / scales[1]))
    return {key: value - never + (0 if key == "never" else point) for key, value in found.items()}


def widest(first: Any, second: Any, monotone: Any, side: Any = 1) -> Any:
    """The largest log ratio of the two laws, with the scales of epsilon 1 and one alarm."""
    made = alarm_noise(Budget(epsilon=1.0), alarms=1, moved=1, monotone=monotone)
    scales = float(made.threshold), float(made.answer)
    one, other = law_of_one_alarm(first, scales, side), law_of_one_alarm(second, scales, side)
    with np.errstate(invalid="ignore"):
        gaps = [abs(one[key] - other[key]) for key in one if max(one[key], other[key]) > -100]
    return max(gaps)


@pytest.mark.parametrize("values", [(0, 0, 0), (5, 0, 4), (2, 9, 2), (3, 3, 3)])
def test_the_law_of_an_alarm_keeps_its_price_exactly(values: Any) -> None:
    """Every answer and every gap, summed over the threshold's noise."""
    more = [value + 1 for value in values]
    mixed = [value + (-1) ** place for place, value in enumerate(values)]
    with np.errstate(all="ignore"):
        assert widest(values, more, monotone=True) <= 1 + 1e-9
        assert widest(more, values, monotone=True) <= 1 + 1e-9
        assert widest(values, mixed, monotone=False) <= 1 + 1e-9


def test_the_exact_law_finds_noise_to_the_wrong_side_and_questions_that_are_not_monotone() -> None:
    with np.errstate(all="ignore"):
        assert widest((5, 0, 4), (6, 1, 5), monotone=True, side=-1) > 1.2
        assert widest((5, 0, 4), (6, -1, 5), monotone=True) > 1.2


def test_noise_to_one_side_is_never_wrong_more_often_than_noise_to_both() -> None:
    a, b = 10.0, 5.0
    m = a * math.log(2 * a / (a + b))
    for x in np.linspace(0.01, 80, 400):
        both = (a**2 * math.exp(-x / a) - b**2 * math.exp(-x / b)) / (2 * (a**2 - b**2))
        assert math.exp(-x / a) / 2 <= both
        assert (1 - math.exp(x / a) / 2 if x <= m else math.exp(-(x - m) / b) * b / (a + b)) < both


def test_misses_are_rare_on_heavy_tails() -> None:
    """Zipf counts of a million records, epsilon 0.1, 25 alarms: the exact mean of what is missed of the top 25."""
    made = alarm_noise(Budget(epsilon=0.1), alarms=missed.ALARMS, moved=1, monotone=True)
    assert missed.missed(missed.one_sided, made) == pytest.approx(0.0466, abs=0.0005)
    assert missed.missed(missed.two_sided, made) == pytest.approx(0.0597, abs=0.0005)


def test_the_error_bar_of_a_gap_holds_the_noise() -> None:
    """False alarm 1e-9: 2,000 draws, of which a share of 0.1 may leave the bar; 6.5 deviations of 0.0067."""
    made = alarm_noise(Budget(epsilon=1.0), alarms=8, moved=1, monotone=True)
    draws = [
        unbounded_geometric(made.answer, rng=RNG) - unbounded_geometric(made.threshold, rng=RNG) - made.offset
        for _ in range(2000)
    ]
    outside = np.mean(np.abs(draws) > made.width(0.9))
    assert outside <= 0.1 + 6.5 * 0.0067
    assert np.mean(np.abs(draws) > made.width(0.9) / 3) > 0.1 + 6.5 * 0.0067  # a bar of a third: 0.4 leave it


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": float("nan"), "alarms": 1},
        {"threshold": [], "alarms": 1},
        {"threshold": "high", "alarms": 1},
        {"threshold": 5, "alarms": 0},
        {"threshold": 5, "alarms": 1, "epsilon": -1},
        {"threshold": 5, "alarms": 1, "epsilon": 1e-40},
        {"threshold": 5, "alarms": 1, "release": "decayed"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(errors.MoshaError):
        alarm(**({"unit": Reading(), "horizon": 10, "epsilon": 1} | wrong))


def test_only_single_numbers_have_a_threshold() -> None:
    with pytest.raises(errors.InvalidParameter):
        alarm(Histogram(keys=["a"]), unit=Reading(), threshold=1, alarms=1, horizon=1, epsilon=1)
    assert alarm(ClippedSum(between=(-1, 1)), unit=Reading(), threshold=1, alarms=1, horizon=1, epsilon=1).horizon == 1

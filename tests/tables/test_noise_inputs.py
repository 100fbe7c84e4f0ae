"""What one unit moves in everything that is noised, under the same outcomes (`fuzz._noise_inputs`): a short search.

The long one is `make fuzz`. Nothing depends on chance: what is found is a fault.
"""

from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import mosha
from fuzz import _noise_inputs as noise_inputs
from fuzz._table_places import opened
from fuzz.sensitivity import compare
from mosha.connect.language.cases import when
from mosha.connect.language.expression import col, grid
from mosha.connect.language.value import Clamped
from mosha.core.errors import MoshaError
from mosha.tables import Budget, protect
from mosha.tables import aggregates as ask
from mosha.tables.mechanisms import joint_noise
from mosha.tables.mechanisms import quantile_width as windows
from mosha.tables.mechanisms import rank_choice as points
from mosha.tables.parts import bought_range as ranges
from mosha.tables.parts import counted_keys, keys, norm_choice, quantiles, sums, top
from mosha.tables.parts.bounds import Limits
from tests.searches import draw_seeds


def search(places: Any, pairs: Any) -> None:
    """Compare so many random pairs; the first thing that is found is raised."""
    compared = 0
    for seed in draw_seeds(f"neighbors in {places.engine}"):
        try:
            compare(places, seed, 1, large=False)
            compared += 1
        except MoshaError:
            continue  # a question that is refused
        finally:
            places.forget()
        if compared == pairs:
            return


def test_random_questions_lose_no_more_than_was_charged() -> None:
    with opened("sql") as places:
        search(places, 8)


@pytest.mark.parametrize(("seed", "depth"), [(12048457141, 1), (1078364335107, 2)])
def test_a_table_without_rows_goes_the_way_of_all_others(seed: int, depth: int) -> None:
    """Here the neighbor of one person's table is empty: noise is drawn for its groups too, of which there are none.

    The second was found on Spark; an engine that hands over no batch for such a table is told by it on any engine.
    """
    with opened("sql") as places:
        compare(places, seed, depth, large=False)


def test_three_ways_of_one_engine_agree_on_every_integer() -> None:
    with opened("duckdb") as places:
        search(places, 2)


OTHERS = [(person, "A", day) for person in range(9) for day in (3.0, 4.0 + person)]
MINE = [(99, ward, 1e9) for ward in "AAAAAZZBCD"]


def asked(make: Any, unit: Any, rows: Any) -> Any:
    who, ward, days = zip(*rows, strict=True)
    return make(protect(pa.table({"who": who, "ward": ward, "days": days}), unit=unit))


def shares(make: Any, unit: Any, budget: Any, mine: Any = MINE) -> Any:
    """How much of what was charged each kind of draw loses, where the rows of one unit are taken away."""
    first, second = (asked(make, unit, rows) for rows in (OTHERS + mine, OTHERS))

    def run(question: Any, listener: Any) -> Any:
        return noise_inputs.run(question, budget, bytes(range(32)), listener)

    found: dict[Any, Any] = {}
    for seed in range(8):  # of the outcomes, such as the point around which a window is sought
        for kind, share in noise_inputs.compare(first, second, run, seed)[0].items():
            found[kind] = max(found.get(kind, 0.0), share)
    return found


def _half(original: Any) -> Any:
    return lambda *arguments, **named: [max(1, n // 2) for n in original(*arguments, **named)]


def _loose(original: Any) -> Any:
    """Nobody is bounded, while the noise is made for those who are."""
    return lambda *arguments, norm, **named: original(*arguments, norm=norm * 64, **named)


def _unclamped(self: Any) -> Any:
    return grid(self.of, (-(2.0**24), 2.0**24), self.exponent, center=self.center)


def _generous(epsilon: Any, delta: Any) -> Any:
    return ORIGINAL(epsilon, min(0.4, 400 * delta))


ORIGINAL = keys.keeping_probabilities  # type: ignore[attr-defined]
TWO, SOME, ROW = mosha.Person("who", at_most=2), mosha.Person("who"), mosha.Row()
ONE, PURE, LARGE, WITH = [(99, "A", 0.0)], Budget(epsilon=1), Budget(epsilon=200), Budget(epsilon=1, delta=1e-5)
FAULTS = {
    "the reach is halved": (
        (Limits, "reach", _half(Limits.reach)), lambda t: t.count(), (TWO, PURE), "laplace noise",
    ),
    "cases that meet are taken to exclude one another": (
        (sums, "are_exclusive", lambda _: True),
        lambda t: t.aggregate(a=ask.count(when(col("days") > 1, 1)), b=ask.count(when(col("days") > 2, 1))),
        (TWO, PURE), "laplace noise",
    ),
    "persons are not bounded": (
        (sums, "bound_question", _loose(sums.bound_question)), lambda t: t.count(), (TWO, PURE), "laplace noise",  # type: ignore[attr-defined]
    ),
    "persons are not bounded, under Gaussian noise": (
        (sums, "bound_question", _loose(sums.bound_question)), lambda t: t.count(), (TWO, Budget(rho=1)),  # type: ignore[attr-defined]
        "normal noise",
    ),
    "values are clamped after they are summed": (
        (Clamped, "known", property(_unclamped)), lambda t: t.sum("days", between=(0, 30)), (ROW, PURE, MINE[:1]),
        "laplace noise",
    ),
    "norms are noised for half a person": (
        (norm_choice, "enlarge_scale", lambda scale: scale / 2), lambda t: t.count(), (SOME, PURE),
        "NormChoice",
    ),
    "ranges are noised for half a person": (
        (ranges, "enlarge_scale", lambda scale: scale / 2), lambda t: t.sum("days", between="automatic"), (TWO, PURE),
        "RangeChoice",
    ),
    "the choice of a point is twice as sharp": (
        (points, "enlarge_scale", lambda scale: scale / 2), lambda t: t.median("days", between=(0, 30)),
        (ROW, PURE, ONE),
        "quantiles: level",
    ),
    "windows are tried four times as sharply": (
        (quantiles, "noise_scales", lambda *given: tuple(scale / 4 for scale in windows.noise_scales(*given))),
        lambda t: t.median("days", between=(0, 30), bars="values"), (ROW, LARGE, MINE[:1]), "quantiles: window",
    ),
    "the choice of the most frequent is twice as sharp": (
        (top, "enlarge_scale", lambda scale: scale / 2), lambda t: t.top("ward", k=1, candidates=["A", "B"]),
        (ROW, PURE, ONE), "top",
    ),
    "groups are kept for far more than their delta": (
        (keys, "keeping_probabilities", _generous), lambda t: t.group_by("ward").mean("days", between=(0, 30)),
        (mosha.Person("who", at_most=1), WITH, [(99, "Z", 1.0)]), "groups by coins",
    ),
    "groups are shown for small counts": (
        (counted_keys, "find_threshold", lambda *_: 5.0), lambda t: t.group_by("ward").count(),
        (mosha.Person("who", at_most=1), WITH, [(99, "Z", 1.0)]), "counted groups of one alone",
    ),
    "counts that show groups have too little noise": (
        (joint_noise, "enlarge_scale", lambda scale: scale / 2), lambda t: t.group_by("ward").count(),
        (mosha.Person("who", at_most=1), WITH, [(99, "A", 1.0)]), "laplace noise",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_nothing_where_there_is_none(fault: Any) -> None:
    patch, make, (unit, budget, *mine), kind = FAULTS[fault]
    sound = shares(make, unit, budget, *mine)
    assert max(sound.values()) <= 1 + noise_inputs.SLACK
    with mock.patch.object(*patch):
        assert shares(make, unit, budget, *mine)[kind] > 1.4


def test_a_release_that_tells_the_data_is_found() -> None:
    original = sums.Sums.noisy

    def leaking(part: Any, frame: Any, *arguments: Any) -> Any:
        return original(part, frame, *arguments) | {"rows": frame.relation.source.rows}

    with mock.patch.object(sums.Sums, "noisy", leaking), pytest.raises(noise_inputs.Apart, match="another release"):
        shares(lambda t: t.count(), TWO, PURE)

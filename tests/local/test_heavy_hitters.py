"""Popular texts are found without a list of them, with the counts they have; texts that nobody has are not."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from mosha import accounting
from mosha.core.errors import DataError, InvalidParameter
from mosha.local import Collector, Frequency, HeavyHitters, Mean, Several, Shuffler, Survey
from mosha.local.collect.prefix_tree import search_prefixes
from mosha.local.collect.report_tables import ReportTables
from mosha.local.protocols.choice import best_table
from mosha.local.protocols.prefixes import OTHER, Prefixes
from mosha.noise import SeededRandom, secure

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = HeavyHitters(longest=10, alphabet=LETTERS, epsilon=4)
POPULAR = {"the": 9000, "of": 6000, "hello": 4000, "differential": 3000}
SURE = 1 - 1e-9


def surely_found(survey: Any, reports: Any) -> Any:
    """The values that noise alone shows with a probability of at most 1e-9."""
    collector = survey.collector()
    collector.add(reports)
    return survey.decode(collector.counters, collector.accepted, confidence=SURE).values


def strangers(count: Any) -> list[Any]:
    """Texts of which nearly none comes twice."""
    rng = np.random.default_rng()
    return ["".join(row) for row in rng.choice(list(LETTERS), (count, 9))]


@pytest.fixture(scope="module")
def collected() -> Any:
    collector = WORDS.collector()
    collector.add(WORDS.reports([text for text, count in POPULAR.items() for _ in range(count)] + strangers(60_000)))
    return collector


@pytest.mark.parametrize(
    ("code", "text", "read"),
    [
        (Prefixes(6, None, 64), "tea", "tea"),
        (Prefixes(6, None, 64), "", ""),
        (Prefixes(6, None, 64), "tea time", "tea ti"),
        (Prefixes(6, None, 64), "茶水", "茶水"),
        (Prefixes(5, None, 64), "茶水", "茶" + OTHER),
        (Prefixes(6, None, 64), "a\0b", f"a{OTHER}b"),
        (Prefixes(9, None, 64), "a\ud800b", "a?b"),
        (Prefixes(4, tuple("abc"), 64), "cab", "cab"),
        (Prefixes(4, tuple("abc"), 64), "caxbb", f"ca{OTHER}b"),
        (Prefixes(3, ("new", "york"), 64), ["new", "york"], ("new", "york")),
        (Prefixes(3, ("new", "york"), 64), ("old", "york"), (OTHER, "york")),
    ],
)
def test_every_text_has_a_code_and_is_read_back(code: Any, text: Any, read: Any) -> None:
    assert code.read(code.words_of(text)) == read


@pytest.mark.parametrize(
    "code", [Prefixes(24, None, 1000), Prefixes(13, tuple(LETTERS), 151_740), Prefixes(1, None, 64)]
)
def test_devices_and_collectors_hash_alike(code: Any) -> None:
    for text in ("", "a", "hello", "international affairs", "茶" * 9):
        words = code.words_of(text)
        states = np.array(code.seeds, np.uint64)[:, None]
        found = []
        for word in words:
            states = code.extend(states, np.array([word]))
            found += code.place(states)[:, 0].tolist()
        assert tuple(found) == code.buckets_of(text) == tuple(code.hash_words(words))
        assert max(found) < code.buckets


def test_a_report_is_a_length_drawn_at_random_and_the_bucket_told_by_the_protocol() -> None:
    """So the guarantee is that of the protocol: nothing else of the text is ever read."""
    for seed in range(40):
        report = WORDS.reproduce_report("hello", rng=SeededRandom(seed))
        again = WORDS.randomizer.draw(WORDS.prefixes.buckets_of("hello"), SeededRandom(seed))
        assert report[1:] == again
        assert again[0] < WORDS.levels * WORDS.prefixes.rows


def unlikely(survey: Any, claimed: Any, text: Any, count: int = 120_000) -> Any:
    """A bound on the chance that buckets of the text, and others, were supported as often as they were."""
    counters = survey.collector()
    counters.add(survey.reports([text] * count))
    tables = ReportTables.read(survey.prefixes, survey.protocol, counters.counters)
    buckets = np.array(survey.prefixes.buckets_of(text)).reshape(survey.levels, -1)
    tails = []
    for (level, row), bucket in np.ndenumerate(buckets):
        for place, chance in ((bucket, claimed.truth), ((bucket + 7) % claimed.size, claimed.lie)):
            n, k = tables.reports[level, row], tables.supports[level, row, place]
            tails.append(min(binom.cdf(k, n, float(chance)), binom.sf(k - 1, n, float(chance))))
    lengths = [min(binom.cdf(n, count, 1 / buckets.size), binom.sf(n - 1, count, 1 / buckets.size))
               for n in tables.reports.ravel()]  # fmt: skip
    return 2 * len(tails + lengths) * min(tails + lengths)  # type: ignore[operator]


@pytest.mark.parametrize("epsilon", [0.8, 1.2])
def test_batches_have_the_law_that_is_claimed_and_another_epsilon_is_found(epsilon: float) -> None:
    """Broken by chance with probability 1e-10; at another epsilon the least tail is below 1e-20 on average."""
    claimed = HeavyHitters(longest=4, alphabet="abc", epsilon=1, buckets=128)
    other = HeavyHitters(longest=4, alphabet="abc", epsilon=epsilon, buckets=128)
    assert unlikely(claimed, claimed.protocol, "cab") > 1e-10
    assert unlikely(other, claimed.protocol, "cab") < 1e-10


def test_popular_texts_are_found_and_nobody_elses(collected: Any) -> None:
    """A text that nobody has is found with probability 1e-9; each of the four is expected 20 deviations out."""
    found = WORDS.decode(collected.counters, collected.accepted, confidence=SURE)
    assert found.values == ["the", "of", "hello", "differenti"]  # which is as much of it as is told
    assert list(found) == found.values
    assert (found.chances <= 1e-9).all()
    assert found.tried > 10_000


def test_counts_are_those_of_the_people(collected: Any) -> None:
    """Each within 7 deviations: broken by chance with probability 3e-12 each."""
    found = collected.estimate()
    for text, count in POPULAR.items():
        told = found.look_up(text, confidence=1 - 2.6e-12)
        assert abs(told.value - count) <= told.error, text
    nobody = found.look_up("nobody", confidence=1 - 2.6e-12)
    assert abs(nobody.value) <= nobody.error
    assert nobody.low == 0.0
    assert found.look_up("the").value == pytest.approx(found.counts[0])
    assert found.look_up("the").error == pytest.approx(found.error(0.95)[0])
    assert found.table()[0]["value"] == "the"
    assert found.shares[0] == pytest.approx(found.counts[0] / collected.accepted)


def test_bars_are_as_wide_as_the_errors_are() -> None:
    """The mean square of 240 errors over their claimed variance: outside of these bounds with probability below 1e-9.

    Bars half as wide or twice as wide would give 4 and 0.25.
    """
    survey = HeavyHitters(longest=3, alphabet="abcdefg", epsilon=2, buckets=1024)
    texts, squares = ["abc", "ab", "g", "", "gfa", "ddd"], []
    for _ in range(40):
        found = survey.estimate(survey.reports(texts * 700))
        for text in texts:
            told = found.look_up(text)
            squares.append(((told.value - 700) / told.error * 1.96) ** 2)
    assert 0.5 < np.mean(squares) < 1.8


def test_a_text_that_collides_in_one_row_is_not_found() -> None:
    """Everybody in its buckets of one row, nobody in those of the other."""
    survey = HeavyHitters(longest=3, alphabet=LETTERS, epsilon=2, buckets=4096)
    reports, size = 10_000.0, survey.protocol.size
    lie, truth = float(survey.protocol.lie), float(survey.protocol.truth)
    buckets = np.array(survey.prefixes.buckets_of("abc")).reshape(survey.levels, -1)
    for rows, expected in (((0,), []), ((0, 1), ["abc"])):
        supports = np.full((survey.levels, 2, size), reports * lie)
        for level, row in np.ndindex(survey.levels, 2):
            if row in rows:
                supports[level, row, buckets[level, row]] = reports * truth
        tables = ReportTables(np.rint(supports), np.full((survey.levels, 2), reports), survey.protocol)
        found = search_prefixes(survey.prefixes, tables, kept=64)
        sure = [survey.prefixes.read(words) for words in found.words[found.chance < 1e-9].tolist()]
        assert sure == expected


SHORT = HeavyHitters(longest=3, alphabet=LETTERS, epsilon=4)  # one level of two rows
MEAN = 10_000 * float(SHORT.protocol.lie)
SPREAD = math.sqrt(MEAN * (1 - float(SHORT.protocol.lie)))


def search_planted(planted: dict[str, tuple[float, float]]) -> dict[Any, float]:
    """The chances of texts that stand out by these deviations in each row, among buckets at the mean of noise."""
    supports = np.full((1, 2, SHORT.protocol.size), np.floor(MEAN))
    for text, rows in reversed(planted.items()):  # the first one has the bucket
        for row, bucket in enumerate(SHORT.prefixes.buckets_of(text)):
            supports[0, row, bucket] = round(MEAN + rows[row] * SPREAD)
    tables = ReportTables(supports, np.full((1, 2), 10_000.0), SHORT.protocol)
    found = search_prefixes(SHORT.prefixes, tables, kept=64)
    texts = map(SHORT.prefixes.read, found.words.tolist())
    return {text: chance for text, chance in zip(texts, found.chance.tolist(), strict=True) if text in planted}


def find_pair() -> tuple[str, str]:
    """Two texts in the same bucket of the first row."""
    seen: dict[int, str] = {}
    for name in map("".join, itertools.product(LETTERS, repeat=3)):
        bucket = SHORT.prefixes.buckets_of(name)[0]
        if bucket in seen:
            return seen[bucket], name
        seen[bucket] = name
    raise AssertionError("no pair")


def test_rows_say_together_what_none_of_them_says_alone() -> None:
    """5.6 and 2.8 deviations are 5.9 together, which one of 30,000 values that nobody has reaches once in 20,000."""
    assert search_planted({"tea": (5.6, 2.8)})["tea"] < 1e-3
    assert search_planted({"tea": (2.8, 2.8)})["tea"] > 0.5
    assert search_planted({"tea": (50.0, 0.0)}).get("tea", 1.0) > 0.5


def test_a_bucket_belongs_to_the_text_that_stands_out_most() -> None:
    popular, other = find_pair()
    together = search_planted({popular: (30.0, 30.0), other: (30.0, 2.8)})
    assert together[popular] < 1e-9
    assert together.get(other, 1.0) > 0.5
    assert search_planted({other: (30.0, 2.8)})[other] < 1e-3  # where nobody else explains it


@pytest.mark.parametrize(("told", "broken"), [(1.0, False), (1.1, True)])
def test_noise_alone_shows_a_value_as_seldom_as_is_said(told: float, broken: bool) -> None:
    """More than 47 of 300 at 0.05 or less: with probability below 1e-9; all are, where a tenth more reports lie."""
    survey = HeavyHitters(longest=2, alphabet="abcdefg", epsilon=2, buckets=256)
    lie, draws, seen = float(survey.protocol.lie), np.random.default_rng(), 0
    for _ in range(300):
        supports = draws.binomial(4_000, lie * told, (survey.levels, 2, survey.protocol.size)).astype(np.float64)
        tables = ReportTables(supports, np.full((survey.levels, 2), 4_000.0), survey.protocol)
        seen += search_prefixes(survey.prefixes, tables, kept=64).chance.min() <= 0.05
    assert binom.sf(47, 300, 0.05) < 1e-9
    assert bool(seen > 47) is broken


def test_texts_of_any_script_and_lists_of_words_are_found() -> None:
    """Each is 20 deviations out."""
    drinks = HeavyHitters(longest=9, epsilon=5)
    given = ["茶"] * 4000 + ["咖啡"] * 3000 + ["café au lait"] * 2000
    assert surely_found(drinks, drinks.reports(given)) == ["茶", "咖啡", "café au "]
    vocabulary = ["i", "am", "here", "you", "are", "not"]
    phrases = HeavyHitters(longest=3, alphabet=vocabulary, epsilon=4)
    spoken = [["i", "am", "here"]] * 3000 + [("you", "are")] * 2000 + [["we", "are", "not", "there"]] * 1000
    found = surely_found(phrases, phrases.reports(spoken))
    assert found == [("i", "am", "here"), ("you", "are"), (OTHER, "are", "not")]


def test_collectors_merge_and_keep_their_state(collected: Any) -> None:
    survey = HeavyHitters(longest=4, alphabet=LETTERS, epsilon=4, buckets=4096)
    parts = [survey.reports([text] * 2000) for text in ("tea", "milk")]
    apart = [survey.collector() for _ in parts]
    for collector, part in zip(apart, parts, strict=True):
        collector.add(part)
    together = Collector.from_bytes(survey, apart[0].to_bytes())  # type: ignore[arg-type]
    together.merge(apart[1])
    whole = survey.collector()
    for part in parts:
        whole.add(list(part))
    assert np.array_equal(whole.counters, together.counters)
    assert {"tea", "milk"} <= set(together.estimate().values)


def test_reports_are_counted_in_place() -> None:
    """Adding one report changes two counters, whatever the size of the tables."""
    collector = WORDS.collector()
    counters = collector.counters
    collector.add(WORDS.report("tea"))
    assert collector.counters is counters
    assert counters.sum() == 2


def test_texts_can_be_one_of_several_questions_and_are_shuffled() -> None:
    survey = HeavyHitters(longest=4, alphabet=LETTERS, epsilon=4, buckets=4096)
    both = Several({"drink": survey, "age": Mean(between=(0, 99), epsilon=4)})
    again = Survey.from_json(both.to_json())
    answers = again.estimate(both.reports({"drink": ["tea"] * 4000, "age": [41] * 4000}))
    assert answers["drink"].values[0] == "tea"
    shuffler = Shuffler(survey, at_least=4000)
    shuffler.add(survey.reports(["tea"] * 4000))
    assert surely_found(survey, shuffler.release()) == ["tea"]
    assert accounting.epsilon(Shuffler(survey, at_least=1_000_000).event, 1e-8) < 0.07


def test_too_few_reports_of_a_length_are_told() -> None:
    survey = HeavyHitters(longest=8, epsilon=4, buckets=4096)
    with pytest.raises(DataError, match="of each of the lengths"):
        survey.estimate(survey.reports(["tea"] * 40))


def test_a_text_too_long_or_a_wrong_value_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(InvalidParameter, match="too long"):
        HeavyHitters(longest=400, epsilon=1)
    for survey, value in ((WORDS, 3), (WORDS, ["a"]), (WORDS, None), (WORDS, b"a")):
        with pytest.raises(InvalidParameter, match="asks for a text"):
            survey.report(value)
    with pytest.raises(InvalidParameter, match="list of texts"):
        HeavyHitters(longest=2, alphabet=["new", "york"], epsilon=1).report("new")


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0, 4.0, 6.0, 8.0])
@pytest.mark.parametrize("most", [64, 1024, 1 << 18])
def test_a_table_is_filled_and_nearly_as_good_as_any(most: Any, epsilon: float) -> None:
    """Where odds are larger than the side of the table, one of its size has no more to give."""
    table = best_table(most, epsilon)
    assert most / 8 < table.size <= table.cells <= most
    if math.exp(epsilon) < math.isqrt(most):
        assert table.variance <= 1.06 * 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2


def test_a_declaration_names_the_law_once() -> None:
    assert len(HeavyHitters(longest=64, epsilon=2).to_json()) < 700
    fields = WORDS.to_dict()
    assert fields["part"] == WORDS.protocol.describe()
    assert fields["parts"] == len(WORDS.randomizer.parts)
    assert secure().secure
    assert Frequency(["a", "b"], epsilon=1).id != WORDS.id


@pytest.mark.filterwarnings("error")
def test_a_text_is_found_where_one_hash_function_has_no_reports() -> None:
    survey = HeavyHitters(longest=3, alphabet=LETTERS, epsilon=8)
    collector = survey.collector()
    collector.add(survey.reports(["the"] * 3000))
    tables = ReportTables.read(survey.prefixes, survey.protocol, collector.counters)
    supports, reports = tables.supports.copy(), tables.reports.copy()
    supports[0, 0], reports[0, 0] = 0.0, 0.0
    found = search_prefixes(survey.prefixes, ReportTables(supports, reports, survey.protocol), kept=64)
    assert np.isfinite(found.chance).all()
    assert survey.prefixes.read(found.words[found.chance.argmin()].tolist()) == "the"
    assert found.chance.min() <= 1e-9
    silent = search_prefixes(survey.prefixes, ReportTables(0 * supports, 0 * reports, survey.protocol), kept=64)
    assert (silent.chance == 1).all()

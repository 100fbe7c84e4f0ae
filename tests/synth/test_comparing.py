"""`mosha.synth.compare`: a rehearsal on public rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mosha
from mosha.errors import MoshaError
from tests.synth.test_synthesis import WORDS


def test_every_method_is_rehearsed_and_the_best_is_first(rows: Any) -> None:
    found = mosha.synth.compare(rows, epsilon=5, runs=1, **WORDS)
    assert {one.method for one in found} == {"automatic", "independent", "tree", "selected pairs", "all pairs"}
    assert [one.mean for one in found] == sorted(one.mean for one in found)
    assert all(0 <= one.mean <= one.largest <= 1 for one in found)


def test_pairs_are_better_than_independence_where_columns_depend_on_each_other() -> None:
    copied = pa.table({"a": [n % 5 for n in range(4000)], "b": [n % 5 for n in range(4000)]})
    words: dict[str, Any] = {"keys": {"a": range(5), "b": range(5)}, "nulls": []}
    found = {one.method: one.mean for one in mosha.synth.compare(copied, epsilon=3, runs=1, **words)}
    assert found["automatic"] < 0.2
    assert found["independent"] > 0.7


def test_the_rule_takes_independent_columns_where_noise_would_drown_pairs() -> None:
    generator = np.random.default_rng()
    noise = pa.table({name: generator.integers(0, 8, 300) for name in "abcdefgh"})
    words: dict[str, Any] = {"keys": {name: range(8) for name in "abcdefgh"}, "nulls": []}
    (one,) = mosha.synth.compare(noise, epsilon=0.1, runs=1, methods=["automatic"], **words)
    assert one.chosen == "independent"


def test_an_unknown_method_is_refused(rows: Any) -> None:
    with pytest.raises(MoshaError) as refusal:
        mosha.synth.compare(rows, epsilon=1, methods=["magic"], **WORDS)  # type: ignore[list-item]
    assert refusal.value.code == "synth.unknown_method"

"""Several steps at once: the numbers of single steps, one row of the ledger, one write of the state."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mosha
from mosha import Person, Reading, errors, noise, streams
from mosha.streams import Batches, Decayed, Sliding
from mosha.streams.service.checkpoint import Checkpoint

KEYS: dict[str, Any] = {"keys": ["a", "b"]}
COUNTS = [step * 5 % 7 % 4 for step in range(40)]
ROWS = [[1.0] * count for count in COUNTS]
NAMES = [["a", "b", "c"][:count] for count in COUNTS]
PEOPLE = [{"who": names, "kW": [2.5] * len(names)} for names in NAMES]
ASKED: dict[str, Any] = {"unit": Reading(), "horizon": 40}
PERSON: dict[str, Any] = {"unit": Person("who", at_most=3), "horizon": 40}
STREAMS = {
    "buffers": (streams.counter(rho=0.5, mechanism="BLT", **ASKED), ROWS),
    "sliding": (streams.counter(rho=0.5, mechanism="BLT", release=Sliding(5), **ASKED), ROWS),
    "decayed": (streams.counter(rho=0.5, mechanism="BLT", release=Decayed(0.9), **ASKED), ROWS),
    "instant": (streams.counter(rho=0.5, mechanism="BLT", release="instant", **ASKED), ROWS),
    "sum": (streams.total(rho=0.5, mechanism="BLT", between=(0, 3), **ASKED), ROWS),
    "tree": (streams.counter(epsilon=1, mechanism="tree", **ASKED), ROWS),
    "per step": (streams.counter(epsilon=1, mechanism="per-step", **ASKED), ROWS),
    "bands": (streams.counter(rho=0.5, mechanism="bands", **PERSON), PEOPLE),
    "mean": (streams.mean(rho=0.5, between=(0, 5), column="kW", **PERSON), PEOPLE),
    "histogram": (streams.histogram(rho=0.5, mechanism="BLT", **KEYS, **ASKED), NAMES),
    "series": (streams.series(rho=0.5, key="who", column="kW", between=(0, 3), **KEYS, **ASKED), PEOPLE),
}


def answers(stream: Any, parts: Any, seed: Any) -> tuple[Any, ...]:
    """What the parts (batches, or `Batches` of several) are answered, one row for each step."""
    state, rng, found = stream.init(), noise.SeededRandom(seed), []
    for part in parts:
        answer, state = stream.step(state, part, None, rng)
        found += list(answer) if isinstance(part, Batches) else [answer]
    return np.array(found), state


@pytest.mark.parametrize("name", STREAMS)
def test_several_steps_at_once_give_the_numbers_of_single_ones(name: Any) -> None:
    stream, rows = STREAMS[name]
    single, end = answers(stream, rows, 3)
    many, last = answers(stream, [Batches(rows[:7]), rows[7], Batches(rows[8:9]), Batches(rows[9:])], 3)  # type: ignore[index]
    assert np.array_equal(single, many)
    assert repr(replace(end, tape=None, shown=None)) == repr(replace(last, tape=None, shown=None))


def test_rows_that_say_their_step_are_the_rows_of_that_step() -> None:
    stream, rows = STREAMS["buffers"]
    offsets = np.repeat(np.arange(40), COUNTS)
    order = np.random.default_rng().permutation(offsets.size)
    outside = np.concatenate([offsets[order], [-1, 40, 1 << 40]])
    at = Batches.at(np.ones(outside.size), steps=outside, count=40)
    assert np.array_equal(answers(stream, rows, 5)[0], answers(stream, [at], 5)[0])
    stream, rows = STREAMS["bands"]
    who = np.concatenate([batch["who"] for batch in rows])  # type: ignore[attr-defined]
    columns = {"who": who, "kW": np.ones(who.size)}
    for frame in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        at = Batches.at(frame, steps=offsets, count=40)
        assert np.array_equal(answers(stream, rows, 5)[0], answers(stream, [at], 5)[0])


def test_many_steps_are_as_many_single_ones_whether_compiled_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = streams.counter(unit=Reading(), horizon=1 << 15, rho=0.5, mechanism="BLT")
    counts = np.arange(20_000) % 5
    at = Batches.at(np.ones(counts.sum()), steps=np.repeat(np.arange(20_000), counts), count=20_000)
    quick, _ = answers(stream, [at], 9)
    monkeypatch.setattr("mosha.streams.noise.exact_toeplitz.MANY", 1 << 40)
    assert np.array_equal(quick, answers(stream, [at], 9)[0])
    first = [[1] * count for count in counts[:300].tolist()]
    assert np.array_equal(quick[:300], answers(stream, first, 9)[0])


def book(folder: Any) -> Any:
    return mosha.Ledger(folder / "book.db").account("door", unit=Reading(), rho=1)


def serving(folder: Any, stream: Any = None) -> Any:
    stream = streams.counter(unit=Reading(), horizon=20, rho=0.5, mechanism="BLT") if stream is None else stream
    return streams.serve(book(folder), stream, name="door", state=folder / "door.state")


def test_a_service_publishes_the_same_in_chunks_and_pays_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = noise.KeyedRandom  # both services, and each process of them, are given one noise here
    monkeypatch.setattr("mosha.streams.service.serving.KeyedRandom", lambda _, *context: drawn(b"k" * 32, *context))
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    serving(one).close()
    shutil.copytree(one, other)
    with serving(one) as service:
        single = [service.step(rows).value for rows in ROWS[:20]]
    with serving(other) as service:
        first = service.steps(ROWS[:8])
        assert (first.step, service.taken, service.remaining) == (8, 8, 12)
        assert (first.error(0.95) > 0).all()
    with serving(other) as service:  # after a stop
        assert (service.taken, service.remaining, service.last.step) == (8, 12, 8)
        assert np.array_equal(service.last.value, first.value)
        ninth = service.step(ROWS[8])
        rest = service.steps(Batches(ROWS[9:20]), number=10)
        assert (ninth.step, rest.step, service.remaining) == (9, 20, 0)
        with pytest.raises(errors.HorizonExceeded):
            service.step([1])
    with serving(other) as service:  # a stream that is over can still be asked for its last answer
        assert (service.taken, service.remaining) == (20, 0)
        assert np.array_equal(service.last.value, rest.value)
    assert np.allclose(
        single, [*first.value, ninth.value, *rest.value], rtol=0, atol=1e-6
    )  # a step of the noise or two
    assert book(other).spent == pytest.approx(0.5)


def test_a_chunk_is_answered_again_for_the_same_rows_only(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        given = service.steps(ROWS[:4])
        assert np.array_equal(service.steps(ROWS[:4], number=1).value, given.value)
        with pytest.raises(errors.StateRefused):
            service.steps(ROWS[4:8], number=1)
        with pytest.raises(errors.StateRefused):
            service.steps(ROWS[:3], number=1)
        with pytest.raises(errors.AlreadyReleased):
            service.step(ROWS[1], number=2)
        with pytest.raises(errors.InvalidParameter):
            service.steps(ROWS[:4], number=9)
        with pytest.raises(errors.HorizonExceeded):
            service.steps([[1]] * 17)
        assert service.taken == 4
        offsets = np.array([0, 0, 1])
        column = np.array([1.0, 2.0, 3.0])
        given = service.steps(Batches.at(column, steps=offsets, count=2))
        assert service.steps(Batches.at(column, steps=offsets, count=2), number=5) is given
        with pytest.raises(errors.StateRefused):
            service.steps(Batches.at(column, steps=offsets, count=3), number=5)
        with pytest.raises(errors.StateRefused):
            service.steps(Batches.at(column + 1, steps=offsets, count=2), number=5)


def test_a_chunk_that_was_written_and_never_noted_is_noted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Checkpoint.save

    def save_and_die(self: Any, content: Any) -> NoReturn:
        saved(self, content)
        raise KeyboardInterrupt

    with serving(tmp_path) as service:
        monkeypatch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(KeyboardInterrupt):
            service.steps(ROWS[:6])
    monkeypatch.setattr(Checkpoint, "save", saved)
    with serving(tmp_path) as service:
        assert (service.taken, service.last.step, len(service.last.value)) == (6, 6, 6)
        assert service.step([1]).step == 7


def test_a_run_counts_the_steps_of_a_chunk_and_refuses_more_than_are_left(tmp_path: Path) -> None:
    with book(tmp_path).open(streams.counter(unit=Reading(), horizon=20, rho=0.5)) as run:
        assert run.step(Batches(ROWS[:15])).value.shape == (15,)
        assert run.remaining == 5
        with pytest.raises(errors.HorizonExceeded, match="5 of the 20"):
            run.step(Batches(ROWS[:6]))
        run.step(Batches(ROWS[:4]))
        run.step([1])
        assert run.remaining == 0
        with pytest.raises(errors.HorizonExceeded):
            run.step([1])


def test_what_waits_for_each_answer_takes_one_step_at_a_time(tmp_path: Path) -> None:
    bell = streams.alarm(unit=Reading(), threshold=5, alarms=1, horizon=9, rho=0.5)
    with serving(tmp_path, bell) as service:
        with pytest.raises(errors.InvalidParameter):
            service.steps([[1], [1]])
        with pytest.raises(errors.SourceUnavailable):
            service.step(Batches([[1], [1]]))
        assert service.step([1]).step == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Batches([]),
        lambda: Batches({"a": [1]}),
        lambda: Batches("abc"),
        lambda: Batches.at([1, 2], steps=[0], count=1),
        lambda: Batches.at([1], steps=np.array([[0]]), count=1),
        lambda: Batches.at([1], steps=np.array(["0"]), count=1),
        lambda: Batches.at("a", steps=[0], count=1),
        lambda: Batches.at({}, steps=[0], count=1),
        lambda: Batches.at([1], steps=[0], count=0),
        lambda: Batches.at({"a": [1], "b": [1, 2]}, steps=[0], count=1),
    ],
)
def test_what_is_no_row_of_batches_is_refused(make: Any) -> None:
    with pytest.raises(errors.MoshaError):
        make()

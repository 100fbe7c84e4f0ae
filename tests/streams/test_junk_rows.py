"""Rows of a chunk are read one by one, as those of a step: junk in one changes nothing about the others."""

import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import mosha
from mosha import Person, Reading, errors, noise, streams
from mosha.mechanisms import Count
from mosha.streams import Batches
from mosha.streams.bounding import exact_step, exact_steps
from mosha.streams.planner import best


class Raises:
    """A row that breaks whatever looks at it."""

    def __getattribute__(self, name: Any) -> NoReturn:
        raise RuntimeError("secret")

    def _raise(self, *given: Any) -> NoReturn:
        raise RuntimeError("secret")

    __float__ = __int__ = __index__ = __iter__ = __len__ = __eq__ = __repr__ = __str__ = _raise
    __bool__ = __array__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = _raise
    __hash__ = object.__hash__


JUNK = ["x", None, math.nan, math.inf, 1j, [3], [1, [2]], {}, b"1", True, 1 << 400, np.array([1, 2]), Raises()]
VALUES = [1, 2.5, *JUNK, 2, 1]
STEPS = [at % 3 for at in range(len(VALUES))]
STREAMS = {
    "count": streams.counter(unit=Reading(), horizon=3, rho=0.5),
    "within": best(Count(between=(1, 2), column="v"), unit=Reading(), horizon=3, epsilon=1.0),
    "sum": streams.total(unit=Reading(), horizon=3, between=(0, 5), column="v", rho=0.5),
    "histogram": streams.histogram(unit=Reading(), horizon=3, keys=[1, 2, "x"], column="v", rho=0.5),
    "persons": streams.counter(unit=Person("v", at_most=1), horizon=3, rho=0.5),
    "mean": streams.mean(unit=Person("v", at_most=2), horizon=3, between=(0, 5), column="w", rho=0.5),
}


def rows(values: Any) -> dict[str, Any]:
    return {"v": values, "w": [1.5] * len(values)}


@pytest.mark.parametrize("name", STREAMS)
def test_a_chunk_of_junk_is_the_single_steps_of_junk(name: Any) -> None:
    plan, memory, single = STREAMS[name].plan, {}, []  # type: ignore[var-annotated]
    for step in range(3):
        batch = rows([value for value, at in zip(VALUES, STEPS, strict=True) if at == step])
        exact, memory = exact_step(plan.statistic, plan.presence, batch, step, memory)
        single.append(exact.tolist())
    chunk = Batches.at(rows(VALUES), steps=STEPS, count=3)
    many, remembered = exact_steps(plan.statistic, plan.presence, chunk, 0, {})
    assert many.tolist() == single
    assert remembered == memory


@pytest.mark.parametrize("which", range(len(JUNK)))
def test_one_row_of_junk_changes_no_other_row(which: Any) -> None:
    plan = STREAMS["histogram"].plan
    clean = Batches.at([1] * 50 + [2] * 7, steps=[0] * 57, count=1)
    dirty = Batches.at([1] * 50 + [2] * 7 + [JUNK[which]], steps=[0] * 58, count=1)
    before, after = (exact_steps(plan.statistic, plan.presence, batch, 0, {})[0][0] for batch in (clean, dirty))
    assert np.abs(after - before).sum() <= 1


def test_what_is_no_step_is_left_out_row_by_row() -> None:
    junk = [value for value in JUNK if type(value) not in (bool, bytes)]  # which are numbers, written otherwise
    steps = [0, 1, 1.0, 0.5, -1, 3, *junk, 2]
    chunk = Batches.at(list(range(len(steps))), steps=steps, count=3)
    assert [chunk.batch(step).tolist() for step in range(3)] == [[0], [1, 2], [len(steps) - 1]]
    missing = Batches.at(np.arange(4), steps=np.array([0, np.nan, 1, np.inf]), count=2)
    assert missing.per_step().tolist() == [1, 1]


def test_junk_is_answered_paid_for_and_told_to_nobody(tmp_path: Path) -> None:
    account = mosha.Ledger(tmp_path / "book.db").account("door", unit=Reading(), rho=1)
    with account.open(STREAMS["sum"]) as run:
        assert run.step(Batches.at(rows(VALUES), steps=STEPS, count=2)).value.shape == (2,)
        assert run.remaining == 1
    with streams.serve(account, STREAMS["sum"], name="s", state=tmp_path / "s") as service:
        service.steps(Batches.at(rows(VALUES), steps=STEPS, count=2))
        assert service.step(rows(VALUES)).step == 3


def test_a_chunk_counts_what_was_asked_for() -> None:
    stream, data = STREAMS["within"], {"v": np.arange(10.0)}
    chunk = Batches.at(data, steps=np.zeros(10, int), count=1)
    exact, _ = exact_steps(stream.plan.statistic, stream.plan.presence, chunk, 0, {})
    assert exact.tolist() == [[2]]
    other = Batches.at({"u": np.arange(10.0)}, steps=np.zeros(10, int), count=1)
    with pytest.raises(errors.SourceUnavailable, match="no column"):
        stream.step(stream.init(), other, None, noise.SeededRandom(1))


def test_how_many_steps_there_are_is_what_was_given(tmp_path: Path) -> None:
    chunk = Batches([[1]] * 3)
    with pytest.raises(AttributeError):
        chunk.count = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        chunk.anything = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        type("Fewer", (Batches,), {"count": 1})
    account = mosha.Ledger(tmp_path / "book.db").account("door", unit=Reading(), rho=1)
    forged = Batches.at([1] * 4, steps=[0, 1, 2, 3], count=4)
    forged._count = 1  # what a careless hand may do: answers are counted, not this
    with account.open(STREAMS["count"]) as run:
        with pytest.raises(errors.SourceUnavailable, match="4 steps were given"):
            run.step(forged)
        assert run.step(chunk).value.shape == (3,)
        with pytest.raises(errors.HorizonExceeded):
            run.step(chunk)
    forged = Batches.at([1] * 3, steps=[0, 1, 2], count=3)
    forged._count = 1
    with streams.serve(account, STREAMS["count"], name="s", state=tmp_path / "s") as service:
        assert len(service.steps(forged).value) == 3
        assert (service.taken, service.remaining) == (3, 0)

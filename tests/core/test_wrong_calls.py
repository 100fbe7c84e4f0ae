"""A call that does not fit its function is answered with what to write, and nothing of it runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
from collections.abc import Callable
from typing import NoReturn

import pytest

import mosha
from mosha import graphs, local, models, streams, tables
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.showing import Shown
from mosha.errors import InvalidParameter, MoshaError, WrongCall

PARTS = ("mosha", *(f"mosha.{part}" for part in ("tables", "streams", "graphs", "local", "synth", "models")))

RESULTS = {
    "Aggregate", "Average", "Band", "Bandit", "Batches", "Run", "Service", "Batch",
    "BinCounts", "Budget", "CategoryCounts", "Choice", "ClusterSums",
    "Comparison", "Database", "DatabaseDeclaration", "Declaration", "Density", "DeviceRandom", "Epochs",
    "Estimate", "GroupCells", "Hitters", "Instant", "Interval", "LeafCounts", "Location", "Marginals",
    "Measurement", "Member", "MomentSums", "Moments", "Neighbors", "NoisyAdjacency", "Ranges", "Receipt",
    "Release", "Report", "ResidualSums", "Running", "Shares", "Stream", "SurvivalCurve", "SurvivalDescent",
    "Synthetic", "TestResult", "Unit", "compare", "keep_private_log", "set_language", "shuffled_event",
}  # fmt: skip
"""What people are given and do not make, what rows pass through, what has a proof of its own or only an old name."""

PATIENT = mosha.Person("patient", at_most=3)


def _public_calls() -> list[Callable[..., object]]:
    found = {}
    for part in PARTS:
        module = importlib.import_module(part)
        for name in set(module.__all__).difference(RESULTS):
            one = getattr(module, name)
            fails = inspect.isclass(one) and (issubclass(one, BaseException | Warning) or inspect.isabstract(one))
            if (inspect.isfunction(one) or inspect.isclass(one)) and not fails:
                found[f"{one.__module__}.{name}"] = one
    return [found[name] for name in sorted(found)]


def test_every_public_call_answers_an_argument_that_nobody_knows_with_a_sentence() -> None:
    calls, bare = _public_calls(), []
    for call in calls:
        try:
            call(no_such_argument=1)
        except MoshaError:
            continue
        except TypeError:
            bare.append(call.__qualname__)
    assert not bare
    assert len(calls) > 80


def _table() -> mosha.tables.Table:
    account = mosha.Ledger.memory().account("visits", unit=PATIENT, epsilon=1)
    return mosha.protect({"patient": [1, 2], "days": [3, 4]}, unit=PATIENT, account=account)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: _table().count().release(0.1), "release takes its arguments by name: write release(epsilon=...)."),  # type: ignore[call-arg]
        (lambda: _table().count().release(eps=0.1), "release has no argument eps: write epsilon=... instead."),  # type: ignore[call-arg]
        (lambda: _table().sum(), "sum also needs column: write sum(column)."),  # type: ignore[call-arg]
        (
            lambda: _table().agg("count"),
            "every number of agg has a name and says what it is: agg(visits=mosha.tables.count()",
        ),
        (
            lambda: mosha.query("SELECT 1", _table()),  # type: ignore[arg-type, call-arg]
            "query takes 1 argument(s) in order and all others by name: write query(sql, name=...).",
        ),
        (lambda: _table().rename("a", "b"), "rename was given too many arguments: write rename(names)."),  # type: ignore[arg-type, call-arg]
        (
            lambda: _table().mean("days", column="days"),  # type: ignore[misc]
            "mean was given column twice, by its place and by its name: leave",
        ),
        (
            lambda: mosha.protect({}, PATIENT),  # type: ignore[call-overload]
            "protect takes 1 argument(s) in order and all others by name: write protect(source, unit=...).",
        ),
        (
            lambda: mosha.protect({}, unit=PATIENT, acount=1),
            "protect has no argument acount: write account=... instead.",
        ),
        (lambda: mosha.Person("patient", atmost=3), "Person has no argument atmost: write at_most=... instead."),  # type: ignore[call-arg]
        (lambda: mosha.Ledger.memory().account("a", PATIENT, 1), "write account(name, unit=..., epsilon=...)."),  # type: ignore[call-arg]
        (lambda: streams.counter(10, 1), "counter takes its arguments by name: write counter(unit=..., horizon=...)."),  # type: ignore[arg-type, call-arg]
        (
            lambda: streams.counter(unit=mosha.Reading()),  # type: ignore[call-arg]
            "counter also needs horizon: write counter(unit=..., horizon=...).",
        ),
        (lambda: graphs.Graph([(0, 1)]), "Graph also needs ends: write Graph(starts, ends)."),  # type: ignore[arg-type, call-arg]
        (lambda: local.Frequency(["a", "b"]), "Frequency also needs epsilon: write Frequency(values, epsilon=...)."),  # type: ignore[call-arg]
        (lambda: local.Frequency(["a", "b"], epsilon=1).report(), "report also needs value: write report(value)."),  # type: ignore[call-arg]
        (lambda: models.Ridge(eps=1), "Ridge has no argument eps: write epsilon=... instead."),  # type: ignore[call-arg]
        (lambda: _table().synthesize(row=3), "synthesize has no argument row: write rows=... instead."),
    ],
)
def test_a_wrong_call_is_told_how_to_write_it(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(WrongCall) as caught:
        call()
    assert sentence in str(caught.value)
    assert caught.value.spent == "nothing"
    assert isinstance(caught.value, TypeError | InvalidParameter)
    assert caught.value.render("zh") != str(caught.value)


def test_no_value_of_an_argument_is_told() -> None:
    with pytest.raises(WrongCall) as caught:
        _table().count().release("a secret", key="another secret")  # type: ignore[arg-type, call-arg]
    assert "secret" not in f"{caught.value}{caught.value.to_dict()}"


def test_a_term_that_no_account_has_is_answered_with_those_it_has() -> None:
    account = mosha.Ledger.memory().account("a", unit=PATIENT, epsilon=1)
    with pytest.raises(InvalidParameter, match=r"no term 'eps'\. Its terms are: epsilon, delta, rho") as caught:
        account.child("b", eps=1)  # type: ignore[call-arg]
    assert caught.value.spent == "nothing"


def test_a_type_error_of_the_function_itself_passes_as_it_is() -> None:
    @explain_wrong_calls
    def add(number: int) -> int:
        return number + "one"  # type: ignore[operator]

    with pytest.raises(TypeError) as caught:
        add(1)
    assert not isinstance(caught.value, MoshaError)


def test_an_explained_function_is_itself_in_all_other_ways() -> None:
    assert pickle.loads(pickle.dumps(tables.mean)) is tables.mean
    assert list(inspect.signature(tables.mean).parameters) == ["column", "between"]
    examples = doctest.DocTestFinder().find(importlib.import_module(tables.mean.__module__))
    assert any(found.name.endswith(".mean") and found.examples for found in examples)


def test_an_answer_has_its_columns_in_brackets() -> None:
    answer = _table().count().release(epsilon=0.5)
    assert answer["count"] == answer.table["count"]
    with pytest.raises(InvalidParameter, match=r"no column 'n'\. The columns are: count"):
        answer["n"]


class Card(Shown):
    @property
    def broken(self) -> NoReturn:
        raise AttributeError("from inside")

    def release(self) -> int:
        return 1


def test_a_name_that_is_not_there_is_answered_with_the_right_one() -> None:
    said = {}
    for name in ("relase", "execute", "wholly_other", "broken", "_private"):
        with pytest.raises(AttributeError) as caught:
            getattr(Card(), name)
        said[name] = str(caught.value)
    assert said["relase"] == said["execute"].replace("execute", "relase") == "Card has no relase: did you mean release?"
    assert said["wholly_other"] == "Card has no wholly_other. It has broken, make_card and release."
    assert said["broken"] == "from inside"
    assert "_private" in said["_private"]
    assert not hasattr(Card(), "relase")


def test_a_package_names_what_was_meant() -> None:
    with pytest.raises(AttributeError, match="mosha has no Persn: did you mean Person"):
        _ = mosha.Persn

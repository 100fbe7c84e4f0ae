"""Laws of errors: one tree, each found by programs and read by people, each survives the way between processes."""

import copy
import inspect
import json
import pickle
from typing import Any

import pytest

import mosha
from mosha.core import errors
from mosha.errors import MoshaError
from tests.core.every_word import every_error

ERRORS = every_error()


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    drawn = {line.split("── ")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line}
    defined = {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.MoshaError) and kind is not errors.MoshaError
    }
    assert drawn == defined == set(errors.__all__) - {"MoshaError"}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_a_sentence_for_people_and_json_for_programs(error: Any) -> None:
    assert isinstance(error, errors.MoshaError)
    described = json.loads(json.dumps(error.to_dict()))
    assert described["error"] == type(error).__name__
    assert described["message"] == str(error)
    assert str(error).endswith(".")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_from_another_process_as_it_was(error: Any) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert twin.to_dict() == error.to_dict()


def test_a_wrong_argument_is_also_a_value_error_and_a_missing_extra_an_import_error() -> None:
    assert issubclass(errors.InvalidParameter, ValueError)
    assert issubclass(errors.MissingExtra, ImportError)


def test_a_refusal_says_asked_spent_and_limit_and_that_nothing_was_spent() -> None:
    refusal = errors.BudgetExceeded(account="visits", measure="epsilon", asked=1.0, used=0.5, limit=1.2)
    assert str(refusal) == (
        "account 'visits' cannot pay: this release would bring epsilon to 1.5 of 1.2 (0.5 is spent). "
        "No data was read. Nothing was spent."
    )
    assert (refusal.asked, refusal.used, refusal.limit) == (1.0, 0.5, 1.2)


def test_what_others_hang_on_an_error_is_not_told() -> None:
    error = errors.DataError("what went wrong.")
    error._hung_on = "by another program"  # type: ignore[attr-defined]
    error.add_note("and a note")
    assert error.to_dict() == {"error": "DataError", "code": "data_error", "message": "what went wrong."}


def test_a_notebook_shows_the_lines_of_the_reader_and_the_sentence_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MoshaError) as caught:
        mosha.Person("who", at_most=-1)
    shown = "\n".join(caught.value._render_traceback_())
    assert 'mosha.Person("who", at_most=-1)' in shown
    assert "self." not in shown
    assert shown.endswith(str(caught.value))
    monkeypatch.setenv("MOSHA_TRACEBACK", "1")
    assert "Traceback" in "\n".join(caught.value._render_traceback_())

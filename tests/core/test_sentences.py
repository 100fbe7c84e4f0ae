"""Laws of sentences: every code has its words in both languages, with the same fields, and every raise names them."""

import ast
import json
import pickle
import re
import string
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import mosha
from mosha.core import language
from mosha.core.errors import InvalidParameter, MissingExtra, StepFailed
from mosha.core.language import LANGUAGES, Phrase, is_code, phrase, say, templates
from mosha.core.names.calls import renamed_argument
from mosha.core.names.extras import load_guest
from mosha.core.options import choose

SOURCE = Path(mosha.__file__).parent
FOLDERS = sorted(file.stem for file in (SOURCE / "sentences").glob("*.toml"))
RESERVED = {"parameter", "account", "spent"}


def find_fault(name: Any, entry: Any) -> str | None:
    """What is wrong with a sentence; None for a good one."""
    if set(entry) != set(LANGUAGES):
        return "a language is missing, or there is one too many"
    if fields_of(entry["en"]) != fields_of(entry["zh"]):
        return "the languages have different fields"
    words = "".join(text for text, *_ in string.Formatter().parse(entry["en"]))
    wordless = not any(letter.isalpha() for letter in words)  # fields alone, which have words of their own
    if not (name == "unit" or wordless or any("\u4e00" <= letter <= "\u9fff" for letter in entry["zh"])):
        return "the Chinese sentence is not Chinese"
    if "Nothing was spent" in entry["en"] and name != "closing_nothing":
        return "what was spent is a field, not a sentence"
    return None


def fields_of(template: Any) -> set[Any]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def calls_with_codes() -> Iterator[tuple[Any, str, str, ast.Call]]:
    """Each call whose first argument is a literal code: its file, the name of what is called, the code."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                code: Any = node.args[0].value
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                is_said = name[:1].isupper() or name in {"say", "phrase", "make_note"}
                if is_code(code) and code.split(".")[0] in FOLDERS and is_said:
                    yield file.relative_to(SOURCE), name, code, node


def raised_codes() -> Iterator[tuple[Any, ...]]:
    """The names of the keywords of each such call, or None for `**`."""
    for file, name, code, node in calls_with_codes():
        named = [keyword.arg for keyword in node.keywords]
        yield file, name, code, None if None in named else set(named)


def find_english(value: ast.expr) -> list[str]:
    """English words next to each other in a field that is written out; options of a command are no words."""
    texts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return [text for text in texts if re.search(r"(?<![-\w])[A-Za-z]{2,} [a-z]{2,}", text)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sentence_stands_in_every_language_with_the_same_fields(folder: Any) -> None:
    faults = {name: find_fault(name, entry) for name, entry in templates(folder).items()}
    assert {name: fault for name, fault in faults.items() if fault} == {}


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("a", {"en": "Yes."}),
        ("a", {"en": "{n} rows.", "zh": "{m} 行。"}),
        ("a", {"en": "Yes.", "zh": "Yes."}),
        ("a", {"en": "No. Nothing was spent.", "zh": "否。"}),
    ],
)
def test_a_sentence_with_a_fault_is_found(name: str, entry: Any) -> None:
    assert find_fault(name, entry)
    assert find_fault("a", {"en": "{n} rows.", "zh": "{n} 行。"}) is None


def test_every_code_that_is_raised_has_a_sentence_whose_fields_are_given() -> None:
    found = list(raised_codes())
    assert len(found) > 40
    problems = []
    for file, kind, code, given in found:
        folder, name = code.split(".")
        entry = templates(folder).get(name)
        if entry is None:
            problems.append(f"{file}: {code} has no sentence")
        elif given is not None and kind not in {"BudgetExceeded", "MissingExtra", "AccountFrozen", "AccountExpired"}:
            missing = fields_of(entry["en"]) - given
            if missing and not (kind == "LedgerKeyRefused" and missing <= {"needed", "given"}):
                problems.append(f"{file}: {code} needs {missing}")
            unused = given - fields_of(entry["en"]) - RESERVED - {"nearest", "language"}
            if unused and kind in {"say", "phrase", "make_note"}:
                problems.append(f"{file}: {code} is given {unused}")
    assert not problems, "\n".join(problems)


def find_unsaid(names: Iterable[str], source: str) -> list[str]:
    """The names that stand nowhere in the source, and do not begin with a part before which a name is put together."""
    words = set(re.findall(r"\w+", source))
    begun = re.findall(r"""(?:\b[a-z]+\.|["'`])([a-z]\w*)(?:\{|["'] ~|\$\{)""", source)
    parts = tuple({part.rstrip("_") + "_" for part in begun})
    return [name for name in names if name not in words and not name.startswith(parts)]


def test_no_sentence_is_left_that_nobody_says() -> None:
    files = [file for file in SOURCE.rglob("*") if file.suffix in {".py", ".html", ".js"}]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    unsaid = {folder: find_unsaid(templates(folder), source) for folder in FOLDERS if folder != "help"}
    assert {folder: names for folder, names in unsaid.items() if names} == {}
    planted = 'say("core.one"); say(f"core.head_{name}"); {{ t("state_" ~ state) }}; f"s{n}"'
    assert find_unsaid(["one", "head_price", "state_open", "stated", "two"], planted) == ["stated", "two"]


def test_no_field_of_a_sentence_is_written_in_english() -> None:
    """It would stand so in the Chinese sentence: what has words of its own is a phrase. Types tell the rest."""
    found = {
        f"{file}: {code}": words
        for file, _, code, node in calls_with_codes()
        for keyword in node.keywords
        if not isinstance(keyword.value, ast.Call) and (words := find_english(keyword.value))
    }
    assert not found
    planted = ast.parse("f'{name} or so' if a else 'the server'", mode="eval").body
    assert sorted(find_english(planted)) == [" or so", "the server"]
    hints = [get_type_hints(called)["needed_for"] for called in (MissingExtra.__init__, load_guest)]
    assert hints == [Phrase, Phrase]


def test_a_sentence_follows_the_language_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    error = InvalidParameter("core.not_positive", parameter="epsilon", value=-1.0, spent="nothing")
    assert str(error) == "epsilon must be above zero, not -1. Nothing was spent."
    monkeypatch.setenv("MOSHA_LANG", "zh_CN.UTF-8")
    assert str(error) == error.render("zh") == "epsilon 必须大于零，不能是 -1。没有花费任何预算。"  # noqa: RUF001
    mosha.set_language("en")
    try:
        assert str(error) == error.render("en")
    finally:
        mosha.set_language(None)


def test_a_phrase_in_a_sentence_follows_its_language_and_survives_other_processes() -> None:
    unit = mosha.Person("pid").phrase()
    assert unit == "one person (all rows of one 'pid') is added or removed"
    error = InvalidParameter("core.price_for_other_neighbors", measurement="m", unit=unit)
    assert "一个人" in error.render("zh")
    twin = pickle.loads(pickle.dumps(error))
    assert twin.render("zh") == error.render("zh")
    assert json.loads(json.dumps(error.to_dict()))["unit"] == unit


def test_what_was_spent_closes_the_sentence_and_can_change() -> None:
    error = StepFailed("core.step_failed", step=1, measurement="count")
    assert "paid" not in str(error)
    error.spent = "paid"
    assert str(error).endswith("The price of this step stays paid.")
    assert error.to_dict()["spent"] == "paid"


def test_a_sentence_that_is_missing_or_lacks_a_field_is_its_code_and_no_error() -> None:
    assert say("core.no_such_sentence", x=1) == "core.no_such_sentence: x=1"
    assert say("core.not_positive", parameter="epsilon").startswith("core.not_positive")
    assert say("core.own_price", kind="{parameter.__class__}", budget=["a"]).startswith("this {parameter.__class__}")


def test_lists_are_joined_as_each_language_does() -> None:
    assert say("core.unknown_option", "en", parameter="x", options=["a", "b", "c"]) == "x must be a, b or c."
    assert say("core.unknown_option", "zh", parameter="x", options=["a", "b", "c"]) == "x 只能是 a、b 或 c。"
    assert say("core.unknown_option", "en", parameter="x", options=["a"]) == "x must be a."


def test_an_argument_that_was_renamed_is_taken_by_both_names_and_not_by_both_at_once() -> None:
    @renamed_argument(n="population")
    def count(*, population: Any) -> Any:
        return population

    with pytest.warns(DeprecationWarning, match="'population'"):
        assert count(n=3) == 3  # type: ignore[call-arg]
    with pytest.raises(InvalidParameter) as refusal:
        count(n=3, population=3)  # type: ignore[call-arg]
    assert refusal.value.code == "core.both_names"


def test_an_option_is_one_of_its_words_or_an_old_spelling() -> None:
    assert choose("sampling", "poisson", ["poisson", "fixed_size"]) == "poisson"
    with pytest.warns(DeprecationWarning, match="fixed_size"):
        assert (
            choose("sampling", "fixed size", ["poisson", "fixed_size"], renamed={"fixed size": "fixed_size"})
            == "fixed_size"
        )
    with pytest.raises(InvalidParameter) as refusal:
        choose("sampling", "all", ["poisson", "fixed_size"])
    assert str(refusal.value) == "sampling must be 'poisson' or 'fixed_size'."


def test_templates_name_fields_and_nothing_inside_of_them() -> None:
    assert phrase("core.closing_nothing") == "Nothing was spent."
    assert language.read_language("") == "en"

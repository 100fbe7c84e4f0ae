"""Laws of the console: every word in both languages, nothing inline, nothing from elsewhere, names are harmless."""

import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mosha.core.language import templates
from mosha.server.pages import builder
from mosha.server.pages.glossary import WORDS, find_words
from mosha.server.pages.numbers import percent, write_above, write_at_least, write_at_most, write_column
from mosha.server.pages.site import FOLDER
from tests.server.house import opened

SENTENCES = templates("console")
SOURCES = [*FOLDER.glob("templates/*.html"), *FOLDER.glob("*.py")]
TEXTS = {file.name: file.read_text(encoding="utf-8") for file in SOURCES}


def used_codes() -> Iterator[tuple[Any, ...]]:
    """Each code that a page says: written out, or by a beginning to which a word is added."""
    for name, text in TEXTS.items():
        for code in re.findall(r"""\b(?:t|say|sentence)\(\s*["']([a-z0-9_]+)["']\s*[,)]""", text):
            yield name, code


def test_every_word_of_a_page_has_a_sentence() -> None:
    missing = [(name, code) for name, code in used_codes() if code not in SENTENCES]
    assert not missing
    assert len(set(used_codes())) > 80


def test_every_sentence_is_used() -> None:
    everything = "\n".join(TEXTS.values())
    beginnings = tuple(re.findall(r"""["']([a-z_]+_)["'] ~""", everything))
    unused = [
        code
        for code in SENTENCES
        if not re.search(rf"""["']{code}["']""", everything) and not code.startswith(beginnings)
    ]
    assert not unused


def test_a_page_gives_a_sentence_the_fields_that_it_needs() -> None:
    for name, text in TEXTS.items():
        for found in re.finditer(r"""\bt\(\s*["']([a-z0-9_]+)["']\s*([,)])""", text):
            needed = {field for _, field, _, _ in string.Formatter().parse(SENTENCES[found[1]]["en"]) if field}
            rest = text[found.end() : found.end() + 300] if found[2] == "," else ""
            assert needed <= set(re.findall(r"(\w+)=", rest)), (name, found[1])


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    for name, text in TEXTS.items():
        if name.endswith(".html"):
            assert not re.search(r"""\s(style|on[a-z]+)\s*=\s*["']""", text), name
            assert not re.search(r"<script(?![^>]*\ssrc=)", text), name
            assert "<style" not in text, name
            assert "//" not in re.sub(r"\{#.*?#\}", "", text), name
            assert "|safe" not in text, name
    assert "http" not in (FOLDER / "static" / "mosha.css").read_text()


def test_the_script_is_small() -> None:
    assert len((FOLDER / "static" / "swap.js").read_bytes()) <= 2048


PROMISES = r"(?:epsilon|delta|rho|slack|cost|spent|limit|amount|factor|highest|left|room)"


def test_a_promise_is_never_said_smaller_than_it_is_and_a_rest_never_larger() -> None:
    """Whatever is named as a promise passes one of the three ways to write it that know which way to round."""
    for name, text in TEXTS.items():
        assert not re.findall(rf"\b{PROMISES}(?:[\"', 0)]*)\|plain", text), name
    for power in range(-90, 60):
        for turn in range(1, 40):
            value = 10.0 ** (power / 10) * (1 + turn / 40 + 1e-5 * turn)
            for write, sign in ((write_at_most, 1), (write_at_least, -1), (write_above, 1)):
                assert sign * read(write(value)) >= sign * value * (1 - sign * 1e-8), (write, value)
            share = value / 2e6
            assert read(percent(share).rstrip("%")) >= share * 100 * (1 - 1e-8)
            assert read(write_column([value, 1.0], True)[0]) >= value * (1 - 1e-8)


def read(text: str) -> float:
    """A number as a person reads it."""
    digits, _, power = text.replace(",", "").partition("\N{MULTIPLICATION SIGN}10")
    if digits.startswith("10") and digits[-1] in RAISED:
        digits, power = "1", digits[2:]
    return float(digits) * 10.0 ** int("".join(RAISED[one] for one in power) or 0)


RAISED = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
COLUMNS = [
    {"name": "pid", "type": "integer", "unit": True},
    {"name": "ward", "type": "text", "keys": ["a", "b"]},
    {"name": "days", "type": "integer", "between": [0, 30]},
]


@pytest.mark.parametrize(
    "built",
    [
        builder.Built("average", "days", ("ward",)),
        builder.Built("count", "", (), (("ward", "is", "a"), ("days", "at_least", "3"))),
        builder.Built("people", "", ("ward",)),
        builder.Built("median", "days", (), (("days", "below", "9"),)),
    ],
)
def test_the_form_reads_back_the_sql_that_it_writes(built: Any) -> None:
    assert builder.read_back(builder.build_sql("visits", built, COLUMNS), COLUMNS) == built  # type: ignore[arg-type]


def test_a_value_in_the_form_cannot_become_sql() -> None:
    built = builder.Built("count", "", (), (("note", "is", "x' OR 1=1 --"),))
    assert "'x'' OR 1=1 --'" in builder.build_sql("visits", built, [*COLUMNS, {"name": "note", "type": "text"}])  # type: ignore[list-item]
    with pytest.raises(Exception, match="ward"):
        builder.build_sql("visits", builder.Built("count", "", (), (("ward", "is", "x' OR 1=1 --"),)), COLUMNS)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="days"):
        builder.build_sql("visits", builder.Built("count", "", (), (("days", "is", "1 OR 1=1"),)), COLUMNS)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def own_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("console")) as found:
        yield found


@contextmanager
def visitor(house: Any, name: Any = None, language: str = "en") -> Iterator[Any]:
    with httpx.Client(base_url=house.client.base_url, follow_redirects=True, timeout=60) as client:
        client.cookies.set("mosha-language", language)
        if name:
            assert client.post("/demo", data={"person": name}).status_code == 200
        yield client


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_field_is_spelled_as_the_glossary_spells_it_and_has_a_meaning(word: Any) -> None:
    for language in ("en", "zh"):
        name = SENTENCES[f"word_{word}"][language]
        assert re.search(WORDS[word], name, re.IGNORECASE), name
        assert len(SENTENCES[f"word_{word}_means"][language]) > 15


def test_words_are_found_in_what_a_reader_sees_and_nowhere_else() -> None:
    assert find_words("<nav>noise</nav><main title='delta'><p>the budget<br>of ε</p></main><p>ledger</p>") == [
        "epsilon",
        "budget",
    ]


PLACES = {
    None: ["/", "/enter?link=x", "/explore", "/public", "/words"],
    "li": ["/", "/datasets", "/datasets/visits", "/ask/visits", "/ask/visits/table", "/requests", "/agents"],
    "wang": ["/", "/datasets", "/datasets/visits", "/register", "/surveys", "/people"],
    "zhao": ["/", "/review", "/audit"],
    "sun": ["/", "/audit"],
}
EVERY_PLACE = [(who, path) for who, paths in PLACES.items() for path in paths]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("who", "path"), EVERY_PLACE)
def test_every_page_opens_in_both_languages(own_house: Any, who: Any, path: Any, language: str) -> None:
    with visitor(own_house, who, language) as client:
        reply = client.get(path)
    assert reply.status_code == 200, reply.text
    assert f'<html lang="{"zh-CN" if language == "zh" else "en"}"' in reply.text
    assert "console." not in reply.text
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    targets = set(re.findall(r'popovertarget="([^"]+)"', reply.text))
    assert targets <= set(re.findall(r'<div popover id="([^"]+)"', reply.text))
    page = re.sub(r'<aside class="words".*?</aside>', "", reply.text, flags=re.DOTALL)
    assert path == "/words" or {f"word-{word}" for word in find_words(page)} == targets


def test_a_change_without_its_token_is_refused(own_house: Any) -> None:
    with visitor(own_house, "li") as client:
        data = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.01"}
        assert client.post("/ask/visits", data=data).status_code == 403
        assert client.post("/language", data={"language": "zh", "back": "//elsewhere.example"}).status_code == 403


def test_a_language_never_leads_elsewhere(own_house: Any) -> None:
    with visitor(own_house) as client:
        for back in ("//elsewhere.example/", "https://elsewhere.example/", "/\\elsewhere.example"):
            reply = client.post("/language", data={"language": "zh", "back": back}, follow_redirects=False)
            assert reply.headers["location"] == "/"


def test_names_with_markup_are_shown_as_they_are(own_house: Any) -> None:
    with visitor(own_house, "li") as client:
        reply = client.get("/ask/visits", params={"mode": "sql", "sql": "<img src=x onerror=alert(1)>"})
        assert "<img" not in reply.text
        assert "&lt;img src=x" in reply.text


def test_what_was_typed_is_kept_when_it_is_refused(own_house: Any) -> None:
    with visitor(own_house, "li", "zh") as client:
        reply = client.get("/ask/visits", params={"mode": "sql", "sql": "SELECT * FROM visits", "epsilon": "0.07"})
    assert "SELECT * FROM visits" in reply.text
    assert 'value="0.07"' in reply.text
    assert "没有花费任何预算" in reply.text
    assert "请改问聚合" in reply.text
    assert "would show" not in reply.text


def test_the_first_page_is_light(own_house: Any) -> None:
    with visitor(own_house) as client:
        client.headers["Accept-Encoding"] = "identity"
        size = sum(len(client.get(path).content) for path in ("/", "/static/mosha.css", "/static/swap.js"))
    assert size < 60_000


def test_whoever_looks_as_the_privacy_officer_finds_a_question_that_waits(own_house: Any) -> None:
    with visitor(own_house, "zhao") as client:
        assert "next year" in client.get("/review").text
    with visitor(own_house, "zhao") as client:
        assert client.get("/review").text.count("next year") == 1


def test_the_doors_of_the_demo_are_shut_elsewhere(tmp_path: Path) -> None:
    with opened(tmp_path, demo=False) as house:
        reply = house.client.post("/demo", data={"person": "li"})
        assert reply.status_code == 404
        assert "Enter as" not in house.client.get("/").text

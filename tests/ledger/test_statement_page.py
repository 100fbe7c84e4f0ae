"""The statement as a page: whole in itself, the same facts in both languages, and no name in it can run anything."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mosha
from mosha import errors, events
from mosha.cli import main
from mosha.core.language import say, translate
from mosha.ledger.paying.payment import VOID
from mosha.ledger.publishing.statement import _state
from mosha.ledger.publishing.words import words_in
from mosha.ledger.terms.weakness import Weakness
from tests.browser import browser  # noqa: F401  (a fixture)
from tests.core.every_word import every_unit
from tests.ledger.place import asking

HAN = re.compile(r"[\u4e00-\u9fff]")
HOSTILE = "<img src=x onerror=document.title='stolen'>"
LANGUAGES = ["en", "zh"]


class Reader(HTMLParser):
    """Collects the tags, the attributes and the text of a page; a tag that is not closed in its place is an error."""

    def __init__(self, page: Any) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], set(), [], ""  # type: ignore[var-annotated]
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: Any, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: Any) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: Any) -> None:
        self.text += "" if self.open and self.open[-1] == "style" else data + "\n"


@pytest.fixture
def ledger() -> Any:
    ledger = mosha.Ledger.memory()
    ledger.population("patients", epsilon=4, delta=1e-6, size=120_000)
    unit = mosha.Person("pid", of="patients")
    visits = ledger.account("visits", unit=unit, epsilon=3, delta=1e-6)
    zhang = visits.grant("zhang", epsilon=1, delta=1e-7, expires="2999-12-31", purpose=HOSTILE)
    for _ in range(5):
        zhang.open(asking(events.Laplace(40), unit=unit, name="mean stay")).step(None)
    with visits.open(asking(events.Gaussian(80) * 5, unit=unit, horizon=5, name=HOSTILE)) as run:
        run.step(None)
    return ledger


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_says_what_the_statement_says(ledger: Any, lang: Any) -> None:
    statement = ledger.statement("visits")
    page = Reader(statement.to_html(lang))
    for part in ("visits/zhang", "3000-01-01", "mean stay", "120,000", str(statement.head), "16.9%", "20.1", "1e-6"):
        assert part in page.text, part
    assert page.text.count("mean stay") == 1  # five releases, one line
    assert f"mosha ledger verify BOOK --head {statement.head}" in page.text
    assert bool(HAN.search(page.text)) == (lang == "zh")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_needs_nothing_from_outside_and_runs_nothing(ledger: Any, lang: Any) -> None:
    text = ledger.statement("visits").to_html(lang)
    page = Reader(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form", "a", "svg", "base"}
    assert not [name for name, _ in page.attributes if name in {"src", "href", "srcset"} or name.startswith("on")]
    for forbidden in ("http:", "https:", "url(", "@import"):
        assert forbidden not in text
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'") in (
        page.attributes
    )
    assert HOSTILE in page.text  # as text, escaped


def test_a_browser_shows_the_page_and_runs_nothing_in_it(ledger: Any, tmp_path: Path, browser: Any) -> None:  # noqa: F811
    file = tmp_path / "statement.html"
    file.write_text(ledger.statement("visits").to_html("zh"), encoding="utf-8")
    shown = browser("--dump-dom", file.as_uri())
    assert "<title>隐私声明" in shown
    assert "<img" not in shown
    browser(f"--screenshot={tmp_path / 'page.png'}", "--window-size=420,1200", file.as_uri())
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    "limits", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}, {"mu": 1}, {"epsilon": 800}]
)
def test_every_promise_has_its_page(lang: Any, limits: Any) -> None:
    ledger = mosha.Ledger.memory()
    ledger.account("visits", unit=mosha.Row(), disjoint_blocks=True, **limits).retire()
    page = Reader(ledger.statement("visits").to_html(lang)).text
    assert "nan" not in page
    assert words_in(lang)["none"] in page
    assert words_in(lang)["disjoint"] in page


@pytest.mark.parametrize("unit", every_unit(), ids=repr)
def test_every_unit_is_described_in_chinese(unit: Any) -> None:
    said = words_in("zh").describe_hidden(unit)
    assert HAN.search(said)
    assert "one " not in said
    assert unit.of is None or unit.of in said


def test_every_state_has_its_words_in_chinese() -> None:
    steps = [SimpleNamespace(kind="pay", closed=0, horizon=5, released=2, failed=failed) for failed in (0, 1)]
    single = [
        SimpleNamespace(kind="pay", closed=0, horizon=1, released=r, failed=f) for r, f in ((1, 0), (0, 1), (0, 0))
    ]
    leases = [SimpleNamespace(kind="lease", closed=closed) for closed in (0, 1, VOID)]
    found = [_state(bought) for bought in (*single, *leases, *steps)]  # type: ignore[arg-type]
    assert found == [
        *["released", "failed", "reserved", "lease, not settled", "settled", "handed back"],
        *["2 of 5 steps released", "2 of 5 steps released, 1 failed"],
    ]
    for state in found:
        assert HAN.search(translate(state, "zh")), state
    for name in ("open", "retired", "granted"):
        assert HAN.search(say(f"ledger.state_{name}", "zh", until="2027-04-01 00:00:00 UTC"))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("code", ["large-epsilon", "large-delta", "delta-for-size", "policy"])
def test_every_warning_is_said(lang: Any, code: str) -> None:
    said = Weakness(code, epsilon=12.5, delta=0.01, size=1000, detail="too large").render(lang)
    assert bool(HAN.search(said)) == (lang == "zh")
    assert {"large-epsilon": "12.5", "large-delta": "0.01", "delta-for-size": "1,000", "policy": "too large"}[
        code
    ] in said


def test_a_statement_is_written_in_two_languages() -> None:
    with pytest.raises(errors.InvalidParameter, match="Chinese"):
        words_in("fr")


def test_the_page_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book, out = str(tmp_path / "privacy.db"), tmp_path / "page.html"
    with mosha.Ledger(book) as ledger:
        ledger.account("visits", unit=mosha.Row(), epsilon=1)
    page = ("ledger", "statement", book, "visits", "--html")
    assert main([*page, "--lang", "zh", "--out", str(out)]) == 0
    assert 'lang="zh-Hans"' in out.read_text(encoding="utf-8")
    assert main([*page]) == 0
    assert '<html lang="en">' in capsys.readouterr().out
    assert main([*page, "--lang", "fr"]) == 1
    assert main([*page, "--json"]) == 1

"""The report as a person meets it: in a real browser."""

import re
import struct
from pathlib import Path
from typing import Any

import pytest

from mosha import Row, guarantees, mechanisms
from mosha.audit import attack, audit_accountant
from mosha.audit.reporting.verdict import verdict_page
from mosha.core import events
from tests.browser import browser  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    kept = attack(mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=1), neighbors=([], [1]), runs=400)
    leak = attack(len, neighbors=([], [1]), claim=guarantees.Pure(1), runs=400, name="<a leak>")
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(verdict_page([kept, leak]), encoding="utf-8")
    return path


def test_the_browser_shows_verdicts_and_pictures(browser: Any, report: Any) -> None:  # noqa: F811
    shown = browser("--dump-dom", report.as_uri())
    assert "Audit of 2 mechanisms" in shown
    assert shown.count("<svg") == 2
    assert "&lt;a leak&gt;" in shown
    assert 'class="outcome broken"' in shown


def test_the_page_loads_nothing_from_anywhere(report: Any) -> None:
    assert re.findall(r"""(?:src|href)\s*=|url\(|@import|<script""", report.read_text("utf-8")) == []


def test_the_page_has_something_to_see(browser: Any, report: Any, tmp_path: Path) -> None:  # noqa: F811
    picture = tmp_path / "report.png"
    browser(f"--screenshot={picture}", report.as_uri())
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1000, 1400)
    assert len(data) > 20_000  # an empty page of this size has less than 10,000 bytes


def test_other_findings_are_pages_too(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "accounting.html"
    audit_accountant(prices_of=[events.Gaussian(1.0)], runs=1_000).save(path)
    assert "1 events" in browser("--dump-dom", path.as_uri())

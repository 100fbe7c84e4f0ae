"""Reports: text, JSON and one page that needs nothing from anywhere."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosha.audit import anonymity, attack, audit_one_run, draw_inclusion
from mosha.audit.reporting.page import finding_page
from mosha.audit.reporting.picture import bars
from mosha.audit.reporting.verdict import verdict_page
from mosha.core.guarantee import Approx, Gaussian, Pure, ZeroConcentrated


def shout(data: Any, size: Any) -> Any:
    return [data] * size


@pytest.fixture(scope="module")
def broken() -> Any:
    return attack(shout, neighbors=("<b>&", '"it\'s"'), claim=Pure(1), runs=500, batch=True, name="<script>shout")


class Page(HTMLParser):
    """Checks that tags are closed in order and collects what a page would load."""

    def __init__(self, text: Any) -> None:
        super().__init__()
        self.open, self.loads, self.tags = [], [], []  # type: ignore[var-annotated]
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: Any, attributes: Any) -> None:
        self.tags.append(tag)
        self.loads += [value for name, value in attributes if name in {"src", "href", "xlink:href"}]
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: Any, attributes: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: Any) -> None:
        assert self.open.pop() == tag


def test_a_page_is_whole_escaped_and_self_contained(broken: Any) -> None:
    text = broken.to_html()
    page = Page(text)
    assert page.loads == []
    assert "script" not in page.tags
    assert "&lt;script&gt;shout" in text
    assert page.tags.count("svg") == 1
    assert "http" not in text


def test_many_verdicts_share_one_page(broken: Any) -> None:
    text = verdict_page([broken, broken])
    assert Page(text).tags.count("svg") == 2
    assert "Audit of 2 mechanisms" in text


@pytest.mark.parametrize("claim", [Pure(1), Approx(1, 1e-3), ZeroConcentrated(0.1), Gaussian(1), Pure(0)])
def test_every_claim_has_its_picture(claim: Any) -> None:
    verdict = attack(
        lambda d, n: np.random.default_rng().normal(d, 1, n), neighbors=(0, 1), claim=claim, runs=500, batch=True
    )
    assert 'class="claim"' in verdict.to_html()


def test_the_text_names_everything_a_reader_needs(broken: Any) -> None:
    text = str(broken)
    for part in ("BROKEN", "epsilon 1", "confidence 0.999", "500 runs", "event:", "<b>&"):
        assert part in text


def test_json_has_stable_keys_and_survives(broken: Any) -> None:
    plain = json.loads(broken.to_json())
    assert sorted(plain) == [
        "ceiling",
        "claim",
        "confidence",
        "curve",
        "lower",
        "mechanism",
        "neighbors",
        "outcome",
        "runs",
        "runs_needed",
        "witness",
    ]
    assert plain["outcome"] == "broken"
    assert plain["witness"]["count"] == plain["witness"]["trials"]


@pytest.mark.parametrize("suffix", [".html", ".json", ".txt"])
def test_a_report_is_saved_in_the_form_its_name_says(broken: Any, tmp_path: Path, suffix: str) -> None:
    place = tmp_path / f"report{suffix}"
    broken.save(place)
    starts = {".html": "<!doctype html>", ".json": "{", ".txt": "<script>shout: BROKEN"}
    assert place.read_text("utf-8").startswith(starts[suffix])


def test_any_finding_has_a_page() -> None:
    included = draw_inclusion(50)
    run = audit_one_run(included.astype(float), included, claim=Gaussian(0.1))
    assert "outcome" in finding_page(run)
    figures = anonymity({"zip": [1, 1], "illness": ["<i>", "<i>"]}, quasi=["zip"], sensitive="illness")
    Page(figures.to_html())


def test_bars_mark_what_is_over_its_limit() -> None:
    text = bars([("kept", 0.5, 1.0), ("broken", 2.0, 1.0)], unit="epsilon")
    Page(text)
    assert text.count('class="over"') == 1
    assert text.count('class="within"') == 1

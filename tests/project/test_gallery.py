"""The gallery: every page has its pictures and its script, and every script runs on small data."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.project.pages import ROOT, docs_pages

SCRIPTS = sorted(path for path in (ROOT / "examples/gallery").glob("*.py") if path.stem != "canvas")
PAGES = sorted(page for page in docs_pages() if page.parent.name == "gallery" and page.stem != "index")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that loads a script as Python does when it is run from its folder."""
    monkeypatch.syspath_prepend(str(ROOT / "examples/gallery"))
    return importlib.import_module


def check_genomics(found: Any) -> None:
    assert found["causes found in the open"] == 3  # in a small run each leads by eight deviations
    assert found["advantage of Homer's attacker, in the open"] > 0  # nine deviations
    assert 7 < found["one person moves a chi-square by"] < 8


def check_pathways(found: Any) -> None:
    assert found["right guesses, in the open"] == 1
    assert found["loops"] > 0


def check_social(found: Any) -> None:
    assert found["found again without names, depth 2"] > 0.5
    assert found["found again in a synthetic graph, depth 2"] < 0.2


def check_bandits(found: Any) -> None:
    assert 0 < found["regret, thompson, in the open"] < 400 * 0.3
    assert found["return of the policy, in the open"] > found["return of a random walker"]


def check_building(found: Any) -> None:
    assert found["measurement: error as published"] < found["input: error as published"]
    assert found["measurement: degrees from 21"] < 2


def check_federated(found: Any) -> None:
    assert found["encryption, bytes of one input"] > found["masks, bytes of one input"]
    assert 0.05 < found["accuracy, noise at the server"] <= 1
    assert found["accuracy, noise nowhere"] > 0.5  # of four kinds
    assert found["hospital found in one ciphertext, opened alone"] > 0.7  # about 0.95 of 100: below by chance 1e-15


def check_medical(found: Any) -> None:
    assert found["old, epsilon 1: largest error"] < 0.2


def check_location(found: Any) -> None:
    assert found["hiding one trip: relative error of all cells"] < found["hiding a person: relative error of all cells"]
    assert found["singled out by 4 points"] > found["singled out by 4 points, zones"]


def check_grid(found: Any) -> None:
    assert (
        found["hiding one reading: deviation of the noise, kW"]
        < found["hiding a household's day: deviation of the noise, kW"]
        < found["hiding a household, all days: deviation of the noise, kW"]
    )


def check_wearables(found: Any) -> None:
    assert found["paid after a month, remembered"] == 2
    assert found["answer guessed from 30 days, remembered"] < 0.92 < found["answer guessed from 30 days, fresh noise"]


def check_credit(found: Any) -> None:
    assert found["in the open: area"] > 0.6


def check_generative(found: Any) -> None:
    assert found["samples"]["in the open"].shape == (20, 49)
    assert set(found["samples"]["in the open"].ravel()) <= {0, 1, 2}


def check_citations(found: Any) -> None:
    assert found["paper guessed, single citations hidden"] > 0.9  # a hub moves dozens of rows
    assert found["citation guessed, in the open"] == 1
    assert found["words and citations, in the open"] > 0.2


def check_census(found: Any) -> None:
    assert found["epsilon 10: distance"] < found["distance without any dependence"]
    assert found["attack: the rows themselves"] > 0.2  # 600 candidates: chance moves it by 0.08


CHECKS = {
    "bandits": check_bandits,
    "building": check_building,
    "census": check_census,
    "citations": check_citations,
    "credit": check_credit,
    "federated": check_federated,
    "generative": check_generative,
    "genomics": check_genomics,
    "grid": check_grid,
    "location": check_location,
    "medical": check_medical,
    "pathways": check_pathways,
    "social": check_social,
    "wearables": check_wearables,
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_of_the_gallery_runs_on_small_data_and_draws(script: Any, load: Any, tmp_path: Path) -> None:
    module, canvas = load(script.stem), load("canvas")
    found = module.run(small=True)
    CHECKS[script.stem](found)
    pictures = canvas.draw_all(script.stem, module.draw, found, tmp_path, **getattr(module, "SIZE", {}))
    assert [path.name for path in pictures] == [
        f"{script.stem}-{language}-{look}.png" for language in ("en", "zh") for look in ("light", "dark")
    ]


def test_every_page_of_the_gallery_has_a_script_and_every_script_a_page() -> None:
    assert [page.stem for page in PAGES] == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_shows_its_picture_in_its_language_light_and_dark(page: Any, language: str) -> None:
    path = page if language == "en" else page.with_suffix(".zh.md")
    shown = re.findall(r"!\[.+?\]\(\.\./pictures/gallery/(.+?)#only-(\w+)\)", path.read_text(encoding="utf-8"))
    assert shown == [(f"{page.stem}-{language}-{look}.png", look) for look in ("light", "dark")]
    assert all((ROOT / "docs/pictures/gallery" / name).is_file() for name, _ in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_tells_why_it_is_private_what_it_costs_and_what_an_attacker_does(page: Any) -> None:
    text = page.read_text(encoding="utf-8")
    for heading in ("## A few lines", "## Why it is private", "## What it costs", "## Run it"):
        assert f"\n{heading}\n" in text
    assert re.search(r"\n## Without privacy", text)
    assert f"examples/gallery/{page.stem}.py" in text
    assert f"]({page.name})" in (page.parent / "index.md").read_text(encoding="utf-8")

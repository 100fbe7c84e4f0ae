"""The examples on real series run, publish within their error bars, and draw their pictures."""

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("MOSHA_DATA", ROOT.parent / "shared" / "data")) / "streams"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real series are not here: set MOSHA_DATA")


def example(name: Any) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_months_of_household_power(tmp_path: Path) -> None:
    picture = tmp_path / "power.png"
    assert example("streams_power").main(str(picture), days=60) < 1.5  # 1e-9: about 0.2, six times less
    assert picture.stat().st_size > 1000


def test_the_marathon_is_told_by_an_alarm(tmp_path: Path) -> None:
    """Scales of noise are below 20 and the rides 5,700 above the threshold: missed less often than 1e-100."""
    picture = tmp_path / "taxi.png"
    given = example("streams_taxi").main(str(picture), first="2014-11-01", last="2014-11-03")
    assert [(when.day, when.hour, labelled) for when, labelled in given] == [(2, 1, True), (2, 1, True)]
    assert picture.stat().st_size > 1000


def test_visitors_of_a_web_site(tmp_path: Path) -> None:
    """4 of the hours of a client count, so the published value lies below the truth by what was left out."""
    picture = tmp_path / "web.png"
    module = example("streams_weblog")
    left_out = 0
    hours = module.hourly()
    seen: dict[str, int] = {}
    for clients in hours:
        for client in set(clients):
            seen[client] = seen.get(client, 0) + 1
            left_out += seen[client] > module.VISITS
    assert len(seen) == 1753
    assert module.main(str(picture)) == pytest.approx(left_out, abs=150)  # 1e-9: the deviation is below 20
    assert picture.stat().st_size > 1000


def test_a_day_of_bikes() -> None:
    assert example("streams_bikes").main(hours=48) < 400  # 1e-9: the deviation is below 50

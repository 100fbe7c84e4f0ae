"""The survey's script in a real browser: the same reports as the library from the same bytes, and the same law."""

import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mosha.local import Frequency
from mosha.server.catalogue.surveys import device_part
from tests.server.house import opened
from tests.server.screens import driven

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
FALSE_ALARM = 1e-9
DOCS = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("survey")) as house, driven(str(house.client.base_url).rstrip("/")) as found:
        found.house = house
        found.open("/")
        yield found


class Recorded:
    """Bytes from a list that both sides read."""

    secure = False

    def __init__(self, data: Any) -> None:
        self.data, self.place = data, 0

    def bytes(self, n: Any, /) -> Any:
        self.place += n
        assert self.place <= len(self.data)
        return self.data[self.place - n : self.place]


@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.1), (2, 1.0), (3, 2.0), (7, 0.5), (10, 8.0), (100, 3.0)])
def test_the_same_bytes_give_the_same_report(page: Any, size: int, epsilon: float) -> None:
    survey = Frequency([str(n) for n in range(size)], epsilon=epsilon, protocol="k-ary")
    tapes = [os.urandom(600) for _ in range(50)]
    expected = [list(survey.reproduce_report(str(n % size), rng=Recorded(tape))) for n, tape in enumerate(tapes)]
    found = page.run(
        f"""(async () => {{
          const {{ randomize }} = await import("/static/survey.js");
          const survey = {json.dumps(device_part(json.loads(survey.to_json())))};
          return {json.dumps([list(tape) for tape in tapes])}.map((tape, n) => {{
            let place = 0;
            return Array.from(randomize(n % {size}, survey, (count) => tape.slice(place, place += count)));
          }});
        }})()"""
    )
    assert found == expected


def test_reports_of_the_browser_follow_the_law(page: Any) -> None:
    """False alarms below 1e-9 (Hoeffding); half and double the epsilon would be found with the same certainty."""
    many, epsilon = 40_000, 1.0
    survey = Frequency(["yes", "no", "perhaps"], epsilon=epsilon, protocol="k-ary")
    counts = page.run(
        f"""(async () => {{
          const {{ randomize }} = await import("/static/survey.js");
          const survey = {json.dumps(device_part(json.loads(survey.to_json())))}, counts = [0, 0, 0];
          for (let n = 0; n < {many}; n++) counts[randomize(1, survey)[1]]++;
          return counts;
        }})()"""
    )
    assert sum(counts) == many
    allowed = math.sqrt(math.log(2 * 3 / FALSE_ALARM) / (2 * many))
    truth, lie = float(survey.protocol.truth), float(survey.protocol.lie)
    for count, chance in zip(counts, (lie, truth, lie), strict=True):
        assert abs(count / many - chance) <= allowed
    for planted in (epsilon / 2, epsilon * 2):
        other = float(Frequency(["yes", "no", "perhaps"], epsilon=planted, protocol="k-ary").protocol.truth)
        assert abs(other - truth) > 2 * allowed


@pytest.mark.parametrize("name", ["server-kinds.md", "server-kinds.zh.md"])
def test_the_script_of_the_documentation_answers_a_survey_from_any_page(page: Any, name: str) -> None:
    """As it stands there, on a page that knows nothing of the survey; one report of the survey's own arrives."""
    text = (DOCS / name).read_text(encoding="utf-8")
    script = re.search(r'```html\n<script type="module">\n(.*?)</script>', text, re.DOTALL)[1]
    survey = Frequency(["never", "sometimes", "often"], epsilon=2.0, protocol="k-ary")
    said = {"name": "sleep", "title": "How often?", "survey": json.loads(survey.to_json())}
    assert page.house.call("wang", "POST", "/surveys", said).status_code in (201, 409)
    before = page.house.call("wang", "GET", "/surveys/sleep/estimate").json()["accepted"]
    page.open("/words")
    script = re.sub(r'import \{ randomize \} from "([^"]+)"', r'const { randomize } = await import("\1")', script)
    page.run(f"(async () => {{ {script} }})()")
    assert page.house.call("wang", "GET", "/surveys/sleep/estimate").json()["accepted"] == before + 1

"""Lessons of the API: public, bounded, computed by the library; *Explore* shows the same numbers."""

import json
import threading
from typing import Any

import pytest

from mosha import classroom
from mosha.server.api import lessons
from mosha.server.pages.numbers import write_plainly


def read(house: Any, name: Any, **knobs: Any) -> Any:
    return house.client.get(f"/api/v1/lessons/{name}", params=knobs)


def test_the_list_says_what_can_be_asked(house: Any) -> None:
    found = house.client.get("/api/v1/lessons").json()
    assert {one["name"]: tuple(one["knobs"]) for one in found["lessons"]} == lessons.LESSONS
    assert found["lessons"][0]["knobs"]["prior"][0] == 0.001


@pytest.mark.parametrize("end", [0, -1])
@pytest.mark.parametrize("name", [name for name in lessons.LESSONS if name != "training"])
def test_every_lesson_is_numbers_at_both_ends_of_its_knobs(house: Any, name: Any, end: int) -> None:
    knobs = {knob: lessons.KNOBS[knob][0][end] for knob in lessons.LESSONS[name]}
    reply = read(house, name, **knobs)
    assert reply.status_code == 200
    assert reply.json()["knobs"] == knobs
    assert reply.json()["numbers"]


def test_the_numbers_are_those_of_the_library(house: Any) -> None:
    said = read(house, "training", people=1000, batch=64, epochs=1).json()["numbers"]
    own = classroom.follow_training(epsilon=1.0, delta=lessons.DELTA, population=1000, batch=64, epochs=1, clip=1.0)
    assert said == json.loads(json.dumps(own))
    meaning = classroom.explain_epsilon(epsilon=0.5, prior=0.05)
    assert read(house, "meaning", epsilon=0.5, prior=0.05).json()["numbers"]["highest"] == meaning["highest"]


def test_the_page_shows_what_the_api_says(house: Any) -> None:
    page = house.client.get("/explore?part=quick&epsilon=6&degree=3").text
    bar = read(house, "noise", epsilon=0.5).json()["numbers"]["gaussian"]["bar"]
    assert f"± {write_plainly(bar)}" in page
    edges = read(house, "graphs", epsilon=0.5, degree=50).json()["numbers"][0]
    assert f'">{write_plainly(edges["node"])}</td>' in page


@pytest.mark.parametrize("lesson", lessons.LESSONS)
def test_every_picture_moves_with_every_knob_of_its_lesson(house: Any, lesson: str) -> None:
    """And with no knob of another one, so that nothing is computed again in vain."""
    part = lesson if lesson in ("models", "training") else "quick"

    def look(**knobs: int) -> str:
        page = house.client.get("/explore", params={"part": part} | knobs).text
        start = page.index(f'data-part="{lesson}"')
        return str(page[start : page.index("</section>", start)])

    first = look()
    assert "<svg" in first or "<td" in first
    for knob, (values, place) in lessons.KNOBS.items():
        moved = look(**{knob: place - 1 if place else len(values) - 1})
        assert (moved != first) == (knob in lessons.LESSONS[lesson]), knob


def test_knobs_have_few_places_and_no_others(house: Any) -> None:
    for name, knobs, code in (
        ("meaning", {"epsilon": "0.123"}, "server.field_wrong"),
        ("meaning", {"epsilon": "nan"}, "server.field_wrong"),
        ("meaning", {"people": "1000"}, "server.field_unknown"),
        ("meaning", {"more": "1"}, "server.field_unknown"),
        ("models", {"people": "1e3"}, "server.field_wrong"),
    ):
        reply = read(house, name, **knobs)
        assert (reply.status_code, reply.json()["code"]) == (422, code)
    assert read(house, "magic").status_code == 404


def test_a_crowd_of_slow_lessons_keeps_nobody_else_waiting(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many wait, and the next one is told to come back: threads that serve others are not all taken."""
    begun, over = threading.Event(), threading.Event()

    def think(**_: Any) -> int:
        begun.set()
        over.wait(60)
        return 1

    monkeypatch.setattr(lessons, "_lessons", lambda: dict.fromkeys(lessons.LESSONS, think))
    monkeypatch.setattr(lessons, "_known", {})
    monkeypatch.setattr(lessons, "_places", threading.BoundedSemaphore(1))
    slow = threading.Thread(target=read, args=(house, "noise"))
    slow.start()
    try:
        assert begun.wait(60)
        reply = read(house, "meaning")
        assert (reply.status_code, reply.json()["code"]) == (429, "server.too_many")
        assert house.client.get("/healthz").status_code == 200
    finally:
        over.set()
        slow.join()
    assert read(house, "meaning").json()["numbers"] == 1

"""`make screens`: a picture of every page, in both languages, light and dark, narrow and wide, to be looked at."""

import base64
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mosha.events import Gaussian
from mosha.local import Frequency
from tests.server.house import opened
from tests.server.screens import driven

SQL = "SELECT ward, AVG(days) AS days FROM visits GROUP BY ward"
WARDS = ("cardiology", "surgery", "pediatrics", "neurology")
PLACES = {
    "": {"front": "/", "enter": "/enter?link=x", "explore": "/explore", "words": "/words", "published": "/public"},
    "li": {
        "home": "/",
        "ask": "/ask/visits",
        "refused": "/ask/visits?mode=sql&sql=SELECT+*+FROM+visits",
        "questions": "/requests",
        "dataset": "/datasets/visits",
        "nothing": "/nothing-here",
        "graph": "/ask/friends/graph?graph=stars&number=3",
        "ask-table": "/ask/visits/table",
        "dataset-graph": "/datasets/friends",
        "agents": "/agents",
    },
    "wang": {
        "curator": "/",
        "datasets": "/datasets",
        "tree": "/datasets/visits",
        "register": "/register",
        "declaration": "/datasets/visits/declaration",
        "surveys": "/surveys",
        "people": "/people",
    },
    "zhao": {"reviewer": "/", "review": "/review"},
    "sun": {"auditor": "/", "audit": "/audit"},
}


def prepare(house: Any) -> dict[str, Any]:
    """Something to see: an answer, a question that waits, a published answer and a proposed one."""
    answered = house.answer("li", SQL, key="one", epsilon=0.4)
    house.ask("li", "SELECT COUNT(*) AS n FROM visits", key="two", epsilon=0.55, purpose="yearly report of the wards")
    for slug, title in (("stays-by-ward", "Stays by ward, 2026"), ("stays-again", "Stays by ward, once more")):
        house.call("li", "POST", "/publications", {"request": answered["id"], "slug": slug, "title": title})
        body = {"verdict": "approve", "reason": "useful"}
        if slug == "stays-by-ward":
            house.call("zhao", "POST", f"/publications/{slug}/decision", body)
    survey = Frequency(["never", "sometimes", "often"], epsilon=2.0, protocol="k-ary")
    said = {"name": "sleep", "title": "How often do you sleep badly?", "survey": json.loads(survey.to_json())}
    house.call("wang", "POST", "/surveys", said)
    reports = [base64.b64encode(survey.report("never" if n % 3 else "often")).decode() for n in range(900)]
    house.call(None, "POST", "/surveys/sleep/reports", {"reports": reports})
    series = {
        "name": "stays-a-week",
        "title": "Stays a week",
        "dataset": "visits",
        "measure": "groups",
        "column": "ward",
    }
    house.call("wang", "POST", "/series", series | {"horizon": 8, "epsilon": 1.0})
    for step in range(1, 6):
        people = range(1000 * step, 1000 * step + 700 + 40 * step)
        rows = {"patient_id": list(people), "ward": [WARDS[n % 4] for n in people]}
        house.call("wang", "POST", "/series/stays-a-week/steps", {"step": step, "rows": rows})
    house.service.database.run("UPDATE points SET created = created - 5000000")
    more = prepare_kinds(house)
    return {
        "": {"publication": "/public/stays-by-ward", "survey": "/survey/sleep", "series": "/series/stays-a-week"},
        "li": {"answer": f"/requests/{answered['id']}"} | more,
        "wang": {"estimate": "/survey/sleep", "feeding": "/series/stays-a-week"},
    }


def prepare_kinds(house: Any) -> dict[str, Any]:
    """A graph, a synthetic table and a training; where li sees them."""
    data = house.service.settings.folder / "data"
    (data / "friends.csv").write_text("from,to\n" + "".join(f"{n},{(n * 7 + 1) % 200}\n" for n in range(200)))
    graph = {"name": "friends", "kind": "graph", "title": "Who calls whom", "source": {"path": "friends.csv"}}
    graph |= {"declaration": {"unit": {"edge": True}, "vertices": 200}, "promise": {"epsilon": 5.0}}
    house.call("wang", "POST", "/datasets", graph)
    house.call("zhao", "POST", "/datasets/friends/countersign", {})
    grant = {"principal": "li", "epsilon": 3.0, "expires": "2099-01-01"}
    house.call("wang", "POST", "/datasets/friends/grants", grant)
    plan = {"dataset": "friends", "plan": {"graph": "degree_histogram", "options": {"up_to": 6}}}
    degrees = house.call("li", "POST", "/requests", plan | {"price": {"epsilon": 1.0}}, key="degrees").json()["id"]
    made = {"dataset": "visits", "plan": {"synthesize": {"columns": ["ward", "days", "age"], "rows": 3000}}}
    made |= {"price": {"epsilon": 0.4, "delta": 1e-8}}
    table = house.call("li", "POST", "/requests", made, key="synthetic").json()["id"]
    training = {"dataset": "visits", "name": "readmission 2026", "event": Gaussian(60.0).to_dict(), "steps": 200}
    training["delta"] = 1e-8
    reserved = house.call("wang", "POST", "/trainings", training, key="training").json()["id"]
    house.call("wang", "POST", f"/trainings/{reserved}/report", {"steps": 120})
    agent = house.call("li", "POST", "/agents", {"name": "weekly report"}).json()["id"]
    mine = next(one for one in house.call("li", "GET", "/grants").json()["grants"] if one["dataset"] == "visits")
    capped = {"principal": agent, "epsilon": 0.1, "expires": mine["expires"], "limit_per_day": {"epsilon": 0.02}}
    house.call("li", "POST", f"/grants/{mine['id']}/grants", capped)
    house.tokens["agent"] = house.call("li", "POST", "/tokens", {"label": "a", "agent": "weekly report"}).json()[
        "token"
    ]
    house.answer("agent", key="agent", epsilon=0.015)
    for request in (degrees, table):
        house.wait("li", request)
    year = {"name": "2026", "condition": {"column": "day", "from": "2026-01-01", "until": "2027-01-01"}, "epsilon": 2.0}
    assert house.call("wang", "POST", "/datasets/visits/blocks", year).status_code == 201
    return {"degrees": f"/requests/{degrees}", "synthetic": f"/requests/{table}"}


def main(folder: Any, only: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, opened(Path(place), previews_per_minute=10_000) as house:
        base = str(house.client.base_url).rstrip("/")
        more = prepare(house)
        with driven(base) as page:
            for who, paths in PLACES.items():
                page.forget()
                page.open("/")
                if who:
                    page.follow(f"button[value={who}]")
                for name, path in (paths | more.get(who, {})).items():
                    if only in name:
                        _take(page, folder, name, path)


def _take(page: Any, folder: Any, name: Any, path: Any) -> None:
    for language in ("en", "zh"):
        page.speak(language)
        for width in (390, 1280):
            page.resize(width)
            page.open(path)
            for dark in (False, True):
                page.resize(width, dark=dark)
                time.sleep(0.05)
                page.picture(folder / f"{name}-{language}-{width}-{'dark' if dark else 'light'}.png")
            if page.is_cut():
                print(f"{name} is wider than {width} in {language}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screens"), *sys.argv[2:])

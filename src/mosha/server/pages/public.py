"""What everybody may read, without signing in: published answers with error bars and promise; and Explore.

Explore has knobs, pictures and tables without data: its numbers are lessons of the API.
"""

from __future__ import annotations

from starlette.responses import Response

from mosha.server.api.lessons import DELTA, KNOBS, LESSONS
from mosha.server.asking.answers import MARK, notes_in, to_csv
from mosha.server.catalogue.details import list_missing, read_details
from mosha.server.pages.answers import find_odds, show_some, table_of
from mosha.server.pages.site import PAGE, Data, Visit

__all__ = ["ROUTES"]

_SLOW = ("models", "training")  # a plan is searched: that may take a second, and must not keep the others waiting
_PARTS = ("quick", *_SLOW)


def list_public(visit: Visit) -> Response:
    found = visit.do("listPublished", query={"limit": PAGE} | visit.read_place())
    series = visit.do("listSeries", query={"limit": PAGE} | visit.read_place("series_before"))
    return visit.render(
        "published.html",
        found=found["publications"],
        more=found["next"],
        head=visit.read_head(),
        series=series["series"],
        more_series=series["next"],
    )


def show_public(visit: Visit) -> Response:
    found = visit.do("readPublished", path=visit.path)
    shown = show_some(visit, table_of(found["answer"], "0.95"))
    odds = find_odds(found["price"], None)
    unit = found["answer"]["receipt"]["unit"]["unit"]
    notes = notes_in(found["answer"], visit.language)
    has_entry = not list_missing(read_details(visit.service.database, found["dataset"]) | found["words"])
    return visit.render(
        "publication.html", has_entry=has_entry, found=found, shown=shown, unit=unit, notes=notes, **odds
    )


def download_csv(visit: Visit) -> Response:
    found = visit.do("readPublished", path=visit.path)
    headers = {"Content-Disposition": f'attachment; filename="{found["slug"]}.csv"'}
    return Response((MARK + to_csv(found["answer"])).encode(), 200, headers, "text/csv; charset=utf-8")


def explore(visit: Visit) -> Response:
    """All lessons; or one part of them, where the page asks for what is quick first and for the rest afterwards."""
    places = {}
    for name, (values, first) in KNOBS.items():
        said = visit.read_field(name)
        places[name] = min(int(said), len(values) - 1) if said.isdecimal() and len(said) < 5 else first
    chosen = {name: KNOBS[name][0][place] for name, place in places.items()}
    wanted = visit.read_field("part")
    parts = (wanted,) if wanted in _PARTS else _PARTS
    found: Data = {}
    for name, knobs in LESSONS.items():
        if (name if name in _SLOW else "quick") in parts:
            query = {knob: chosen[knob] for knob in knobs}
            found[name] = visit.do("readLesson", path={"lesson": name}, query=query)["numbers"]
    last = {name: len(values) - 1 for name, (values, _) in KNOBS.items()}
    return visit.render("explore.html", places=places, chosen=chosen, last=last, delta=DELTA, parts=parts, **found)


ROUTES = (
    ("GET", "/explore", explore),
    ("GET", "/public", list_public),
    ("GET", "/public/{slug}", show_public),
    ("GET", "/public/{slug}/answer.csv", download_csv),
)

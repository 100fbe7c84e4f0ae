"""What everybody may read, without signing in: published answers with their error bars and their promise."""

from __future__ import annotations

import math

from starlette.responses import Response

from mosha.server.asking.answers import to_csv
from mosha.server.pages.asking import table_of
from mosha.server.pages.site import PAGE, Visit

__all__ = ["ROUTES"]


def list_public(visit: Visit) -> Response:
    found = visit.do("listPublished", query={"limit": PAGE} | visit.read_place())
    series = visit.do("listSeries", query={"limit": PAGE} | visit.read_place("series_before"))
    return visit.render(
        "published.html",
        found=found["publications"],
        more=found["next"],
        head=visit.do("readHead")["head"],
        series=series["series"],
        more_series=series["next"],
    )


def show_public(visit: Visit) -> Response:
    found = visit.do("readPublished", path=visit.path)
    epsilon = found["price"].get("epsilon")
    shown = table_of(found["answer"], "0.95")
    factor = None if epsilon is None else math.exp(min(epsilon, 50.0))
    unit = found["answer"]["receipt"]["unit"]["unit"]
    return visit.render("publication.html", found=found, shown=shown, factor=factor, unit=unit)


def download_csv(visit: Visit) -> Response:
    found = visit.do("readPublished", path=visit.path)
    headers = {"Content-Disposition": f'attachment; filename="{found["slug"]}.csv"'}
    return Response(to_csv(found["answer"]).encode(), 200, headers, "text/csv; charset=utf-8")


ROUTES = (
    ("GET", "/public", list_public),
    ("GET", "/public/{slug}", show_public),
    ("GET", "/public/{slug}/answer.csv", download_csv),
)

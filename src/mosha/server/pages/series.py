"""Series on public pages: a curve with its error bars that goes on by itself; curators open them beside a dataset."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from mosha.core.errors import BudgetExceeded
from mosha.server.catalogue.details import list_missing, read_details
from mosha.server.errors import Conflict
from mosha.server.pages.catalogue import show_dataset
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

_SHOWN = 200


def show(visit: Visit) -> Response:
    found = visit.do("readSeries", path=visit.path)
    has_entry = not list_missing(read_details(visit.service.database, found["dataset"]))
    return visit.render(
        "series.html", has_entry=has_entry, found=found, lines=_lines(found), points=found["points"][::-1][:_SHOWN]
    )


def _lines(found: Data) -> list[tuple[str, list[tuple[float, float]]]]:
    """What is drawn: for one number its curve between the ends of its error bars, for groups a curve each."""
    points: list[Any] = found["points"]
    if found["groups"]:
        return [
            (str(group), [(point["step"], point["value"][place]) for point in points])
            for place, group in enumerate(found["groups"][:5])
        ]
    middle = [(point["step"], point["value"]) for point in points]
    low = [(point["step"], point["value"] - point["error"]) for point in points]
    high = [(point["step"], point["value"] + point["error"]) for point in points]
    return [("", middle), ("-", low), ("+", high)]


def create(visit: Visit) -> Response:
    """Open a series from the page of its dataset."""
    body: Data = {
        part: visit.read_field(part).strip() for part in ("name", "title", "column") if visit.read_field(part).strip()
    }
    body |= {"dataset": visit.path["dataset"], "measure": visit.read_field("measure", "count")}
    body |= {"horizon": visit.read_whole_number("horizon") or 0, "epsilon": visit.number("epsilon") or 0.0}
    body["shows"] = "running" if visit.read_field("shows") == "running" else "instant"
    try:
        made = visit.do("createSeries", body=body)
    except BudgetExceeded:
        raise Conflict("server.not_enough_left", parameter="epsilon", spent="nothing") from None
    return visit.go(f"/series/{made['name']}")


ROUTES = (
    ("GET", "/series/{series}", show),
    ("POST", "/datasets/{dataset}/series", create, show_dataset),
)

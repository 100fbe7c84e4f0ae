"""Series on public pages: a curve with its error bars that goes on by itself; curators open them beside a dataset."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from starlette.responses import Response

from mosha.core.errors import BudgetExceeded
from mosha.core.language import phrase
from mosha.server.catalogue.details import list_missing, read_details
from mosha.server.catalogue.series import count_points, find_series
from mosha.server.errors import BadRequest, Conflict
from mosha.server.pages.catalogue import show_dataset
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

_SHOWN = 200


def show(visit: Visit) -> Response:
    found = visit.do("readSeries", path=visit.path)
    has_entry = not list_missing(read_details(visit.service.database, found["dataset"]))
    return visit.render(
        "series.html",
        has_entry=has_entry,
        found=found,
        lines=_lines(found),
        points=found["points"][::-1][:_SHOWN],
        next=_find_next(visit, found) if visit.may("stream.feed", found["dataset"]) else None,
        needed=list(_list_needed(visit, found)) if visit.may("stream.feed", found["dataset"]) else [],
    )


def _find_next(visit: Visit, found: Data) -> int | None:
    """The step that comes next, also while the last one is not shown yet; None after the last of all."""
    taken = count_points(visit.service.database, find_series(visit.service.database, found["name"]))
    return taken + 1 if taken < found["horizon"] else None


def _list_needed(visit: Visit, found: Data) -> dict[str, str]:
    """The columns that a step is made of, and what each holds: nothing else of a file is read."""
    declared = visit.do("readDataset", path={"dataset": found["dataset"]})["declaration"]
    kinds = {column["name"]: column.get("type", "text") for column in declared["columns"]}
    names = (declared["unit"].get("person"), found["column"])
    return {name: kinds.get(name, "text") for name in names if name is not None}


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


def feed(visit: Visit) -> Response:
    """Publish the next step from a CSV file of its rows."""
    found = visit.do("readSeries", path=visit.path)
    step, following = visit.read_whole_number("step") or 0, _find_next(visit, found)
    if step != following:
        raise Conflict("server.series_step", parameter="file", expected=str(following or found["horizon"]))
    rows = _read_rows(visit.read_field("file"), _list_needed(visit, found))
    visit.do("feedSeries", path=visit.path, body={"step": step, "rows": rows})
    return visit.go(f"/series/{found['name']}")


def _read_rows(text: str, needed: dict[str, str]) -> dict[str, list[Any]]:
    """The columns of a CSV file that are needed, with the types that are declared."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        has_all = set(needed) <= set(reader.fieldnames or ())
        lines = list(reader) if has_all else []
    except csv.Error:
        has_all = False
    if not has_all:
        expected = phrase("server.a_csv_file", names=", ".join(needed))
        raise BadRequest("server.field_wrong", parameter="file", expected=expected)
    return {name: [_read_cell(line[name] or "", kind, name) for line in lines] for name, kind in needed.items()}


def _read_cell(said: str, kind: str, name: str) -> object:
    """A number as a number, exactly: somebody who is 7 in one step and "7" in the next would count as two people."""
    if kind not in ("integer", "real", "decimal"):
        return said
    try:
        value = (int if kind == "integer" else float)(said if "_" not in said else "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadRequest("server.field_wrong", parameter="file", expected=phrase("server.numbers_in", name=name))
    return value


ROUTES = (
    ("GET", "/series/{series}", show),
    ("POST", "/series/{series}/steps", feed, show),
    ("POST", "/datasets/{dataset}/series", create, show_dataset),
)

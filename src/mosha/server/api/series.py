"""Series: opened and fed by a curator, paid for whole when they begin, read by everybody."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.registry import as_file, draw_entry
from mosha.server.api.schemas import array, integer, mapping, number, one_of, record, text
from mosha.server.api.shapes import EPSILON, NEWEST
from mosha.server.asking.answers import MARK, harmless_cell
from mosha.server.catalogue.series import create_series, describe_series, feed_series, find_series, list_series
from mosha.server.people.permissions import Thing

__all__ = ["OPERATIONS", "series_to_csv"]


def _thing(call: Call) -> Thing:
    return Thing(find_series(call.service.database, call.path["series"])["dataset"])


def create(call: Call) -> Reply:
    service = call.service
    overbooks = service.settings.overbooking == "allow"
    folder = service.settings.series_folder
    row = create_series(service.database, service.ledger, folder, call.body, call.principal.name, overbooks=overbooks)
    return Reply(describe_series(service.database, row), 201)


def list_all(call: Call) -> Reply:
    database = call.service.database
    rows, following = call.read_page(list_series, database, dataset=call.query.get("dataset"))
    return Reply({"series": [describe_series(database, row, full=False) for row in rows], "next": following})


def feed(call: Call) -> Reply:
    service, row = call.service, find_series(call.service.database, call.path["series"])
    point = feed_series(
        service.database, service.ledger, service.settings.series_folder, row, call.body["step"], call.body["rows"]
    )
    return Reply(point, 201)


def read(call: Call) -> Reply:
    described = describe_series(call.service.database, find_series(call.service.database, call.path["series"]))
    form = call.query.get("format", "json")
    if form == "json":
        return Reply(described | {"head": str(call.service.public.find_head())})
    if form == "registry":
        said = {"name": described["title"], "data_product_type": "Summary statistics"}
        return as_file(draw_entry(call, described["dataset"], said), described["name"])
    marked = (MARK if call.query.get("bom") == "true" else "") + series_to_csv(described)
    return Reply(marked, media="text/csv; charset=utf-8")


def series_to_csv(described: Mapping[str, Any]) -> str:
    """One line a step; with groups, one line a step and group."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    groups = described["groups"]
    writer.writerow(["step", "at", *(["group"] if groups else []), "value", "±0.95"])
    for point in described["points"]:
        if not groups:
            writer.writerow([point["step"], point["at"], point["value"], point["error"]])
            continue
        for group, value, error in zip(groups, point["value"], point["error"], strict=True):
            writer.writerow([point["step"], point["at"], harmless_cell(group), value, error])
    return out.getvalue()


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="listSeries",
        method="GET",
        path="/series",
        verb="stream.list",
        tag="series",
        summary="Series that are published step by step.",
        handler=list_all,
        query={"dataset": text(63), **NEWEST},
    ),
    Operation(
        name="createSeries",
        method="POST",
        path="/series",
        verb="stream.create",
        status=201,
        tag="series",
        summary="Open a series: its whole horizon is paid for at once, before a row is seen.",
        handler=create,
        thing=lambda call: Thing(call.body["dataset"]),
        body=record(
            {
                "name": text(63),
                "dataset": text(63),
                "measure": one_of("count", "sum", "groups"),
                "horizon": integer(least=1, most=1_000_000),
            },
            {
                "title": text(200),
                "column": text(200),
                "shows": one_of("instant", "running"),
                "epsilon": EPSILON,
                "delta": number(least=0, most=1),
                "rho": EPSILON,
            },
        ),
    ),
    Operation(
        name="feedSeries",
        method="POST",
        path="/series/{series}/steps",
        verb="stream.feed",
        status=201,
        tag="series",
        summary="Publish the next step from its rows, column by column; a step that was published stays what it is.",
        handler=feed,
        thing=_thing,
        body=record({"step": integer(least=1), "rows": mapping(array({}, most=100_000))}),
    ),
    Operation(
        name="readSeries",
        method="GET",
        path="/series/{series}",
        verb="stream.read",
        tag="series",
        summary="A series: what it shows, what it promises, and its points with their error bars.",
        handler=read,
        thing=_thing,
        query={"format": one_of("json", "csv", "registry"), "bom": one_of("true", "false")},
    ),
)

"""Declaring: registering a table or a graph, and proposing another version of what is declared about a table.

A bound says where it is known from (law, codebook, or paid); that it was read off the data is no choice.
"""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.responses import Response

from mosha.core.language import phrase
from mosha.server.catalogue.datasets import declaration_of
from mosha.server.catalogue.declarations import ORIGINS
from mosha.server.errors import BadRequest, NotFound
from mosha.server.pages.forms import read_number
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

_COMMA = re.compile("[,\uff0c]")  # as it is typed in English and in Chinese
_KINDS = ("integer", "real", "decimal", "text", "date", "timestamp", "boolean")
_NUMBERS = ("integer", "real", "decimal")
_EXAMPLE = {
    "unit": {"person": "patient_id", "at_most": 4},
    "columns": {
        "ward": {"keys": ["cardiology", "surgery"], "origin": "codebook"},
        "days": {"between": [0, 30], "origin": "codebook"},
    },
}


def show_register(visit: Visit) -> Response:
    return _register(visit)


def _register(visit: Visit, looked: Any = None) -> Response:
    if not visit.may("dataset.create"):
        visit.do("createDataset", body={})
    example = json.dumps(_EXAMPLE, indent=2)
    looked = looked or _columns_typed(visit)
    typed = {name: place for place, name in enumerate(visit.all_of("column_name"))}
    rows = [
        {"column": one["name"], "type": one["type"]}
        | {part: _at(visit.all_of(part), typed.get(one["name"])) for part in ("low", "high", "values", "origin")}
        for one in looked or ()
    ]
    return visit.render("register.html", rows=rows, kinds=list(_KINDS), example=example, origins=ORIGINS)


def _at(found: list[str], place: int | None) -> str:
    return found[place] if place is not None and place < len(found) else ""


def _columns_typed(visit: Visit) -> list[Data]:
    """The columns that were found before, as the form sent them back."""
    pairs = zip(visit.all_of("column_name"), visit.all_of("column_type"), strict=False)
    return [{"name": name, "type": kind} for name, kind in pairs]


def _read_fields(visit: Visit) -> Data:
    """The declaration as it was filled in, column by column; a bound must say where it comes from."""
    columns: Data = {}
    for place, name in enumerate(visit.all_of("column_name")):
        at = f"declaration.columns.{name}"
        column: Data = {"type": _at(visit.all_of("column_type"), place)}
        low, high = (_at(visit.all_of(part), place).strip() for part in ("low", "high"))
        values = [word.strip() for word in _COMMA.split(_at(visit.all_of("values"), place)) if word.strip()]
        if (low or high) and column["type"] not in _NUMBERS:
            raise BadRequest("server.field_wrong", parameter=f"{at}.type", expected=phrase("server.a_type_of_numbers"))
        if low or high:
            column["between"] = between = [_number(low, f"{at}.low"), _number(high, f"{at}.high")]
            if between[0] >= between[1]:
                expected = phrase("server.above", above=between[0])
                raise BadRequest("server.field_wrong", parameter=f"{at}.high", expected=expected)
        if values:
            is_number = column["type"] == "integer"
            column["keys"] = [_read_whole_number(value, f"{at}.keys") for value in values] if is_number else values
        if origin := _at(visit.all_of("origin"), place):
            column["origin"] = origin
        columns[name] = column
    most = visit.read_whole_number("at_most")
    unit: Data = {"person": visit.read_field("unit")} | ({} if most is None else {"at_most": most})
    return {"unit": unit, "columns": columns}


def _number(said: str, place: str) -> float:
    value = read_number(said, place)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _read_whole_number(said: str, place: str) -> int:
    value = _number(said, place)
    if not isinstance(value, int):
        raise BadRequest("server.field_wrong", parameter=place, expected=phrase("server.kind_integer"))
    return value


def _read_source(visit: Visit) -> Data:
    """Where the rows are: a file below the folders of data, or a variable that holds the address of a database."""
    said = visit.read_field("path").strip()
    source: Data = {"url" if said.startswith("env:") else "path": said}
    return source | ({"table": table} if (table := visit.read_field("table").strip()) else {})


def register(visit: Visit) -> Response:
    """Look at the columns of a source, or propose the dataset: what was typed stays where something is wrong."""
    source = _read_source(visit)
    if visit.read_field("do") == "look":
        return _register(visit, looked=visit.do("lookAtSource", body={"source": source})["columns"])
    promise = {p: value for p in ("epsilon", "delta") if (value := visit.number(p)) is not None}
    body: Data = {"name": visit.read_field("name").strip(), "source": source, "promise": promise}
    fields = visit.all_of("column_name")
    body["declaration"] = _read_fields(visit) if fields else _read_declaration(visit)
    body |= {part: said for part in ("title", "again") if (said := visit.read_field(part).strip())}
    visit.do("createDataset", body=body)
    return visit.go(f"/datasets/{body['name']}")


def register_graph(visit: Visit) -> Response:
    """Propose a graph: an edge list, who is hidden, and at edge level how many vertices there are."""
    node = visit.read_field("hides") == "node"
    source: Data = {"path": visit.read_field("path").strip() or " "}
    unit: Data = {"node": True} if node else {"edge": True}
    declaration: Data = {"unit": unit}
    if node and (most := visit.read_whole_number("max_degree")) is not None:
        unit["max_degree"] = most
    if node and visit.read_field("vertices_file").strip():
        source["vertices"] = visit.read_field("vertices_file").strip()
    if not node:
        declaration["vertices"] = visit.read_whole_number("vertices") or 0
    body: Data = {
        "name": visit.read_field("name").strip(),
        "kind": "graph",
        "source": source,
        "promise": {"epsilon": visit.number("epsilon") or 0.0},
        "declaration": declaration,
    }
    body |= {"title": visit.read_field("title").strip()} if visit.read_field("title").strip() else {}
    visit.do("createDataset", body=body)
    return visit.go(f"/datasets/{body['name']}")


def _read_declaration(visit: Visit) -> Any:
    """What was typed, or the file that was sent; its text stays in the field."""
    sent = visit.read_field("upload").strip()
    if sent:
        visit.form = [("declaration", sent), *((name, value) for name, value in visit.form if name != "declaration")]
    if not visit.read_field("declaration").strip():
        raise BadRequest("server.field_missing", parameter="declaration")
    try:
        return json.loads(visit.read_field("declaration"))
    except (ValueError, RecursionError):
        raise BadRequest("server.field_wrong", parameter="declaration", expected="JSON") from None


def show_declaration(visit: Visit) -> Response:
    """The newest declaration of a table in fields; what was typed stays."""
    name = visit.path["dataset"]
    if not visit.may("dataset.declare", name):
        visit.do("declareDataset", path=visit.path, body={"declaration": {"unit": {}}})
    found = visit.do("readDataset", path=visit.path)
    kept, version = declaration_of(visit.service.database, name, None)
    if found["kind"] != "table":
        raise NotFound("server.not_found")
    typed = {one: place for place, one in enumerate(visit.all_of("column_name"))}
    rows = [_show_column(visit, column, said, typed.get(column)) for column, said in kept["columns"].items()]
    return visit.render(
        "declaration.html",
        found=found,
        rows=rows,
        kinds=list(_KINDS),
        unit=kept["unit"],
        next=version + 1,
        origins=ORIGINS,
    )


def _show_column(visit: Visit, name: str, said: Data, place: int | None) -> Data:
    """A column as its fields show it: as it was typed, or as it is declared."""
    row: Data = {"column": name, "type": said.get("type", "")}
    if place is not None:
        row["type"] = _at(visit.all_of("column_type"), place) or row["type"]
        return row | {part: _at(visit.all_of(part), place) for part in ("low", "high", "values", "origin")}
    low, high = said.get("between", ("", ""))
    keys = ", ".join(str(key) for key in said.get("keys", ()))
    return row | {"low": low, "high": high, "values": keys, "origin": said.get("origin", "")}


def declare(visit: Visit) -> Response:
    """Propose the next version; whom it hides stays, and a privacy officer signs it before it is in force."""
    name = visit.path["dataset"]
    kept, _ = declaration_of(visit.service.database, name, None)
    said = _read_fields(visit)
    for place, column in enumerate(visit.all_of("column_name")):
        typed, shown = (_show_column(visit, column, kept["columns"].get(column, {}), at) for at in (place, None))
        if column in kept["columns"] and all(str(shown[part]) == str(typed[part]).strip() for part in shown):
            said["columns"][column] = kept["columns"][column]  # what nobody touched stays to the letter
    most = {"at_most": said["unit"]["at_most"]} if "at_most" in said["unit"] else {}
    unit = {part: value for part, value in kept["unit"].items() if part not in ("at_most", "of")} | most
    visit.do("declareDataset", path=visit.path, body={"declaration": {"unit": unit, "columns": said["columns"]}})
    return visit.go(f"/datasets/{name}")


ROUTES = (
    ("GET", "/register", show_register),
    ("POST", "/register", register, show_register),
    ("POST", "/register/graph", register_graph, show_register),
    ("GET", "/datasets/{dataset}/declaration", show_declaration),
    ("POST", "/datasets/{dataset}/declaration", declare, show_declaration),
)

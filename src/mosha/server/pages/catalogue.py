"""The catalogue: what is declared and promised about a dataset, the tree of its budgets, grants; register, freeze."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from mosha.core.errors import MoshaError
from mosha.server.catalogue.declarations import ORIGINS
from mosha.server.errors import BadRequest
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES", "show_with_problem"]


def list_all(visit: Visit) -> Response:
    found = visit.do("listDatasets")["datasets"]
    return visit.render("datasets.html", found=found, can_create=visit.may("dataset.create"))


def show_dataset(visit: Visit) -> Response:
    return show_with_problem(visit)


def show_with_problem(visit: Visit, problem: Data | None = None) -> Response:
    name = visit.path["dataset"]
    found = visit.do("readDataset", path=visit.path)
    grants = visit.do("listGrants", path=visit.path)["grants"] if visit.may("budget.see", name) else []
    rows = visit.service.database.rows("SELECT id, name FROM principals")
    people = {row["id"]: row["name"] for row in rows}
    return visit.render(
        "dataset.html",
        422 if problem else 200,
        found=found,
        tree=_tree(grants),
        people=people,
        granted=sum((grant["budget"] or {}).get("limit", 0.0) for grant in grants if _counts(grant)),
        problem=problem,
        series=visit.do("listSeries", query={"dataset": name})["series"],
        can_ask=visit.may("ask", name),
        can_grant=visit.may("grant.create", name) and found["state"] == "open",
        can_schedule=visit.may("stream.create", name) and found["state"] == "open",
        can_retire=visit.may("dataset.retire", name) and found["state"] in ("open", "frozen"),
        can_freeze=visit.may("dataset.freeze", name) and found["state"] == "open",
        can_thaw=visit.may("dataset.thaw", name) and found["state"] == "frozen",
        can_sign=visit.may("dataset.countersign", name) and found["version"] != found["newest_version"],
        expires=visit.typed("expires", (datetime.now(UTC).date() + timedelta(days=90)).isoformat()),
    )


def _counts(grant: Data) -> bool:
    return grant["state"] == "open" and grant["parent"] is None


def _tree(grants: list[Data]) -> list[Data]:
    """Grants under the grants that they are taken from."""
    below: dict[Any, list[Data]] = {}
    for grant in grants:
        below.setdefault(grant["parent"], []).append(grant)

    def branch(parent: Any) -> list[Data]:
        return [grant | {"below": branch(grant["id"])} for grant in below.get(parent, ())]

    return branch(None)


def grant(visit: Visit) -> Response:
    """Give somebody a part of the budget; somebody new is made, and gets a link by which to come in."""
    try:
        body: Data = {"principal": visit.typed("principal").strip(), "expires": visit.typed("expires")}
        body |= {"purpose": visit.typed("purpose").strip()[:300]}
        for part in ("epsilon", "delta", "approve_above", "most_per_question"):
            if (value := visit.number(part)) is not None:
                body[part] = value
        visit.do("createGrant", path=visit.path, body=body)
    except (MoshaError, BadRequest) as error:
        return show_with_problem(visit, visit.problem(error))
    return visit.go(f"/datasets/{visit.path['dataset']}")


def add_block(visit: Visit) -> Response:
    """Open a block of the data, such as a year: rows whose column lies from one value up to another."""
    try:
        condition: Data = {"column": visit.typed("column").strip()}
        for part in ("from", "until"):
            if (said := visit.typed(part).strip()) != "":
                condition[part] = float(said) if said.replace(".", "", 1).isdecimal() else said
        body: Data = {"name": visit.typed("name").strip(), "condition": condition}
        for part in ("epsilon", "delta"):
            if (value := visit.number(part)) is not None:
                body[part] = value
        visit.do("createBlock", path=visit.path, body=body)
    except (MoshaError, BadRequest) as error:
        return show_with_problem(visit, visit.problem(error))
    return visit.go(f"/datasets/{visit.path['dataset']}")


def revoke(visit: Visit) -> Response:
    found = visit.do("readGrant", path=visit.path)
    visit.do("revokeGrant", path=visit.path, query={"reason": visit.typed("reason").strip()[:300]})
    return visit.go(f"/datasets/{found['dataset']}")


def change(visit: Visit) -> Response:
    """Freeze, thaw, retire or countersign."""
    operations = {"freeze": "freezeDataset", "thaw": "thawDataset", "sign": "countersignDataset"}
    operations["retire"] = "retireDataset"
    operation = operations.get(visit.path["change"])
    if operation is None:
        raise BadRequest("server.field_unknown", parameter="change")
    body = {} if operation == "countersignDataset" else {"reason": visit.typed("reason").strip()[:300] or "-"}
    visit.do(operation, path={"dataset": visit.path["dataset"]}, body=body)
    return visit.go(f"/datasets/{visit.path['dataset']}")


_EXAMPLE = {
    "unit": {"person": "patient_id", "at_most": 4},
    "columns": {
        "ward": {"keys": ["cardiology", "surgery"], "origin": "codebook"},
        "days": {"between": [0, 30], "origin": "codebook"},
    },
}


def show_register(visit: Visit) -> Response:
    return _register(visit)


def _register(visit: Visit, problem: Data | None = None, looked: Any = None) -> Response:
    if not visit.may("dataset.create"):
        visit.do("createDataset", body={})
    example = json.dumps(_EXAMPLE, indent=2)
    status = 422 if problem else 200
    looked = looked or _columns_typed(visit)
    typed = {name: place for place, name in enumerate(visit.all_of("column_name"))}
    rows = [
        {"column": one["name"], "type": one["type"]}
        | {part: _at(visit.all_of(part), typed.get(one["name"])) for part in ("low", "high", "values", "origin")}
        for one in looked or ()
    ]
    return visit.render("register.html", status, problem=problem, rows=rows, example=example, origins=ORIGINS)


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
        column: Data = {"type": _at(visit.all_of("column_type"), place)}
        low, high = (_at(visit.all_of(part), place).strip() for part in ("low", "high"))
        values = [line.strip() for line in _at(visit.all_of("values"), place).split(",") if line.strip()]
        if low or high:
            column["between"] = [_number(low, f"{name}: low"), _number(high, f"{name}: high")]
        elif values:
            is_number = column["type"] == "integer"
            column["keys"] = [int(_number(value, name)) for value in values] if is_number else values
        if origin := _at(visit.all_of("origin"), place):
            column["origin"] = origin
        columns[name] = column
    most = visit.number("at_most")
    unit: Data = {"person": visit.typed("unit")} | ({} if most is None else {"at_most": int(most)})
    return {"unit": unit, "columns": columns}


def _number(said: str, place: str) -> float:
    try:
        value = float(said)
    except ValueError:
        raise BadRequest("server.field_wrong", parameter=place, expected="a number") from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def register(visit: Visit) -> Response:
    """Look at the columns of a source, or propose the dataset: what was typed stays where something is wrong."""
    try:
        source = {"path": visit.typed("path").strip()}
        if visit.typed("do") == "look":
            return _register(visit, looked=visit.do("lookAtSource", body={"source": source})["columns"])
        promise = {p: value for p in ("epsilon", "delta") if (value := visit.number(p)) is not None}
        body: Data = {"name": visit.typed("name").strip(), "source": source, "promise": promise}
        fields = visit.all_of("column_name")
        body["declaration"] = _read_fields(visit) if fields else _read_declaration(visit.typed("declaration"))
        body |= {"title": visit.typed("title").strip()} if visit.typed("title").strip() else {}
        visit.do("createDataset", body=body)
    except (MoshaError, BadRequest) as error:
        return _register(visit, visit.problem(error))
    return visit.go(f"/datasets/{body['name']}")


def _read_declaration(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest("server.field_wrong", parameter="declaration", expected="JSON") from None


ROUTES = (
    ("GET", "/datasets", list_all),
    ("GET", "/register", show_register),
    ("POST", "/register", register),
    ("GET", "/datasets/{dataset}", show_dataset),
    ("POST", "/datasets/{dataset}/grants", grant),
    ("POST", "/datasets/{dataset}/blocks", add_block),
    ("POST", "/datasets/{dataset}/{change}", change),
    ("POST", "/grants/{grant}/revoke", revoke),
)

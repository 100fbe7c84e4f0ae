"""The catalogue: what is declared and promised about a dataset, the tree of its budgets, grants; register, freeze."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from mosha.core.language import phrase
from mosha.server.catalogue.declarations import ORIGINS
from mosha.server.errors import BadRequest
from mosha.server.pages.paying import check_limits
from mosha.server.pages.site import PAGE, Data, Visit, check_name

__all__ = ["ROUTES", "show_dataset"]


def list_all(visit: Visit) -> Response:
    found = visit.do("listDatasets", query={"limit": PAGE, "after": visit.read_field("after")[:300]})
    can_create = visit.may("dataset.create")
    return visit.render("datasets.html", found=found["datasets"], more=found["next"], can_create=can_create)


def show_dataset(visit: Visit) -> Response:
    name = visit.path["dataset"]
    found = visit.do("readDataset", path=visit.path)
    sees = visit.may("budget.see", name)
    query = {"limit": PAGE} | visit.read_place()
    grants = visit.do("listGrants", path=visit.path, query=query) if sees else {"grants": [], "next": None}
    can_grant = visit.may("grant.create", name) and found["state"] == "open"
    return visit.render(
        "dataset.html",
        found=found,
        tree=_tree(grants["grants"], (found.get("budget") or {}).get("left", math.inf)),
        more=grants["next"],
        booked=grants.get("booked"),
        people=visit.read_names(grant["principal"] for grant in grants["grants"]),
        everybody=[one["name"] for one in visit.do("listPrincipals")["principals"]]
        if can_grant and visit.may("principal.list")
        else [],
        series=visit.do("listSeries", query={"dataset": name})["series"],
        trainings=visit.do("listTrainings", query={"dataset": name})["trainings"],
        can_ask=visit.may("ask", name),
        can_grant=can_grant,
        can_schedule=visit.may("stream.create", name) and found["state"] == "open",
        can_retire=visit.may("dataset.retire", name) and found["state"] in ("open", "frozen"),
        can_freeze=visit.may("dataset.freeze", name) and found["state"] == "open",
        can_thaw=visit.may("dataset.thaw", name) and found["state"] == "frozen",
        can_sign=visit.may("dataset.countersign", name) and found["version"] != found["newest_version"],
        expires=visit.read_field("expires", (datetime.now(UTC).date() + timedelta(days=90)).isoformat()),
    )


def _tree(grants: list[Data], left: float) -> list[Data]:
    """Grants under the grants that they are taken from; `room` is what all above them leave to be spent."""
    below: dict[Any, list[Data]] = {}
    for grant in grants:
        below.setdefault(grant["parent"], []).append(grant)

    def branch(parent: object, above: float) -> list[Data]:
        found = []
        for grant in below.get(parent, ()):
            room = min(above, grant["budget"]["left"]) if grant["budget"] else above
            found.append(grant | {"room": room, "below": branch(grant["id"], room)})
        return found

    return branch(None, left)


def grant(visit: Visit) -> Response:
    """Give somebody a part of the budget; somebody new is made, and gets a link by which to come in."""
    body: Data = {"principal": check_name(visit, "principal"), "expires": visit.read_field("expires")}
    body |= {"purpose": visit.read_field("purpose").strip()[:300]}
    for part in ("epsilon", "delta", "approve_above", "most_per_question"):
        if (value := visit.number(part)) is not None:
            body[part] = value
    check_limits(body, _read_budget(visit), name=visit.path["dataset"])
    visit.do("createGrant", path=visit.path, body=body)
    return visit.go(f"/datasets/{visit.path['dataset']}")


def _read_budget(visit: Visit) -> Data | None:
    found: Data | None = visit.do("readDataset", path={"dataset": visit.path["dataset"]}).get("budget")
    return found


def add_block(visit: Visit) -> Response:
    """Open a block of the data, such as a year: rows whose column lies from one value up to another."""
    condition: Data = {"column": visit.read_field("column").strip()}
    for part in ("from", "until"):
        if (said := visit.read_field(part).strip()) != "":
            condition[part] = float(said) if said.replace(".", "", 1).isdecimal() else said
    body: Data = {"name": visit.read_field("name").strip(), "condition": condition}
    for part in ("epsilon", "delta"):
        if (value := visit.number(part)) is not None:
            body[part] = value
    check_limits(body, _read_budget(visit), name=visit.path["dataset"])
    visit.do("createBlock", path=visit.path, body=body)
    return visit.go(f"/datasets/{visit.path['dataset']}")


def revoke(visit: Visit) -> Response:
    found = visit.do("readGrant", path=visit.path)
    visit.do("revokeGrant", path=visit.path, query={"reason": visit.read_field("reason").strip()[:300]})
    return visit.go(f"/datasets/{found['dataset']}")


def change(visit: Visit) -> Response:
    """Freeze, thaw, retire or countersign."""
    operations = {"freeze": "freezeDataset", "thaw": "thawDataset", "sign": "countersignDataset"}
    operations["retire"] = "retireDataset"
    operation = operations.get(visit.path["change"])
    if operation is None:
        raise BadRequest("server.field_unknown", parameter="change")
    reason = visit.read_field("reason").strip()[:300]
    if operation != "countersignDataset" and not reason:
        raise BadRequest("server.field_missing", parameter="reason")
    body = {} if operation == "countersignDataset" else {"reason": reason}
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
    return visit.render("register.html", rows=rows, example=example, origins=ORIGINS)


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
        values = [line.strip() for line in _at(visit.all_of("values"), place).split(",") if line.strip()]
        if low or high:
            column["between"] = [_number(low, f"{at}.low"), _number(high, f"{at}.high")]
        elif values:
            is_number = column["type"] == "integer"
            column["keys"] = [int(_number(value, f"{at}.keys")) for value in values] if is_number else values
        if origin := _at(visit.all_of("origin"), place):
            column["origin"] = origin
        columns[name] = column
    most = visit.number("at_most")
    unit: Data = {"person": visit.read_field("unit")} | ({} if most is None else {"at_most": int(most)})
    return {"unit": unit, "columns": columns}


def _number(said: str, place: str) -> float:
    try:
        value = float(said)
    except ValueError:
        raise BadRequest("server.field_wrong", parameter=place, expected=phrase("server.a_number")) from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _read_source(visit: Visit) -> Data:
    """Where the rows are: a file below the folders of data, or a variable that holds the address of a database."""
    said = visit.read_field("path").strip()
    if not said.startswith("env:"):
        return {"path": said}
    source: Data = {"url": said}
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
    body |= {"title": visit.read_field("title").strip()} if visit.read_field("title").strip() else {}
    visit.do("createDataset", body=body)
    return visit.go(f"/datasets/{body['name']}")


def register_graph(visit: Visit) -> Response:
    """Propose a graph: an edge list, who is hidden, and at edge level how many vertices there are."""
    node = visit.read_field("hides") == "node"
    source: Data = {"path": visit.read_field("path").strip() or " "}
    unit: Data = {"node": True} if node else {"edge": True}
    declaration: Data = {"unit": unit}
    if node and (most := visit.number("max_degree")) is not None:
        unit["max_degree"] = int(most)
    if node and visit.read_field("vertices_file").strip():
        source["vertices"] = visit.read_field("vertices_file").strip()
    if not node:
        declaration["vertices"] = int(visit.number("vertices") or 0)
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
    try:
        return json.loads(visit.read_field("declaration"))
    except (ValueError, RecursionError):
        raise BadRequest("server.field_wrong", parameter="declaration", expected="JSON") from None


ROUTES = (
    ("GET", "/datasets", list_all),
    ("GET", "/register", show_register),
    ("POST", "/register", register, show_register),
    ("POST", "/register/graph", register_graph, show_register),
    ("GET", "/datasets/{dataset}", show_dataset),
    ("POST", "/datasets/{dataset}/grants", grant, show_dataset),
    ("POST", "/datasets/{dataset}/blocks", add_block, show_dataset),
    ("POST", "/datasets/{dataset}/{change}", change, show_dataset),
    ("POST", "/grants/{grant}/revoke", revoke),
)

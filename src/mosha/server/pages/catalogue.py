"""The catalogue: what is declared and promised about a dataset, the tree of its budgets, grants; register, freeze."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from mosha.ledger.publishing.registry import SECTORS
from mosha.server.catalogue.datasets import declaration_of
from mosha.server.errors import BadRequest
from mosha.server.pages.paying import check_limits
from mosha.server.pages.site import PAGE, Data, Visit, check_name

__all__ = ["ROUTES", "show_dataset"]

_TEXTS = ("text", "date", "timestamp", "instant")


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
    series = visit.do("listSeries", query={"dataset": name, "limit": PAGE} | visit.read_place("series_before"))
    trained = visit.do("listTrainings", query={"dataset": name, "limit": PAGE} | visit.read_place("trained_before"))
    return visit.render(
        "dataset.html",
        found=found,
        tree=_tree(grants["grants"], (found.get("budget") or {}).get("left", math.inf)),
        more=grants["next"],
        booked=grants.get("booked"),
        people=visit.read_names(grant["principal"] for grant in grants["grants"]),
        everybody=[one["name"] for one in visit.do("listPrincipals", query={"limit": 500})["principals"]]
        if can_grant and visit.may("principal.list")
        else [],
        series=series["series"],
        more_series=series["next"],
        trainings=trained["trainings"],
        more_trainings=trained["next"],
        can_ask=visit.may("ask", name),
        can_grant=can_grant,
        can_schedule=visit.may("stream.create", name) and found["state"] == "open",
        can_retire=visit.may("dataset.retire", name) and found["state"] in ("open", "frozen"),
        can_freeze=visit.may("dataset.freeze", name) and found["state"] == "open",
        can_thaw=visit.may("dataset.thaw", name) and found["state"] == "frozen",
        failed=_read_failures(visit, found),
        registry=visit.do("readRegistryDetails", path=visit.path) if visit.may("dataset.describe", name) else None,
        sectors=SECTORS,
        can_lift=visit.may("dataset.lift", name),
        can_sign=visit.may("dataset.countersign", name) and found["version"] != found["newest_version"],
        can_declare=visit.may("dataset.declare", name) and found["kind"] == "table" and found["state"] != "retired",
        proposed=_read_proposed(visit, found),
        expires=visit.read_field("expires", (datetime.now(UTC).date() + timedelta(days=90)).isoformat()),
    )


def _read_failures(visit: Visit, found: Data) -> Data | None:
    """How many paid questions failed, for those who see the budget; nothing where none did."""
    if not found.get("budget"):
        return None
    account = visit.service.ledger.account(found["budget"]["account"])
    count, most = account.failures, account.terms.failures
    is_frozen = account.frozen
    return {"count": count, "most": most, "frozen_above": is_frozen and count < most} if count or is_frozen else None


def _read_proposed(visit: Visit, found: Data) -> list[Data]:
    """What the newest declaration changes, for those who write or sign it; nothing where it is in force."""
    name = found["name"]
    sees = visit.may("dataset.declare", name) or visit.may("dataset.countersign", name)
    if not sees or found["kind"] != "table" or found["version"] in (0, found["newest_version"]):
        return []
    kept, _ = declaration_of(visit.service.database, name, None)
    before = {column["name"]: column for column in found["declaration"]["columns"]}
    after = {column: {"name": column} | said for column, said in kept["columns"].items()}
    names = (one for one in {**before, **after} if before.get(one) != after.get(one))
    changed = [after.get(one, {"name": one, "gone": True}) for one in names]
    unit = {"name": kept["unit"].get("person", name)} | kept["unit"]
    return changed + ([unit] if kept["unit"] != found["declaration"]["unit"] or not changed else [])


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
    if "epsilon" not in body:
        raise BadRequest("server.field_missing", parameter="epsilon")
    check_limits(body, _read_budget(visit), name=visit.path["dataset"])
    visit.do("createGrant", path=visit.path, body=body)
    return visit.go(f"/datasets/{visit.path['dataset']}")


def _read_budget(visit: Visit) -> Data | None:
    found: Data | None = visit.do("readDataset", path={"dataset": visit.path["dataset"]}).get("budget")
    return found


def add_block(visit: Visit) -> Response:
    """Open a block of the data, such as a year: rows whose column lies from one value up to another."""
    condition: Data = {"column": visit.read_field("column").strip()}
    declared = visit.do("readDataset", path={"dataset": visit.path["dataset"]})["declaration"].get("columns", ())
    kinds = {column["name"]: column.get("type", "text") for column in declared}
    for part in ("from", "until"):
        if (said := visit.read_field(part).strip()) != "":
            condition[part] = said if kinds.get(condition["column"]) in _TEXTS else visit.number(part)
    body: Data = {"name": visit.read_field("name").strip(), "condition": condition}
    for part in ("epsilon", "delta"):
        if (value := visit.number(part)) is not None:
            body[part] = value
    if "epsilon" not in body:
        raise BadRequest("server.field_missing", parameter="epsilon")
    check_limits(body, _read_budget(visit), name=visit.path["dataset"])
    visit.do("createBlock", path=visit.path, body=body)
    return visit.go(f"/datasets/{visit.path['dataset']}")


_LISTED = ("data_curators", "registry_authors")
_SAID = ("description", "intended_use", "data_product_region", "data_product_sector")


def describe(visit: Visit) -> Response:
    """Keep what the public registry asks for; what is left empty may be filled in another day."""
    body: Data = {part: said for part in _SAID if (said := visit.read_field(part).strip())}
    for part in _LISTED:
        if names := [line.strip() for line in visit.read_field(part).splitlines() if line.strip()]:
            body[part] = names
    visit.do("writeRegistryDetails", path=visit.path, body=body)
    return visit.go(f"/datasets/{visit.path['dataset']}#registry")


def revoke(visit: Visit) -> Response:
    found = visit.do("readGrant", path=visit.path)
    visit.do("revokeGrant", path=visit.path, query={"reason": visit.read_field("reason").strip()[:300]})
    return visit.go(f"/datasets/{found['dataset']}")


def change(visit: Visit) -> Response:
    """Freeze, thaw, retire, countersign, or say that failures were looked into."""
    operations = {"freeze": "freezeDataset", "thaw": "thawDataset", "sign": "countersignDataset"}
    operations |= {"retire": "retireDataset", "lift": "liftDataset"}
    operation = operations.get(visit.path["change"])
    if operation is None:
        raise BadRequest("server.field_unknown", parameter="change")
    reason = visit.read_field("reason").strip()[:300]
    if operation != "countersignDataset" and not reason:
        raise BadRequest("server.field_missing", parameter="reason")
    path = {"dataset": visit.path["dataset"]}
    if operation == "countersignDataset":
        read = visit.read_field("version")
        visit.do(operation, path=path, query={"version": int(read)} if read.isdecimal() else {})
    else:
        visit.do(operation, path=path, body={"reason": reason})
    return visit.go(f"/datasets/{visit.path['dataset']}")


ROUTES = (
    ("GET", "/datasets", list_all),
    ("GET", "/datasets/{dataset}", show_dataset),
    ("POST", "/datasets/{dataset}/grants", grant, show_dataset),
    ("POST", "/datasets/{dataset}/blocks", add_block, show_dataset),
    ("POST", "/datasets/{dataset}/registry", describe, show_dataset),
    ("POST", "/datasets/{dataset}/{change}", change, show_dataset),
    ("POST", "/grants/{grant}/revoke", revoke),
)

"""The entry of the public registry: what the ledger knows of a deployment, with what its curator said."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mosha.ledger.publishing.registry import SECTORS, draft_entry, make_entry, write_yaml
from mosha.ledger.publishing.statement import Statement
from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import array, one_of, record, text
from mosha.server.catalogue.datasets import find_dataset
from mosha.server.catalogue.details import list_missing, read_details, write_details
from mosha.server.errors import Conflict
from mosha.server.people.permissions import Thing
from mosha.server.service import Service

__all__ = ["OPERATIONS", "as_file", "complete_entry", "draw_entry"]


def draw_entry(call: Call, dataset: str, more: Mapping[str, object]) -> dict[str, Any]:
    """The entry for something that everybody may read, with `more` that is said of it.

    The ledger's part is drawn up once a minute. What is spent so far, and the names of those who may spend it, stay
    inside.
    """
    account = find_dataset(call.service.database, dataset)["account"]
    draft = call.service.public.find(f"registry {account}", partial(_draw_up, call.service, account))
    return complete_entry(call.service, draft, dataset, {"access_type": "Non-interactive", **more})


def _draw_up(service: Service, account: str) -> dict[str, Any]:
    entry = draft_entry(replace(service.ledger.statement(account), head=service.public.find_head()))
    sections = {name: dict(fields) for name, fields in entry["deployment"].items()}
    sections["privacy_loss"].pop("privacy_parameters_details", None)
    sections["deployment_model"].pop("access_type_details", None)
    return entry | {"deployment": sections}


def complete_entry(
    service: Service, drawn: Statement | Mapping[str, Any], dataset: str, more: Mapping[str, object]
) -> dict[str, Any]:
    """A draft with what the curator said; refused as long as something is missing that no entry can do without."""
    draft: Mapping[str, Any] = draft_entry(drawn) if isinstance(drawn, Statement) else drawn
    details = {**read_details(service.database, dataset), **more}
    if missing := list_missing(details):
        raise Conflict("server.registry_incomplete", missing=missing, name=dataset)
    row = find_dataset(service.database, dataset)
    said: dict[str, object] = {"name": row["title"] or row["name"], "data_product_type": "Interactive API"}
    said |= {"access_type": "Interactive", "data_source_type": _find_source(service, dataset)}
    return make_entry(draft, said | details)


def _find_source(service: Service, dataset: str) -> str:
    """Whether rows come as time goes on: where a series is fed, or the data come in blocks."""
    find = "SELECT 1 AS found FROM schedules WHERE dataset = ? UNION SELECT 1 FROM blocks WHERE dataset = ?"
    return "Static" if service.database.row(find, dataset, dataset) is None else "Dynamic"


def as_file(entry: Mapping[str, object], name: str) -> Reply:
    """An entry as the registry takes it."""
    headers = {"Content-Disposition": f'attachment; filename="{re.sub("[^a-z0-9-]", "-", name.lower())}.yaml"'}
    return Reply(write_yaml(entry), media="application/yaml", headers=headers)


def read(call: Call) -> Reply:
    details = read_details(call.service.database, call.path["dataset"])
    return Reply({"details": details, "missing": list_missing(details)})


def write(call: Call) -> Reply:
    database, name = call.service.database, call.path["dataset"]
    if not list_missing(call.body) and find_dataset(database, name)["version"]:  # what the registry refuses is refused
        statement = call.service.ledger.statement(find_dataset(database, name)["account"])
        make_entry(draft_entry(statement), {"data_product_type": "Interactive API", **call.body})
    write_details(database, name, call.body)
    return read(call)


def _thing(call: Call) -> Thing:
    return Thing(find_dataset(call.service.database, call.path["dataset"])["name"])


_NAMES = array(text(200), most=20)
_DETAILS = record(
    {},
    {
        "data_curators": _NAMES,
        "description": text(4000),
        "intended_use": text(2000),
        "data_product_region": text(200),
        "data_product_sector": one_of(*SECTORS),
        "registry_authors": _NAMES,
    },
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="readRegistryDetails",
        method="GET",
        path="/datasets/{dataset}/registry",
        verb="dataset.read",
        tag="catalogue",
        summary="What the curator said about a dataset for the public registry, and what is missing.",
        handler=read,
        thing=_thing,
    ),
    Operation(
        name="writeRegistryDetails",
        method="PUT",
        path="/datasets/{dataset}/registry",
        verb="dataset.describe",
        tag="catalogue",
        summary="Say what no ledger knows and the public registry asks for.",
        handler=write,
        thing=_thing,
        body=_DETAILS,
    ),
)

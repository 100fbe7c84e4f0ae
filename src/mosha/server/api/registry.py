"""The entry of the public registry of deployments, for whatever everybody may read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from mosha.ledger.publishing.registry import draft_entry, missing_fields, write_yaml
from mosha.server.api.operation import Call, Reply
from mosha.server.catalogue.datasets import find_dataset
from mosha.server.service import Service

__all__ = ["registry_of", "reply_with_registry"]


def registry_of(call: Call, dataset: str) -> dict[str, Any]:
    """What the public registry of deployments wants to know of a dataset, as far as everybody may know it.

    It is drawn up once a minute. What is spent so far, and the names of those who may spend it, stay inside.
    """
    account = find_dataset(call.service.database, dataset)["account"]
    return call.service.public.find(f"registry {account}", partial(_draw_up, call.service, account))


def _draw_up(service: Service, account: str) -> dict[str, Any]:
    entry = draft_entry(replace(service.ledger.statement(account), head=service.public.find_head()))
    sections = {name: dict(fields) for name, fields in entry["deployment"].items()}
    sections["privacy_loss"].pop("privacy_parameters_details", None)
    sections["deployment_model"].pop("access_type_details", None)
    public = entry | {"deployment": sections}
    tier = max(level for level in (1, 2, 3) if level == 1 or not missing_fields(public, level))
    return public | {"missing": missing_fields(public, 1), "tier": tier}


def reply_with_registry(call: Call, dataset: str, name: str) -> Reply:
    """The same as a file."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.yaml"'}
    return Reply(write_yaml(registry_of(call, dataset)), media="application/yaml", headers=headers)

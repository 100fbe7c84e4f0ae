"""The entry of the public registry of deployments, for whatever everybody may read."""

from __future__ import annotations

from typing import Any

from mosha.ledger.publishing.registry import missing_fields, write_yaml
from mosha.server.api.operation import Call, Reply
from mosha.server.catalogue.datasets import find_dataset

__all__ = ["registry_of", "reply_with_registry"]


def registry_of(call: Call, dataset: str) -> dict[str, Any]:
    """What the public registry of deployments wants to know of a dataset, as far as everybody may know it.

    What is spent so far, and the names of those who may spend it, stay inside.
    """
    account = find_dataset(call.service.database, dataset)["account"]
    entry: dict[str, Any] = call.service.ledger.statement(account).to_dict()["registry"]
    sections = {name: dict(fields) for name, fields in entry["deployment"].items()}
    sections["privacy_loss"].pop("privacy_parameters_details", None)
    sections["deployment_model"].pop("access_type_details", None)
    public = entry | {"deployment": sections}
    return public | {"tier": max(level for level in (1, 2, 3) if level == 1 or not missing_fields(public, level))}


def reply_with_registry(call: Call, dataset: str, name: str) -> Reply:
    """The same as a file."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.yaml"'}
    return Reply(write_yaml(registry_of(call, dataset)), media="application/yaml", headers=headers)

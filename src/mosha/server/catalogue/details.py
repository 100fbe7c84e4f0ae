"""What no ledger knows of a dataset and the public registry of deployments asks for: said once, by its curator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mosha.server.catalogue.datasets import find_dataset
from mosha.server.store.database import Database

__all__ = ["NEEDED", "list_missing", "read_details", "write_details"]

NEEDED = ("data_curators", "description", "intended_use", "data_product_region", "registry_authors")


def read_details(database: Database, dataset: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(find_dataset(database, dataset)["registry"])
    return found


def write_details(database: Database, dataset: str, said: Mapping[str, object]) -> None:
    """In place of what was said before; an entry that was handed in elsewhere stays what it is."""
    database.run("UPDATE datasets SET registry = ? WHERE name = ?", json.dumps(dict(said)), dataset)


def list_missing(details: Mapping[str, object]) -> list[str]:
    """Which details an entry cannot do without, and are not said."""
    return [name for name in NEEDED if not details.get(name)]

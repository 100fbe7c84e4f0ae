"""Mosha (磨砂): differential privacy for tables, streams, graphs, reports and learning, paid from one ledger.

Names are loaded when they are first used, so importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mosha._version import __version__ as __version__

if TYPE_CHECKING:
    from mosha import accounting as accounting
    from mosha import audit as audit
    from mosha import errors as errors
    from mosha import events as events
    from mosha import federated as federated
    from mosha import graphs as graphs
    from mosha import guarantees as guarantees
    from mosha import learning as learning
    from mosha import ledger as ledger
    from mosha import local as local
    from mosha import mechanisms as mechanisms
    from mosha import noise as noise
    from mosha import sql as sql
    from mosha import streams as streams
    from mosha import tables as tables
    from mosha.connect.expression import col as col
    from mosha.core.account import Account as Account
    from mosha.core.account import Run as Run
    from mosha.core.measurement import Measurement as Measurement
    from mosha.core.release import Receipt as Receipt
    from mosha.core.release import Release as Release
    from mosha.core.unit import Client as Client
    from mosha.core.unit import Edge as Edge
    from mosha.core.unit import Event as Event
    from mosha.core.unit import Example as Example
    from mosha.core.unit import Neighbours as Neighbours
    from mosha.core.unit import Node as Node
    from mosha.core.unit import Person as Person
    from mosha.core.unit import Row as Row
    from mosha.core.unit import Self as Self
    from mosha.core.unit import Unit as Unit
    from mosha.core.unit import Window as Window
    from mosha.ledger import Ledger as Ledger
    from mosha.sql import query as query
    from mosha.tables import protect as protect

_MODULES = {
    "accounting": "mosha.accounting",
    "audit": "mosha.audit",
    "errors": "mosha.errors",
    "events": "mosha.events",
    "federated": "mosha.federated",
    "graphs": "mosha.graphs",
    "guarantees": "mosha.guarantees",
    "learning": "mosha.learning",
    "ledger": "mosha.ledger",
    "local": "mosha.local",
    "mechanisms": "mosha.mechanisms",
    "noise": "mosha.noise",
    "sql": "mosha.sql",
    "streams": "mosha.streams",
    "tables": "mosha.tables",
}
_NAMES = {
    "Account": "mosha.core.account",
    "Ledger": "mosha.ledger",
    "Measurement": "mosha.core.measurement",
    "Receipt": "mosha.core.release",
    "Release": "mosha.core.release",
    "Run": "mosha.core.account",
    "col": "mosha.connect.expression",
    "protect": "mosha.tables",
    "query": "mosha.sql",
} | dict.fromkeys(
    ["Client", "Edge", "Event", "Example", "Neighbours", "Node", "Person", "Row", "Self", "Unit", "Window"],
    "mosha.core.unit",
)
__all__ = ["__version__", *sorted(_MODULES), *sorted(_NAMES)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        raise AttributeError(f"module 'mosha' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

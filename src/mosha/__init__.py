"""Mosha (磨砂): differential privacy for tables, streams, graphs, reports and learning, paid from one ledger.

Names are loaded when they are first used, so importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha._version import __version__ as __version__
from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha import accounting as accounting
    from mosha import audit as audit
    from mosha import client as client
    from mosha import connect as connect
    from mosha import errors as errors
    from mosha import events as events
    from mosha import federated as federated
    from mosha import graphs as graphs
    from mosha import guarantees as guarantees
    from mosha import learning as learning
    from mosha import ledger as ledger
    from mosha import local as local
    from mosha import mechanisms as mechanisms
    from mosha import models as models
    from mosha import noise as noise
    from mosha import reports as reports
    from mosha import sql as sql
    from mosha import streams as streams
    from mosha import synth as synth
    from mosha import tables as tables
    from mosha.client import connect_to as connect_to
    from mosha.connect.language.cases import when as when
    from mosha.connect.language.expression import col as col
    from mosha.connect.language.expression import lit as lit
    from mosha.core.account import Account as Account
    from mosha.core.account import Run as Run
    from mosha.core.faults.weakness import WeakPromise as WeakPromise
    from mosha.core.language import set_language as set_language
    from mosha.core.measurement import Measurement as Measurement
    from mosha.core.private_log import keep_private_log as keep_private_log
    from mosha.core.release import Receipt as Receipt
    from mosha.core.release import Release as Release
    from mosha.core.unit import Client as Client
    from mosha.core.unit import Edge as Edge
    from mosha.core.unit import Example as Example
    from mosha.core.unit import Member as Member
    from mosha.core.unit import Neighbors as Neighbors
    from mosha.core.unit import Node as Node
    from mosha.core.unit import Own as Own
    from mosha.core.unit import Person as Person
    from mosha.core.unit import Reading as Reading
    from mosha.core.unit import Row as Row
    from mosha.core.unit import Unit as Unit
    from mosha.core.unit import Window as Window
    from mosha.ledger import Ledger as Ledger
    from mosha.protection import protect as protect
    from mosha.reports.report import Report as Report
    from mosha.sql import query as query
    from mosha.tables import protect_database as protect_database

_MODULES = [
    "accounting",
    "audit",
    "client",
    "connect",
    "errors",
    "events",
    "federated",
    "graphs",
    "guarantees",
    "learning",
    "ledger",
    "local",
    "mechanisms",
    "models",
    "noise",
    "reports",
    "sql",
    "streams",
    "synth",
    "tables",
]
_NAMES = {
    "Account": "core.account",
    "Ledger": "ledger",
    "Measurement": "core.measurement",
    "Receipt": "core.release",
    "Release": "core.release",
    "Report": "reports.report",
    "Run": "core.account",
    "WeakPromise": "core.faults.weakness",
    "col": "connect.language.expression",
    "connect_to": "client",
    "keep_private_log": "core.private_log",
    "lit": "connect.language.expression",
    "protect": "protection",
    "protect_database": "tables",
    "query": "sql",
    "set_language": "core.language",
    "when": "connect.language.cases",
} | dict.fromkeys(
    ["Client", "Edge", "Example", "Member", "Neighbors", "Node", "Own", "Person", "Reading", "Row", "Unit", "Window"],
    "core.unit",
)
__all__ = ["__version__", *_MODULES, *sorted(_NAMES)]  # noqa: PLE0604
__getattr__, __dir__ = loaded_when_used(
    __name__, _NAMES, _MODULES, renamed={"Event": "Reading", "Neighbours": "Neighbors", "Self": "Own"}
)

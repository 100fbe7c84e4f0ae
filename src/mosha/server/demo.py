"""The demo: a made-up hospital, a curator, a reviewer, an auditor and two analysts, so that one command shows it all.

Nobody in it is real: the rows are drawn by a generator with a fixed seed, and the promise protects nobody.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import random
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from mosha.core.errors import MoshaError
from mosha.server.asking.requests import submit
from mosha.server.catalogue.datasets import countersign, propose_dataset
from mosha.server.catalogue.details import write_details
from mosha.server.catalogue.grants import make_grant
from mosha.server.errors import Conflict
from mosha.server.people.credentials import issue
from mosha.server.people.principals import create_principal, give_role, load_principal
from mosha.server.service import Service

__all__ = ["PEOPLE", "leave_demo_question", "make_demo", "open_demo_survey"]

SURVEY = "fever-at-work"
SURVEY_TITLE = "Did you come to work with a fever this year? · 今年您曾发着烧上班吗？"  # noqa: RUF001
SAID = {"never · 从未": 260, "once or twice · 一两次": 110, "more often · 更多次": 30}  # made-up people who answered
WARDS = {"cardiology": 4.1, "surgery": 6.2, "pediatrics": 2.9, "neurology": 7.4}
PEOPLE = {
    "ada": (("administrator", "*"),),
    "wang": (("curator", "*"),),
    "zhao": (("reviewer", "*"),),
    "sun": (("auditor", "*"),),
    "li": (),
    "zhang": (),
}
TYPES = {"patient_id": "integer", "ward": "text", "day": "date", "days": "integer", "age": "integer"}
DECLARATION: dict[str, Any] = {
    "unit": {"person": "patient_id", "at_most": 4},
    "columns": {
        "patient_id": {"type": "integer"},
        "ward": {"type": "text", "keys": list(WARDS), "origin": "codebook"},
        "day": {"type": "date"},
        "days": {"type": "integer", "between": [0, 30], "origin": "codebook"},
        "age": {"type": "integer", "between": [0, 120], "origin": "law"},
    },
}
HOUR = 3_600_000_000  # microseconds
WAITING: dict[str, Any] = {
    "dataset": "visits",
    "sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "price": {"epsilon": 0.6},
    "purpose": "how many beds each ward needs next year · 测算明年各科室床位",
}
REGISTRY = {
    "data_curators": ["A made-up hospital"],
    "description": "Stays of made-up patients: counts, sums and means by ward.",
    "intended_use": "To show what Mosha does; nobody in it is real.",
    "data_product_region": "Nowhere",
    "data_product_sector": "Healthcare",
    "registry_authors": ["wang"],
}


def write_hospital(path: Path, *, patients: int = 4000) -> None:
    """A made-up table of stays."""
    draw = random.Random(20261117)  # noqa: S311  (nobody's secret: these people do not exist)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        for patient in range(1, patients + 1):
            age = min(110, max(0, int(draw.gauss(52, 22))))
            for _ in range(draw.choice((1, 1, 1, 2, 3))):
                ward = draw.choice(list(WARDS))
                stay = min(60, int(draw.expovariate(1 / WARDS[ward])))
                writer.writerow([patient, ward, date(2026, 1, 1) + timedelta(days=draw.randrange(300)), stay, age])


def make_demo(service: Service) -> dict[str, str]:
    """Fill an empty service; the tokens of everybody, by name. A service that is filled already is left as it is."""
    place = service.settings.folder / "demo-tokens.json"
    if service.database.row("SELECT 1 AS found FROM datasets WHERE name = 'visits'"):
        known: dict[str, str] = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
        return known
    data = service.settings.folder / "data" / "visits.csv"
    write_hospital(data)
    identities = {}
    for name, roles in PEOPLE.items():
        identities[name] = create_principal(service.database, kind="person", name=name)
        for role, dataset in roles:
            give_role(service.database, identities[name], role, dataset)
    said = {
        "name": "visits",
        "title": "Stays in a made-up hospital\N{NO-BREAK SPACE}· 虚构医院的住院记录",
        "declaration": DECLARATION,
        "promise": {"epsilon": 3.0, "delta": 1e-6, "failures": 10},
        "population": {"name": "patients", "epsilon": 5.0, "delta": 1e-5, "failures": 10},
        "timing": service.settings.timing,
        "deadline": service.settings.deadline,
    }
    propose_dataset(service.database, said, {"path": str(data.resolve())}, TYPES, identities["wang"])
    countersign(service.database, service.ledger, "visits", "zhao")
    write_details(service.database, "visits", REGISTRY)
    until = (datetime.now(UTC).date() + timedelta(days=90)).isoformat()
    for name in ("li", "zhang"):
        grant = {"principal": name, "epsilon": 1.0, "delta": 1e-7, "expires": until, "approve_above": 0.5}
        make_grant(service.database, service.ledger, "visits", grant | {"purpose": "a demo"}, "wang")
    tokens = {
        name: issue(service.database, identity, "token", seconds=90 * 86_400, label="demo").secret
        for name, identity in identities.items()
    }
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(tokens, file, indent=2)
    return tokens


def leave_demo_question(service: Service) -> None:
    """A question that waits when somebody first looks as the privacy officer: a colleague asked it an hour before."""
    zhang = service.database.row("SELECT id FROM principals WHERE name = 'zhang' AND state = 'active'")
    asker = load_principal(service.database, zhang["id"]) if zhang else None
    if asker is None or service.database.row("SELECT 1 AS found FROM requests WHERE person = ?", asker.id):
        return
    with suppress(MoshaError):  # a demo that was changed so far that it does not fit any more
        row, _ = submit(service.database, service.ledger, service.settings, asker, WAITING, "demo")
        service.database.run("UPDATE requests SET created = created - ? WHERE id = ?", HOUR, row["id"])


def open_demo_survey(service: Service) -> str:
    """A survey that made-up people have answered already, opened when somebody first asks for it; its name.

    Whoever looks at it as a curator sees an estimate; whoever answers it sees what leaves their browser.
    """
    from mosha.local import Frequency  # noqa: PLC0415  (a server starts without it)
    from mosha.server.catalogue.surveys import add_reports, open_survey  # noqa: PLC0415

    if service.database.row("SELECT 1 AS found FROM surveys WHERE name = ?", SURVEY):
        return SURVEY
    survey = Frequency(list(SAID), epsilon=1.5, protocol="k-ary")
    said = {"name": SURVEY, "title": SURVEY_TITLE, "survey": survey.to_dict(), "tickets": "required"}
    try:
        open_survey(service.database, said, "wang")
    except Conflict:  # somebody else was a moment earlier
        return SURVEY
    reports = [survey.report(answer) for answer, many in SAID.items() for _ in range(many)]
    sent = [base64.b64encode(one).decode() for one in reports]
    tickets = [base64.b64encode(os.urandom(16)).decode() for _ in reports]
    add_reports(service.database, SURVEY, sent, tickets)
    return SURVEY

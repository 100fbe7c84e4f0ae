"""Trainings that run elsewhere: priced, reserved before they begin, reported on when they end."""

from __future__ import annotations

from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import integer, mapping, number, one_of, record, text
from mosha.server.api.shapes import NEWEST
from mosha.server.catalogue.grants import find_grant
from mosha.server.catalogue.trainings import (
    describe_training,
    find_training,
    list_trainings,
    price_training,
    report_training,
    reserve,
)
from mosha.server.errors import NotFound
from mosha.server.people.permissions import Thing, may

__all__ = ["OPERATIONS"]


def _body_thing(call: Call) -> Thing:
    """The dataset that pays; a grant must be of that dataset."""
    grant = call.body.get("grant")
    if grant is not None and find_grant(call.service.database, grant)["dataset"] != call.body["dataset"]:
        raise NotFound("server.not_found")
    return Thing(call.body["dataset"])


def _thing(call: Call) -> Thing:
    return Thing(find_training(call.service.database, call.path["training"])["dataset"])


def price(call: Call) -> Reply:
    return Reply(price_training(call.service.database, call.service.ledger, call.body))


def create(call: Call) -> Reply:
    service = call.service
    overbooks = service.settings.overbooking == "allow"
    author = call.principal.name
    row, _ = reserve(service.database, service.ledger, call.body, author, call.key, overbooks=overbooks)
    return Reply(describe_training(row), 201, headers={"Location": f"/api/v1/trainings/{row['id']}"})


def report(call: Call) -> Reply:
    service, row = call.service, find_training(call.service.database, call.path["training"])
    steps, state = call.body["steps"], call.body.get("state")
    return Reply(describe_training(report_training(service.database, service.ledger, row, steps=steps, state=state)))


def read(call: Call) -> Reply:
    return Reply(describe_training(find_training(call.service.database, call.path["training"])))


def list_visible(call: Call) -> Reply:
    rows, following = call.read_page(list_trainings, call.service.database, dataset=call.query.get("dataset"))
    shown = [row for row in rows if may(call.principal, "training.read", Thing(row["dataset"]))]
    return Reply({"trainings": [describe_training(row) for row in shown], "next": following})


_PLAN = {"dataset": text(63), "event": mapping()}
_MORE = {"unit": mapping(), "grant": text(40), "delta": number(above=0, most=0.5)}


def _training(name: str, method: str, path: str, verb: str, summary: str) -> Operation:
    handlers = {"reportTraining": report, "readTraining": read}
    body = record({"steps": integer(least=0)}, {"state": one_of("finished", "failed", "abandoned")})
    return Operation(
        name=name,
        method=method,
        path=f"/trainings/{{training}}{path}",
        verb=verb,
        tag="trainings",
        summary=summary,
        handler=handlers[name],
        thing=_thing,
        body=body if method == "POST" else None,
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="priceTraining",
        method="POST",
        path="/trainings/price",
        verb="training.price",
        tag="trainings",
        summary="What the plan of a training would cost everybody who pays. Nothing is paid.",
        handler=price,
        thing=_body_thing,
        body=record(_PLAN, _MORE),
    ),
    Operation(
        name="reserveTraining",
        method="POST",
        path="/trainings",
        verb="training.reserve",
        status=201,
        tag="trainings",
        spends=True,
        summary="Pay for a whole training that runs elsewhere. The header Idempotency-Key makes every retry free.",
        handler=create,
        thing=_body_thing,
        body=record(_PLAN | {"name": text(100)}, _MORE | {"steps": integer(least=1), "purpose": text(2000, least=0)}),
    ),
    Operation(
        name="listTrainings",
        method="GET",
        path="/trainings",
        verb="training.list",
        tag="trainings",
        summary="Trainings of datasets that I may look after, the newest first.",
        handler=list_visible,
        query={"dataset": text(63), **NEWEST},
    ),
    _training("readTraining", "GET", "", "training.read", "A training: its plan, who paid, how far it says it is."),
    _training("reportTraining", "POST", "/report", "training.report", "Say how far a training is, and how it ended."),
)

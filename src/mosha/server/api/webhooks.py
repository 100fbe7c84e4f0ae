"""Webhooks: whom to tell that something happened."""

from __future__ import annotations

from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import array, one_of, record, text
from mosha.server.catalogue.webhooks import EVENTS, create_webhook, delete_webhook, describe_webhook, list_webhooks

__all__ = ["OPERATIONS"]


def create(call: Call) -> Reply:
    row, key = create_webhook(call.service.database, call.body, call.principal.id)
    call.service.ledger.note("webhook/made", {"webhook": row["id"], "by": call.principal.name})
    return Reply(describe_webhook(row) | {"key": key}, 201)


def list_all(call: Call) -> Reply:
    return Reply({"webhooks": [describe_webhook(row) for row in list_webhooks(call.service.database)]})


def delete(call: Call) -> Reply:
    delete_webhook(call.service.database, call.path["webhook"])
    call.service.ledger.note("webhook/deleted", {"webhook": call.path["webhook"], "by": call.principal.name})
    return Reply(None, 204)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="createWebhook",
        method="POST",
        path="/webhooks",
        verb="webhook.manage",
        status=201,
        tag="operations",
        summary="Tell another program when something happens; the key that signs is shown once.",
        handler=create,
        body=record({"url": text(1000), "events": array(one_of(*EVENTS), most=len(EVENTS))}),
    ),
    Operation(
        name="listWebhooks",
        method="GET",
        path="/webhooks",
        verb="webhook.manage",
        tag="operations",
        summary="Who is told; never the keys.",
        handler=list_all,
    ),
    Operation(
        name="deleteWebhook",
        method="DELETE",
        path="/webhooks/{webhook}",
        verb="webhook.manage",
        status=204,
        tag="operations",
        summary="Tell no longer.",
        handler=delete,
    ),
)

"""All operations of version 1, in one table."""

from __future__ import annotations

from mosha.server.api import book, datasets, lessons, registry, requests, series, sessions, surveys, trainings, webhooks
from mosha.server.api.operation import Operation

__all__ = ["BY_NAME", "OPERATIONS", "PREFIX"]

PREFIX = "/api/v1"
OPERATIONS: tuple[Operation, ...] = (
    *sessions.OPERATIONS,
    *datasets.OPERATIONS,
    *requests.OPERATIONS,
    *book.OPERATIONS,
    *registry.OPERATIONS,
    *surveys.OPERATIONS,
    *series.OPERATIONS,
    *trainings.OPERATIONS,
    *webhooks.OPERATIONS,
    *lessons.OPERATIONS,
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}

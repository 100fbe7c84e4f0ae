"""Surveys in the local model: reports are randomised on the device; the server collects them and never sees a truth."""

from __future__ import annotations

from mosha.server.api.operation import Operation

__all__ = ["OPERATIONS"]

OPERATIONS: tuple[Operation, ...] = ()

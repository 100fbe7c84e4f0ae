"""A training that runs here and is paid for there: reserved before it begins, reported on when it ends."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from mosha.client.transport import Transport

__all__ = ["RemoteTraining"]


class RemoteTraining:
    """A training whose whole plan was paid for; used with `with`, it reports how it ended.

    The server takes this program's word for what it does with the data: keep to the plan that was reserved.
    """

    def __init__(self, transport: Transport, described: dict[str, Any]) -> None:
        self._transport = transport
        self.described = described

    @property
    def id(self) -> str:
        return str(self.described["id"])

    @property
    def state(self) -> str:
        """`reserved`, `finished`, `failed` or `abandoned`."""
        return str(self.described["state"])

    def report(self, steps: int, state: str | None = None) -> None:
        """Say how many steps were taken, and how it ended. What is reported never lowers what was paid."""
        body = {"steps": steps} | ({} if state is None else {"state": state})
        self.described = self._transport.call("POST", f"/trainings/{self.id}/report", body)

    def finish(self, steps: int | None = None) -> None:
        """Say that all steps were taken."""
        planned = self.described["steps"] or 0
        self.report(max(planned, self.described["reported_steps"]) if steps is None else steps, "finished")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.state == "reserved":
            if kind is None:
                self.finish()
            else:
                self.report(self.described["reported_steps"], "failed")

    def __repr__(self) -> str:
        return f"<RemoteTraining {self.described['name']}: {self.state}>"

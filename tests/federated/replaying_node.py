"""A SuperNode that sends all its replies again after each new one; the first argument is the log of that."""

import contextlib
import importlib
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from flwr.supernode.cli import flower_supernode

internal = importlib.import_module("flwr.supernode.start_client_internal")
LOG = pathlib.Path(sys.argv.pop(1))
connected = internal.http_request_response


@contextlib.contextmanager
def replaying(*arguments: Any, **options: Any) -> Iterator[tuple[Any, ...]]:
    with connected(*arguments, **options) as (node, receive, send, *others):
        sent, fresh = [], []

        def send_and_remember(*reply: Any) -> Any:
            answer = send(*reply)
            fresh.append(reply)
            return answer

        def replay_and_receive() -> Any:
            if fresh:
                sent.extend(fresh)
                fresh.clear()
                for old in sent:
                    replay(send, old)
            return receive()

        yield node, replay_and_receive, send_and_remember, *others


def replay(send: Any, reply: Any) -> None:
    try:
        send(*reply)
        outcome = "taken"
    except Exception as problem:  # noqa: BLE001  (whatever a SuperLink says to it)
        outcome = type(problem).__name__
    with LOG.open("a") as log:
        log.write(f"{outcome}\n")


internal.http_request_response = replaying  # type: ignore[attr-defined]
flower_supernode()

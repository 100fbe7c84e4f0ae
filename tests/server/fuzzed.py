"""Requests that openapi.json allows, and requests that it does not, by the thousand: none ends in an error of ours."""

import contextlib
import time
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from mosha.server.api.description import describe_api
from mosha.server.people.credentials import issue
from mosha.server.people.permissions import ROLES
from mosha.server.people.principals import create_principal, give_role

KNOWN = {"dataset": "visits", "principal": "zhang", "survey": "smoking", "slug": "stays", "series": "days"}
KNOWN["lesson"] = "noise"
CLOSING = ("freezeDataset", "retireDataset", "changePrincipal", "revokeGrant", "closeSession")
QUIET = settings(
    deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True
)


def make_king(house: Any) -> Any:
    """Somebody with every role, so that nothing is refused for want of a right alone."""
    database = house.service.database
    identity = create_principal(database, kind="person", name=f"king {time.monotonic_ns()}")
    for role in ROLES:
        give_role(database, identity, role)
    return issue(database, identity, "token", seconds=86_400).secret


def find_operations() -> list[Any]:
    """All operations; those that close something come last."""
    schema = schemathesis.openapi.from_dict(describe_api())
    found = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    return sorted(found, key=lambda one: one.definition.raw["operationId"] in CLOSING)


def try_operation(house: Any, operation: Any, token: Any, *, examples: Any, afresh: bool = False) -> Any:
    """Send examples of one operation, half of them wrong on purpose; how many were sent."""
    described = operation.definition.raw
    names = [one["name"] for one in described["parameters"]] if "parameters" in described else []
    sent = 0
    session = requests.Session()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        known = {name: KNOWN[name] for name in names if name in KNOWN}
        for fixed in (known, {}) if known else ({},):
            whole = set(known) >= {name for name in names if f"{{{name}}}" in operation.path}
            strategy = operation.as_strategy(mode, path_parameters=fixed if fixed and whole else None)

            @settings(QUIET, derandomize=not afresh, max_examples=max(1, examples // (4 if known else 2)))
            @given(case=strategy)
            def send(case: Any) -> None:
                nonlocal sent
                sent += 1
                base = str(house.client.base_url).rstrip("/")
                headers = {"Authorization": f"Bearer {token}"}
                check(described, case.call(base_url=base, session=session, headers=headers, timeout=60), case)

            with contextlib.suppress(Unsatisfiable):  # nothing can be said wrongly where nothing is said
                send()
    return sent


def check(described: Any, reply: Any, case: Any) -> None:
    """No error of ours, only statuses that openapi.json names, and every refusal is a problem with a code."""
    assert reply.status_code < 500, (reply.status_code, reply.text, case.as_curl_command())
    assert str(reply.status_code) in (*described["responses"], "405", "400"), (
        reply.status_code,
        case.as_curl_command(),
    )
    if reply.status_code >= 400 and "problem" in reply.headers.get("content-type", ""):
        assert reply.json()["code"], reply.text

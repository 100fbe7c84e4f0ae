"""An agent over the Model Context Protocol, within the cap of its day."""

import asyncio
import json
import threading
import time
from typing import Any, NoReturn

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client  # type: ignore[attr-defined]

import mosha
from mosha.server.api.mcp import answer_mcp, find_wait
from mosha.server.api.operation import Call
from mosha.server.people.credentials import find_by_secret


def _send(house: Any, who: Any, method: Any, params: Any = None, *, identity: Any = 1) -> Any:
    headers = {"Authorization": f"Bearer {house.tokens[who]}"} if who else {}
    message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}}
    return house.client.post("/mcp", content=json.dumps(message), headers=headers)


def _use(house: Any, who: Any, tool: Any, **arguments: Any) -> Any:
    return _send(house, who, "tools/call", {"name": tool, "arguments": arguments}).json()["result"]


def test_an_agent_lists_previews_asks_and_is_stopped_by_its_day(house: Any) -> None:
    agent = house.call("zhang", "POST", "/agents", {"name": "mcp agent"}).json()
    house.tokens["mcp"] = house.call("zhang", "POST", "/tokens", {"label": "m", "agent": "mcp agent"}).json()["token"]
    grant = house.call("zhang", "GET", "/grants").json()["grants"][0]
    said = {"principal": agent["id"], "epsilon": 0.1, "expires": grant["expires"], "limit_per_day": {"epsilon": 0.025}}
    assert house.call("zhang", "POST", f"/grants/{grant['id']}/grants", said).status_code == 201
    hello = _send(house, "mcp", "initialize", {"protocolVersion": "2025-06-18"}).json()["result"]
    assert hello["protocolVersion"] == "2025-06-18"
    tools = _send(house, "mcp", "tools/list").json()["result"]["tools"]
    names = {"list_datasets", "describe_dataset", "preview", "ask", "read_answer", "budget"}
    assert {tool["name"] for tool in tools} == names
    assert _use(house, "mcp", "list_datasets")["structuredContent"]["datasets"][0]["name"] == "visits"
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert _use(house, "mcp", "preview", dataset="visits", sql=sql, epsilon=0.01)["structuredContent"]["fits"]
    found = _use(house, "mcp", "ask", dataset="visits", sql=sql, epsilon=0.01, key="1", wait_seconds=60)
    assert found["structuredContent"]["state"] == "answered"
    again = _use(house, "mcp", "ask", dataset="visits", sql=sql, epsilon=0.01, key="1")
    assert again["structuredContent"]["answer"] == found["structuredContent"]["answer"]
    stopped = 0
    for number in range(100):
        reply = _use(
            house, "mcp", "ask", dataset="visits", sql=sql, epsilon=0.01, key=f"loop {number}", wait_seconds=60
        )
        stopped += bool(reply.get("isError"))
    assert stopped == 99
    assert house.service.ledger.account("visits/zhang/mcp agent").spent <= 0.025


def test_nobody_speaks_without_signing_in_and_wrong_messages_are_told(house: Any) -> None:
    assert _send(house, None, "tools/list").status_code == 401
    assert _send(house, "li", "no/such").json()["error"]["code"] == -32601
    wrong = _use(house, "li", "ask", dataset="visits")
    assert wrong["isError"]
    assert wrong["structuredContent"]["code"] == "server.field_missing"
    neither = _use(house, "li", "preview", dataset="visits", epsilon=0.1)
    assert neither["structuredContent"]["code"] == "server.one_of"
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = {"Authorization": f"Bearer {house.tokens['li']}"}
    assert house.client.post("/mcp", content=json.dumps(note), headers=headers).status_code == 202


@pytest.mark.parametrize("name", [[], {}, None, 7, "no_such_tool"])
def test_a_tool_that_is_none_is_refused_and_no_error_of_ours(house: Any, name: Any) -> None:
    reply = _send(house, "li", "tools/call", {"name": name, "arguments": {}})
    assert reply.status_code == 200
    assert reply.json()["result"]["structuredContent"]["code"] == "server.field_wrong"


def test_an_agent_that_waits_for_an_answer_holds_no_thread_that_others_need(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty agents that waited inside of their calls kept everybody else waiting: the wait is outside of threads."""
    sql = "SELECT COUNT(*) AS n FROM visits"
    said = {"dataset": "visits", "sql": sql, "epsilon": 0.6, "key": "waits for a reviewer", "wait_seconds": 60}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": said}}
    li = find_by_secret(house.service.database, house.tokens["li"], "token")

    def refuse_to_sleep(_: Any) -> NoReturn:
        raise AssertionError

    mine, sleep = threading.get_ident(), time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: refuse_to_sleep(s) if threading.get_ident() == mine else sleep(s))
    found = answer_mcp(Call(house.service, li), message)
    assert found["result"]["structuredContent"]["state"] == "waiting"
    seconds, again = find_wait(message, found)
    assert (seconds, again["params"]["name"]) == (60, "read_answer")
    assert find_wait(again, answer_mcp(Call(house.service, li), again))[1] == again
    assert find_wait(message, {"result": {"structuredContent": {"final": True}}})[1] == {}


def test_an_agent_asks_by_a_plan_as_well_as_in_sql(house: Any) -> None:
    """A plan is data: the JSON form of a question of the library."""
    lab = mosha.connect_to(str(house.client.base_url), token=house.tokens["li"])
    plan = lab.table("visits").group_by("ward").count().to_dict()
    said = {"dataset": "visits", "plan": json.loads(json.dumps(plan)), "epsilon": 0.01}
    assert _use(house, "li", "preview", **said)["structuredContent"]["fits"]
    found = _use(house, "li", "ask", **said, key="by a plan", wait_seconds=60)["structuredContent"]
    assert len(found["answer"]["rows"]) == 4
    both = _use(house, "li", "preview", **said, sql="SELECT COUNT(*) AS n FROM visits")
    assert both["structuredContent"]["code"] == "server.one_of"
    wrong = _use(house, "li", "preview", dataset="visits", plan={"kind": "os.system"}, epsilon=0.1)
    assert wrong["isError"]


def test_the_official_client_speaks_with_the_server(house: Any) -> None:
    """With the SDK of the protocol itself: connect, list the tools, preview, ask, read the number and its bar."""
    address, token = str(house.client.base_url), house.tokens["li"]

    async def talk() -> tuple[Any, ...] | None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            streamable_http_client(f"{address}/mcp", http_client=http) as (reading, writing, *_),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            said = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01}
            asked = said | {"key": "sdk", "wait_seconds": 60}
            return tools, await session.call_tool("preview", said), await session.call_tool("ask", asked)

    tools, preview, answer = asyncio.run(talk())
    assert "ask" in tools
    assert json.loads(preview.content[0].text)["fits"]
    assert json.loads(answer.content[0].text)["answer"]["errors"]["0.95"]["n"][0] > 0

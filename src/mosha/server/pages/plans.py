"""Asking for what is no SELECT: statistics of a graph, and whole synthetic tables."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from starlette.responses import Response

from mosha.core.errors import MoshaError
from mosha.server.errors import BadRequest
from mosha.server.pages.asking import find_rest, forecast_rows
from mosha.server.pages.paying import choose_payer, find_again, find_ended, key_of, list_payers, name_payer
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES", "show_graph"]

_NEEDS = {"stars": "leaves", "seeds": "k"}


def show_graph(visit: Visit, refused: Data | None = None) -> Response:
    """The page of a graph: what is asked, the price, the error bar before it is paid."""
    verb = visit.read_field("graph", "edges")
    options = {_NEEDS[verb]: int(_number_or(visit, "number", 2.0))} if verb in _NEEDS else {}
    plan: Data = {"graph": verb, "options": options}
    if visit.form:
        plan = _read_plan(visit)
    price = {"epsilon": _number_or(visit, "epsilon", 0.5)}
    return _show(visit, "graph", plan, price, refused, needs=_NEEDS.get(str(plan.get("graph"))))


def show_table(visit: Visit, refused: Data | None = None) -> Response:
    """The page of a synthetic table: its columns, its price, and how far each count may be off."""
    found = visit.do("readDataset", path=visit.path)["declaration"]
    person = found["unit"].get("person")
    usable = [one["name"] for one in found["columns"] if one["name"] != person and ("keys" in one or "between" in one)]
    chosen = [name for name in visit.all_of("columns") if name in usable] or usable
    rows = _number_or(visit, "rows", 0.0) if visit.read_field("rows").strip() else None
    plan: Data = {"synthesize": {"columns": chosen} | ({} if rows is None else {"rows": int(rows)})}
    if visit.form:
        plan = _read_plan(visit)
    price = {"epsilon": _number_or(visit, "epsilon", 0.4), "delta": _number_or(visit, "delta", 1e-8)}
    return _show(visit, "table", plan, price, refused, usable=usable)


def _number_or(visit: Visit, name: str, otherwise: float) -> float:
    """A number that was typed; where it is none, the page says so beside its form and goes on with the usual one."""
    try:
        found = visit.number(name)
    except BadRequest:
        return otherwise
    return otherwise if found is None else found


def _read_plan(visit: Visit) -> Data:
    try:
        found = json.loads(visit.read_field("plan"))
    except (ValueError, RecursionError):
        raise BadRequest("server.field_wrong", parameter="plan", expected="JSON") from None
    if not isinstance(found, dict) or not {"graph", "synthesize"} & set(found):
        raise BadRequest("server.field_wrong", parameter="plan", expected="object")
    return found


def _show(visit: Visit, what: str, plan: Data, price: Data, refused: Data | None, **more: object) -> Response:
    name = visit.path["dataset"]
    dataset = visit.do("readDataset", path={"dataset": name})
    preview, problem, payers = None, refused, list_payers(visit, dataset)
    paid = name_payer(visit, payers)
    try:
        for part in ("epsilon", "delta"):
            visit.number(part)
        for part in ("number", "rows"):
            visit.read_whole_number(part)
        preview = visit.do("preview", body={"dataset": name, "plan": plan, "price": price} | paid)
    except (MoshaError, BadRequest) as error:
        problem = problem or visit.problem(error)
    return visit.render(
        "ask_plan.html",
        422 if refused else 200,
        dataset=dataset,
        what=what,
        plan=plan,
        sent={"plan": json.dumps(plan), "delta": ""} | price | paid,
        action=visit.request.url.path,
        price={"delta": ""} | price,
        preview=preview,
        problem=problem,
        rows=[] if preview is None else forecast_rows(preview["forecast"]),
        ways=_ways(visit, preview),
        rest=_find_rest(visit, payer := choose_payer(visit, payers), price["epsilon"]),
        span=None,
        nearest="",
        purpose=visit.read_field("purpose"),
        payers=payers,
        ended="" if payers else find_ended(visit, dataset["name"]),
        payer=payer,
        again="",
        blocks=(),
        **more,
    )


def _find_rest(visit: Visit, payer: Data | None, wanted: float) -> Data | None:
    """The same for what is left, one click away."""
    epsilon = find_rest(payer, wanted)
    return None if epsilon is None else {"epsilon": epsilon, "link": _change_price(visit, epsilon)}


def _ways(visit: Visit, preview: Data | None) -> list[Data]:
    """What half and double the price would give, each one click away; a whole table has no one bar."""
    if preview is None or preview["kind"] == "synthetic":
        return []
    prices = [(way["price"].get("epsilon"), way["widest"]) for way in preview["alternatives"]]
    return [{"widest": bars, "link": _change_price(visit, price)} for price, bars in prices if price and bars]


def _change_price(visit: Visit, epsilon: float) -> str:
    kept = [(key, value) for key, value in visit.query if key != "epsilon"]
    return f"{visit.request.url.path}?{urlencode([*kept, ('epsilon', f'{epsilon:.6g}')])}"


def ask(visit: Visit) -> Response:
    """Ask what was shown, at the price that was shown; a second click finds the first."""
    plan = _read_plan(visit)
    price = {part: value for part in ("epsilon", "delta") if (value := visit.number(part)) is not None}
    body: Data = {"dataset": visit.path["dataset"], "plan": plan, "price": price}
    body |= {"grant": visit.read_field("grant")} if visit.read_field("grant") else {}
    if visit.read_field("purpose").strip():
        body["purpose"] = visit.read_field("purpose").strip()[:2000]
    try:
        identity = find_again(visit, body) or visit.do("ask", key=key_of(visit, body), body=body)["id"]
    except (MoshaError, BadRequest) as error:
        show = show_graph if "graph" in plan else show_table
        return show(visit, visit.problem(error))
    return visit.go(f"/requests/{identity}")


ROUTES = (
    ("GET", "/ask/{dataset}/table", show_table),
    ("POST", "/ask/{dataset}/table", ask),
    ("GET", "/ask/{dataset}/graph", show_graph),
    ("POST", "/ask/{dataset}/graph", ask),
)

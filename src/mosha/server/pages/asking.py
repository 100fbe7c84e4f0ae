"""Asking: a question by a form or in SQL, its price and its error bars before it is asked."""

from __future__ import annotations

import math
from urllib.parse import urlencode

from starlette.responses import Response

from mosha.core.errors import MoshaError
from mosha.server.errors import BadRequest
from mosha.server.pages.builder import MEASURES, TESTS, Built, build_sql, read_back
from mosha.server.pages.paying import choose_payer, find_again, find_ended, key_of, list_payers, name_payer
from mosha.server.pages.site import Data, Visit

__all__ = ["PRICES", "ROUTES", "find_rest", "forecast_rows", "link_question", "name_delta", "write_body"]

PRICES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
_ROWS = 1000.0
_LEAST = 1e-3  # a rest below it is not offered


def _nearest_step(epsilon: float) -> int:
    return min(range(len(PRICES)), key=lambda step: abs(math.log(PRICES[step] / max(epsilon, 1e-9))))


def _price(visit: Visit) -> float:
    """The price that was chosen: by the slider where it was moved, else by the number beside it."""
    step, before = visit.read_field("step"), visit.read_field("step_before")
    if step != before and step.isdecimal() and int(step) < len(PRICES):
        return PRICES[int(step)]
    epsilon = visit.number("epsilon")
    return 0.1 if epsilon is None else epsilon


def _read_asked(visit: Visit) -> tuple[Data, dict[str, BadRequest]]:
    """Price and guesses as they were typed, and what is wrong with which of them: a wrong one loses no other."""
    asked: Data = {"epsilon": 0.1, "rows": None, "within": None, "delta": None, "at_most": None}
    unread = {}
    for part in asked:
        try:
            asked[part] = _price(visit) if part == "epsilon" else visit.number(part)
        except BadRequest as error:
            unread[part] = error
    if (most := asked["at_most"]) is not None and most == int(most):
        asked["at_most"] = int(most)
    return asked | ({"rows": _ROWS} if asked["rows"] is None else {}), unread


def show_ask(visit: Visit) -> Response:
    return _show_ask(visit)


def _show_ask(visit: Visit, refused: Data | None = None) -> Response:
    name = visit.path["dataset"]
    dataset = visit.do("readDataset", path={"dataset": name})
    if dataset["kind"] == "graph":
        return visit.go(f"/ask/{name}/graph")
    columns = dataset["declaration"]["columns"]
    for column in columns:
        column["unit"] = column["name"] == dataset["declaration"]["unit"].get("person")
    mode = "sql" if visit.read_field("mode") == "sql" else "form"
    payers = list_payers(visit, dataset)
    blocks = [one["name"] for one in dataset.get("blocks", ()) if one["state"] == "open"]
    block = visit.read_field("block") if visit.read_field("block") in blocks else ""
    asked, unread = _read_asked(visit)
    needs_guess = "at_most" not in dataset["declaration"]["unit"] and "person" in dataset["declaration"]["unit"]
    preview, problem, sql, built, again = None, refused, visit.read_field("sql"), Built.of(visit, columns), ""
    paid = name_payer(visit, payers) | ({"block": block} if block else {})
    try:
        if mode == "form":
            sql = build_sql(name, built, columns)
        for error in unread.values():
            raise error
        guesses: Data = {"rows": asked["rows"]}
        if needs_guess:
            guesses |= {"at_most": 1 if asked["at_most"] is None else asked["at_most"]}
        preview = visit.do("preview", body=_question(name, sql, asked | guesses) | paid | guesses)
        asked["epsilon"] = preview["price"].get("epsilon", asked["epsilon"])
        again = find_again(visit, write_body(name, sql, asked, paid, visit.read_field("purpose")))
    except (MoshaError, BadRequest) as error:
        problem = problem or visit.problem(error) | _offer_delta(visit, error, choose_payer(visit, payers))
    said = read_back(sql, columns) if mode == "sql" else built
    built = said or Built()
    rows = [] if preview is None else forecast_rows(preview["forecast"])
    return visit.render(
        "ask.html",
        422 if refused else 200,
        dataset=dataset,
        columns=columns,
        numeric=[c for c in columns if "between" in c],
        grouping=[c for c in columns if "keys" in c],
        mode=mode,
        built=built,
        is_said=said is not None or not sql,
        sql=sql,
        asked=asked,
        step=_nearest_step(asked["epsilon"]),
        steps=len(PRICES),
        preview=preview,
        problem=problem,
        rows=rows,
        unread=unread,
        needs_guess=needs_guess,
        ended="" if payers else find_ended(visit, name),
        span=_find_span(built, columns),
        ways=_ways(visit, name, sql, asked | paid, preview),
        nearest=link_question(name, problem["nearest"], asked, paid) if problem and problem.get("nearest") else "",
        payers=payers,
        payer=(payer := choose_payer(visit, payers)),
        rest=_rest(visit, name, sql, asked | paid, payer),
        found_groups=_change_price(visit, name, sql, asked | paid | {"delta": problem["delta"]})
        if problem and "delta" in problem
        else "",
        blocks=blocks,
        paid=paid,
        again=again,
        measures=MEASURES,
        tests=TESTS,
        purpose=visit.read_field("purpose"),
    )


def _find_span(built: Built, columns: list[Data]) -> Data | None:
    """The declared range of the column that is averaged: what an error bar is to be compared with."""
    if built.measure not in ("average", "median"):
        return None
    return next((column for column in columns if column["name"] == built.column and "between" in column), None)


def _offer_delta(visit: Visit, error: Exception, payer: Data | None) -> Data:
    """Groups that have to be found in the data cost a delta, one click away: a tenth of what the grant has."""
    if getattr(error, "code", "") != "tables.keys_cost_delta" or not isinstance(error, MoshaError):
        return {}
    most = payer["limits"].get("delta") if payer else None
    words = visit.say("groups_need_delta", name=error.public.get("column", ""))
    return {"detail": words, "beside": words} | ({"delta": most / 10} if most else {})


def _question(name: str, sql: str, asked: Data) -> Data:
    price: Data = {"epsilon": asked["epsilon"]}
    if asked["within"] is not None:
        price = {"within": asked["within"], "rows": asked["rows"]}
        price |= {"at_most": asked["at_most"]} if asked.get("at_most") else {}
    return {"dataset": name, "sql": sql or " ", "price": price | name_delta(asked)}


def name_delta(asked: Data) -> Data:
    """The delta of a price, where it has one."""
    return {} if asked.get("delta") is None else {"delta": asked["delta"]}


def write_body(name: str, sql: str, price: Data, paid: Data, purpose: str) -> Data:
    """A question as it is asked of the API."""
    paying: Data = {"epsilon": price["epsilon"]} | name_delta(price)
    body: Data = {"dataset": name, "sql": sql or " ", "price": paying} | paid
    return body | ({"purpose": purpose.strip()[:2000]} if purpose.strip() else {})


def link_question(name: str, sql: str, price: Data, paid: Data) -> str:
    """The page on which a question in SQL is asked, filled in."""
    said = {"mode": "sql", "sql": sql, "epsilon": f"{price.get('epsilon', 0.1):.6g}"} | name_delta(price)
    return f"/ask/{name}?{urlencode(said | paid)}"


def _ways(visit: Visit, name: str, sql: str, asked: Data, preview: Data | None) -> list[Data]:
    """What half and double the price would give, each one click away."""
    found = []
    for way in preview["alternatives"] if preview else ():
        epsilon = way["price"].get("epsilon")
        if epsilon is not None and way["widest"]:
            link = _change_price(visit, name, sql, asked | {"epsilon": epsilon})
            found.append({"epsilon": epsilon, "widest": way["widest"], "link": link})
    return found


def _change_price(visit: Visit, name: str, sql: str, asked: Data) -> str:
    """The same question at the price that is named."""
    prices = ("epsilon", "delta", "step", "step_before", "within")
    kept = [(key, value) for key, value in visit.query if key not in prices]
    again = kept or [("mode", "sql"), ("sql", sql), ("rows", f"{asked['rows']:g}")]
    again += [(part, asked[part]) for part in ("grant", "block") if part in asked and not kept]
    price = {"epsilon": f"{asked['epsilon']:.6g}"} | name_delta(asked)
    return f"/ask/{name}?{urlencode([*again, *price.items()])}"


def _rest(visit: Visit, name: str, sql: str, asked: Data, payer: Data | None) -> Data | None:
    """The same question for the most that a grant pays, one click away."""
    epsilon = find_rest(payer, asked["epsilon"])
    if epsilon is None:
        return None
    return {"epsilon": epsilon, "link": _change_price(visit, name, sql, asked | {"epsilon": epsilon})}


def find_rest(payer: Data | None, wanted: float) -> float | None:
    """The most that a grant pays which counts in epsilon: what is left, or what one may cost; None if it suffices."""
    if payer is None or not payer["budget"] or payer["budget"]["measure"] != "epsilon":
        return None
    most = payer["most_per_question"]
    epsilon = math.floor(min(payer["room"], payer["room"] if most is None else most) * 1e6) / 1e6
    return epsilon if _LEAST <= epsilon < wanted else None


def forecast_rows(forecast: Data) -> list[Data]:
    """The table of the forecast: a group and the bar of each number. Groups that expect the same stand together."""
    groups = forecast["groups"] or [[]]
    named = [" · ".join(str(part) for part in group) for group in groups]
    bars = forecast["bars"]
    rows = [
        {"group": group, "bars": {n: found[min(place, len(found) - 1)] for n, found in bars.items()}}
        for place, group in enumerate(named)
    ]
    if len(rows) > 1 and all(row["bars"] == rows[0]["bars"] for row in rows):
        return [{"group": "", "many": len(rows), "bars": rows[0]["bars"]}]
    return rows


def ask(visit: Visit) -> Response:
    """Ask what was shown, at the price that was shown; a second click finds the first."""
    name, price = visit.path["dataset"], {"epsilon": visit.number("epsilon") or 0.0, "delta": visit.number("delta")}
    paid = {part: said for part in ("grant", "block") if (said := visit.read_field(part))}
    body = write_body(name, visit.read_field("sql"), price, paid, visit.read_field("purpose"))
    try:
        identity = find_again(visit, body) or visit.do("ask", key=key_of(visit, body), body=body)["id"]
    except (MoshaError, BadRequest) as error:
        visit.form = [*visit.form, ("mode", "sql")]
        return _show_ask(visit, visit.problem(error))
    return visit.go(f"/requests/{identity}")


ROUTES = (
    ("GET", "/ask/{dataset}", show_ask),
    ("POST", "/ask/{dataset}", ask),
)

"""Asking: a question by a form or in SQL, its price and its error bars before it is asked, and its answer."""

from __future__ import annotations

import io
import json
import math
from importlib.util import find_spec
from urllib.parse import urlencode

from starlette.responses import Response

from mosha.core.errors import MoshaError
from mosha.server.asking.answers import notes_in
from mosha.server.asking.requests import request_id
from mosha.server.errors import BadRequest, NotFound
from mosha.server.pages import charts
from mosha.server.pages.builder import MEASURES, TESTS, Built, build_sql, read_back
from mosha.server.pages.paying import choose_payer, find_again, key_of, list_payers, name_payer, write_key
from mosha.server.pages.site import PAGE, Data, Visit, write_plainly
from mosha.server.people.principals import find_principal

__all__ = ["PRICES", "ROUTES", "find_rest", "forecast_rows"]

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
    asked: Data = {"epsilon": 0.1, "rows": None, "within": None}
    unread = {}
    for part in asked:
        try:
            asked[part] = _price(visit) if part == "epsilon" else visit.number(part)
        except BadRequest as error:
            unread[part] = error
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
    preview, problem, sql, built, again = None, refused, visit.read_field("sql"), Built.of(visit, columns), ""
    paid = name_payer(visit, payers) | ({"block": block} if block else {})
    try:
        for error in unread.values():
            raise error
        if mode == "form":
            sql = build_sql(name, built, columns)
        preview = visit.do("preview", body=_question(name, sql, asked) | paid | {"rows": asked["rows"]})
        asked["epsilon"] = preview["price"].get("epsilon", asked["epsilon"])
        again = find_again(visit, _body(name, sql, asked["epsilon"], paid, visit.read_field("purpose")))
    except (MoshaError, BadRequest) as error:
        problem = problem or visit.problem(error)
    if mode == "sql":
        built = read_back(sql, columns) or Built()
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
        sql=sql,
        asked=asked,
        step=_nearest_step(asked["epsilon"]),
        steps=len(PRICES),
        preview=preview,
        problem=problem,
        rows=rows,
        unread=unread,
        span=_find_span(built, columns),
        ways=_ways(visit, name, sql, asked | paid, preview),
        nearest=_link(name, problem["nearest"], asked["epsilon"], paid) if problem and problem.get("nearest") else "",
        payers=payers,
        payer=(payer := choose_payer(visit, payers)),
        rest=_rest(visit, name, sql, asked | paid, payer),
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


def _question(name: str, sql: str, asked: Data) -> Data:
    price: Data = {"epsilon": asked["epsilon"]}
    if asked["within"] is not None:
        price = {"within": asked["within"], "rows": asked["rows"]}
    return {"dataset": name, "sql": sql or " ", "price": price}


def _body(name: str, sql: str, epsilon: float, paid: Data, purpose: str) -> Data:
    """A question as it is asked of the API."""
    body: Data = {"dataset": name, "sql": sql or " ", "price": {"epsilon": epsilon}} | paid
    return body | ({"purpose": purpose.strip()[:2000]} if purpose.strip() else {})


def _link(name: str, sql: str, epsilon: float, paid: Data) -> str:
    return f"/ask/{name}?{urlencode({'mode': 'sql', 'sql': sql, 'epsilon': f'{epsilon:.6g}'} | paid)}"


def _ways(visit: Visit, name: str, sql: str, asked: Data, preview: Data | None) -> list[Data]:
    """What half and double the price would give, each one click away."""
    found = []
    for way in preview["alternatives"] if preview else ():
        epsilon = way["price"].get("epsilon")
        if epsilon is not None and way["widest"]:
            link = _change_price(visit, name, sql, asked, epsilon)
            found.append({"epsilon": epsilon, "widest": way["widest"], "link": link})
    return found


def _change_price(visit: Visit, name: str, sql: str, asked: Data, epsilon: float) -> str:
    """The same question at another price."""
    kept = [(key, value) for key, value in visit.query if key not in ("epsilon", "step", "step_before", "within")]
    again = kept or [("mode", "sql"), ("sql", sql), ("rows", f"{asked['rows']:g}")]
    again += [(part, asked[part]) for part in ("grant", "block") if part in asked and not kept]
    return f"/ask/{name}?{urlencode([*again, ('epsilon', f'{epsilon:.6g}')])}"


def _rest(visit: Visit, name: str, sql: str, asked: Data, payer: Data | None) -> Data | None:
    """The same question for the most that a grant pays, one click away."""
    epsilon = find_rest(payer, asked["epsilon"])
    if epsilon is None:
        return None
    return {"epsilon": epsilon, "link": _change_price(visit, name, sql, asked, epsilon)}


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
    return rows[:30]


def ask(visit: Visit) -> Response:
    """Ask what was shown, at the price that was shown; a second click finds the first."""
    name, epsilon = visit.path["dataset"], visit.number("epsilon")
    paid = {part: said for part in ("grant", "block") if (said := visit.read_field(part))}
    body = _body(name, visit.read_field("sql"), epsilon or 0.0, paid, visit.read_field("purpose"))
    try:
        identity = find_again(visit, body) or visit.do("ask", key=key_of(visit, body), body=body)["id"]
    except (MoshaError, BadRequest) as error:
        visit.form = [*visit.form, ("mode", "sql")]
        return _show_ask(visit, visit.problem(error))
    return visit.go(f"/requests/{identity}")


def _find_key(found: Data) -> tuple[str | None, Data]:
    """The key under which a request was made on these pages, and what it said about its payer; None for others."""
    block = {"block": found["block"]} if found["block"] else {}
    for paid in (block, block | {"grant": found["grant"]}):
        body = _body(found["dataset"], found["question"].get("sql", ""), 0.0, paid, found["purpose"])
        for turn in range(20):
            key = write_key(body | {"price": found["price"]}, turn)
            if request_id(found["principal"], key) == found["id"]:
                return key, paid
    return None, block


def list_mine(visit: Visit) -> Response:
    found = visit.do("listRequests", query={"mine": "true", "limit": PAGE} | visit.read_place())
    more = found["next"] if len(found["requests"]) == PAGE else None
    return visit.render("requests.html", found=found["requests"], more=more)


def show_request(visit: Visit) -> Response:
    found = visit.do("readRequest", path=visit.path)
    level = visit.read_field("confidence", "0.95")
    answer = found.get("answer")
    shown = None if not answer else table_of(answer, level if level in answer["errors"] else "0.95")
    sql = found["question"].get("sql", "")
    mine = found["principal"] == visit.principal.id
    return visit.render(
        "request.html",
        found=found,
        shown=shown,
        notes=notes_in(answer, visit.language) if answer else [],
        sql=sql,
        mine=mine,
        arrow=find_spec("pyarrow") is not None,
        png=find_spec("matplotlib") is not None,
        asker=find_principal(visit.service.database, found["principal"])["name"],
        again=_ask_similarly(found),
        factor=math.exp(min(50.0, found["price"].get("epsilon", found["cost"]))),
    )


def _ask_similarly(found: Data) -> str:
    """The page on which a question was asked, filled in as it was."""
    question, price = found["question"], found["price"]
    if question.get("sql"):
        return _link(found["dataset"], question["sql"], price.get("epsilon", 0.1), _find_key(found)[1])
    plan = question.get("plan", {})
    if "graph" in plan:
        options = plan.get("options") or {}
        typed = {"graph": plan["graph"], "number": options.get("leaves", options.get("k"))}
    elif "synthesize" in plan:
        typed = {"columns": plan["synthesize"].get("columns", ()), "rows": plan["synthesize"].get("rows")}
        typed["delta"] = price.get("delta")
    else:
        return ""
    typed["epsilon"] = price.get("epsilon")
    words = urlencode({name: value for name, value in typed.items() if value is not None}, doseq=True)
    return f"/ask/{found['dataset']}/{'graph' if 'graph' in plan else 'table'}?{words}"


def table_of(answer: Data, level: str) -> Data:
    """An answer as a page shows it: its groups, and for each number a value, a bar and the axis that they share."""
    columns = answer["columns"]
    keys = [place for place, column in enumerate(columns) if column["role"] == "key"]
    numbers = []
    for place, column in enumerate(columns):
        if column["role"] == "value":
            values = [row[place] for row in answer["rows"]]
            values = [value if isinstance(value, int | float) else None for value in values]
            bars = answer["errors"][level][column["name"]]
            numbers.append({"name": column["name"], "values": values, "bars": bars, "axis": charts.axis(values, bars)})
    groups = [[row[place] for place in keys] for row in answer["rows"]]
    names = [columns[place]["name"] for place in keys]
    return {"keys": names, "groups": groups, "numbers": numbers, "level": level, "levels": list(answer["errors"])}


def _first_number(visit: Visit) -> tuple[Data, Data]:
    """An answer as a page shows it, and the number of it that is drawn."""
    shown = table_of(visit.do("readAnswer", path=visit.path), "0.95")
    if not shown["numbers"]:
        raise NotFound("server.not_found")
    number = shown["numbers"][0]
    plan = visit.do("readRequest", path=visit.path)["question"].get("plan", {})
    title = visit.say(f"graph_asks_{number['name']}") if plan.get("graph") == number["name"] else number["name"]
    return shown, number | {"name": title}


def download_png(visit: Visit) -> Response:
    """The same picture as points, drawn as the library draws (extra `plot`)."""
    from mosha.pictures.grouped import draw_groups  # noqa: PLC0415  (a guest that not every server has)

    shown, number = _first_number(visit)
    keys = {name: [group[place] for group in shown["groups"]] for place, name in enumerate(shown["keys"])}
    bars = None if any(bar is None for bar in number["bars"]) else number["bars"]
    values = [math.nan if value is None else value for value in number["values"]]
    name, note = number["name"], visit.say("picture_note", level="95")
    figure = draw_groups(keys, {name: values}, {name: bars}, notes={name: ""}, footer=note)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150)
    return _file(out.getvalue(), "image/png", f"{visit.path['request']}.png")


def download_chart(visit: Visit) -> Response:
    """The first number of an answer as a picture."""
    shown, number = _first_number(visit)
    labels = [" · ".join(write_plainly(part) for part in group) or number["name"] for group in shown["groups"]]
    note = visit.say("picture_note", level="95")
    drawn = charts.picture(number["name"], labels, number["values"], number["bars"], note)
    return _file(drawn, "image/svg+xml", f"{visit.path['request']}.svg")


def download_notebook(visit: Visit) -> Response:
    """A notebook that asks the same again, from Python, under the same key: it gives this answer and costs nothing."""
    found = visit.do("readRequest", path=visit.path)
    sql, epsilon = found["question"].get("sql", ""), found["price"].get("epsilon")
    server = str(visit.request.base_url).rstrip("/")
    lines = [
        "import os",
        "",
        "import mosha",
        "",
        f'lab = mosha.connect_to({server!r}, token=os.environ["MOSHA_TOKEN"])',
    ]
    key, paid = _find_key(found)
    said = {"epsilon": epsilon, "key": key} | paid | ({"purpose": found["purpose"]} if found["purpose"] else {})
    words = ", ".join(f"{part}={value!r}" for part, value in said.items())
    lines += [f"answer = lab.query({sql!r}, {words})", "answer"]
    cells = [
        {"cell_type": "markdown", "metadata": {}, "id": "what", "source": visit.say("notebook_words")},
        {
            "cell_type": "code",
            "metadata": {},
            "id": "ask",
            "source": "\n".join(lines),
            "outputs": [],
            "execution_count": None,
        },
    ]
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    return _file(json.dumps(book, ensure_ascii=False, indent=1), "application/x-ipynb+json", f"{found['id']}.ipynb")


def _file(content: str | bytes, media: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content.encode() if isinstance(content, str) else content, 200, headers, media)


def withdraw(visit: Visit) -> Response:
    visit.do("withdrawRequest", path=visit.path)
    return visit.go(f"/requests/{visit.path['request']}")


def propose(visit: Visit) -> Response:
    body = {
        "request": visit.path["request"],
        "slug": visit.read_field("slug").strip(),
        "title": visit.read_field("title").strip(),
    }
    visit.do("proposePublication", body=body)
    return visit.go(f"/requests/{visit.path['request']}?proposed=1")


ROUTES = (
    ("GET", "/ask/{dataset}", show_ask),
    ("POST", "/ask/{dataset}", ask),
    ("GET", "/requests", list_mine),
    ("GET", "/requests/{request}", show_request),
    ("GET", "/requests/{request}/chart.svg", download_chart),
    ("GET", "/requests/{request}/chart.png", download_png),
    ("GET", "/requests/{request}/notebook.ipynb", download_notebook),
    ("POST", "/requests/{request}/withdraw", withdraw, show_request),
    ("POST", "/requests/{request}/publication", propose, show_request),
)

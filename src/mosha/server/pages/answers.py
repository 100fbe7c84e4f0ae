"""Answers: what was asked and what came of it, as a page and as files; free to read again."""

from __future__ import annotations

import io
import json
import math
from importlib.util import find_spec
from urllib.parse import urlencode

from starlette.responses import Response

from mosha.server.asking.answers import notes_in
from mosha.server.asking.requests import request_id
from mosha.server.errors import NotFound
from mosha.server.pages import charts
from mosha.server.pages.asking import link_question, name_delta
from mosha.server.pages.numbers import find_factor, write_name
from mosha.server.pages.paying import write_key
from mosha.server.pages.site import PAGE, Data, Visit
from mosha.server.people.principals import find_principal

__all__ = ["ROUTES", "find_odds", "show_some", "table_of"]

_GROUPS = 100  # on one page


def _find_key(found: Data) -> tuple[str | None, Data]:
    """The key under which a request was made on these pages, and what it said about its payer; None for others."""
    block = {"block": found["block"]} if found["block"] else {}
    for paid in (block, block | {"grant": found["grant"]}):
        body = _write_asked(found) | paid
        for turn in range(20):
            key = write_key(body, turn)
            if request_id(found["principal"], key) == found["id"]:
                return key, paid
    return None, block


def _write_asked(found: Data) -> Data:
    """A request as these pages sent it, but for who pays."""
    question, body = found["question"], {"dataset": found["dataset"], "price": found["price"]}
    body |= {"sql": question["sql"]} if question.get("sql") else {"plan": question.get("plan")}
    return body | ({"purpose": found["purpose"]} if found["purpose"] else {})


def list_mine(visit: Visit) -> Response:
    found = visit.do("listRequests", query={"mine": "true", "limit": PAGE} | visit.read_place())
    more = found["next"] if len(found["requests"]) == PAGE else None
    return visit.render("requests.html", found=found["requests"], more=more)


def show_request(visit: Visit) -> Response:
    found = visit.do("readRequest", path=visit.path)
    level = visit.read_field("confidence", "0.95")
    answer = found.get("answer")
    shown = None if not answer else table_of(answer, level if level in answer["errors"] else "0.95")
    if shown and "synthetic" not in (answer or {}):
        shown = show_some(visit, shown)
    mine = found["principal"] == visit.principal.id
    return visit.render(
        "request.html",
        found=found,
        shown=shown,
        notes=notes_in(answer, visit.language) if answer else [],
        mine=mine,
        arrow=find_spec("pyarrow") is not None,
        png=find_spec("matplotlib") is not None,
        asker=find_principal(visit.service.database, found["principal"])["name"],
        again=_ask_similarly(found),
        **find_odds(found["price"], (answer or {}).get("receipt")),
    )


def find_odds(price: Data, receipt: Data | None) -> Data:
    """By how much an answer may change the odds, and how likely it may be more: no factor where none was promised.

    A price in another measure has a factor where the own account converts it to an epsilon.
    """
    if "epsilon" in price:
        return {"factor": find_factor(price["epsilon"]), "slack": price.get("delta") or 0.0}
    if receipt and receipt.get("measure") == "epsilon" and receipt.get("cost") is not None:
        return {"factor": find_factor(receipt["cost"]), "slack": receipt.get("delta") or 0.0}
    return {"factor": None, "slack": 0.0}


def show_some(visit: Visit, shown: Data) -> Data:
    """One page of the groups of an answer; all share their axis, so that pages can be compared."""
    said, many = visit.read_field("from"), len(shown["groups"])
    first = int(said) if said.isdecimal() and said.isascii() and len(said) < 10 else 0
    first = first if first < many else 0
    last = min(first + _GROUPS, many)
    numbers = [one | {part: one[part][first:last] for part in ("values", "bars")} for one in shown["numbers"]]
    some = {"groups": shown["groups"][first:last], "numbers": numbers, "first": first, "last": last, "many": many}
    return shown | some | {"before": max(0, first - _GROUPS) if first else None, "after": last if last < many else None}


def _ask_similarly(found: Data) -> str:
    """The page on which a question was asked, filled in as it was."""
    question, price = found["question"], found["price"]
    if question.get("sql"):
        return link_question(found["dataset"], question["sql"], price, _find_key(found)[1])
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
            axis, least = charts.axis(values, bars), _find_least(bars)
            numbers.append({"name": column["name"], "values": values, "bars": bars, "axis": axis, "least": least})
    groups = [[row[place] for place in keys] for row in answer["rows"]]
    names = [columns[place]["name"] for place in keys]
    numeric = [place for place in range(len(keys)) if any(isinstance(group[place], int | float) for group in groups)]
    return {"keys": names, "groups": groups, "numeric": numeric, "numbers": numbers, "level": level} | {
        "levels": list(answer["errors"])
    }


def _find_least(bars: list[float | None]) -> float | None:
    """The bar that says how many digits a column has, where all are of one size; None where each says it for itself."""
    sizes = [bar for bar in bars if bar is not None and math.isfinite(bar) and bar > 0]
    return min(sizes) if sizes and max(sizes) <= 10 * min(sizes) else None


def _read_numbers(visit: Visit) -> tuple[Data, list[Data]]:
    """An answer as a page shows it, and the numbers of it that are drawn, named as people name them."""
    shown = table_of(visit.do("readAnswer", path=visit.path), "0.95")
    if not shown["numbers"]:
        raise NotFound("server.not_found")
    verb = visit.do("readRequest", path=visit.path)["question"].get("plan", {}).get("graph")
    named = [
        one | {"name": visit.say(f"graph_asks_{verb}")} if one["name"] == verb else one for one in shown["numbers"]
    ]
    return shown, named


def download_png(visit: Visit) -> Response:
    """The same picture as points, drawn as the library draws (extra `plot`)."""
    from mosha.pictures.grouped import draw_groups  # noqa: PLC0415  (a guest that not every server has)

    shown, numbers = _read_numbers(visit)
    keys = {name: [group[place] for group in shown["groups"]] for place, name in enumerate(shown["keys"])}
    values = {one["name"]: [math.nan if value is None else value for value in one["values"]] for one in numbers}
    bars = {one["name"]: None if any(bar is None for bar in one["bars"]) else one["bars"] for one in numbers}
    note = visit.say("picture_note", level="95")
    figure = draw_groups(keys, values, bars, notes=dict.fromkeys(values, ""), footer=note)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150)
    return _file(out.getvalue(), "image/png", f"{visit.path['request']}.png")


def download_chart(visit: Visit) -> Response:
    """The numbers of an answer as a picture, one below the other."""
    shown, numbers = _read_numbers(visit)
    labels = [" · ".join(write_name(part) for part in group) or numbers[0]["name"] for group in shown["groups"]]
    panels = [(one["name"], one["values"], one["bars"]) for one in numbers]
    drawn = charts.picture(labels, panels, visit.say("picture_note", level="95"))
    return _file(drawn, "image/svg+xml", f"{visit.path['request']}.svg")


def download_notebook(visit: Visit) -> Response:
    """A notebook that asks the same again, from Python, under the same key: it gives this answer and costs nothing.

    What was asked elsewhere has a key that is not known here: its notebook reads the answer again.
    """
    found = visit.do("readRequest", path=visit.path)
    if not found.get("answer"):
        raise NotFound("server.not_found")
    server, (key, paid) = str(visit.request.base_url).rstrip("/"), _find_key(found)
    lines = ["import os", "", "import mosha", ""]
    lines.append(f'lab = mosha.connect_to({server!r}, token=os.environ["MOSHA_TOKEN"])')
    if key is None:
        call = f"lab.answer({found['id']!r})"
    elif found["question"].get("sql"):
        said = {"epsilon": found["price"].get("epsilon")} | name_delta(found["price"]) | {"key": key} | paid
        said |= {"purpose": found["purpose"]} if found["purpose"] else {}
        words = "".join(f",\n    {part}={value!r}" for part, value in said.items())
        call = f"lab.query(\n    {_quote(found['question']['sql'])}{words},\n)"
    else:
        call = f"lab.release_body(\n    {_write_asked(found) | paid!r},\n    key={key!r},\n)"
    lines += [f"answer = {call}", "answer"]
    words = visit.say("notebook_words" if key else "notebook_reads")
    code = {"cell_type": "code", "metadata": {}, "id": "ask", "source": "\n".join(lines)}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "id": "what", "source": words},
        code | {"outputs": [], "execution_count": None},
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}
    return _file(json.dumps(book, ensure_ascii=False, indent=1), "application/x-ipynb+json", f"{found['id']}.ipynb")


def _quote(sql: str) -> str:
    """A statement as people write it in Python: over several lines where it has some."""
    is_plain = not any(part in sql for part in ('"""', "\\")) and not sql.endswith('"')
    shows = all(line.isprintable() for line in sql.split("\n"))
    return f'"""{sql}"""' if "\n" in sql and is_plain and shows else repr(sql)


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
    ("GET", "/requests", list_mine),
    ("GET", "/requests/{request}", show_request),
    ("GET", "/requests/{request}/chart.svg", download_chart),
    ("GET", "/requests/{request}/chart.png", download_png),
    ("GET", "/requests/{request}/notebook.ipynb", download_notebook),
    ("POST", "/requests/{request}/withdraw", withdraw, show_request),
    ("POST", "/requests/{request}/publication", propose, show_request),
)

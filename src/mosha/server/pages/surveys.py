"""Surveys: a public page on which the browser randomises an answer before it leaves; the curator sees the estimate."""

from __future__ import annotations

import json

from starlette.responses import Response

from mosha.core.language import phrase
from mosha.server.errors import BadRequest
from mosha.server.pages import charts
from mosha.server.pages.site import PAGE, Data, Visit

__all__ = ["ROUTES"]


def show_survey(visit: Visit) -> Response:
    found = visit.do("readSurvey", path=visit.path)
    part = found["device"]
    top, bottom = found["survey"].get("odds", (1, 1))
    truth = None if part is None else top / (top + (part["size"] - 1) * bottom)
    epsilon = found["survey"].get("epsilon")
    estimated = _estimate(visit) if visit.may("survey.estimate") else None
    return visit.render(
        "survey.html",
        found=found,
        part=part,
        truth=truth,
        epsilon=epsilon,
        estimated=estimated,
        can_close=found["state"] == "open" and visit.may("survey.close"),
    )


def _estimate(visit: Visit) -> Data:
    """The shares that were estimated so far, each with its bar."""
    said = visit.do("estimateSurvey", path=visit.path)
    rows = said["estimate"] if isinstance(said["estimate"], list) else []
    shares = [row.get("share") for row in rows]
    bars = [row.get("error") for row in rows]
    return {"accepted": said["accepted"], "rows": rows, "axis": charts.axis(shares, bars) if rows else (0.0, 1.0)}


def close(visit: Visit) -> Response:
    visit.do("closeSurvey", path=visit.path)
    return visit.go(f"/survey/{visit.path['survey']}")


def list_all(visit: Visit) -> Response:
    found = visit.do("listSurveys", query={"limit": PAGE} | visit.read_place())
    can_create = visit.may("survey.create")
    return visit.render("surveys.html", found=found["surveys"], more=found["next"], can_create=can_create)


def create(visit: Visit) -> Response:
    from mosha.local import Frequency  # noqa: PLC0415

    values = [line.strip() for line in visit.read_field("values").splitlines() if line.strip()]
    if not 2 <= len(set(values)) == len(values) <= 100:
        raise BadRequest("server.field_wrong", parameter="values", expected=phrase("server.different_lines"))
    survey = Frequency(values, epsilon=visit.number("epsilon") or 0.0, protocol="k-ary")
    body = {part: visit.read_field(part).strip() for part in ("name", "title")}
    visit.do("createSurvey", body=body | {"survey": json.loads(survey.to_json()), "tickets": "required"})
    return visit.go(f"/survey/{body['name']}")


ROUTES = (
    ("GET", "/surveys", list_all),
    ("POST", "/surveys", create, list_all),
    ("GET", "/survey/{survey}", show_survey),
    ("POST", "/survey/{survey}/close", close),
)

"""Surveys: a public page on which the browser randomises an answer before it leaves; the curator sees the estimate."""

from __future__ import annotations

import json

from starlette.responses import Response

from mosha.core.errors import MoshaError
from mosha.server.errors import BadRequest
from mosha.server.pages import charts
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES", "device_part"]


def device_part(survey: Data) -> Data | None:
    """What the script needs in order to answer; None where the survey is of a kind that it does not speak."""
    from mosha.local import Survey  # noqa: PLC0415

    if survey.get("survey") != "frequency" or survey.get("protocol") != "k-ary":
        return None
    made = Survey.from_json(json.dumps(survey))
    values = [str(value) for value in made.values]  # type: ignore[attr-defined]
    if len(values) > 100:
        return None
    width = made.randomiser.width
    top, bottom = survey["odds"]
    first = made.report(made.values[0])[0]  # type: ignore[attr-defined]
    parts = {"size": len(values), "top": str(top), "bottom": str(bottom), "width": width, "tag": first}
    return parts | {"values": values}


def show_survey(visit: Visit) -> Response:
    found = visit.do("readSurvey", path=visit.path)
    part = device_part(found["survey"])
    top, bottom = found["survey"].get("odds", (1, 1))
    truth = None if part is None else top / (top + (part["size"] - 1) * bottom)
    epsilon = found["survey"].get("epsilon")
    estimated = _estimate(visit) if visit.may("survey.estimate") else None
    return visit.render("survey.html", found=found, part=part, truth=truth, epsilon=epsilon, estimated=estimated)


def _estimate(visit: Visit) -> Data:
    """The shares that were estimated so far, each with its bar."""
    said = visit.do("estimateSurvey", path=visit.path)
    rows = said["estimate"] if isinstance(said["estimate"], list) else []
    shares = [row.get("share") for row in rows]
    bars = [row.get("error") for row in rows]
    return {"accepted": said["accepted"], "rows": rows, "axis": charts.axis(shares, bars) if rows else (0.0, 1.0)}


def list_all(visit: Visit) -> Response:
    return _list(visit)


def _list(visit: Visit, problem: Data | None = None) -> Response:
    found = visit.do("listSurveys")["surveys"]
    can = visit.may("survey.create")
    return visit.render("surveys.html", 422 if problem else 200, found=found, can_create=can, problem=problem)


def create(visit: Visit) -> Response:
    from mosha.local import Frequency  # noqa: PLC0415

    try:
        values = [line.strip() for line in visit.typed("values").splitlines() if line.strip()]
        survey = Frequency(values, epsilon=visit.number("epsilon") or 0.0, protocol="k-ary")
        if len(values) > 100:
            raise BadRequest("server.field_wrong", parameter="values", expected="2-100")  # noqa: TRY301
        body = {part: visit.typed(part).strip() for part in ("name", "title")}
        visit.do("createSurvey", body=body | {"survey": json.loads(survey.to_json())})
    except (MoshaError, BadRequest) as error:
        return _list(visit, visit.problem(error))
    return visit.go(f"/survey/{body['name']}")


ROUTES = (
    ("GET", "/surveys", list_all),
    ("POST", "/surveys", create),
    ("GET", "/survey/{survey}", show_survey),
)

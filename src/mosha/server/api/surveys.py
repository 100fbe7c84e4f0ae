"""Surveys in the local model: reports are randomised on the device; the server collects them and never sees a truth."""

from __future__ import annotations

from mosha.server.api.operation import Call, Operation, Reply
from mosha.server.api.schemas import array, mapping, one_of, record, text
from mosha.server.api.shapes import NEWEST

__all__ = ["OPERATIONS"]


def create_survey(call: Call) -> Reply:
    from mosha.server.catalogue.surveys import describe_survey, open_survey  # noqa: PLC0415

    row = open_survey(call.service.database, call.body, call.principal.id)
    call.service.ledger.note("survey/opened", {"survey": row["name"], "by": call.principal.name})
    return Reply(describe_survey(row), 201)


def list_all(call: Call) -> Reply:
    from mosha.server.catalogue.surveys import describe_survey, list_surveys  # noqa: PLC0415

    rows, following = call.read_page(list_surveys, call.service.database)
    return Reply({"surveys": [describe_survey(row) for row in rows], "next": following})


def read_survey(call: Call) -> Reply:
    from mosha.server.catalogue.surveys import describe_survey, find_survey  # noqa: PLC0415

    return Reply(describe_survey(find_survey(call.service.database, call.path["survey"])))


def report(call: Call) -> Reply:
    from mosha.server.catalogue.surveys import add_reports, find_survey  # noqa: PLC0415

    name, said = find_survey(call.service.database, call.path["survey"])["name"], call.body
    call.service.rates.take("", f"survey {name}", per_minute=6000)  # never of names that anybody makes up
    return Reply(add_reports(call.service.database, name, said["reports"], said.get("tickets")), 202)


def close(call: Call) -> Reply:
    from mosha.server.catalogue.surveys import close_survey, describe_survey  # noqa: PLC0415

    return Reply(describe_survey(close_survey(call.service.database, call.path["survey"])))


def estimate(call: Call) -> Reply:
    from mosha.server.catalogue.surveys import estimate_survey, find_survey  # noqa: PLC0415

    return Reply(estimate_survey(find_survey(call.service.database, call.path["survey"])))


_REPORTS = array(text(100_000), most=1000)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="listSurveys",
        method="GET",
        path="/surveys",
        verb="survey.list",
        tag="surveys",
        summary="Surveys in the local model.",
        handler=list_all,
        query=NEWEST,
    ),
    Operation(
        name="createSurvey",
        method="POST",
        path="/surveys",
        verb="survey.create",
        status=201,
        tag="surveys",
        summary="Open a survey: its declaration is what `survey.to_dict()` gives.",
        handler=create_survey,
        body=record(
            {"name": text(63), "title": text(300), "survey": mapping()}, {"tickets": one_of("optional", "required")}
        ),
    ),
    Operation(
        name="readSurvey",
        method="GET",
        path="/surveys/{survey}",
        verb="survey.read",
        tag="surveys",
        summary="What a device needs in order to answer.",
        handler=read_survey,
    ),
    Operation(
        name="reportSurvey",
        method="POST",
        path="/surveys/{survey}/reports",
        verb="survey.report",
        status=202,
        tag="surveys",
        summary="Send reports, each in the wire format and base64. A ticket counts once, a copy without one again.",
        handler=report,
        body=record({"reports": _REPORTS}, {"tickets": _REPORTS}),
    ),
    Operation(
        name="closeSurvey",
        method="POST",
        path="/surveys/{survey}/close",
        verb="survey.close",
        tag="surveys",
        summary="Take no more reports.",
        handler=close,
    ),
    Operation(
        name="estimateSurvey",
        method="GET",
        path="/surveys/{survey}/estimate",
        verb="survey.estimate",
        tag="surveys",
        summary="The estimate with its error bars.",
        handler=estimate,
    ),
)

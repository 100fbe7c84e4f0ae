"""A survey over HTTP: devices report noise, the curator reads an estimate."""

import base64
import json
from typing import Any

import mosha


def test_reports_are_counted_and_what_is_not_ours_is_refused(house: Any) -> None:
    survey = mosha.local.Frequency(["never", "sometimes", "daily"], epsilon=2)
    said = {"name": "smoking", "title": "Do you smoke?", "survey": survey.to_dict()}
    assert house.call("wang", "POST", "/surveys", said).status_code == 201
    public = house.call(None, "GET", "/surveys/smoking").json()["survey"]
    device = mosha.local.Survey.from_json(json.dumps(public))
    assert device.id == survey.id
    reports = [base64.b64encode(device.report("never")).decode() for _ in range(600)]
    assert house.call(None, "POST", "/surveys/smoking/reports", {"reports": reports}).json()["accepted"] == 600
    other = mosha.local.Frequency(["a", "b"], epsilon=1)
    foreign = [base64.b64encode(other.report("a")).decode(), base64.b64encode(b"?").decode()]
    found = house.call(None, "POST", "/surveys/smoking/reports", {"reports": foreign}).json()
    assert found == {"accepted": 0, "rejected": 2}
    ticket = [base64.b64encode(b"one device").decode()]
    for taken in (1, 0):
        body = {"reports": [base64.b64encode(device.report("daily")).decode()], "tickets": ticket}
        assert house.call(None, "POST", "/surveys/smoking/reports", body).json()["accepted"] == taken
    estimate = house.call("wang", "GET", "/surveys/smoking/estimate").json()
    assert estimate["accepted"] == 601
    assert estimate["estimate"]
    assert house.call("li", "GET", "/surveys/smoking/estimate").status_code == 404
    assert house.call("wang", "POST", "/surveys/smoking/close").json()["state"] == "closed"
    assert house.call(None, "POST", "/surveys/smoking/reports", {"reports": []}).status_code == 409

"""Every operation, for everybody, on one's own things and on others': who may and who may not, written down by hand."""

from dataclasses import replace
from typing import Any

import pytest

import mosha
from mosha.server.api.operation import Call, Reply, perform
from mosha.server.api.table import OPERATIONS
from mosha.server.errors import NotFound, SignInNeeded
from mosha.server.people.credentials import find_by_secret, issue
from mosha.server.people.permissions import NOBODY, RULES, Principal, Scope, Thing, may
from mosha.server.people.principals import create_principal

EVERYBODY = "PACRULZOG"
SIGNED_IN = "ACRULZOG"
PEOPLE = "ACRULZO"
# P public, A administrator, C curator, R reviewer, U auditor, L li whose things they are, Z zhang who has a grant too,
# O somebody without a role, G an agent of zhang
EXPECTED = {
    "openSession": EVERYBODY,
    "closeSession": SIGNED_IN,
    "readMe": SIGNED_IN,
    "listTokens": PEOPLE,
    "createToken": PEOPLE,
    "revokeToken": "AL",
    "createAgent": PEOPLE,
    "listPrincipals": "ACRU",
    "createPrincipal": "AC",
    "invitePrincipal": "AC",
    "changePrincipal": "A",
    "listDatasets": SIGNED_IN,
    "createDataset": "C",
    "lookAtSource": "C",
    "readDataset": "CRULZG",
    "declareDataset": "C",
    "countersignDataset": "R",
    "freezeDataset": "CR",
    "thawDataset": "R",
    "retireDataset": "C",
    "liftDataset": "C",
    "createBlock": "C",
    "listGrants": "CRU",
    "createGrant": "C",
    "listMyGrants": SIGNED_IN,
    "readGrant": "CRUL",
    "delegateGrant": "L",
    "revokeGrant": "CR",
    "preview": "CRLZG",
    "ask": "LZG",
    "listRequests": SIGNED_IN,
    "readRequest": "CRUL",
    "withdrawRequest": "L",
    "decideRequest": "R",
    "readAnswer": "L",
    "readHead": EVERYBODY,
    "readEntries": "RU",
    "verifyLedger": "RU",
    "readStatement": "CRUL",
    "proposePublication": "CL",
    "listProposedPublications": "CRU",
    "decidePublication": "R",
    "listPublished": EVERYBODY,
    "readPublished": EVERYBODY,
    "readRegistryEntry": EVERYBODY,
    "readRegistryDetails": "CRULZG",
    "writeRegistryDetails": "C",
    "listSurveys": SIGNED_IN,
    "createSurvey": "C",
    "readSurvey": EVERYBODY,
    "reportSurvey": EVERYBODY,
    "closeSurvey": "C",
    "estimateSurvey": "CRU",
    "listLessons": EVERYBODY,
    "readLesson": EVERYBODY,
    "listSeries": EVERYBODY,
    "createSeries": "C",
    "feedSeries": "C",
    "readSeries": EVERYBODY,
    "drawSyntheticTable": "L",
    "priceTraining": "CR",
    "reserveTraining": "C",
    "listTrainings": SIGNED_IN,
    "readTraining": "CRU",
    "reportTraining": "C",
    "createWebhook": "A",
    "listWebhooks": "A",
    "deleteWebhook": "A",
}
NAMES = {"A": "ada", "C": "wang", "R": "zhao", "U": "sun", "L": "li", "Z": "zhang"}
PRICE = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits", "price": {"epsilon": 0.01}}
TRAINING = mosha.events.Laplace(1000).to_dict()
REASON = {"verdict": "approve", "reason": "a good one"}


@pytest.fixture(scope="module")
def scene(house: Any) -> tuple[Any, ...]:
    """Everybody, and things that belong to li."""
    database = house.service.database
    who = {letter: find_by_secret(database, house.tokens[name], "token") for letter, name in NAMES.items()}
    outsider = create_principal(database, kind="person", name="outsider")
    agent = create_principal(database, kind="agent", name="zhang's agent", parent=who["Z"].id)
    for letter, identity in (("O", outsider), ("G", agent)):
        secret = issue(database, identity, "token", seconds=3600).secret
        who[letter] = find_by_secret(database, secret, "token")
    who["P"] = NOBODY
    asked = house.answer("li", key="authorization", epsilon=0.01)
    grant = database.row("SELECT id, account FROM grants WHERE account = 'visits/li'")
    series = {"name": "weekly", "dataset": "visits", "measure": "count", "horizon": 4, "epsilon": 0.01}
    assert house.call("wang", "POST", "/series", series).status_code == 201
    said = {"request": asked["id"], "slug": "of-li", "title": "of li"}
    house.call("li", "POST", "/publications", said)
    path = {"dataset": "visits", "request": asked["id"], "grant": grant["id"], "principal": "zhang", "slug": "of-li"}
    plan = {"dataset": "visits", "name": "authorization", "event": TRAINING}
    training = house.call("wang", "POST", "/trainings", plan, key="authorization").json()["id"]
    path |= {
        "training": training,
        "token": who["L"].credential,
        "survey": "smoking",
        "webhook": "w-1",
        "series": "weekly",
        "lesson": "meaning",
    }
    return house.service, who, path, asked["id"]


def _body(name: Any, request: Any) -> Any:
    source = {"path": "visits.csv"}
    declaration = {"unit": {"person": "patient_id"}, "columns": {"days": {"type": "integer"}}}
    grant = {"principal": "zhang", "expires": "2099-01-01", "epsilon": 0.1}
    bodies = {
        "createToken": {"label": "a"},
        "createAgent": {"name": "a"},
        "createPrincipal": {"name": "a", "kind": "person"},
        "createDataset": {"name": "a", "source": source, "declaration": declaration, "promise": {"epsilon": 1}},
        "lookAtSource": {"source": source},
        "declareDataset": {"declaration": declaration},
        "liftDataset": {"reason": "looked"},
        "createBlock": {"name": "2026", "condition": {"column": "days", "equals": 1}},
        "createGrant": grant,
        "delegateGrant": grant,
        "preview": PRICE,
        "ask": PRICE,
        "decideRequest": REASON,
        "proposePublication": {"request": request, "slug": "a", "title": "a"},
        "decidePublication": REASON,
        "createSurvey": {"name": "a", "survey": {}, "title": "a"},
        "reportSurvey": {"reports": []},
        "createSeries": {"name": "a", "dataset": "visits", "measure": "count", "horizon": 12, "epsilon": 0.1},
        "feedSeries": {"step": 1, "rows": {}},
        "priceTraining": {"dataset": "visits", "event": TRAINING},
        "reserveTraining": {"dataset": "visits", "name": "a", "event": TRAINING},
        "reportTraining": {"steps": 1},
        "createWebhook": {"url": "https://example.org", "events": ["request.waiting"]},
    }
    return bodies.get(name, {})


def _reaches(operation: Any, service: Any, principal: Any, path: Any, request: Any) -> bool:
    """Whether the handler would be reached, without doing what it does."""
    reached = []
    marked = replace(operation, handler=lambda call: reached.append(call) or Reply())
    query = {"account": "visits/li"} if operation.name == "readStatement" else {}
    body = _body(operation.name, request) if operation.body is not None else {}
    try:
        perform(marked, Call(service, principal, path, query, body, key="k"))
    except SignInNeeded:
        assert principal.is_public
    except NotFound:
        assert not reached
    return bool(reached)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_exactly_those_may_who_are_written_down(operation: Any, scene: Any) -> None:
    service, who, path, request = scene
    allowed = {letter for letter in EVERYBODY if _reaches(operation, service, who[letter], path, request)}
    assert "".join(sorted(allowed)) == "".join(sorted(EXPECTED[operation.name]))


def test_every_operation_is_in_the_table_and_every_verb_has_a_rule() -> None:
    assert {operation.name for operation in OPERATIONS} <= set(EXPECTED)
    assert all(operation.verb in RULES for operation in OPERATIONS)


def test_what_is_not_in_the_rules_is_forbidden_to_everybody() -> None:
    king = Principal("p", "person", "king", roles=frozenset((r, "*") for r in ("administrator", "curator", "reviewer")))
    assert not may(king, "rows.read", Thing("visits"))
    assert not may(king, "", Thing())


@pytest.mark.parametrize("verb", ["request.decide", "dataset.countersign", "publication.decide"])
def test_nobody_decides_about_their_own_whatever_their_roles(verb: str) -> None:
    roles = frozenset((role, "*") for role in ("administrator", "curator", "reviewer", "analyst"))
    everything = Principal("p1", "person", "all", roles=roles)
    assert may(everything, verb, Thing("visits", frozenset({"p2"})))
    assert not may(everything, verb, Thing("visits", frozenset({"p1"})))
    assert not may(everything, verb, Thing("visits", frozenset({"p2", "p1"})))  # of an agent of theirs


def test_a_token_is_good_for_its_scope_alone() -> None:
    roles = frozenset({("analyst", "*")})
    narrow = Principal("p", "person", "li", roles=roles, scope=Scope(datasets=("visits",), verbs=("preview",)))
    assert may(narrow, "preview", Thing("visits"))
    assert not may(narrow, "preview", Thing("salaries"))
    assert not may(narrow, "ask", Thing("visits"))


def test_unknown_and_forbidden_look_alike(house: Any) -> None:
    known = house.ask("li", key="look alike", epsilon=0.01).json()["id"]
    replies = [house.call("zhang", "GET", f"/requests/{name}") for name in (known, "r-unknown")]
    assert [reply.status_code for reply in replies] == [404, 404]
    assert replies[0].content == replies[1].content


def test_a_disabled_person_and_their_agents_are_out_at_once(house: Any) -> None:
    database = house.service.database
    person = create_principal(database, kind="person", name="leaver")
    agent = create_principal(database, kind="agent", name="leaver's agent", parent=person)
    house.tokens["leaver"] = issue(database, person, "token", seconds=3600).secret
    house.tokens["leaver's agent"] = issue(database, agent, "token", seconds=3600).secret
    assert house.call("leaver", "GET", "/me").status_code == 200
    assert house.call("leaver's agent", "GET", "/me").status_code == 200
    assert house.call("ada", "POST", "/principals/leaver/changes", {"state": "disabled"}).status_code == 200
    assert house.call("leaver", "GET", "/me").status_code == 401
    assert house.call("leaver's agent", "GET", "/me").status_code == 401

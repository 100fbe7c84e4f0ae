"""Every kind over HTTP: graphs, synthetic tables and trainings that run elsewhere, all paid from one book."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import mosha
from mosha.core.unit import Unit
from mosha.server.catalogue.trainings import list_trainings, reserve
from tests.server.house import opened

EDGES = [(a, (a * 7 + 1) % 60) for a in range(60)] + [(a, (a * 11 + 5) % 60) for a in range(60)]
FRIENDS = {
    "name": "friends",
    "kind": "graph",
    "title": "Who calls whom",
    "source": {"path": "friends.csv"},
    "declaration": {"unit": {"edge": True}, "vertices": 60},
    "promise": {"epsilon": 50.0},
}
TO_LI = {"principal": "li", "epsilon": 40.0, "expires": "2099-01-01"}
SYNTHESIS = {"synthesize": {"columns": ["ward", "age"], "bins": {"age": 6}, "rows": 400}}
PLAN = mosha.events.Gaussian(20.0) * 100


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The demo with a graph at edge level and one at node level."""
    with opened(tmp_path_factory.mktemp("kinds"), requests_per_minute=10_000, previews_per_minute=10_000) as house:
        data = house.service.settings.folder / "data"
        lines = "".join(f"{a},{b}\n" for a, b in EDGES)
        (data / "friends.csv").write_text("from,to\n" + lines)
        (data / "people.txt").write_text("".join(f"{number}\n" for number in range(60)))
        people = FRIENDS | {"name": "people", "source": {"path": "friends.csv", "vertices": "people.txt"}}
        people |= {"declaration": {"unit": {"node": True, "max_degree": 20}}}
        assert house.call("wang", "POST", "/datasets", FRIENDS).status_code == 201
        assert house.call("wang", "POST", "/datasets", people).status_code == 409  # the same edges twice
        people["source"]["path"] = "calls.csv"  # type: ignore[index]
        (data / "calls.csv").write_text("from,to\n" + lines)
        assert house.call("wang", "POST", "/datasets", people).status_code == 201
        for name in ("friends", "people"):
            assert house.call("zhao", "POST", f"/datasets/{name}/countersign", {}).status_code == 200
            assert house.call("wang", "POST", f"/datasets/{name}/grants", TO_LI).status_code == 201
        yield house


def ask(house: Any, dataset: Any, plan: Any, *, key: Any, price: Any = None) -> Any:
    body = {"dataset": dataset, "plan": plan, "price": price or {"epsilon": 8.0}}
    reply = house.call("li", "POST", "/requests", body, key=key)
    assert reply.status_code == 202, reply.text
    return house.wait("li", reply.json()["id"])


def spent(house: Any, account: Any) -> Any:
    return house.service.ledger.account(account).spent


def test_a_graph_is_previewed_without_an_edge_and_asked_for_its_price(place: Any) -> None:
    body = {"dataset": "friends", "plan": {"graph": "edges"}, "price": {"epsilon": 8.0}}
    before = spent(place, "friends/li")
    preview = place.call("li", "POST", "/previews", body).json()
    assert preview["kind"] == "graph"
    assert preview["forecast"]["bars"]["edges"][0] < 1.5
    assert spent(place, "friends/li") == before
    found = ask(place, "friends", {"graph": "edges"}, key="edges")
    assert found["state"] == "answered"
    truth = len({frozenset(pair) for pair in EDGES if pair[0] != pair[1]})
    assert abs(found["answer"]["rows"][0][0] - truth) < 8  # false alarm: below e^-60
    assert spent(place, "friends/li") == pytest.approx(before + 8.0)


@pytest.mark.parametrize("verb", ["degree_histogram", "triangles", "components", "synthetic", "communities"])
def test_answers_about_a_graph_are_tables_with_error_bars(place: Any, verb: str) -> None:
    answer = ask(place, "friends", {"graph": verb}, key=verb, price={"epsilon": 1.0})["answer"]
    assert all(len(row) == len(answer["columns"]) for row in answer["rows"])
    values = [column["name"] for column in answer["columns"] if column["role"] == "value"]
    assert set(answer["errors"]["0.95"]) == set(values)
    if verb in ("degree_histogram", "triangles", "components"):
        assert all(bar > 0 for bar in answer["errors"]["0.95"][verb])


def test_at_node_level_the_vertices_are_a_file_and_nothing_public(place: Any) -> None:
    found = ask(place, "people", {"graph": "vertices"}, key="vertices", price={"epsilon": 4.0})
    assert abs(found["answer"]["rows"][0][0] - 60) < 16  # false alarm: e^-60
    described = place.call("li", "GET", "/datasets/people").json()["declaration"]
    assert described["vertices"] is None


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"declaration": {"unit": {"edge": True}}}, "declaration.vertices"),
        ({"declaration": {"unit": {"edge": True, "node": True}, "vertices": 5}}, "declaration.unit"),
        ({"declaration": {"unit": {"node": True}, "vertices": 5}}, "declaration.vertices"),
        ({"declaration": {"unit": {"node": True}}}, "source.vertices"),
        ({"declaration": {"unit": {"edge": True}, "vertices": 5, "ends": ["a"]}}, "declaration.ends"),
        ({"source": {"path": "visits.csv", "vertices": "../../etc/passwd"}}, "source.vertices"),
    ],
)
def test_a_wrong_declaration_of_a_graph_is_refused_by_its_field(place: Any, change: Any, parameter: str) -> None:
    reply = place.call("wang", "POST", "/datasets", FRIENDS | {"name": "wrong"} | change)
    assert reply.status_code == 422
    assert reply.json()["parameter"] == parameter


@pytest.mark.parametrize(
    "plan",
    [
        {"graph": "adjacency"},
        {"graph": "stars", "options": {"leaves": "many"}},
        {"graph": "edges", "vertices": 3},
        {"graph": "__class__"},
        {},
    ],
)
def test_a_wrong_question_about_a_graph_costs_nothing(place: Any, plan: Any) -> None:
    before = spent(place, "friends/li")
    body = {"dataset": "friends", "plan": plan, "price": {"epsilon": 1.0}}
    assert 400 <= place.call("li", "POST", "/requests", body, key="wrong").status_code < 500
    assert place.ask("li", "SELECT COUNT(*) FROM friends", key="sql", dataset="friends").status_code == 422
    assert spent(place, "friends/li") == before


def test_an_edge_list_that_cannot_be_read_fails_after_payment_as_any_paid_step_does(place: Any) -> None:
    """Whether lines can be read is known to nobody before payment."""
    data = place.service.settings.folder / "data"
    (data / "broken.csv.gz").write_bytes(b"\x1f\x8b not a gzip file")
    said = FRIENDS | {"name": "broken", "source": {"path": "broken.csv.gz"}}
    assert place.call("wang", "POST", "/datasets", said).status_code == 201
    place.call("zhao", "POST", "/datasets/broken/countersign", {})
    place.call("wang", "POST", "/datasets/broken/grants", TO_LI)
    found = ask(place, "broken", {"graph": "edges"}, key="broken", price={"epsilon": 1.0})
    assert found["state"] == "failed"
    assert found["problem"]["code"] == "server.step_failed"
    assert spent(place, "broken/li") == pytest.approx(1.0)
    assert place.service.ledger.account("broken/li").failures == 1
    (data / "broken.csv.gz").unlink()
    gone = ask(place, "broken", {"graph": "edges"}, key="gone", price={"epsilon": 1.0})
    assert gone["state"] == "refused"
    assert spent(place, "broken/li") == pytest.approx(1.0)


def test_a_synthetic_table_is_paid_once_and_drawn_as_often_as_one_likes(place: Any) -> None:
    price = {"epsilon": 0.4, "delta": 1e-8}
    preview = place.call("li", "POST", "/previews", {"dataset": "visits", "plan": SYNTHESIS, "price": price}).json()
    assert preview["kind"] == "synthetic"
    assert set(preview["forecast"]["bars"]) == {"ward", "age", "rows"}
    found = ask(place, "visits", SYNTHESIS, key="a table", price=price)
    assert found["state"] == "answered"
    assert found["answer"]["synthetic"]["rows"] == 400
    assert len(found["answer"]["rows"]) == 20
    paid = spent(place, "visits/li")
    path = f"/requests/{found['id']}/table"
    first, again, other = (place.call("li", "GET", f"{path}?rows=50&seed={seed}&format=csv") for seed in (1, 1, 2))
    assert first.status_code == 200
    assert first.text.startswith("# synthetic table")
    rows = list(csv.DictReader(io.StringIO(first.text.split("\n", 1)[1])))
    assert len(rows) == 50
    assert {row["ward"] for row in rows} <= {"cardiology", "surgery", "pediatrics", "neurology", ""}
    assert first.content == again.content != other.content
    marked = place.call("li", "GET", f"{path}?rows=50&seed=1&format=csv&bom=true")
    assert marked.content == b"\xef\xbb\xbf" + first.content
    parquet = place.call("li", "GET", f"{path}?format=parquet")
    assert parquet.content[:4] == b"PAR1"
    assert b"mosha.synthetic" in parquet.content
    assert spent(place, "visits/li") == paid
    assert place.call("zhang", "GET", path).status_code == 404
    assert place.call("wang", "GET", path).status_code == 404


def test_an_answer_that_is_no_synthetic_table_has_no_rows_to_draw(place: Any) -> None:
    found = place.answer("li", key="plain", epsilon=0.01)
    assert place.call("li", "GET", f"/requests/{found['id']}/table").status_code == 404


@pytest.mark.parametrize(
    "options",
    [
        {"rows": 10**9},
        {"columns": "ward"},
        {"derived": {}},
        {"method": "magic"},
        {"columns": ["patient"]},
        {"between": {"age": 5}},
        {"bins": {"age": -1}},
        {"bins": {"age": "many"}},
        {"keys": {"ward": 5}},
        {"hierarchy": {"ward": ["a"]}},
        {"between": {"age": ["low", None]}},
        {"rows": True},
    ],
)
def test_a_wrong_synthesis_costs_nothing(place: Any, options: Any) -> None:
    body = {"dataset": "visits", "plan": {"synthesize": options}, "price": {"epsilon": 0.1, "delta": 1e-9}}
    before = spent(place, "visits/li")
    assert 400 <= place.call("li", "POST", "/requests", body, key="wrong synthesis").status_code < 500
    assert spent(place, "visits/li") == before


def training(house: Any, name: Any, *, key: Any, event: Any = PLAN, **more: Any) -> Any:
    body = {"dataset": "visits", "name": name, "event": event.to_dict(), "delta": 1e-7, "steps": 100} | more
    return house.call("wang", "POST", "/trainings", body, key=key)


def test_a_training_elsewhere_is_priced_reserved_and_reported(place: Any) -> None:
    priced = place.call(
        "wang", "POST", "/trainings/price", {"dataset": "visits", "event": PLAN.to_dict(), "delta": 1e-7}
    )
    assert priced.status_code == 200, priced.text
    assert {payer["account"] for payer in priced.json()["payers"]} == {"visits", "patients"}
    before = spent(place, "visits")
    made = training(place, "readmission", key="t1")
    assert made.status_code == 201, made.text
    cost = spent(place, "visits") - before
    (share,) = (payer for payer in priced.json()["payers"] if payer["account"] == "visits")
    assert 0 < cost <= share["cost"] * (1 + 1e-9)
    assert training(place, "readmission", key="t1").json()["id"] == made.json()["id"]
    assert training(place, "another", key="t1").status_code == 422
    assert spent(place, "visits") == pytest.approx(before + cost)
    path = f"/trainings/{made.json()['id']}"
    assert place.call("wang", "POST", f"{path}/report", {"steps": 40}).json()["reported_steps"] == 40
    for steps in (39, 101):
        assert place.call("wang", "POST", f"{path}/report", {"steps": steps}).status_code == 422
    done = place.call("wang", "POST", f"{path}/report", {"steps": 100, "state": "finished"}).json()
    assert done["state"] == "finished"
    assert place.call("wang", "POST", f"{path}/report", {"steps": 100, "state": "finished"}).json() == done
    assert place.call("wang", "POST", f"{path}/report", {"steps": 90, "state": "failed"}).status_code == 409
    assert spent(place, "visits") == pytest.approx(before + cost)
    assert place.call("li", "GET", path).status_code == 404


def test_a_training_that_ends_early_stays_paid_and_counts_as_a_failure(place: Any) -> None:
    made = training(place, "abandoned", key="t2", event=mosha.events.Gaussian(200.0)).json()
    before, failures = spent(place, "visits"), place.service.ledger.account("visits").failures
    body = {"steps": 3, "state": "abandoned"}
    assert place.call("wang", "POST", f"/trainings/{made['id']}/report", body).json()["state"] == "abandoned"
    assert spent(place, "visits") == before
    assert place.service.ledger.account("visits").failures == failures + 1


def test_authors_and_keys_that_read_alike_together_pay_each_for_their_own_training(place: Any) -> None:
    database, ledger = place.service.database, place.service.ledger
    said = {"dataset": "visits", "name": "alike", "event": mosha.events.Gaussian(200.0).to_dict(), "delta": 1e-7}
    before = spent(place, "visits")
    made = [reserve(database, ledger, said, author, key)[0] for author, key in (("ann", "b c"), ("ann b", "c"))]
    assert made[0]["id"] != made[1]["id"]
    first = reserve(database, ledger, said, "ann", "b c")[0]
    assert first["id"] == made[0]["id"]
    entries = [row["id"] for row in list_trainings(database, dataset="visits") if row["name"] == "alike"]
    assert len(entries) == 2
    assert spent(place, "visits") > before


@pytest.mark.parametrize(
    "change",
    [
        {"event": {"event": "Magic"}},
        {"event": mosha.events.Gaussian(0.01).to_dict()},
        {"unit": mosha.Example().to_dict()},
        {"unit": {"unit": "Nobody"}},
        {"grant": "g-nobody"},
        {"dataset": "nothing"},
    ],
)
def test_a_training_that_cannot_be_paid_for_leaves_no_trace(place: Any, change: Any) -> None:
    before, head = spent(place, "visits"), place.service.ledger.head
    body = {"dataset": "visits", "name": "wrong", "event": PLAN.to_dict()} | change
    reply = place.call("wang", "POST", "/trainings", body, key="wrong")
    assert 400 <= reply.status_code < 500, reply.text
    assert (spent(place, "visits"), place.service.ledger.head) == (before, head)


def test_the_client_has_the_same_verbs_for_graphs_synthetic_tables_and_trainings(place: Any, tmp_path: Path) -> None:
    base = str(place.client.base_url)
    lab = mosha.connect_to(base, token=place.tokens["li"])
    triangles = lab.graph("friends").triangles()
    assert triangles.forecast(epsilon=1.0) > 0
    answer = triangles.release(epsilon=1.0, key="by client")
    assert triangles.release(epsilon=1.0, key="by client").table == answer.table  # type: ignore[attr-defined]
    with pytest.raises(mosha.errors.InvalidParameter, match="is not a graph"):
        lab.graph("visits")
    made = lab.synthesize("visits", columns=["ward", "age"], bins={"age": 3}, rows=30, epsilon=0.3, delta=1e-8)
    assert len(made.sample(10)["ward"]) == 10
    assert made.save(tmp_path / "wards.csv", rows=5).read_text().count("\n") == 7
    curator = mosha.connect_to(base, token=place.tokens["wang"])
    with curator.train("visits", mosha.events.Gaussian(300.0), name="small", key="c1", steps=5) as running:
        running.report(5)
    assert running.state == "finished"
    with (
        pytest.raises(ZeroDivisionError),
        curator.train("visits", mosha.events.Gaussian(300.0), name="broken", key="c2") as broken,
    ):
        1 / 0  # noqa: B018
    assert broken.state == "failed"


def test_one_page_of_the_ledger_shows_all_kinds(place: Any) -> None:
    """A question, a graph, a synthetic table, a series and a training, side by side, and the chain holds."""
    series = {"name": "kinds", "dataset": "visits", "measure": "count", "horizon": 2, "epsilon": 0.01}
    assert place.call("wang", "POST", "/series", series).status_code == 201
    entries = place.call("sun", "GET", "/ledger/entries?limit=1000").json()["entries"]
    names = " | ".join(entry["content"].get("name") or "" for entry in entries if entry["kind"] == "pay")
    for word in ("training readmission", "synthetic table", "EdgeCount", "VertexCount", "counter"):
        assert word in names, names
    units = {type(Unit.from_dict(e["content"]["unit"])).__name__ for e in entries if "unit" in e["content"]}
    assert {"Person", "Edge", "Node"} <= units
    assert place.call("sun", "POST", "/ledger/verify", {}).json()["well"]
    with httpx.Client(base_url=place.client.base_url, follow_redirects=True, timeout=120) as sun:
        sun.post("/demo", data={"person": "sun"})
        page = "".join(sun.get(address).text for address in ("/audit", "/audit?before=100", "/audit?before=200"))
    assert all(
        f'<span class="tag">{kind}</span>' in page for kind in ("graph", "synthetic table", "training", "series")
    )

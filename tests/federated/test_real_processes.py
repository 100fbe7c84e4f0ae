"""A SuperLink and SuperNodes as processes on loopback: hostile clients, vanished ones, a server that is killed."""

import importlib.util
import json
from pathlib import Path

import pytest

import mosha

pytest.importorskip("flwr")
EXAMPLE = Path(__file__).parents[2] / "examples" / "federated_flower"
_SPEC = importlib.util.spec_from_file_location("run_example", EXAMPLE / "run.py")
run_example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run_example)


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with run_example.Loopback(nodes=4, folder=tmp_path_factory.mktemp("federation")) as running:
        yield running


def places(folder):
    folder.mkdir()
    return {name: str(folder / file) for name, file in PLACES.items()}


PLACES = {"ledger": "privacy.db", "checkpoint": "checkpoint", "report": "report.json"}


def told(settings, federation, until=lambda report: report.get("done")):
    """The report of a run, once it says so."""
    place = Path(settings["report"])
    federation.wait(lambda _: place.exists() and until(_read(place)), 280)
    return _read(place)


def _read(place):
    try:
        return json.loads(place.read_text())
    except ValueError:
        return {}


def test_a_killed_server_goes_on_after_its_last_round_and_pays_once(federation, tmp_path):
    """Round 1 and 2 are read from the ledger, round 3 is run; a ward that vanishes in each round harms nothing."""
    settings = places(tmp_path / "a") | {"rounds": 3}
    federation.run(fault="killed", **settings)
    before = told(settings, federation, lambda report: len(report.get("rounds", [])) == 2)
    federation.run(fault="1:vanish", **settings)
    after = told(settings, federation)
    assert [line["round"] for line in after["rounds"]] == [1, 2, 3]
    assert after["rounds"][:2] == before["rounds"]
    assert after["spent"] == before["spent"] == pytest.approx(60, rel=1e-3)
    assert after["run"] != before["run"]
    ledger = mosha.Ledger(settings["ledger"])
    assert ledger.verify().ok
    assert [entry.kind for entry in ledger.entries()].count("pay") == 1


def test_hostile_clients_move_the_model_no_more_than_the_clip(federation, tmp_path):
    settings = places(tmp_path / "b") | {"rounds": 1}
    federation.run(fault="1:nan 2:huge 3:shape 4:weight", **settings)
    after = told(settings, federation)
    latest = mosha.federated.Checkpoint(settings["checkpoint"]).latest()
    size = sum(float((array.astype(float) ** 2).sum()) for array in latest.values()) ** 0.5
    assert after["spent"] == pytest.approx(60, rel=1e-3)
    assert 0 < size < 2 * (2 + 2) / 4 + 2  # two clipped updates of length 2 over 4 planned clients, and the noise


def test_secure_aggregation_over_the_network_with_a_ward_that_vanishes(federation, tmp_path):
    settings = places(tmp_path / "c") | {"rounds": 1}
    federation.run(where="shares", fault="1:vanish", **settings)
    after = told(settings, federation)
    assert len(after["rounds"]) == 1
    assert after["rounds"][0]["accuracy"] > 0.5
    assert after["spent"] == pytest.approx(60, rel=1e-3)

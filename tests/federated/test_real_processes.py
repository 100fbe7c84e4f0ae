"""A SuperLink and SuperNodes as processes on loopback: hostile nodes, vanished ones, servers that are killed.

Nodes 1 and 2 are wards 1 and 2; nodes 3 and 4 are one ward that is there twice, and node 3 sends its replies again. Six
clients were planned with. Noise is 0.0004 on a weight after three rounds, so that a margin of 0.005 is above 12 sd.
"""

import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha

pytest.importorskip("flwr")
HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "federated_flower"
_SPEC = importlib.util.spec_from_file_location("run_example", EXAMPLE / "run.py")
run_example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run_example)
PATIENCE = 560
PLANNED, PUSH, CLIP = 6, 0.5, 1.0


class Faulty(run_example.Loopback):  # type: ignore[misc, name-defined]
    """Four nodes of three wards; the third one is the replaying node."""

    def node(self, ward: Any) -> Any:
        said = super().node(min(ward, 3))
        said[-1] += f" place={ward}"
        if ward != 3:
            return said
        return [sys.executable, str(HERE / "replaying_node.py"), str(self.folder / "replays"), *said[1:]]

    def wait_for_report(self, settings: Any, until: Any = lambda report: report.get("done")) -> Any:
        """The report of a run, once it says so."""
        place = Path(settings["report"])
        self.wait(lambda _: until(_read(place)), PATIENCE)
        return _read(place)

    def faulty(self, folder: Any, **config: Any) -> Any:
        """Submit the app with faults; its files are in this folder."""
        folder.mkdir(exist_ok=True)
        settings = {name: str(folder / file) for name, file in run_example.PLACES.items()} | config
        self.run(HERE / "faulty_app", **settings)
        return settings


def _read(place: Any) -> Any:
    try:
        return json.loads(place.read_text())
    except (OSError, ValueError):
        return {}


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with Faulty(nodes=4, folder=tmp_path_factory.mktemp("federation")) as running:
        yield running


@pytest.fixture(scope="module")
def hostile(federation: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """Two rounds with faults, then the server is killed; started again, it runs the third, with more faults."""
    folder, faults = tmp_path_factory.mktemp("hostile"), {"rounds": 3, "dies-after": 2}
    faults["faults"] = "1.1:nan 2.1:shape 3.1:zero 4.1:weight 1.2:inf 2.2:type 1.3:huge 2.3:vanish"  # type: ignore[assignment]
    settings = federation.faulty(folder, **faults)
    before = federation.wait_for_report(settings, lambda report: len(report.get("rounds", [])) == 2)
    settings = federation.faulty(folder, **faults | {"dies-after": 0})
    return settings, before, federation.wait_for_report(settings)


def moved(outcome: Any, number: Any) -> Any:
    """By how many pushes over the planned number each ward moved its weight in this round."""
    rounds = [np.zeros(3), *map(np.array, outcome[2]["rounds"])]
    return (rounds[number] - rounds[number - 1]) * PLANNED


def near(*expected: Any) -> Any:
    return pytest.approx(expected, abs=0.005 * PLANNED)


def test_nan_a_wrong_shape_and_a_norm_of_zero_count_as_nothing_and_a_claimed_weight_as_one(hostile: Any) -> None:
    assert moved(hostile, 1).tolist() == near(0, 0, PUSH)


def test_infinity_and_a_wrong_type_count_as_nothing_and_replayed_replies_once(hostile: Any, federation: Any) -> None:
    """Nodes 3 and 4 are one ward: who is there twice, under two names of Flower's, counts twice and no more."""
    assert moved(hostile, 2).tolist() == near(0, 0, 2 * PUSH)
    assert len((federation.folder / "replays").read_text().splitlines()) >= 3  # one after round 1, two after round 2


def test_a_norm_of_1e30_counts_as_one_clip_and_a_node_that_vanishes_as_nothing(hostile: Any) -> None:
    assert moved(hostile, 3).tolist() == near(CLIP, 0, 2 * PUSH)


def test_a_killed_server_goes_on_after_its_last_round_and_pays_once(hostile: Any) -> None:
    settings, before, after = hostile
    assert after["rounds"][:2] == before["rounds"]
    assert len(after["rounds"]) == 3
    assert after["run"] != before["run"]
    assert after["spent"] == before["spent"] > 0
    assert payments(settings) == 1


def payments(settings: Any) -> Any:
    ledger = mosha.Ledger(settings["ledger"])
    assert ledger.verify().ok
    return [entry.kind for entry in ledger.entries()].count("pay")


def test_fewer_nodes_than_planned_change_neither_noise_nor_divisor(hostile: Any) -> None:
    """Four of six are there, and the price is that of the plan."""
    plan = mosha.federated.ServerSide(rounds=3, clients=PLANNED, clip=CLIP, noise_multiplier=0.002, delta=1e-4)
    assert hostile[2]["spent"] == pytest.approx(plan.epsilon(), rel=1e-3)


def test_a_killed_server_goes_on_with_correlated_noise(federation: Any, tmp_path: Path) -> None:
    """Whose turn it is depends on names that Flower makes up; over two rounds every node has had its turn."""
    settings = federation.faulty(tmp_path / "turns", what="turns", rounds=3, **{"dies-after": 2})
    before = federation.wait_for_report(settings, lambda report: len(report.get("rounds", [])) == 2)
    federation.faulty(tmp_path / "turns", what="turns", rounds=3)
    after = federation.wait_for_report(settings)
    assert after["rounds"][:2] == before["rounds"]
    assert len(after["rounds"]) == 3
    assert after["spent"] == before["spent"] > 0
    assert payments(settings) == 1
    met = np.array(after["rounds"][1]) * PLANNED / 2  # a turn has half of the planned clients
    assert met.tolist() == near(PUSH, PUSH, 2 * PUSH)


def test_a_question_is_answered_over_the_network_though_a_node_vanishes_with_its_value(
    federation: Any, tmp_path: Path
) -> None:
    settings = federation.faulty(tmp_path / "question", what="question", faults="2.1:vanish")
    after = federation.wait_for_report(settings)
    assert np.allclose(after["answer"], [1, 0, 2], atol=0.9)
    assert 3900 < after["spent"] <= 4000
    assert payments(settings) == 1


def test_a_node_that_sends_nan_counts_as_nothing_under_secure_aggregation(federation: Any, tmp_path: Path) -> None:
    """Its zeros and its share of the noise are in the sum, and all four survive."""
    settings = federation.faulty(tmp_path / "shares", what="shares", rounds=1, faults="1.1:nan")
    after = federation.wait_for_report(settings)
    assert np.array(after["rounds"][0]).tolist() == pytest.approx([0, PUSH / 4, 2 * PUSH / 4], abs=0.01)
    assert payments(settings) == 1


def test_hospitals_with_different_case_mix_hide_each_patient(federation: Any, tmp_path: Path) -> None:
    settings = {name: str(tmp_path / file) for name, file in run_example.PLACES.items()}
    federation.run(where="hospitals", rounds=2, **settings)
    after = federation.wait_for_report(settings)
    assert len(after["rounds"]) == 2
    assert after["rounds"][1]["accuracy"] > 0.5  # a guess is right a quarter of the time
    assert 3.9 < after["spent"] <= 4


def test_the_example_runs_with_noise_in_shares_under_secure_aggregation(federation: Any, tmp_path: Path) -> None:
    settings = {name: str(tmp_path / file) for name, file in run_example.PLACES.items()}
    federation.run(where="shares", rounds=1, **settings)
    after = federation.wait_for_report(settings)
    assert len(after["rounds"]) == 1
    assert after["rounds"][0]["accuracy"] > 0.5
    assert after["spent"] == pytest.approx(60, rel=1e-3)
    assert math.isfinite(after["rounds"][0]["epsilon"])

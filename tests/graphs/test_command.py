"""`mosha graph` pays from a ledger, answers, and refuses with one line."""

import json

import pytest

from mosha.cli import main
from mosha.graphs import read


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "friends.txt"
    path.write_text("".join(f"{i} {(i + step) % 60}\n" for i in range(60) for step in (1, 2, 3)), encoding="utf-8")
    return path


def test_a_statistic_is_asked_and_paid(edges, capsys):
    for statistic in ("edges", "triangles", "degree-sequence"):
        assert main(["graph", "ask", str(edges), statistic, "--vertices", "60", "--epsilon", "0.5", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["error"] > 0
        assert document["receipt"]["cost"] <= 0.5
    assert main(["graph", "ask", str(edges), "seeds", "--vertices", "60", "--epsilon", "0.5"]) == 0
    assert "seeds" in capsys.readouterr().out


def test_a_budget_ends_and_bad_questions_are_refused(edges, capsys):
    ask = ["graph", "ask", str(edges), "edges", "--vertices", "60"]
    assert main([*ask, "--epsilon", "9"]) == 1
    assert main(["graph", "ask", str(edges), "gossip", "--vertices", "60", "--epsilon", "1"]) == 1
    assert main([*ask, "--epsilon", "1", "--max-degree", "3"]) == 1
    assert "cannot pay" in capsys.readouterr().err


def test_node_level_and_a_synthetic_graph(edges, tmp_path, capsys):
    ask = ["graph", "ask", str(edges), "edges", "--vertices", "60", "--unit", "node", "--max-degree", "6"]
    assert main([*ask, "--epsilon", "1", "--account", "people"]) == 0
    made = tmp_path / "made.txt"
    assert main(["graph", "synthesise", str(edges), str(made), "--vertices", "60", "--epsilon", "2", "--json"]) == 0
    capsys.readouterr()
    assert read(made, vertices=60).edge_count > 50

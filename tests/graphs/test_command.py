"""`mosha graph` pays from a ledger, answers, and refuses with one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosha.cli import main
from mosha.graphs import read


@pytest.fixture
def edges(tmp_path: Path) -> Any:
    path = tmp_path / "friends.txt"
    path.write_text("".join(f"{i} {(i + step) % 60}\n" for i in range(60) for step in (1, 2, 3)), encoding="utf-8")
    return path


def test_a_statistic_is_asked_and_paid(edges: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for statistic in ("edges", "triangles", "degree-sequence"):
        assert main(["graph", "ask", str(edges), statistic, "--vertices", "60", "--epsilon", "0.5", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert np.max(document["error"]) > 0
        assert document["receipt"]["cost"] <= 0.5
    assert main(["graph", "ask", str(edges), "seeds", "--vertices", "60", "--epsilon", "0.5"]) == 0
    assert "seeds" in capsys.readouterr().out


@pytest.mark.parametrize("statistic", ["degree-sequence", "degree-distribution", "communities"])
def test_all_numbers_that_were_paid_for_are_shown(
    statistic: str, edges: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["graph", "ask", str(edges), statistic, "--vertices", "60", "--epsilon", "1", "--key", "once"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["value"]
    lines = shown.splitlines()[1 : 1 + -(-len(value) // 12)]
    assert [float(word) for line in lines for word in line.split()] == pytest.approx(value, rel=1e-4)


def test_triangles_at_node_level_say_first_that_they_take_time_and_then_why_they_have_no_bar(
    edges: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    node = ["--vertices", "60", "--unit", "node", "--max-degree", "6", "--epsilon", "1"]
    assert main(["graph", "ask", str(edges), "triangles", *node, "--limit-epsilon", "0.5", "--account", "poor"]) == 1
    assert "--key" in capsys.readouterr().err  # said before the refusal, so before any payment
    assert main(["graph", "ask", str(edges), "triangles", *node]) == 0
    printed = capsys.readouterr()
    assert "no error bar" in printed.out
    assert "linear programs" in printed.err
    assert main(["graph", "ask", str(edges), "triangles", *node, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] is None


def test_a_budget_ends_and_bad_questions_are_refused(edges: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["graph", "ask", str(edges), "edges", "--vertices", "60"]
    assert main([*ask, "--epsilon", "9"]) == 1
    assert main(["graph", "ask", str(edges), "gossip", "--vertices", "60", "--epsilon", "1"]) == 1
    assert "cannot pay" in capsys.readouterr().err


BAD = {
    "--vertices must": ["edges", "--vertices", "-1"],
    "--epsilon must": ["edges", "--epsilon", "nan"],
    "--delta must": ["triangles", "--delta", "2"],
    "--confidence must": ["edges", "--confidence", "1"],
    "--limit-epsilon must": ["edges", "--limit-epsilon", "-3"],
    "--limit-delta must": ["edges", "--limit-delta", "1"],
    "--max-degree goes": ["edges", "--max-degree", "3"],
    "--max-degree must": ["edges", "--unit", "node", "--max-degree", "0"],
    "--unit must be": ["edges", "--unit", "person"],
    "--columns names": ["edges", "--columns", "a"],
    "--columns goes": ["edges", "--columns", "a,b"],
    "--k must be at least": ["seeds", "--k", "0"],
    "--k must be below": ["stars", "--k", "60"],
    "--k goes": ["edges", "--k", "3"],
    "STATISTIC must be": ["gossip"],
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_refused_is_named_as_it_was_typed_and_costs_nothing(
    said: Any, edges: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    statistic, *options = BAD[said]
    usual = [word for name, value in (("--vertices", "60"), ("--epsilon", "1")) for word in (name, value)]
    assert main(["graph", "ask", str(edges), statistic, *usual, *options]) == 1
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in edges.parent.iterdir()) == [edges.name]  # not even a ledger


def test_a_synthetic_graph_that_has_nowhere_to_go_is_not_paid_for(
    edges: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = edges.parent
    for output in (folder / "nowhere" / "made.txt", folder, edges):
        assert main(["graph", "synthesize", str(edges), str(output), "--vertices", "60", "--epsilon", "1"]) == 1
        assert "OUTPUT" in capsys.readouterr().err
    for file in (folder / "absent.txt", folder):
        assert main(["graph", "ask", str(file), "edges", "--vertices", "60", "--epsilon", "1"]) == 1
        assert "FILE is" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == [edges.name]
    assert read(edges, vertices=60).edge_count == 180


def test_the_columns_of_a_wide_csv_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "calls.csv"
    path.write_text("id,a,b\n" + "".join(f"{i + 100},{i},{(i + 1) % 60}\n" for i in range(60)), encoding="utf-8")
    ask = ["graph", "ask", str(path), "edges", "--vertices", "60", "--epsilon", "3"]
    assert main(ask) == 1
    assert "columns" in capsys.readouterr().err
    assert main([*ask, "--columns", "a,b", "--json"]) == 0  # the refusal cost nothing: 3 is the whole budget
    assert json.loads(capsys.readouterr().out)["value"] > 40  # noise beyond 20 at epsilon 3: 1e-26


def test_node_level_and_a_synthetic_graph(edges: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["graph", "ask", str(edges), "edges", "--vertices", "60", "--unit", "node", "--max-degree", "6"]
    assert main([*ask, "--epsilon", "1", "--account", "people"]) == 0
    made = tmp_path / "made.txt"
    assert main(["graph", "synthesize", str(edges), str(made), "--vertices", "60", "--epsilon", "2", "--json"]) == 0
    capsys.readouterr()
    assert read(made, vertices=60).edge_count > 50

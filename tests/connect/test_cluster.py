"""Spark on several machines: the answers of one machine, with skewed people, with an executor lost in the middle."""

import re
from typing import Any

import numpy as np
import pytest

from mosha.graphs import Graph
from tests.connect import cluster, programs


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a cluster of two executors tells; half of all rows are those of one person."""
    folder = tmp_path_factory.mktemp("cluster")
    generator = np.random.default_rng()
    size = 4000
    columns = {"who": np.where(generator.random(size) < 0.5, 0, generator.integers(1, 400, size))}
    columns["ward"] = np.array(cluster.WARDS)[generator.integers(0, 3, size)]
    days = generator.integers(0, 41, size) / 4
    found = programs.tell("cluster", columns | {"days": days}, folder)
    answers = {name: cluster.answer(question) for name, question in cluster.questions(folder / "visits.parquet")}
    edges = np.stack([columns["who"], (days * 40).astype(np.int64)], axis=1)
    graph = cluster.count_graph(Graph.of(edges, vertices=cluster.VERTICES))
    return found | {"expected": answers, "graph": graph}


def test_every_question_is_answered_as_on_one_machine_whether_spark_adapts_its_plan_or_not(told: Any) -> None:
    assert len(told["told"]) == 2 * len(told["expected"]) + 1
    for name, answer in told["told"].items():
        assert answer == told["expected"][name.partition(",")[0]], name


def test_an_executor_that_is_lost_in_the_middle_changes_no_sum_and_is_paid_once(told: Any) -> None:
    """The sums after the loss are among those compared above; the same key gives the same answer again."""
    assert "sums, an executor lost" in told["told"]
    assert told["paid"] == {"spent": pytest.approx(1.0), "failures": 0, "same": True, "lost": True}


def test_a_graph_with_a_hub_is_counted_as_on_one_machine_with_an_executor_lost_or_not(told: Any) -> None:
    """Edges, degrees, stars, triangles and components; half of all edges are those of one vertex."""
    assert told["graphs"] == [told["graph"]] * 2


def test_people_are_brought_together_once_and_the_file_is_read_at_most_twice(told: Any) -> None:
    """In the plans `p` is the person; a statement about rows needs no exchange by person at all."""
    for name, plans in told["plans"].items():
        assert plans, name
        for plan in plans:
            by_person = re.findall(r"Exchange hashpartitioning\(p#\d+L, \d+\)", plan)
            assert len(by_person) == (0 if name == "keys from the data" else 1), plan
            assert 1 <= plan.count("FileScan parquet") <= 2, plan

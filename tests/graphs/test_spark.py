"""On a real local Spark every exact statistic is the one of a single machine."""

from typing import Any

import numpy as np
import pytest

import mosha
from mosha.core.errors import DataError, InvalidParameter
from mosha.graphs import Graph, protect
from tests.spark import spark_session as spark_session  # noqa: PLC0414  (a fixture)

VERTICES = 24


@pytest.fixture(scope="module")
def both(spark_session: Any) -> tuple[Any, ...]:
    """The same messy edges on Spark and in memory: loops, repetitions, both directions, ends that do not exist."""
    generator = np.random.default_rng()
    hubs = np.stack([generator.integers(0, 4, 40), generator.integers(0, VERTICES, 40)], axis=1)
    pairs = np.concatenate([hubs, generator.integers(0, VERTICES, (24, 2))])
    pairs = np.concatenate([pairs, pairs[:8, ::-1], [[3, 3], [4, 4]]])
    messy = [*map(tuple, pairs.tolist()), (1, VERTICES + 5), (-1, 2)]
    rows = ", ".join(f"({a}L, {b}L)" for a, b in messy)
    frame = spark_session.sql(f"SELECT * FROM VALUES {rows} AS edges(source, target)")
    on_spark = protect(frame, unit=mosha.Edge(), vertices=VERTICES)
    return on_spark, Graph.of(pairs, vertices=VERTICES), frame


def test_spark_counts_what_one_machine_counts(both: Any) -> None:
    (protected, graph, _) = both
    spark = protected.graph
    assert spark.edge_count == graph.edge_count
    assert np.array_equal(spark.degree_counts(VERTICES), graph.degree_counts(VERTICES))
    assert spark.highest_degrees() == graph.highest_degrees()
    assert spark.stars(3) == graph.stars(3)
    assert spark.triangles == graph.triangles
    assert spark.most_common_neighbors == graph.most_common_neighbors
    assert spark.components == graph.components


def test_rounds_of_windows_bound_degrees_as_one_edge_after_the_other_does(both: Any) -> None:
    (protected, graph, _) = both
    assert np.array_equal(protected.graph.projected_degrees(2), graph.projected_degrees(2))


def test_a_release_on_spark_is_near_the_truth(both: Any) -> None:
    protected, graph, _ = both
    question = protected.triangles().measurement(epsilon=20)
    answer, _ = question.step(None, protected.graph, None, mosha.noise.secure())
    assert abs(answer["value"] - graph.triangles) <= question.error(1 - 1e-9, answer)


def test_bad_spark_input_is_refused_without_a_word_about_the_data(both: Any, spark_session: Any) -> None:
    _, _, frame = both
    with pytest.raises(InvalidParameter, match="vertices=n"):
        protect(frame, unit=mosha.Edge())
    with pytest.raises(DataError, match="two columns"):
        protect(frame, unit=mosha.Edge(), vertices=3, columns=("source", "nowhere"))
    for wrong in ("n", -1, True, 2**31):
        with pytest.raises(InvalidParameter):
            protect(frame, unit=mosha.Edge(), vertices=wrong)
    dates = spark_session.sql("SELECT DATE '2020-01-01' AS source, 1 AS target")
    with pytest.raises(DataError, match="whole numbers or text"):
        protect(dates, unit=mosha.Edge(), vertices=3)
    twice = spark_session.sql("SELECT 1 AS source, 1 AS source")
    with pytest.raises(DataError, match="two columns"):
        protect(twice, unit=mosha.Edge(), vertices=3)
    with pytest.raises(InvalidParameter, match="memory"):
        protect(frame, unit=mosha.Edge(), vertices=3).seeds(1)


def test_labels_on_spark_are_read_as_in_memory(spark_session: Any) -> None:
    rows = [("ann", "bob"), ("bob", "ann"), ("7", "ann"), ("007", "bob"), ("x", "ann"), ("-1", "7"), ("7\n", "bob")]
    rows += [("9223372036854775808", "ann"), ("0.5", "bob"), (None, "ann"), ("bob", "bob")]
    frame = spark_session.createDataFrame(rows, "source string, `the target` string")
    people = ["bob", 7, "ann", "-1", "0.5", 2**63, "7\n", "cleo"]
    spark, memory = (protect(source, unit=mosha.Edge(), vertices=people) for source in (frame, rows))
    assert tuple(spark.labels) == tuple(memory.labels)
    found = {(row["a"], row["b"]) for row in spark.graph.frame.collect()}  # type: ignore[attr-defined]
    assert found == set(memory.graph)  # type: ignore[call-overload]
    assert len(found) == 7
    counted, numbered = (protect(source, unit=mosha.Edge(), vertices=8).graph for source in (frame, rows))
    assert counted.edge_count == numbered.edge_count == 0

"""Spark Connect: the answers of this machine from a session that is asked over the network, and deadlines there."""

from typing import Any

import numpy as np
import pytest

from tests.connect import cluster, programs


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a remote session tells, and the answers of DuckDB."""
    folder = tmp_path_factory.mktemp("remote")
    source = np.random.default_rng()
    columns = {"who": source.integers(0, 90, 900), "ward": np.array(cluster.WARDS)[source.integers(0, 3, 900)]}
    columns["days"] = source.integers(0, 41, 900) / 4
    found = programs.tell("remote", columns, folder, packages=("pyspark", "grpc_status"))
    answers = {name: cluster.answer(question) for name, question in cluster.questions(folder / "visits.parquet")}
    return found | {"expected": answers}


def test_every_question_is_answered_as_on_this_machine(told: Any) -> None:
    assert told["answers"] == told["expected"]


def test_a_deadline_breaks_a_question_off_and_the_session_goes_on(told: Any) -> None:
    assert told["late"] == ["DeadlineExceeded", "connect.deadline", True]
    assert told["afterwards"] == told["expected"]["sums"]


def test_a_server_that_is_gone_is_not_waited_for_beyond_the_deadline(told: Any) -> None:
    """The client asks a server that was killed again and again, for ten minutes and more."""
    assert told["gone"] == ["DeadlineExceeded", "connect.deadline", True]


def test_a_table_is_opened_by_the_address_of_its_server_and_its_name(told: Any) -> None:
    """With types of a declaration, which made the table let go of its view. Noise of scale 1/50: false alarm e^-50."""
    (channels,) = told["by address"]["parts"][0]["channels"]
    assert abs(channels[0] - 900) < 1
    assert told["nobody"] == ["SourceUnavailable", "connect.spark_no_answer", True]


def test_a_table_of_spark_is_registered_and_asked_behind_the_server(told: Any) -> None:
    """The noise has scale 30/40: it strays by 60 with a chance of e^-80."""
    assert told["served"].keys() == {"columns", "absent", "answer", "again"}, told["served"]
    assert told["served"]["answer"]["state"] == "answered", told["served"]
    assert abs(told["served"]["answer"]["answer"]["rows"][0][0] - 900) < 60
    assert {"who", "ward", "days"} <= set(str(told["served"]["columns"]).replace("'", " ").split())
    assert told["served"]["absent"] == "server.source_unreadable"


def test_a_table_of_spark_is_where_its_files_are_whatever_it_is_called(told: Any) -> None:
    """A view has no such place: nobody can tell what it reads."""
    taken, unsure = "server.registered_before", "server.may_be_registered"
    assert list(told["served"]["again"].values()) == [taken, taken, unsure, 201]

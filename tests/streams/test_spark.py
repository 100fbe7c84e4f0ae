"""Spark Structured Streaming: micro-batches become steps, and a batch that is offered again is not answered anew."""

import json
from pathlib import Path
from typing import Any

import mosha
from mosha.streams import counter, serve, to_spark


def test_micro_batches_of_a_real_stream_become_steps(spark_session: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for i in range(3):
        (source / f"{i}.json").write_text("\n".join(json.dumps({"who": f"p{j}"}) for j in range(10 * (i + 1))))
    person = mosha.Person("who")
    account = mosha.Ledger(str(tmp_path / "book.db")).account("spark", unit=person, rho=1e6)
    frame = spark_session.readStream.schema("who string").option("maxFilesPerTrigger", 1).json(str(source))
    told: dict[Any, Any] = {}
    with serve(account, counter(unit=person, horizon=5, rho=1e5), name="spark", state=tmp_path / "s") as service:
        publish = lambda step, release: told.setdefault(step, []).append(release.value)
        handle = to_spark(service, publish, columns=["who"])
        query = frame.writeStream.foreachBatch(handle).option("checkpointLocation", str(tmp_path / "c")).start()
        query.processAllAvailable()
        query.stop()
        assert sorted(told) == [1, 2, 3]
        handle(spark_session.createDataFrame([("x",)], "who string"), 2)  # the last batch again, with other rows
        assert told[3][0] == told[3][-1]
        assert service.taken == 3
    # ten thousand deviations would be needed to miss this
    assert abs(told[3][0] - 60) < 5 or abs(told[3][0] - (10 + 20 + 30)) < 5

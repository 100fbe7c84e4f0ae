"""Models of a protected table learn the same wherever it lives, and ask the engine once."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mosha
from mosha import Ledger, Person
from mosha.models import (
    CategoricalNB,
    GaussianNB,
    HistogramDensity,
    KolmogorovSmirnovTest,
    LinearRegression,
    RandomForestClassifier,
    StandardScaler,
)
from mosha.models.sums import table_rows, table_sums

UNIT = Person("who", at_most=2)


@pytest.fixture(scope="module")
def frame() -> Any:
    drawn, count = np.random.default_rng(), 1500
    table = pd.DataFrame({"who": [f"p{i // 2}" for i in range(count)], "a": drawn.uniform(0, 10, count)})
    table["b"] = drawn.integers(-5, 5, count)
    table["y"] = 2 * table.a - table.b + drawn.normal(0, 1, count)
    table["g"] = np.where(drawn.random(count) < 0.4, "u", "v")
    table.loc[7, "a"] = np.nan
    return table


BOX, PRICE = {"a": (0, 10), "b": (-5, 5)}, {"epsilon": 1e7}
MODELS = {
    "line": lambda t: LinearRegression(between=BOX, target=(-10, 30), **PRICE).fit(t, "y", columns=["a", "b"]).coef_,  # type: ignore[arg-type]
    "distance": lambda t: [_compare(t).statistic],
    "bayes": lambda t: GaussianNB(classes=("u", "v"), between=BOX, **PRICE).fit(t, "g", columns=["a", "b"]).theta_,  # type: ignore[arg-type]
    "words": lambda t: CategoricalNB(classes=("u", "v"), categories=WORDS, **PRICE).fit(t, "g").feature_log_prob_[0],  # type: ignore[arg-type, has-type]
    "leaves": lambda t: _grow().fit(t, "g", columns=["a", "b"]).estimators_[0].leaves,
    "cells": lambda t: HistogramDensity(bins=4, between=(0, 10), **PRICE).fit(t, column="a").counts_,  # type: ignore[arg-type]
}
"""What all kinds of sums say, with next to no noise."""
WORDS = {"b": (-1, 0, 1)}


def _grow() -> Any:
    return RandomForestClassifier(classes=("u", "v"), between=BOX, n_estimators=2, random_state=1, **PRICE)  # type: ignore[arg-type]


def _compare(table: Any) -> Any:
    test = KolmogorovSmirnovTest(between=(0, 10), groups=("u", "v"), bins=8, **PRICE)  # type: ignore[arg-type]
    return test.run(table, columns=("a", "g"))


def learn(table: Any, names: Any) -> Any:
    return np.concatenate([np.ravel(MODELS[name](table)) for name in names])


def in_postgresql(url: Any, frame: Any) -> tuple[Any, ...]:
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS learnt")
        cursor.execute("CREATE TABLE learnt (who text, a double precision, b bigint, y double precision, g text)")
        with cursor.copy("COPY learnt FROM STDIN") as copy:
            for row in frame.itertuples(index=False):
                copy.write_row(list(row))
    return url, {"table": "learnt"}


@pytest.mark.parametrize(("name", "models"), [("postgresql", list(MODELS)), ("spark", ["line", "distance"])])
def test_every_engine_teaches_what_duckdb_teaches(
    name: str, models: Any, frame: Any, tmp_path: Path, request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, honest = [], table_sums.answer  # type: ignore[attr-defined]
    for module in (table_sums, table_rows):
        monkeypatch.setattr(module, "answer", lambda question: (asked.append(question), honest(question))[1])
    purse = Ledger.memory().account("engines", unit=UNIT, epsilon=1e9)
    here = learn(mosha.protect(frame, unit=UNIT, account=purse), models)
    del asked[:]
    if name == "spark":
        frame.to_parquet(tmp_path / "learnt.parquet")
        place, options = request.getfixturevalue("spark_session").read.parquet(str(tmp_path / "learnt.parquet")), {}
    else:
        place, options = in_postgresql(request.getfixturevalue("postgres_server").url("postgres"), frame)
    there = learn(mosha.protect(place, unit=UNIT, account=purse, **options), models)
    assert there == pytest.approx(here, abs=2e-3)
    assert len(asked) == 2 * len(models)  # each looked at once and asked once


KEYED = {
    "moments": lambda t: StandardScaler(between={"a": (0, 10)}, **PRICE).fit(t, columns=["a"], key="monday"),  # type: ignore[arg-type]
    "cells": lambda t: HistogramDensity(bins=4, between=(0, 10), **PRICE).fit(t, column="a", key="monday"),  # type: ignore[arg-type]
    "groups": lambda t: KolmogorovSmirnovTest(between=(0, 10), groups=("u", "v"), bins=8, **PRICE).run(  # type: ignore[arg-type]
        t, columns=("a", "g"), key="monday"
    ),
}


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_one_key_over_two_files_pays_for_one_of_them(kind: Any, ending: str, tmp_path: Path) -> None:
    """Their names differ far behind their beginning: once, the second model was given the answer of the first."""
    purse, tables = Ledger.memory().account("files", unit=UNIT, epsilon=1e9), []
    for name in ("first", "second"):
        path = tmp_path / ("long" * 40) / name / f"visits.{ending}"
        path.parent.mkdir(parents=True)
        frame = pd.DataFrame({"who": ["p", "q"], "a": [1.0, 9.0], "g": ["u", "v"]})
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
        types = {"who": "text", "a": "real", "g": "text"} if ending == "csv" else None
        tables.append(mosha.protect(path, unit=UNIT, account=purse, schema=types))
    KEYED[kind](tables[0])
    spent = purse.spent
    KEYED[kind](tables[0])
    with pytest.raises(mosha.errors.InvalidParameter, match="monday"):
        KEYED[kind](tables[1])
    assert purse.spent == spent

"""A census under glass: what the Adult data say about hours, schooling and income, for epsilon 2.

Reads adult.data.gz from $MOSHA_DATA/adult, or from ../shared/data/adult beside this project:

    python examples/adult.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import mosha
from mosha.tables import count, mean, median, standard_deviation

NAMES = ["age", "work", "weight", "education", "years", "marital", "occupation", "relationship", "race", "sex"]
NAMES += ["gain", "loss", "hours", "country", "income"]
NUMBERS = {"age", "weight", "years", "gain", "loss", "hours"}
INCOMES = ["<=50K", ">50K"]
DEGREES = ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]


def census() -> pa.Table | None:
    """The rows, one for each person; None where the data are not on this machine."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("MOSHA_DATA", beside)) / "adult" / "adult.data.gz"
    if not path.exists():
        return None
    types = {name: pa.int64() if name in NUMBERS else pa.string() for name in NAMES}
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=NAMES, skip_rows=1),
        parse_options=csv.ParseOptions(delimiter=",", ignore_empty_lines=True),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.string())),
    )
    columns = [pc.cast(pc.utf8_trim(table[name], " "), types[name]) for name in NAMES]
    return pa.table(dict(zip(NAMES, columns, strict=True)))


def main() -> int:
    """Five questions to one account."""
    table = census()
    if table is None:
        print("adult/adult.data.gz is not here: set MOSHA_DATA to the folder that holds adult/.")
        return 1
    account = mosha.Ledger.memory().account("census", unit=mosha.Row(), epsilon=2)
    people = mosha.protect(table, unit=mosha.Row(), account=account)
    by_income = people.group_by("income", keys=INCOMES)
    questions = {
        "Who earns more, works more?": by_income.aggregate(
            people=count(), hours=mean("hours", between=(0, 80)), spread=standard_deviation("hours", between=(0, 80))
        ),
        "How old are they?": by_income.aggregate(age=median("age", between=(16, 100))),
        "Which degrees are most frequent?": people.top("education", k=3, candidates=DEGREES),
        "Do years of school go with hours of work?": people.correlation(["years", "hours"], between=[(1, 16), (0, 80)]),
        "How many people of each age earn more?": people.where(mosha.col("income") == ">50K").histogram(
            {"age": [17, 30, 40, 50, 60, 90]}
        ),
    }
    for words, question in questions.items():
        answer = question.release(epsilon=0.4)
        print(f"\n{words}")
        for row, bars in zip(answer, _rows(answer.error(0.95)), strict=True):
            cells = (_cell(name, value, bars[name], "rows" * (name in answer.in_rows)) for name, value in row.items())
            print("  " + ", ".join(cells))
    print(f"\nSpent {account.spent:.3g} of 2; left {account.remaining:.2f}.")
    return 0


def _rows(columns: dict[str, list[object]]) -> list[dict[str, object]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cell(name: str, value: object, bar: object, unit: str) -> str:
    if isinstance(value, float) and isinstance(bar, float):
        return f"{name} {value:,.{0 if value > 100 else 2}f} +- {bar:.2g} {unit}".rstrip()
    return f"{name} {value}"


if __name__ == "__main__":
    sys.exit(main())

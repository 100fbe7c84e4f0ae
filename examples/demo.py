"""What Mosha does, on the visits of a made-up hospital: `make demo`.

A table is protected, a few questions are asked, each answer is shown with its error bar and with what is left of the
budget, one question is refused, and a picture is drawn. The hospital is generated (see hospital.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hospital import WARDS, write
from rich.console import Console
from rich.table import Table

import mosha
from mosha.tables import Answer, Question, count, mean

OUTPUT = Path("demo-output")
PATIENT = mosha.Person("patient_id", at_most=9)
SCHEMA = {"patient_id": "integer", "age": "integer", "ward": "text", "days": "integer", "cost": "real"}


def questions(visits: mosha.tables.Table) -> dict[str, Question]:
    """Five questions about all patients, none about one of them."""
    wards = visits.group_by("ward", keys=WARDS)
    return {
        "How many patients stayed longer than a week?": visits.where(mosha.col("days") > 7).persons(),
        "What does a stay cost, in the middle?": visits.median("cost", between=(0, 50_000)),
        "How old are patients, at the quarters?": visits.quantiles("age", [0.25, 0.5, 0.75], between=(0, 110)),
        "Which two wards have the most visits?": visits.top("ward", k=2, candidates=WARDS),
        "How many visits has each ward, and how long?": wards.aggregate(
            visits=count(), days=mean("days", between=(0, 30))
        ),
    }


def lines(answer: Answer) -> str:
    """Each row of an answer in one line, with its error bars."""
    written = []
    for row, bars in zip(answer, _rows(answer.error(0.95)), strict=True):
        named = len(row) > 1
        cells = [str(row[key]) for key in answer.keys]
        for name in answer.columns:
            digits = 0 if name in answer.whole else _count_digits(bars[name])
            cells.append(f"{name + ' ' if named else ''}{row[name]:,.{digits}f} +- {bars[name]:,.{digits}f}")
        written.append(", ".join(cells))
    return "\n".join(written)


def _count_digits(bar: float) -> int:
    """As many decimals as show two digits of an error bar: none from ten on."""
    return 0 if bar >= 10 else 1 if bar >= 1 else 2


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def main() -> None:
    """Ask, pay, show, be refused, draw."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    screen = Console(highlight=False)
    write(OUTPUT / "visits.csv")
    ledger = mosha.Ledger(OUTPUT / "privacy.db")
    account = ledger.account("visits", unit=PATIENT, epsilon=3)
    visits = mosha.protect(OUTPUT / "visits.csv", unit=PATIENT, account=account, schema=SCHEMA)
    screen.print(f"[bold]The promise[/bold]: {account.promise}, hidden: {PATIENT.describe()}")
    screen.print("Nobody counts for more than 9 visits, and nobody here has more: nothing is cut, the bar is noise.\n")

    table = Table("question", "answer and error (95%)", "cost", "left", show_lines=True)
    answer = None
    for words, question in questions(visits).items():
        answer = question.release(epsilon=0.5)
        receipt = answer.receipt
        table.add_row(words, lines(answer), f"{receipt.cost:.3g}", f"{receipt.remaining:.3g}")
    screen.print(table)

    try:
        visits.mean("cost", between=(0, 50_000)).release(epsilon=1.0)
    except mosha.errors.BudgetExceeded as refusal:
        screen.print("\nOne more: what does a stay cost, on average? For epsilon 1. [bold]Refused[/bold]:")
        screen.print(f"  {refusal}")

    picture = OUTPUT / "wards.png"
    assert answer is not None
    answer.plot().savefig(picture)
    screen.print(f"\nWritten: {picture} (the last answer), {ledger.place} (the book).")
    screen.print("Next: .venv/bin/mosha ledger show demo-output/privacy.db; .venv/bin/mosha explain --epsilon 3")
    screen.print("In a browser: .venv/bin/pip install '.[server]', then .venv/bin/mosha serve --demo", markup=False)


if __name__ == "__main__":
    main()

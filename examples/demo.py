"""What Mosha does, on the visits of a made-up hospital: `make demo`.

A ledger is opened, a few questions are asked, each answer is shown with its error bar and with what is left of the
budget, one question is refused, and a picture is drawn. The hospital is generated (see hospital.py).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hospital import WARDS, visits
from rich.console import Console
from rich.table import Table

import mosha
from mosha.mechanisms import Count, Histogram, laplace, mean, permute_and_flip

OUTPUT = Path("demo-output")
PATIENT = mosha.Person("patient_id", at_most=3)


@dataclass(frozen=True)
class Question:
    """What is asked, and how its answer is read out."""

    words: str
    measurement: mosha.Measurement
    show: Any


def questions() -> list[Question]:
    """Four questions about all patients, none about one of them."""
    wards = Histogram(keys=WARDS, column="ward")
    return [
        Question(
            "How many stays were longer than a week?",
            laplace(Count(between=(8, 365), column="days"), unit=PATIENT, epsilon=0.5),
            lambda release: (f"{release.value:,}", f"{release.error(0.95):,.0f}"),
        ),
        Question(
            "How long is a stay, on average (0 to 30 days)?",
            mean(between=(0, 30), column="days", unit=PATIENT, epsilon=0.5),
            lambda release: (f"{release.value['mean']:.2f} days", f"{release.error(0.95)['mean']:.2f}"),
        ),
        Question(
            "Which ward has the most visits?",
            permute_and_flip(wards, unit=PATIENT, epsilon=0.5),
            lambda release: (str(release.value), ""),
        ),
        Question(
            "How many visits has each ward?",
            laplace(wards, unit=PATIENT, epsilon=1.0),
            lambda release: (
                "\n".join(f"{ward} {count:,}" for ward, count in zip(WARDS, release.value, strict=True)),
                f"{max(release.error(0.95)):,.0f} each",
            ),
        ),
    ]


def main() -> None:
    """Ask, pay, show, be refused, draw."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    screen = Console(highlight=False)
    data = visits()
    ledger = mosha.Ledger(OUTPUT / "privacy.db")
    account = ledger.account("visits", unit=PATIENT, epsilon=3)
    screen.print(f"[bold]The promise[/bold]: {account.promise}, hidden: {PATIENT.describe()}")
    screen.print(
        "At most 3 visits of each patient are used, so totals are a little low; the error bar covers the noise.\n"
    )

    table = Table("question", "answer", "error (95%)", "cost", "left", show_lines=True)
    release = None
    for question in questions():
        release = account.open(question.measurement).step(data)
        answer, error = question.show(release)
        receipt = release.receipt
        table.add_row(
            question.words, answer, error and f"+- {error}", f"{receipt.cost:.3g}", f"{receipt.remaining:.3g}"
        )
    screen.print(table)

    refused = mean(between=(0, 50_000), column="cost", unit=PATIENT, epsilon=1.0)
    try:
        account.open(refused).step(data)
    except mosha.errors.BudgetExceeded as refusal:
        screen.print("\nOne more: what does a stay cost, on average? For epsilon 1. [bold]Refused[/bold]:")
        screen.print(f"  {refusal}")

    picture = OUTPUT / "wards.png"
    assert release is not None
    figure = release.plot()
    figure.set_size_inches(8, 4.5)
    figure.savefig(picture)
    screen.print(f"\nWritten: {picture} (the last answer), {ledger.place} (the book).")
    screen.print("Next: .venv/bin/mosha ledger show demo-output/privacy.db; .venv/bin/mosha explain --epsilon 3")


if __name__ == "__main__":
    main()
